//! The adapter on Bough's own log: the default.
//!
//! Appends and reads go to the log; lists and the feed of all sessions are read from the catalogue, which
//! is written behind and made again from the logs when it is missing. Several processes may use one data
//! directory at once.

mod care;
mod committers;
mod convert;
mod draft;
mod going;
mod life;
mod listing;
mod open;
mod reads;
mod streams;
mod touched;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bough_log as log;
use bough_platform::{Lock, Platform};
use bough_session::{BranchHead, Delta, EntryId, Incarnation, Record, SessionId, SessionState};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::catalogue::Catalogue;
use crate::changes::{ChangeHub, ChangeWatch, SessionWatch};
use crate::memory::{check_batch, check_first};
use crate::store::Draft;
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, Durable, ListPage, ListQuery,
    PathPage, PathQuery, RecordPage, Snapshot, StoredEntry, Trashed,
};
use crate::{Store, StoreError};
use bough_record::{Head, Position};
use committers::Committers;
use touched::Touched;
use writes::LiveSlot;

pub use care::{salvage, verify};

/// How a native store behaves.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// When an append is acknowledged.
    pub durability: log::Durability,
    /// Where this process can be reached; others see it when they meet its locks.
    pub address: String,
    /// A session that nobody writes to for this long is closed, so that other processes may write it.
    pub idle: Duration,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            durability: log::Durability::Synced,
            address: String::new(),
            idle: Duration::from_secs(30),
        }
    }
}

/// Sessions on Bough's log. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct NativeStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    platform: Platform,
    log: log::LogStore<SessionState>,
    /// As far as it was written; [`Shared::catalogue`] is the way to it.
    catalogue_behind: Catalogue,
    touched: Touched,
    hub: ChangeHub,
    live: Mutex<HashMap<SessionId, LiveSlot>>,
    committers: Committers,
    runtime: Handle,
    options: NativeOptions,
    /// Whether the catalogue holds what the logs hold; lists wait for it.
    filled: watch::Sender<bool>,
    /// Sessions that have a log which does not answer for them; who does lists them.
    passed_over: Mutex<Vec<SessionId>>,
    /// Tells other processes that this one is alive.
    mark: Mutex<Option<Box<dyn Lock>>>,
}

impl NativeStore {
    /// Opens a data directory, which `platform.disk` is rooted at and `root` names in the operating
    /// system's words. Must be called on a tokio runtime, which then does the work that nobody waits for.
    pub async fn open(
        platform: Platform,
        root: PathBuf,
        options: NativeOptions,
    ) -> Result<Self, StoreError> {
        let runtime = Handle::current();
        let opened = tokio::task::spawn_blocking(move || {
            let (shared, found) = Shared::open(platform, &root, options, runtime)?;
            let seen = shared.catalogue().newest()?;
            Ok::<_, StoreError>((shared, found, seen))
        });
        let (shared, found, seen) = opened.await.map_err(task_failed)??;
        let store = Self { shared: Arc::new(shared) };
        listing::start(&store.shared, found, seen);
        Ok(store)
    }

    /// Lists sessions from now on that were written into the directory beside this store: by a migration, or
    /// by a salvage.
    pub async fn refresh(&self, sessions: Vec<SessionId>) -> Result<(), StoreError> {
        self.blocking(move |shared| shared.refresh(&sessions)).await
    }

    /// Lists a session as another store shows it, which answers for it in the place of its log.
    pub async fn list_as(
        &self,
        session: &SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        let (session, snapshot) = (session.clone(), snapshot.clone());
        self.blocking(move |shared| {
            let catalogue = shared.catalogue();
            catalogue.put(shared.row(&session, &snapshot));
            catalogue.flush().map(drop)
        })
        .await
    }

    /// Wakes who waits for a session that another store answers for.
    pub fn announce(&self, session: &SessionId) {
        self.shared.hub.wake(session, None);
    }

    /// Sessions that were not listed when the catalogue was made anew, because their logs do not answer for them. Each is
    /// told of once, to the store that does answer; it waits until all logs have been looked at.
    pub async fn passed_over(&self) -> Vec<SessionId> {
        self.filled().await;
        let mut passed_over =
            self.shared.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *passed_over)
    }

    /// Whether the catalogue holds what the logs hold.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        *self.shared.filled.borrow()
    }

    /// Waits until the catalogue holds what the logs hold.
    async fn filled(&self) {
        // The sender is part of the store, so it is there.
        drop(self.shared.filled.subscribe().wait_for(|filled| *filled).await);
    }

    /// Runs something that reads the disk where blocking is allowed.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Shared>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared)).await.map_err(task_failed)?
    }

    /// The same, durable once other processes list it too.
    fn shown_when_durable(&self, appended: Appended) -> Appended {
        let Appended { head, position, durable } = appended;
        let store = self.clone();
        let durable = Durable::new(async move {
            durable.await?;
            let show = |shared: &Arc<Shared>| {
                shared.show();
                Ok(())
            };
            store.blocking(show).await
        });
        Appended { head, position, durable }
    }

    /// Accepting something for a session that is open touches the disk only to look an entry up, which the
    /// system has in memory; opening one is work for another thread.
    async fn accepting<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&Arc<Shared>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.shared.log.is_open(session.as_str()) {
            return work(&self.shared);
        }
        self.blocking(work).await
    }
}

