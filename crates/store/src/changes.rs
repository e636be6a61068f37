//! Wake-ups without queues.
//!
//! A subscriber holds a cursor and a watch. A watch carries one number, the newest. A slow subscriber finds the newest
//! number when it comes back, and reads what it missed from the log. So a stalled subscriber costs its watch and
//! nothing more, and slows no other.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bough_session::{Incarnation, SessionId};
use tokio::sync::watch;

use crate::sync::lock;
use crate::types::{ChangeCursor, ChangePage, IncarnationPosition, SessionChange};
use bough_record::Position;

/// How many changes are kept, in a hub or in the catalogue; older ones are a gap.
pub const CHANGES_KEPT: usize = 65_536;

/// Announces changes, and wakes the watches. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ChangeHub {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: Incarnation,
    /// How many changes are kept.
    most: usize,
    newest: watch::Sender<u64>,
    state: Mutex<HubState>,
}

#[derive(Debug, Default)]
struct HubState {
    number: u64,
    /// Changes up to this one are no longer remembered.
    forgotten: u64,
    /// The newest changes, in order.
    kept: VecDeque<SessionChange>,
    watches: HashMap<SessionId, watch::Sender<Wake>>,
}

/// What a session's watch carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// The end of the session's feed; `None` if it must be read.
    pub end: Option<FeedEnd>,
    /// Counts wake-ups.
    pub count: u64,
}

/// The end of a session's feed, as far as this process has seen it change. Everything up to there is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedEnd {
    /// The incarnation of the session.
    pub incarnation: Incarnation,
    /// How far its feed goes.
    pub position: Position,
    /// Whether it was deleted there, if only for a moment.
    pub deleted: bool,
}

impl Wake {
    /// Merges one more change. Changes of one incarnation may be announced in any order.
    fn add(&mut self, change: Option<FeedEnd>) {
        self.count += 1;
        self.end = match (self.end, change) {
            (Some(before), Some(now)) if before.incarnation == now.incarnation => Some(FeedEnd {
                position: before.position.join(now.position),
                deleted: before.deleted || now.deleted,
                ..now
            }),
            _ => change,
        };
    }
}

/// A watch over all sessions.
#[derive(Debug)]
pub struct ChangeWatch {
    receiver: watch::Receiver<u64>,
}

/// A watch over one session.
#[derive(Debug)]
pub struct SessionWatch {
    receiver: watch::Receiver<Wake>,
    hub: ChangeHub,
    session: SessionId,
}

impl ChangeHub {
    /// A hub that counts from the beginning of a new epoch.
    #[must_use]
    pub fn new(epoch: Incarnation) -> Self {
        Self::keeping(epoch, CHANGES_KEPT)
    }

    /// The same for a store that may hold sessions which this hub does not know: its first change counts as forgotten,
    /// so that a caller that asks for everything gets a gap.
    #[must_use]
    pub fn going_on(epoch: Incarnation) -> Self {
        let hub = Self::new(epoch);
        {
            let mut state = hub.lock();
            (state.number, state.forgotten) = (1, 1);
        }
        hub
    }

    /// The same, with another number of changes that are kept.
    #[must_use]
    pub fn keeping(epoch: Incarnation, most: usize) -> Self {
        let (newest, state) = (watch::Sender::default(), Mutex::default());
        Self { shared: Arc::new(Shared { epoch, most, newest, state }) }
    }

    /// Publishes the change of an incarnation to `end`, since the newest of `known` positions that is of the same
    /// incarnation: another incarnation has published nothing yet.
    pub(crate) fn publish_since(
        &self,
        session: &SessionId,
        known: impl IntoIterator<Item = IncarnationPosition>,
        end: IncarnationPosition,
        deleted: bool,
    ) -> u64 {
        let IncarnationPosition { incarnation, position } = end;
        let start = known.into_iter().find(|known| known.incarnation == incarnation);
        let start = start.map_or_else(Position::default, |known| known.position);
        self.publish(session, incarnation, start..position, deleted)
    }

    /// Announces and remembers that the records of a session in a range of its feed became durable, and wakes the
    /// subscribers. Returns the number of the change.
    pub fn publish(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        range: Range<Position>,
        deleted: bool,
    ) -> u64 {
        let change = |number| SessionChange {
            number,
            session_id: session.clone(),
            incarnation,
            after: range.start,
            position: range.end,
            deleted,
        };
        let end = FeedEnd { incarnation, position: range.end, deleted };
        self.notify(session, Some(end), |state| {
            if session.is_documents() {
                // Documents are in no feed.
                return;
            }
            let change = change(state.number);
            state.remember(change, self.shared.most);
        })
    }

