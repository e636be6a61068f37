//! A data directory as it is served: sessions from their native logs, and from V1 files where those answer.
//!
//! Which of the two answers for a session is in its manifest and nowhere else. A session that its log does
//! not answer for is looked up there; from then on each call asks the manifest again, so that a
//! migration or a rollback by another process is followed. A V1 file that no session of the directory
//! knows of can be served too, for as long as the program runs.
//!
//! Lists show such a session as it was when its file was last looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bough_platform::{Entropy, Platform};
use bough_session::{BranchHead, EntryId, Incarnation, SessionId};
use bough_store::{
    Appended, Capabilities, ChainHash, ChangeCursor, ChangeHub, ChangePage, Draft, EntryQuery,
    FileSessions, Head, ListPage, ListQuery, Loaded, NativeStore, PathPage, PathQuery, Position,
    ReadStore, RecordPage, RecordQuery, Snapshot, Store, StoreError, StoreExt, StoredEntry,
    Trashed, UsageQuery, UsageReport, Write, new_incarnation,
};

use crate::error::Result;
use crate::limits::{FOLLOW_DATABASE_EVERY, FOLLOW_EVERY_MS};
use crate::migration::{Migrator, Recovered, is_settled};
use crate::v1::{LiveV1, V1Files};
use crate::v1_session::{V1Session, refused};

type Answer<T> = std::result::Result<T, StoreError>;

/// A native store together with the V1 files that answer for some of its sessions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServedStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    native: NativeStore,
    files: Arc<ServedFiles>,
    /// Sessions that were migrated or rolled back and that were not listed since.
    unlisted: Mutex<Vec<SessionId>>,
    /// Held while those are listed, so that the next list waits for them.
    listing: tokio::sync::Mutex<()>,
}

/// The V1 files that answer for sessions.
#[derive(Debug)]
struct ServedFiles {
    migrator: Migrator,
    entropy: Arc<dyn Entropy>,
    /// Those that were asked for.
    open: Mutex<HashMap<SessionId, ServedFile>>,
    /// Those that are being read, each with a lock that its reader holds: a large file takes seconds, and is read once
    /// for all who ask meanwhile.
    reading: Mutex<HashMap<SessionId, Arc<Mutex<()>>>>,
}

#[derive(Clone, Debug)]
struct ServedFile {
    store: Arc<V1Session>,
    /// The session when its last change was published.
    published: Option<Snapshot>,
}