fn task_failed(error: tokio::task::JoinError) -> StoreError {
    StoreError::Unavailable { reason: error.to_string() }
}

#[async_trait]
impl Store for NativeStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "native",
            survives_restart: true,
            other_processes: true,
            keeps_change_cursor: true,
            keeps_unknown_records: true,
        }
    }

    async fn create(&self, session: &SessionId, batch: Batch) -> Result<Appended, StoreError> {
        check_first(&batch.records)?;
        let session = session.clone();
        self.blocking(move |shared| shared.create(&session, &batch.records)).await
    }

    async fn draft(&self, session: &SessionId) -> Result<Option<Box<dyn Draft>>, StoreError> {
        let session = session.clone();
        let draft = self.blocking(move |shared| draft::NativeDraft::begin(shared, &session));
        Ok(Some(Box::new(draft.await?)))
    }

    async fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError> {
        check_batch(&batch.records)?;
        let (id, expected) = (session.clone(), *expected);
        let shown = batch.records.iter().any(|new| matches!(new.record.known(), Record::Meta(_)));
        let append = move |shared: &Arc<Shared>| {
            let appended = shared.append(&id, &expected, batch);
            appended.map_err(|error| shared.explain(&id, error))
        };
        let appended = self.accepting(session, append).await?;
        Ok(if shown { self.shown_when_durable(appended) } else { appended })
    }

    async fn append_delta(
        &self,
        session: &SessionId,
        delta: Delta,
    ) -> Result<Appended, StoreError> {
        let id = session.clone();
        self.accepting(session, move |shared| {
            let appended = shared.append_delta(&id, &delta);
            appended.map_err(|error| shared.explain(&id, error))
        })
        .await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        let id = session.clone();
        self.accepting(session, move |shared| shared.state(&id)).await
    }

    fn is_newest(&self, session: &SessionId, head: &Head) -> bool {
        self.shared.is_newest(session, head)
    }

    async fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, entry) = (session.clone(), entry.clone());
        self.blocking(move |shared| shared.entry(&session, &entry)).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let (session, query) = (session.clone(), query.clone());
        self.blocking(move |shared| shared.path(&session, &query)).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        if self.shared.is_at_hand(session, after) {
            return self.shared.records(session, after, limit);
        }
        let session = session.clone();
        self.blocking(move |shared| shared.records(&session, after, limit)).await
    }

    async fn trashed_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.trashed_records(&session, incarnation, after, limit))
            .await
    }

    async fn trashed_entry(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, entry) = (session.clone(), entry.clone());
        self.blocking(move |shared| shared.trashed_entry(&session, incarnation, &entry)).await
    }

    async fn entry_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
        revision: u64,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, entry) = (session.clone(), entry.clone());
        self.blocking(move |shared| shared.entry_at(&session, incarnation, &entry, revision)).await
    }

    async fn state_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        seq: u64,
    ) -> Result<Option<SessionState>, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.state_at(&session, incarnation, seq)).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let (session, before) = (session.clone(), before.cloned());
        self.blocking(move |shared| shared.branch_heads(&session, before.as_ref(), limit)).await
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.delete(&session, at_ms)).await
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.undelete(&session, incarnation, at_ms)).await
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<bool, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.purge(&session, incarnation, None)).await
    }

    async fn purge_expired(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: i64,
    ) -> Result<bool, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.purge(&session, incarnation, Some(deleted_at))).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        let session = session.cloned();
        self.blocking(move |shared| shared.trash(session.as_ref())).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        self.filled().await;
        let query = query.clone();
        self.blocking(move |shared| shared.list(&query)).await
    }

    async fn count(&self, query: &ListQuery) -> Result<u64, StoreError> {
        self.filled().await;
        let query = query.clone();
        self.blocking(move |shared| shared.catalogue().count(&query)).await
    }

    fn watch(&self) -> ChangeWatch {
        self.shared.hub.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.shared.hub.watch_session(session)
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        self.filled().await;
        self.blocking(|shared| {
            let catalogue = shared.catalogue();
            catalogue.flush()?;
            catalogue.newest()
        })
        .await
    }

    async fn changes_after(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        self.filled().await;
        let cursor = cursor.clone();
        self.blocking(move |shared| shared.catalogue_for_feed().changes_after(&cursor, limit)).await
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.reopen(&session)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.blocking(|shared| shared.close()).await
    }
}
