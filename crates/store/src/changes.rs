//! Wake-ups: who waits for what, without queues.
//!
//! A subscriber holds a cursor and a watch. A watch carries one number, the newest; a subscriber that is
//! slow finds the newest when it comes back, and reads what it missed from the log. So a stalled
//! subscriber costs its watch and nothing more, and slows nobody.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bough_session::{Incarnation, SessionId};
use tokio::sync::watch;

use crate::types::{ChangeCursor, ChangePage, Position, SessionChange};

/// How many changed sessions a hub remembers; older changes are a gap, unless the store keeps them
/// elsewhere.
pub const CHANGES_KEPT: usize = 65_536;

/// Where changes are announced, and from where the watches are woken. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ChangeHub {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: Incarnation,
    newest: watch::Sender<u64>,
    state: Mutex<HubState>,
}

#[derive(Debug, Default)]
struct HubState {
    number: u64,
    /// Changes up to this one are no longer remembered.
    forgotten: u64,
    by_number: BTreeMap<u64, SessionChange>,
    by_session: HashMap<SessionId, u64>,
    watches: HashMap<SessionId, watch::Sender<Wake>>,
}

/// What a session's watch carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Where the session's feed ends, as far as this process has seen it change.
    pub position: Position,
    /// Counts wake-ups, so that a deletion or a new life, which may repeat a position, still wakes.
    pub count: u64,
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
        Self::starting_at(epoch, 0)
    }

    /// A hub that goes on counting in an epoch; what came before `number` is kept elsewhere.
    #[must_use]
    pub fn starting_at(epoch: Incarnation, number: u64) -> Self {
        let state = HubState { number, forgotten: number, ..HubState::default() };
        let shared = Shared { epoch, newest: watch::Sender::new(number), state: Mutex::new(state) };
        Self { shared: Arc::new(shared) }
    }

    /// Announces that a session has durable records up to `position`, and wakes who waits for it.
    /// Returns the number of the change.
    pub fn publish(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        position: Position,
        deleted: bool,
    ) -> u64 {
        let mut state = self.lock();
        let number = state.number + 1;
        state.number = number;
        state.remember(SessionChange {
            number,
            session_id: session.clone(),
            incarnation,
            position,
            deleted,
        });
        if let Some(sender) = state.watches.get(session) {
            sender.send_modify(|wake| {
                wake.position = position;
                wake.count += 1;
            });
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

    /// Where the count is now.
    #[must_use]
    pub fn cursor(&self) -> ChangeCursor {
        ChangeCursor { epoch: self.shared.epoch, number: self.lock().number }
    }

    /// The changes after a cursor, as far as they are remembered.
    #[must_use]
    pub fn changes_after(&self, cursor: &ChangeCursor, limit: usize) -> ChangePage {
        let state = self.lock();
        let epoch = self.shared.epoch;
        let known = cursor.epoch == epoch && cursor.number <= state.number;
        let gap = !known || cursor.number < state.forgotten;
        let after = if known { cursor.number } else { 0 };
        let found = state.by_number.range(after.saturating_add(1)..);
        let changes: Vec<SessionChange> =
            found.take(limit.max(1)).map(|(_, change)| change.clone()).collect();
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
        // The state is changed in steps that leave it whole, so a panic elsewhere does not spoil it.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubState {
    fn remember(&mut self, change: SessionChange) {
        let number = change.number;
        if let Some(older) = self.by_session.insert(change.session_id.clone(), number) {
            self.by_number.remove(&older);
        }
        self.by_number.insert(number, change);
        while self.by_number.len() > CHANGES_KEPT {
            if let Some((number, change)) = self.by_number.pop_first() {
                self.by_session.remove(&change.session_id);
                self.forgotten = number;
            }
        }
    }
}

impl ChangeWatch {
    /// Waits until something changed since the last call, or since the watch was made. `false` when
    /// the store is gone.
    pub async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }
}

impl SessionWatch {
    /// Waits until the session changed since the last call, or since the watch was made, and says how
    /// far it is. `None` when the store is gone.
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