impl ServedStore {
    /// Serves the V1 files of a native store's sessions. `platform` is the one that the store was opened
    /// with. Must be called on a tokio runtime, which then follows the files.
    #[must_use]
    pub fn over(native: NativeStore, platform: Platform, files: Arc<dyn V1Files>) -> Self {
        let entropy = Arc::clone(&platform.entropy);
        let migrator = Migrator::open_to_look(platform, files);
        let (open, reading) = Default::default();
        let files = Arc::new(ServedFiles { migrator, entropy, open, reading });
        native.list_files_of(Arc::clone(&files) as Arc<dyn FileSessions>);
        let shared = Arc::new(Shared {
            native,
            files,
            unlisted: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
        });
        tokio::spawn(follow(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// Finishes or undoes migrations and rollbacks that were interrupted, and returns what was done. Call it
    /// before anything is served. It reads and writes the disk on the calling thread.
    pub fn recover_now(&self) -> Answer<Vec<(SessionId, Recovered)>> {
        let mut recovered = Vec::new();
        for (session, done) in self.shared.files.migrator.recover_marked().map_err(refused)? {
            if is_settled(&done) {
                self.shared.unlisted().push(session.clone());
            }
            match done {
                Ok(Recovered::Nothing) | Err(_) => {}
                Ok(done) => recovered.push((session, done)),
            }
        }
        Ok(recovered)
    }

    /// The same where blocking is allowed; what was recovered is listed as it is now.
    pub async fn recover(&self) -> Result<Vec<(SessionId, Recovered)>> {
        let served = self.clone();
        let recovered = blocking(move || Ok(served.recover_now()?)).await?;
        self.shared.list_unlisted().await;
        Ok(recovered)
    }

    /// Serves a V1 file that need not belong to the data directory, and says which session it is. Where the
    /// directory has that session, its own store goes on answering for it.
    pub async fn serve_file(&self, address: &str) -> Result<SessionId> {
        let files = &self.shared.files;
        let (migrator, address) = (files.migrator.clone(), address.to_owned());
        let (file, session) = blocking(move || migrator.session_of(&address)).await?;
        let known = self.shared.native.state(&session).await;
        if matches!(known, Ok(None)) && files.is_log(&session).is_none() {
            let store = V1Session::open_file(file, Arc::clone(&files.entropy)).await?;
            files.keep(&session, store);
        }
        Ok(session)
    }

    /// Whether a V1 file has other lines than it had when it was migrated, while the log answers for its session: what
    /// pi wrote since is not in the session.
    pub async fn has_changed_since_migration(&self, address: &str) -> Result<bool> {
        let (migrator, address) = (self.shared.files.migrator.clone(), address.to_owned());
        blocking(move || migrator.has_changed_since_migration(&address)).await
    }

    /// Lists a session as its present store shows it: after a migration, a rollback, or a recovery.
    pub async fn show(&self, session: &SessionId) {
        let shared = &self.shared;
        if let Some(file) = shared.files.opened(session) {
            return shared.publish(session, &file).await;
        }
        // A session that cannot be read is listed as it was; opening it reports why.
        drop(shared.native.refresh(vec![session.clone()]).await);
    }
}

impl ServedFiles {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, ServedFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, session: &SessionId, store: V1Session) -> Arc<V1Session> {
        let fresh = || ServedFile { store: Arc::new(store), published: None };
        Arc::clone(&self.lock().entry(session.clone()).or_insert_with(fresh).store)
    }

    /// Whether the log answers for a session of the directory, or a file; `None` when the directory does not have it.
    fn is_log(&self, session: &SessionId) -> Option<bool> {
        let origin = self.migrator.sessions.origin(session).ok().flatten();
        origin.map(|origin| origin.is_log())
    }

    /// The file that answers for a session, where one was found to.
    fn opened(&self, session: &SessionId) -> Option<Arc<V1Session>> {
        let found = self.lock().get(session).map(|served| Arc::clone(&served.store))?;
        if self.is_log(session) == Some(true) {
            self.lock().remove(session);
            return None;
        }
        Some(found)
    }

    /// The file that the manifest names as the one that answers for a session, opened. A caller that does not wait for
    /// it leaves it open for the next one.
    async fn find(self: &Arc<Self>, session: &SessionId) -> Answer<Option<Arc<V1Session>>> {
        if self.is_log(session) != Some(false) {
            return Ok(None);
        }
        let (files, session) = (Arc::clone(self), session.clone());
        blocking(move || files.find_now(&session)).await.map_err(refused)
    }

    fn find_now(&self, session: &SessionId) -> Result<Option<Arc<V1Session>>> {
        self.alone(session, || {
            if let Some(found) = self.opened(session) {
                return Ok(Some(found));
            }
            // One look: the session may go away between two.
            if self.is_log(session) != Some(false) {
                return Ok(None);
            }
            let file = self.migrator.live_file(session)?;
            let store = V1Session::open_now(file, Arc::clone(&self.entropy))?;
            Ok(Some(self.keep(session, store)))
        })
    }

    /// Runs `read` when no other thread reads the file of the session.
    fn alone<T>(&self, session: &SessionId, read: impl FnOnce() -> T) -> T {
        let reading = || self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Arc::clone(reading().entry(session.clone()).or_default());
        let held = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let found = read();
        drop(held);
        let mut reading = reading();
        // Two: the map's and ours. With more, another thread waits for its turn.
        if Arc::strong_count(&turn) == 2 {
            reading.remove(session);
        }
        found
    }

    /// The file to ask when the log refused; the log's own words when there is none.
    async fn instead(
        self: &Arc<Self>,
        session: &SessionId,
        error: StoreError,
    ) -> Answer<Arc<V1Session>> {
        match error {
            StoreError::Invalid { .. } | StoreError::NotFound { .. } => {
                self.find(session).await?.ok_or(error)
            }
            error => Err(error),
        }
    }

    /// The session as it was when its file was last looked at.
    fn known(&self, session: &SessionId) -> Option<Snapshot> {
        let served = self.lock().get(session).cloned()?;
        served.published.or_else(|| served.store.snapshot_unless_busy())
    }

    /// The session as its file is. Its records are not taken into memory: a list needs only their sum.
    fn folded(&self, session: &SessionId) -> Option<Snapshot> {
        let state = self.migrator.live_file(session).and_then(LiveV1::fold).ok()?;
        let (seq, incarnation) = (state.seq, new_incarnation(&*self.entropy).ok()?);
        let head = Head { incarnation, seq, chain: ChainHash::from_bytes([0; 32]) };
        Some(Snapshot { head, position: Position::at(seq), state: Arc::new(state) })
    }

    /// Notes the state of a session that is about to be published. Returns whether it changed since the last time.
    fn is_news(&self, session: &SessionId, now: Snapshot) -> bool {
        let at = |snapshot: &Snapshot| (snapshot.head.incarnation, snapshot.position);
        match self.lock().get_mut(session) {
            Some(served) if served.published.as_ref().map(at) != Some(at(&now)) => {
                served.published = Some(now);
                true
            }
            _ => false,
        }
    }
}

impl FileSessions for ServedFiles {
    fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        if self.is_log(session) != Some(false) {
            return None;
        }
        self.known(session).or_else(|| {
            self.alone(session, || self.known(session).or_else(|| self.folded(session)))
        })
    }
}

impl Shared {
    /// Wakes the subscribers of the session and updates its row in the catalogue, if it changed since the last time.
    async fn publish(&self, session: &SessionId, file: &V1Session) {
        let Ok(Some(now)) = file.state(session).await else { return };
        if self.files.is_news(session, now) {
            // A list that lags is put right at the next change.
            drop(self.native.refresh(vec![session.clone()]).await);
        }
    }

