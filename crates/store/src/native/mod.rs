//! The adapter on Bough's own log: the default.
//!
//! Appends and reads go to the log; lists and the feed of all sessions are read from the catalogue, which
//! is written behind and made again from the logs when it is missing. Several processes may use one data
//! directory at once.

mod commit_pool;
mod convert;
mod delete_race;
mod deletion;
mod directory;
mod dirty;
mod draft;
mod file_sessions;
mod listing;
mod maintenance;
mod open;
pub mod origin;
mod reads;
mod staged;
mod streams;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_log as log;
use bough_platform::{Lock, Platform};
use bough_session::limits::BATCH_RECORDS_MAX;
use bough_session::{BranchHead, EntryId, Incarnation, NewRecord, Record, SessionId, SessionState};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::catalogue::Catalogue;
use crate::changes::ChangeHub;
use crate::store::Draft;
use crate::types::{
    Appended, Capabilities, ChangeCursor, ChangePage, Durable, EntryQuery, ListPage, ListQuery,
    Loaded, PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry, Trashed,
    UsageQuery, UsageReport, Write,
};
use crate::{ReadStore, Store, StoreError};
use bough_record::Head;
use commit_pool::CommitPool;
use dirty::DirtySessions;
use file_sessions::SessionsInFiles;
use writes::WriteSlot;

pub use directory::{LogReader, SessionDirectory};
pub use file_sessions::FileSessions;
pub use maintenance::{holds_sessions, measure, salvage, verify};
pub use staged::StagedSession;

/// The file of the catalogue in a data directory.
pub const CATALOGUE_FILE: &str = "catalogue.sqlite";

/// How a native store behaves.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// When an append is acknowledged.
    pub durability: log::Durability,
    /// Where this process can be reached; others see it when they meet its locks.
    pub address: String,
    /// A session without a write for this long is closed, so that other processes may write it.
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
    dirty: DirtySessions,
    hub: ChangeHub,
    write_slots: Mutex<HashMap<SessionId, WriteSlot>>,
    commit_pool: CommitPool,
    runtime: Handle,
    options: NativeOptions,
    /// Whether the catalogue holds what the logs hold; lists wait for it.
    filled: watch::Sender<bool>,
    /// Sessions that V1 files answer for.
    in_files: SessionsInFiles,
    /// Shows other processes that this one is running.
    mark: Mutex<Option<Box<dyn Lock>>>,
}

impl NativeStore {
    /// Opens a data directory, which `platform.disk` is rooted at and `root` names in the operating
    /// system's words. Must be called on a tokio runtime, which then does the background work.
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

    /// Lists sessions that V1 files answer for as `files` reads them. The server of those files calls it once.
    pub fn list_files_of(&self, files: Arc<dyn FileSessions>) {
        self.shared.in_files.read_by(files);
    }

    /// Looks again at sessions that were changed beside this store: by a migration, a rollback or a salvage, or in a V1
    /// file that answers for them. Lists show them as they are when the call returns, and their subscribers are woken.
    pub async fn refresh(&self, sessions: Vec<SessionId>) -> Result<(), StoreError> {
        self.blocking(move |shared| {
            let refreshed = shared.refresh(&sessions);
            sessions.iter().for_each(|session| shared.hub.wake(session, None));
            refreshed
        })
        .await
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
impl ReadStore for NativeStore {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        let (id, known) = (session.clone(), known.copied());
        self.accepting(session, move |shared| shared.load(&id, known.as_ref())).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, query) = (session.clone(), query.clone());
        self.blocking(move |shared| shared.read_entry(&session, &query)).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        if self.shared.is_small_read(session, query) {
            return self.shared.read_records(session, query);
        }
        let (session, query) = (session.clone(), query.clone());
        self.blocking(move |shared| shared.read_records(&session, &query)).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let (session, query) = (session.clone(), query.clone());
        self.blocking(move |shared| shared.path(&session, &query)).await
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

    async fn write(&self, session: &SessionId, write: Write) -> Result<Appended, StoreError> {
        if !matches!(write, Write::Append { .. }) {
            // A batch is checked in its stored form, which is made once.
            write.check()?;
        }
        let id = session.clone();
        match write {
            Write::Create(batch) => self.blocking(move |shared| shared.create(&id, &batch)).await,
            Write::Append { expected, batch } => {
                let is_meta = |new: &NewRecord| matches!(new.record.known(), Record::Meta(_));
                let is_listed = batch.records.iter().any(is_meta);
                let append = move |shared: &Arc<Shared>| {
                    let appended = shared.append(&id, &expected, batch);
                    appended.map_err(|error| shared.explain(&id, error))
                };
                let appended = self.accepting(session, append).await?;
                Ok(if is_listed { self.shown_when_durable(appended) } else { appended })
            }
            Write::Replace { expected, batch } => {
                let mut draft = self.draft(session).await?;
                for part in batch.records.chunks(BATCH_RECORDS_MAX) {
                    draft.add(part.to_vec().into()).await?;
                }
                draft.replace(&expected).await
            }
            Write::Step(delta) => {
                self.accepting(session, move |shared| {
                    let appended = shared.append_delta(&id, &delta);
                    appended.map_err(|error| shared.explain(&id, error))
                })
                .await
            }
        }
    }

    async fn draft(&self, session: &SessionId) -> Result<Box<dyn Draft>, StoreError> {
        let session = session.clone();
        let draft = self.blocking(move |shared| draft::NativeDraft::begin(shared, &session));
        Ok(Box::new(draft.await?))
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
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.purge(&session, incarnation, deleted_at)).await
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

    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        self.filled().await;
        let query = query.clone();
        self.blocking(move |shared| {
            shared.list_sessions_in_files();
            shared.catalogue().usage(&query)
        })
        .await
    }

    fn hub(&self) -> &ChangeHub {
        &self.shared.hub
    }

    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        self.filled().await;
        let after = after.cloned();
        self.blocking(move |shared| match after {
            Some(cursor) => shared.catalogue_for_feed().changes_after(&cursor, limit),
            None => {
                let catalogue = shared.catalogue();
                catalogue.flush()?;
                Ok(ChangePage::none_before(catalogue.newest()?))
            }
        })
        .await
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.clone();
        self.blocking(move |shared| shared.reopen(&session)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.blocking(|shared| shared.close()).await
    }
}
