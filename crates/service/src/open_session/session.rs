use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bough_session::{EntryId, Incarnation, SessionId, SessionState};
use bough_store::{Head, Position, RecordPage, Snapshot, Store, StoreError, StoreExt};

use super::commits::{
    CommitNotifier, CommitWaiter, UncommittedEntries, UncommittedEntry, WriteEnd,
};
use super::recent_writes::{RecentWrite, RecentWrites};
use super::recorder_claim::RecorderSlot;
use super::registry::Shared;
use super::streams::StreamingMessages;
use crate::feed::{Deletions, Feed, FeedTail, SharedTail};
use crate::lock::lock;
use crate::rules::documents::DocumentIndex;

/// What the service knows of one session while it has a writer or a subscriber.
pub(crate) struct OpenSession {
    id: SessionId,
    shared: Arc<Shared>,
    write_state: tokio::sync::Mutex<WriteState>,
    uncommitted: Mutex<UncommittedEntries>,
    recent_writes: Mutex<RecentWrites>,
    /// A write failed: what is known here is no longer what is stored.
    has_failed: AtomicBool,
    last_use: AtomicU64,
    pub(super) recorder: Mutex<RecorderSlot>,
    /// The tail of the session's feed, while it has a subscriber.
    pub(super) tail: SharedTail,
}

/// What only the one who holds the session's lock may touch: the session as of the last write that the store accepted.
#[derive(Default)]
pub(crate) struct WriteState {
    pub(crate) known: Known,
    /// The newest accepted write; when it is durable, so is everything before it.
    pub(crate) newest: Option<CommitWaiter>,
    pub(crate) streams: StreamingMessages,
    /// Steps of a message were written since the last batch, which puts them together.
    pub(crate) has_steps: bool,
    /// Where the documents of a session of that kind are, as of the last accepted write that was folded into it.
    pub(crate) documents: Option<DocumentIndex>,
    issued: u64,
}

/// What is known of a session.
#[derive(Default)]
pub(crate) enum Known {
    /// Nothing; it must be read first.
    #[default]
    Nothing,
    /// There is no such session.
    Absent,
    /// Its head and the fold up to it.
    Present(Box<AcceptedState>),
}

/// A session as of the last accepted write.
pub(crate) struct AcceptedState {
    pub(crate) head: Head,
    /// Where the session's feed is.
    pub(crate) position: Position,
    pub(crate) state: Arc<SessionState>,
}

/// What was done to know a session.
pub(crate) struct Load {
    /// It was opened again after a failed write.
    pub(crate) reopened: bool,
    /// It was read just now.
    pub(crate) read: bool,
}

impl WriteState {
    pub(crate) fn accepted(&self) -> Option<&AcceptedState> {
        match &self.known {
            Known::Present(accepted) => Some(accepted),
            Known::Absent | Known::Nothing => None,
        }
    }

    /// Takes the accepted state out while the store decides: if that is broken off, the state is read anew.
    pub(crate) fn take_accepted(&mut self) -> Option<AcceptedState> {
        match std::mem::take(&mut self.known) {
            Known::Present(accepted) => Some(*accepted),
            Known::Absent | Known::Nothing => None,
        }
    }

    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        self.accepted().map(|accepted| accepted.head.incarnation)
    }
}

impl OpenSession {
    pub(super) fn new(id: SessionId, shared: Arc<Shared>) -> Self {
        Self {
            id,
            recent_writes: Mutex::new(RecentWrites::new(shared.recent_bytes.clone())),
            shared,
            write_state: tokio::sync::Mutex::default(),
            uncommitted: Mutex::default(),
            has_failed: AtomicBool::new(false),
            last_use: AtomicU64::new(0),
            recorder: Mutex::default(),
            tail: SharedTail::default(),
        }
    }

    pub(crate) const fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    pub(crate) fn deletions(&self) -> &Deletions {
        &self.shared.deletions
    }