    fn unlisted(&self) -> MutexGuard<'_, Vec<SessionId>> {
        self.unlisted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the sessions that were migrated or rolled back since the last list, then removes their marks.
    async fn list_unlisted(&self) {
        let _listing = self.listing.lock().await;
        let sessions = std::mem::take(&mut *self.unlisted());
        // A mark that stays asks for the same once more.
        if !sessions.is_empty() && self.native.refresh(sessions.clone()).await.is_ok() {
            for session in &sessions {
                drop(self.files.migrator.unmark(session));
            }
        }
    }

    /// Looks whether the files that are served changed.
    async fn follow_files(&self, databases_too: bool) {
        let served: Vec<_> = {
            let files = self.files.lock();
            let chosen =
                files.iter().filter(|(_, file)| databases_too || !file.store.is_database());
            chosen.map(|(session, file)| (session.clone(), Arc::clone(&file.store))).collect()
        };
        for (session, file) in served {
            self.publish(&session, &file).await;
        }
    }
}

async fn follow(shared: Weak<Shared>) {
    for count in 1_u32.. {
        tokio::time::sleep(Duration::from_millis(FOLLOW_EVERY_MS)).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.follow_files(count.is_multiple_of(FOLLOW_DATABASE_EVERY)).await;
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |error: tokio::task::JoinError| std::io::Error::other(error);
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// Asks the file where one is known to answer, else the log, else the file that the manifest names.
macro_rules! ask {
    ($self:ident, $session:ident, $call:ident $args:tt) => {{
        let shared = &$self.shared;
        if let Some(file) = shared.files.opened($session) {
            return file.$call $args.await;
        }
        match shared.native.$call $args.await {
            Err(error) => shared.files.instead($session, error).await?.$call $args.await,
            answer => answer,
        }
    }};
}

/// The same where the log says `None` of a session that it does not answer for.
macro_rules! find {
    ($self:ident, $session:ident, $call:ident $args:tt) => {{
        match ask!($self, $session, $call $args)? {
            None => match $self.shared.files.find($session).await? {
                Some(file) => file.$call $args.await,
                None => Ok(None),
            },
            found => Ok(found),
        }
    }};
}

#[async_trait]
impl ReadStore for ServedStore {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Answer<Loaded> {
        match ask!(self, session, load(session, known))? {
            Loaded::Absent => match self.shared.files.find(session).await? {
                Some(file) => file.load(session, known).await,
                None => Ok(Loaded::Absent),
            },
            loaded => Ok(loaded),
        }
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Answer<Option<StoredEntry>> {
        // An earlier incarnation is in the log's trash, even if a file answers for the present one.
        if query.incarnation.is_some()
            && let Some(found) = self.shared.native.read_entry(session, query).await?
        {
            return Ok(Some(found));
        }
        find!(self, session, read_entry(session, query))
    }

    async fn read_records(&self, session: &SessionId, query: &RecordQuery) -> Answer<RecordPage> {
        // An earlier incarnation is in the log's trash, even if a file answers for the present one.
        if query.incarnation.is_some()
            && let Ok(page) = self.shared.native.read_records(session, query).await
        {
            return Ok(page);
        }
        ask!(self, session, read_records(session, query))
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Answer<PathPage> {
        ask!(self, session, path(session, query))
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Answer<Vec<BranchHead>> {
        ask!(self, session, branch_heads(session, before, limit))
    }
}

#[async_trait]
impl Store for ServedStore {
    fn capabilities(&self) -> Capabilities {
        self.shared.native.capabilities()
    }

    async fn write(&self, session: &SessionId, write: Write) -> Answer<Appended> {
        let Some(file) = self.shared.files.opened(session) else {
            let is_append = matches!(write, Write::Append { .. });
            return match self.shared.native.write(session, write).await {
                Err(error) if is_append => Err(self.moved(session, error).await),
                written => written,
            };
        };
        let written = file.write(write).await?;
        self.shared.publish(session, &file).await;
        Ok(written)
    }

    async fn draft(&self, session: &SessionId) -> Answer<Box<dyn Draft>> {
        self.shared.native.draft(session).await
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Answer<Option<Trashed>> {
        find!(self, session, delete(session, at_ms))
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Answer<Snapshot> {
        self.shared.native.undelete(session, incarnation, at_ms).await
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Answer<bool> {
        self.shared.native.purge(session, incarnation, deleted_at).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Answer<Vec<Trashed>> {
        self.shared.native.trash(session).await
    }

    async fn list(&self, query: &ListQuery) -> Answer<ListPage> {
        self.shared.list_unlisted().await;
        self.shared.native.list(query).await
    }

    async fn usage(&self, query: &UsageQuery) -> Answer<UsageReport> {
        self.shared.list_unlisted().await;
        self.shared.native.usage(query).await
    }

    fn hub(&self) -> &ChangeHub {
        self.shared.native.hub()
    }

    async fn changes(&self, after: Option<&ChangeCursor>, limit: usize) -> Answer<ChangePage> {
        self.shared.native.changes(after, limit).await
    }

    async fn reopen(&self, session: &SessionId) -> Answer<()> {
        ask!(self, session, reopen(session))
    }

    async fn close(&self) -> Answer<()> {
        self.shared.list_unlisted().await;
        self.shared.native.close().await
    }
}

impl ServedStore {
    /// Why an append to a log failed. If the session was rolled back since the caller looked, the error asks it to look
    /// again.
    async fn moved(&self, session: &SessionId, error: StoreError) -> StoreError {
        match self.shared.files.instead(session, error).await {
            Ok(_) => StoreError::Unavailable {
                reason: "the session went back to its V1 file just now; look again and retry"
                    .to_owned(),
            },
            Err(error) => error,
        }
    }
}
