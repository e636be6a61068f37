use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bough_session::{Incarnation, SessionId};
use bough_store::{Position, RecordPage, Store, StoreError};

use super::session::OpenSession;
use crate::feed::{Deletions, Feed, FeedTail, SharedTail};
use crate::limits::{
    DOCUMENT_KEYS_BYTES_MAX, OPEN_SESSIONS_MAX, RECENT_WRITES_BYTES_MAX, SWAP_SETTLE_MS,
};
use crate::lock::lock;

/// The sessions of one store that are in use. Idle ones are forgotten when there are many.
pub(crate) struct OpenSessions {
    shared: Arc<Shared>,
    sessions: Mutex<HashMap<SessionId, Arc<OpenSession>>>,
    uses: AtomicU64,
    /// When this store replaced another one, if it did.
    replaced_at_ms: Option<i64>,
    /// How many sessions were opened again after a failed write.
    reopened: AtomicU64,
}

/// What all open sessions of a store share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) deletions: Deletions,
    /// The tail of the feed of all sessions, while it has a subscriber.
    pub(super) tail: SharedTail,
    /// What the recent writes of all sessions take in memory.
    pub(super) recent_bytes: Arc<AtomicUsize>,
    /// What the keys of all documents take in memory.
    pub(super) documents_bytes: Arc<AtomicUsize>,
}

impl OpenSessions {
    pub(crate) fn new(store: Arc<dyn Store>, replaced_at_ms: Option<i64>) -> Self {
        let shared = Shared {
            deletions: Deletions::new(store.clone()),
            store,
            tail: SharedTail::default(),
            recent_bytes: Arc::default(),
            documents_bytes: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
            sessions: Mutex::default(),
            uses: AtomicU64::new(0),
            replaced_at_ms,
            reopened: AtomicU64::new(0),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Whether another store was replaced a moment ago, which may still hold sessions of the same directory.
    pub(crate) fn is_settling(&self, now_ms: i64) -> bool {
        self.replaced_at_ms.is_some_and(|since| now_ms.saturating_sub(since) < SWAP_SETTLE_MS)
    }

    pub(crate) fn note_reopened(&self) {
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    pub(crate) fn deletions(&self) -> &Deletions {
        &self.shared.deletions
    }

    /// The open session with an id, whether or not the store has such a session.
    pub(crate) fn open(&self, session: &SessionId) -> Arc<OpenSession> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= OPEN_SESSIONS_MAX && !sessions.contains_key(session) {
            forget_idle(&mut sessions, now);
        }
        let open = sessions
            .entry(session.clone())
            .or_insert_with(|| Arc::new(OpenSession::new(session.clone(), self.shared.clone())));
        open.note_use(now);
        open.clone()
    }

    /// The tail of the feed of all sessions: the one that others share, or a new one that begins now.
    pub(crate) async fn tail(self: &Arc<Self>) -> Result<Arc<FeedTail>, StoreError> {
        self.shared.tail.follow(Feed::All(self.clone())).await
    }

    /// Records of a session that this process wrote a moment ago; see [`OpenSession::recent_records`].
    pub(crate) fn recent_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        announced: Position,
    ) -> Option<RecordPage> {
        let open = lock(&self.sessions).get(session).cloned()?;
        open.recent_records(incarnation, after, Some(announced))
    }

    /// Forgets the recent writes of all sessions when they take too much memory. The feeds read the store for a moment.
    pub(crate) fn bound_recent_writes(&self) {
        if self.shared.recent_bytes.load(Ordering::Relaxed) > RECENT_WRITES_BYTES_MAX {
            lock(&self.sessions).values().for_each(|open| open.forget_recent_writes());
        }
    }

    /// Forgets where the documents of all sessions are when that takes too much memory. They are read again when they are used.
    pub(crate) fn bound_documents(&self) {
        if self.shared.documents_bytes.load(Ordering::Relaxed) > DOCUMENT_KEYS_BYTES_MAX {
            lock(&self.sessions).values().for_each(|open| open.forget_documents());
        }
    }

    /// Reads the feeds that follow a session up to now, before its log goes away.
    pub(crate) async fn catch_up(&self, session: &OpenSession) {
        session.tail.catch_up().await;
        self.shared.tail.catch_up().await;
    }
}

/// Forgets the half of the idle sessions that was used longest ago.
fn forget_idle(sessions: &mut HashMap<SessionId, Arc<OpenSession>>, now: u64) {
    let mut uses: Vec<u64> = sessions.values().map(|open| open.last_use()).collect();
    uses.sort_unstable();
    let median = uses.get(uses.len() / 2).copied().unwrap_or(now);
    sessions.retain(|_, open| open.last_use() > median || open.is_in_use());
}

#[cfg(test)]
mod tests {
    use bough_platform::OsEntropy;
    use bough_session::EntryId;
    use bough_store::{Head, MemoryStore};

    use super::*;
    use crate::open_session::UncommittedEntry;

    fn sessions() -> OpenSessions {
        OpenSessions::new(Arc::new(MemoryStore::new(Arc::new(OsEntropy)).unwrap()), None)
    }

    fn id(number: usize) -> SessionId {
        SessionId::from_stored(format!("s{number}"))
    }

    fn open_many_others(sessions: &OpenSessions) {
        for number in 1..OPEN_SESSIONS_MAX * 3 {
            sessions.open(&id(number));
        }
    }

    #[test]
    fn idle_sessions_are_forgotten_and_held_ones_are_not() {
        let sessions = sessions();
        let held = sessions.open(&id(0));
        open_many_others(&sessions);
        let count = lock(&sessions.sessions).len();
        assert!(count <= OPEN_SESSIONS_MAX, "{count}");
        assert!(Arc::ptr_eq(&held, &sessions.open(&id(0))));
    }

    #[tokio::test]
    async fn a_session_with_a_write_on_its_way_is_not_forgotten() {
        let sessions = sessions();
        let open = sessions.open(&id(0));
        let entry = EntryId::from_stored("e");
        let uncommitted =
            UncommittedEntry { timestamp: 1, is_hidden: false, ..UncommittedEntry::hidden() };
        let (notifier, waiter) = {
            let mut state = open.lock().await;
            let notifier = open.note_accepted(
                &mut state,
                (Head::genesis("s0", Incarnation::new([7; 16])), Position::at(1)),
                vec![(entry.clone(), uncommitted.clone())],
            );
            (notifier, state.newest.clone().unwrap())
        };
        drop(open);
        open_many_others(&sessions);
        let open = sessions.open(&id(0));
        assert_eq!(open.uncommitted(&entry), Some(uncommitted));
        open.note_committed(notifier, &Ok(()));
        assert_eq!(open.uncommitted(&entry), None);
        waiter.wait().await.unwrap();
    }

    #[tokio::test]
    async fn a_session_with_a_subscriber_is_not_forgotten() {
        let sessions = sessions();
        let tail = sessions.open(&id(0)).tail().await.unwrap();
        open_many_others(&sessions);
        assert!(Arc::ptr_eq(&tail, &sessions.open(&id(0)).tail().await.unwrap()));
    }
}
