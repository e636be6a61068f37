//! A log that shows less than it did, for a moment: what happens while a writer takes it over from another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Bed, CountingEntropy, HandClock, Listener, stores};
use async_trait::async_trait;
use bough_service::limits::FEED_SHORT_READS_MAX;
use bough_service::{EventFilter, FeedItem, GapReason, Scope, Service, StartAt};
use bough_session::{BranchHead, Delta, EntryId, Incarnation, NewRecord, SessionId};
use bough_store::{
    Appended, Capabilities, ChangeCursor, ChangePage, ChangeWatch, Head, ListPage, ListQuery,
    MemoryStore, PathPage, PathQuery, Position, RecordPage, SessionWatch, Snapshot, Store,
    StoreError, StoredEntry, Trashed,
};
use serde_json::json;

type Answer<T> = Result<T, StoreError>;

/// A store that now and then shows no records where it has some.
struct Shy {
    inner: MemoryStore,
    /// How many reads will find nothing.
    short_reads: AtomicU32,
}

impl Shy {
    /// Whether this read is one of those that find nothing.
    fn hides(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.short_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

#[async_trait]
impl Store for Shy {
    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Answer<RecordPage> {
        let page = self.inner.records(session, after, limit).await?;
        if page.records.is_empty() || !self.hides() {
            return Ok(page);
        }
        Ok(RecordPage { records: Vec::new(), end: after, ..page })
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn create(&self, session: &SessionId, records: Vec<NewRecord>) -> Answer<Appended> {
        self.inner.create(session, records).await
    }

    async fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        records: Vec<NewRecord>,
    ) -> Answer<Appended> {
        self.inner.append(session, expected, records).await
    }

    async fn append_delta(&self, session: &SessionId, delta: Delta) -> Answer<Appended> {
        self.inner.append_delta(session, delta).await
    }

    async fn state(&self, session: &SessionId) -> Answer<Option<Snapshot>> {
        self.inner.state(session).await
    }

    async fn entry(&self, session: &SessionId, entry: &EntryId) -> Answer<Option<StoredEntry>> {
        self.inner.entry(session, entry).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Answer<PathPage> {
        self.inner.path(session, query).await
    }

    async fn branch_heads(&self, session: &SessionId, limit: usize) -> Answer<Vec<BranchHead>> {
        self.inner.branch_heads(session, limit).await
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Answer<Option<Trashed>> {
        self.inner.delete(session, at_ms).await
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Answer<Snapshot> {
        self.inner.undelete(session, incarnation, at_ms).await
    }

    async fn purge(&self, session: &SessionId, incarnation: Incarnation) -> Answer<bool> {
        self.inner.purge(session, incarnation).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Answer<Vec<Trashed>> {
        self.inner.trash(session).await
    }

    async fn list(&self, query: &ListQuery) -> Answer<ListPage> {
        self.inner.list(query).await
    }

    async fn count(&self, query: &ListQuery) -> Answer<u64> {
        self.inner.count(query).await
    }

    fn watch(&self) -> ChangeWatch {
        self.inner.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.inner.watch_session(session)
    }

    async fn change_cursor(&self) -> Answer<ChangeCursor> {
        self.inner.change_cursor().await
    }

    async fn changes_after(&self, cursor: &ChangeCursor, limit: usize) -> Answer<ChangePage> {
        self.inner.changes_after(cursor, limit).await
    }

    async fn reopen(&self, session: &SessionId) -> Answer<()> {
        self.inner.reopen(session).await
    }

    async fn close(&self) -> Answer<()> {
        self.inner.close().await
    }
}

/// A session on a shy store, and a subscriber that is about to read it from the beginning.
struct Reading {
    bed: Bed,
    id: String,
    store: Arc<Shy>,
    listener: Listener,
}

/// What the session tells from its beginning.
const TOLD: [&str; 3] = ["created", "message-added", "message-added"];

impl Reading {
    async fn one_session() -> Self {
        Self::of(|id| EventFilter::everything().in_session(SessionId::from_stored(id))).await
    }

    async fn all_sessions() -> Self {
        Self::of(|_| EventFilter::everything()).await
    }

    async fn of(filter: impl FnOnce(&str) -> EventFilter) -> Self {
        let (clock, entropy) = (HandClock::at(1), Arc::new(CountingEntropy::default()));
        let inner = MemoryStore::new(entropy.clone()).unwrap();
        let store = Arc::new(Shy { inner, short_reads: AtomicU32::new(0) });
        let bed = Bed {
            service: Service::new(store.clone(), clock.clone(), entropy.clone()),
            scope: Scope::owner(),
            clock,
            entropy,
            factory: stores::memory(),
        };
        let id = bed.create(json!({})).await;
        bed.say(&id, "one").await;
        bed.say(&id, "two").await;
        let listener = bed.subscribe(filter(&id), StartAt::Start).await;
        Self { bed, id, store, listener }
    }

    /// From now on, so many reads find nothing.
    fn hide(&self, short_reads: u32) {
        self.store.short_reads.store(short_reads, Ordering::SeqCst);
    }

    fn short_reads_left(&self) -> u32 {
        self.store.short_reads.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_log_does_not_show_for_a_moment_is_read_again() {
    for mut reading in [Reading::one_session().await, Reading::all_sessions().await] {
        reading.hide(FEED_SHORT_READS_MAX - 1);
        assert_eq!(reading.listener.kinds().await, TOLD);
        assert_eq!(reading.short_reads_left(), 0, "each was tried");
        reading.bed.say(&reading.id, "three").await;
        assert_eq!(reading.listener.kinds().await, ["message-added"], "and it goes on from there");
    }
}

/// The place of the reader is kept: it tells everything once the log shows it.
#[tokio::test(start_paused = true)]
async fn a_session_that_stays_short_is_told_later_and_without_a_gap() {
    let mut reading = Reading::one_session().await;
    // It looks twice before it says that there is nothing.
    reading.hide(2 * FEED_SHORT_READS_MAX);
    let item = reading.listener.subscription.next_ready().await.unwrap();
    assert!(item.is_none(), "{item:?}");
    assert_eq!(reading.short_reads_left(), 0);
    assert_eq!(reading.listener.kinds().await, TOLD);
}

/// The feed of all sessions does not wait for one of them for ever: it says that something is missing, and goes on.
#[tokio::test(start_paused = true)]
async fn a_session_that_stays_short_is_a_gap_among_all_sessions() {
    let mut reading = Reading::all_sessions().await;
    reading.hide(FEED_SHORT_READS_MAX);
    let item = reading.listener.item().await;
    assert!(matches!(item, FeedItem::Gap(GapReason::TooOld)), "{item:?}");
    assert_eq!(reading.short_reads_left(), 0);
    reading.listener.kinds().await;
    reading.bed.say(&reading.id, "three").await;
    assert_eq!(reading.listener.kinds().await, ["message-added"]);
}