    /// Waits until no other call writes the session.
    pub(crate) async fn lock(&self) -> tokio::sync::MutexGuard<'_, WriteState> {
        self.write_state.lock().await
    }

    /// Reads the session if it is not known, or no longer. After a failed write the store takes nothing until the session is
    /// opened again.
    pub(crate) async fn load(&self, state: &mut WriteState) -> Result<Load, StoreError> {
        let reopened = self.has_failed.load(Ordering::Acquire);
        if reopened {
            self.forget(state).await;
            state.documents = None;
            self.store().reopen(&self.id).await?;
            self.has_failed.store(false, Ordering::Release);
        }
        let read = matches!(state.known, Known::Nothing);
        if read {
            let snapshot = self.store().state(&self.id).await?;
            state.known = snapshot.map_or(Known::Absent, |snapshot| {
                let Snapshot { head, position, state } = snapshot;
                Known::Present(Box::new(AcceptedState { head, position, state }))
            });
        }
        Ok(Load { reopened, read })
    }

    /// Whether the known state is the store's newest, as far as the store knows that without reading.
    pub(crate) async fn is_newest(&self, state: &WriteState) -> Result<bool, StoreError> {
        // Another process may have made a session that was absent.
        match state.accepted() {
            Some(accepted) => self.store().is_newest(&self.id, &accepted.head).await,
            None => Ok(false),
        }
    }

    /// Forgets what is known, after all accepted writes have ended one way or the other: a read shows only what is durable.
    pub(crate) async fn forget(&self, state: &mut WriteState) {
        state.known = Known::Nothing;
        state.streams.clear();
        if let Some(newest) = state.newest.take() {
            // Whether it failed is for those who wait for an answer. Here it matters that it ended, and that nothing is kept of one
            // that failed.
            if newest.wait().await.is_err() {
                state.documents = None;
            }
        }
        lock(&self.uncommitted).clear();
    }

    /// Notes a write that the store accepted: the position that it announces when the write is durable, and the entries that
    /// the write adds.
    pub(crate) fn note_accepted(
        &self,
        state: &mut WriteState,
        announced: WriteEnd,
        entries: Vec<(EntryId, UncommittedEntry)>,
    ) -> CommitNotifier {
        state.issued += 1;
        let (notifier, waiter) = CommitNotifier::new(state.issued, announced);
        let entries = entries.into_iter().map(|(id, entry)| (id, (state.issued, entry)));
        lock(&self.uncommitted).extend(entries);
        state.newest = Some(waiter);
        notifier
    }

    /// Notes how an accepted write ended, and wakes all who wait for it.
    pub(crate) fn note_committed(
        &self,
        notifier: CommitNotifier,
        outcome: &Result<(), StoreError>,
    ) {
        let (head, position) = notifier.announced;
        if outcome.is_ok() {
            lock(&self.recent_writes).note_durable(head.incarnation, position);
        } else {
            // The numbers of a failed write are given out again, so no reader may find it under them.
            lock(&self.recent_writes).clear();
            self.has_failed.store(true, Ordering::Release);
        }
        lock(&self.uncommitted).retain(|_, (number, _)| *number > notifier.number);
        notifier.notify(outcome.clone());
    }

    /// An entry that was accepted and is not durable yet.
    pub(crate) fn uncommitted(&self, entry: &EntryId) -> Option<UncommittedEntry> {
        lock(&self.uncommitted).get(entry).map(|(_, entry)| entry.clone())
    }

    /// An index of documents of a session, which counts what all of them take in memory.
    pub(crate) fn new_documents(&self, incarnation: Incarnation) -> DocumentIndex {
        DocumentIndex::new(incarnation, self.shared.documents_bytes.clone())
    }

    /// Forgets where the documents are, unless a call uses them now.
    pub(super) fn forget_documents(&self) {
        if let Ok(mut state) = self.write_state.try_lock() {
            state.documents = None;
        }
    }

    /// Whether the session, or the feed of all sessions, has a subscriber.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.is_followed() || self.shared.tail.is_followed()
    }

    /// Keeps an accepted write for the feeds.
    pub(crate) fn keep_for_feeds(&self, incarnation: Incarnation, write: RecentWrite) {
        lock(&self.recent_writes).add(incarnation, write);
    }

    /// Durable records after a position that this process wrote a moment ago; `None` when the store has to be read. What the
    /// store has announced, up to `announced`, is durable.
    pub(crate) fn recent_records(
        &self,
        incarnation: Incarnation,
        after: Position,
        announced: Option<Position>,
    ) -> Option<RecordPage> {
        lock(&self.recent_writes).records(incarnation, after, announced)
    }

    pub(super) fn forget_recent_writes(&self) {
        lock(&self.recent_writes).clear();
    }

    /// The tail of the session's feed: the one that others share, or a new one that begins now.
    pub(crate) async fn tail(self: &Arc<Self>) -> Result<Arc<FeedTail>, StoreError> {
        self.tail.follow(Feed::Session(self.clone())).await
    }

    pub(super) fn note_use(&self, now: u64) {
        self.last_use.store(now, Ordering::Relaxed);
    }

    pub(super) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// Whether the session has a writer or a subscriber, or a write that is not durable yet, which only this process knows.
    pub(super) fn is_in_use(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || !lock(&self.uncommitted).is_empty()
    }
}
