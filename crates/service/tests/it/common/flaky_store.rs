//! A store with moods: it shows less than it has, never stands still, and counts what is asked of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bough_service::{Scope, Service};
use bough_session::{BranchHead, EntryId, Incarnation, SessionId};
use bough_store::{
    Appended, Capabilities, ChangeCursor, ChangeHub, ChangePage, Draft, EntryQuery, Head, ListPage,
    ListQuery, Loaded, MemoryStore, PathPage, PathQuery, ReadStore, RecordPage, RecordQuery,
    Snapshot, Store, StoreError, StoredEntry, Trashed, UsageQuery, UsageReport, Write,
};
use serde_json::json;

use super::{CountingEntropy, HandClock, TestService, stores, user};

type Answer<T> = Result<T, StoreError>;

/// A store in memory that does what a test asks of it.
pub struct FlakyStore {
    inner: Arc<MemoryStore>,
    /// How many reads will find nothing.
    pub short_reads: AtomicU32,
    /// How many records were read.
    pub records_read: AtomicUsize,
    /// How many batches came without the state after them, so that the store has to fold them.
    pub unfolded_batches: AtomicUsize,
    /// How often it was asked for changes.
    pub asked_for_changes: AtomicU32,
    /// How often an entry was looked up.
    pub lookups: AtomicU64,
    /// A session that cannot be read any more.
    pub damaged: Mutex<Option<String>>,
    /// What is in the trash was being brought back when somebody was killed.
    pub half_restored: AtomicBool,
    /// How often an answer about changes lets others go first, as one from another machine does.
    pub distance: AtomicU32,
    /// Who says something in a session whenever somebody asks for changes.
    restless: Mutex<Option<(Service, String)>>,
}

impl FlakyStore {
    /// A service on a new store of this kind, and the store.
    pub fn bed() -> (TestService, Arc<Self>) {
        let (clock, entropy) = (HandClock::at(1), Arc::new(CountingEntropy::default()));
        let store = Arc::new(Self {
            inner: Arc::new(MemoryStore::new(entropy.clone()).unwrap()),
            short_reads: AtomicU32::new(0),
            records_read: AtomicUsize::new(0),
            unfolded_batches: AtomicUsize::new(0),
            asked_for_changes: AtomicU32::new(0),
            lookups: AtomicU64::new(0),
            damaged: Mutex::default(),
            half_restored: AtomicBool::new(false),
            distance: AtomicU32::new(0),
            restless: Mutex::default(),
        });
        let bed = TestService {
            service: Service::new(store.clone(), clock.clone(), entropy.clone()),
            scope: Scope::owner(),
            clock,
            entropy,
            factory: stores::memory(),
        };
        (bed, store)
    }

    /// From now on a session changes whenever somebody asks for changes.
    pub fn never_be_still(&self, bed: &TestService, id: &str) {
        *self.restless.lock().unwrap() = Some((self.beside(bed).service, id.to_owned()));
    }

    /// The same sessions through another service, as another process has them.
    pub fn beside(&self, bed: &TestService) -> TestService {
        let (store, clock, entropy) = (self.inner.clone(), bed.clock.clone(), bed.entropy.clone());
        let service = Service::new(store, clock.clone(), entropy.clone());
        TestService { service, scope: Scope::owner(), clock, entropy, factory: bed.factory.clone() }
    }

    /// From now on writes are accepted and not durable.
    pub fn hold(&self) {
        self.inner.hold();
    }

    /// Makes everything durable that was held, and no longer holds.
    pub fn release(&self) {
        self.inner.release();
    }

    /// Whether this read is one of those that find nothing.
    fn hides(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.short_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

#[async_trait]
impl ReadStore for FlakyStore {
    async fn read_records(&self, session: &SessionId, query: &RecordQuery) -> Answer<RecordPage> {
        if self.damaged.lock().unwrap().as_deref() == Some(session.as_str()) {
            return Err(StoreError::corrupt("a bit was flipped", "a segment"));
        }
        let page = self.inner.read_records(session, query).await?;
        self.records_read.fetch_add(page.records.len(), Ordering::SeqCst);
        if page.records.is_empty() || !self.hides() {
            return Ok(page);
        }
        Ok(RecordPage { records: Vec::new(), end: query.after, ..page })
    }

    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Answer<Loaded> {
        self.inner.load(session, known).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Answer<Option<StoredEntry>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        self.inner.read_entry(session, query).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Answer<PathPage> {
        self.inner.path(session, query).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Answer<Vec<BranchHead>> {
        self.inner.branch_heads(session, before, limit).await
    }
}

#[async_trait]
impl Store for FlakyStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn write(&self, session: &SessionId, write: Write) -> Answer<Appended> {
        let (Write::Create(batch) | Write::Append { batch, .. } | Write::Replace { batch, .. }) =
            &write
        else {
            return self.inner.write(session, write).await;
        };
        self.unfolded_batches.fetch_add(usize::from(batch.state.is_none()), Ordering::SeqCst);
        self.inner.write(session, write).await
    }

    async fn draft(&self, session: &SessionId) -> Answer<Box<dyn Draft>> {
        self.inner.draft(session).await
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

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Answer<bool> {
        self.inner.purge(session, incarnation, deleted_at).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Answer<Vec<Trashed>> {
        let mut trash = self.inner.trash(session).await?;
        if self.half_restored.load(Ordering::SeqCst) {
            trash.iter_mut().for_each(|trashed| trashed.deleted_at = None);
        }
        Ok(trash)
    }

    async fn list(&self, query: &ListQuery) -> Answer<ListPage> {
        self.inner.list(query).await
    }

    async fn usage(&self, query: &UsageQuery) -> Answer<UsageReport> {
        self.inner.usage(query).await
    }

    fn hub(&self) -> &ChangeHub {
        self.inner.hub()
    }

    async fn changes(&self, after: Option<&ChangeCursor>, limit: usize) -> Answer<ChangePage> {
        if after.is_none() {
            return self.inner.changes(after, limit).await;
        }
        let asked = self.asked_for_changes.fetch_add(1, Ordering::SeqCst);
        assert!(asked < 1_000, "somebody asks for ever");
        for _ in 0..self.distance.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        let restless = self.restless.lock().unwrap().clone();
        if let Some((beside, id)) = restless {
            let request = json!({"session_id": id, "message": user("and another thing")});
            beside.call(&Scope::owner(), "session::append", request).await.unwrap();
        }
        self.inner.changes(after, limit).await
    }

    async fn reopen(&self, session: &SessionId) -> Answer<()> {
        self.inner.reopen(session).await
    }

    async fn close(&self) -> Answer<()> {
        self.inner.close().await
    }
}