    /// Wakes the subscribers of a session, in a store that keeps its changes elsewhere. Without an `end`, they have to
    /// read where the session's feed ends.
    pub fn wake(&self, session: &SessionId, end: Option<FeedEnd>) {
        self.notify(session, end, |_| {});
    }

    fn notify(
        &self,
        session: &SessionId,
        end: Option<FeedEnd>,
        remember: impl FnOnce(&mut HubState),
    ) -> u64 {
        let mut state = self.lock();
        state.number += 1;
        let number = state.number;
        remember(&mut state);
        if let Some(sender) = state.watches.get(session) {
            sender.send_modify(|wake| wake.add(end));
        }
        drop(state);
        // Numbers are given out under the lock and sent outside of it; the newest must win.
        self.shared.newest.send_if_modified(|newest| {
            let newer = *newest < number;
            *newest = (*newest).max(number);
            newer
        });
        number
    }

    /// A watch over all sessions.
    #[must_use]
    pub fn watch(&self) -> ChangeWatch {
        ChangeWatch { receiver: self.shared.newest.subscribe() }
    }

    /// A watch over one session.
    #[must_use]
    pub fn watch_session(&self, session: &SessionId) -> SessionWatch {
        let mut state = self.lock();
        let sender = state.watches.entry(session.clone()).or_default();
        SessionWatch { receiver: sender.subscribe(), hub: self.clone(), session: session.clone() }
    }

    /// Whether a subscriber watches a session.
    #[must_use]
    pub fn is_watched(&self, session: &SessionId) -> bool {
        self.lock().watches.contains_key(session)
    }

    /// Where the count is now.
    #[must_use]
    pub fn cursor(&self) -> ChangeCursor {
        ChangeCursor { epoch: self.shared.epoch, number: self.lock().number }
    }

    /// The changes after a cursor, as far as they are remembered; without a cursor none, and the cursor of now.
    #[must_use]
    pub fn changes(&self, after: Option<&ChangeCursor>, limit: usize) -> ChangePage {
        match after {
            Some(cursor) => self.changes_after(cursor, limit),
            None => ChangePage::none_before(self.cursor()),
        }
    }

    fn changes_after(&self, cursor: &ChangeCursor, limit: usize) -> ChangePage {
        let state = self.lock();
        let epoch = self.shared.epoch;
        let known = cursor.epoch == epoch && cursor.number <= state.number;
        let gap = !known || cursor.number < state.forgotten;
        let after = if known { cursor.number } else { 0 };
        let first = state.kept.partition_point(|change| change.number <= after);
        let found = state.kept.range(first..).take(limit.max(1));
        let changes: Vec<SessionChange> = found.cloned().collect();
        let number = match changes.last() {
            Some(last) if changes.len() >= limit.max(1) => last.number,
            _ => state.number,
        };
        ChangePage { changes, next: ChangeCursor { epoch, number }, gap }
    }

    fn forget_watch(&self, session: &SessionId) {
        let mut state = self.lock();
        let unused = state.watches.get(session).is_some_and(|sender| {
            // The watch that is being dropped still counts itself.
            sender.receiver_count() <= 1
        });
        if unused {
            state.watches.remove(session);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HubState> {
        lock(&self.shared.state)
    }
}

impl HubState {
    fn remember(&mut self, change: SessionChange, most: usize) {
        if self.kept.len() >= most
            && let Some(oldest) = self.kept.pop_front()
        {
            self.forgotten = oldest.number;
        }
        self.kept.push_back(change);
    }
}

impl ChangeWatch {
    /// Waits until something changed since the last call, or since the watch was made. `false` when
    /// the store is gone.
    pub async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }

    /// Counts what happened so far. What is counted can be read.
    #[must_use]
    pub fn newest(&self) -> u64 {
        *self.receiver.borrow()
    }
}

impl SessionWatch {
    /// Waits until the session changed since the last call, or since the watch was made, and returns the end of its
    /// feed. `None` if the store is gone.
    pub async fn changed(&mut self) -> Option<Wake> {
        self.receiver.changed().await.ok()?;
        Some(*self.receiver.borrow_and_update())
    }
}

impl Drop for SessionWatch {
    fn drop(&mut self) {
        self.hub.forget_watch(&self.session);
    }
}
