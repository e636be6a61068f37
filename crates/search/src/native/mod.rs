//! An index in SQLite, shared by the processes of a data directory.
//!
//! The words are in a table of FTS5 that holds no text (`content=''`). A document's terms, made by our tokenizer, are
//! joined by spaces, and SQLite's plainest tokenizer splits them again. Filters are terms of
//! the first column too: a column of their own would cost two bytes more for each of them.
//!
//! Tables:
//! - `words`: the terms of each document;
//! - `docs`: the entry of a document, and its time. Documents are numbered in the order in which they were indexed;
//! - `sessions`: the position up to which each session is indexed;
//! - `months`: the months that documents are of;
//! - `metadata`: the pairs of sessions, for the scope of a caller;
//! - `facts`: the cursor in the feed of all sessions, and the next document's number.

mod background;
mod expression;
mod narrow;
mod rank;
mod read;
mod schema;
mod write;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bough_platform::{Clock, Disk, LockError, RelPath};
use bough_session::SessionId;
use rusqlite::{Connection, MAIN_DB};

use crate::SearchError;
use crate::index::{CandidatePage, IndexBatch, IndexLock, IndexedSession, SearchAsk, SearchIndex};
use crate::limits::{BUSY_TIMEOUT, OPEN_PAUSE, OPEN_RETRIES_MAX, READERS_KEPT};

/// The file of the index in a data directory.
pub const INDEX_FILE: &str = "search.sqlite";

/// The location of an index.
#[derive(Clone, Debug)]
pub struct IndexFile {
    /// The disk that the file is on; for making it private, for removing it, and for the lock beside it.
    pub disk: Arc<dyn Disk>,
    /// The file on that disk.
    pub name: RelPath,
    /// The same file as a path of the operating system; SQLite opens it by itself.
    pub path: PathBuf,
    /// For waiting while another process holds the file.
    pub clock: Arc<dyn Clock>,
}

/// An index in SQLite. Cheap to clone; clones are the same index.
#[derive(Clone, Debug)]
pub struct NativeIndex {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: Option<IndexFile>,
    /// The file cannot be written: the index is in memory, so that a full disk can be searched.
    is_unwritable: AtomicBool,
    /// Opened at the first use: most programs that could search never do.
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

impl NativeIndex {
    /// An index in a file. The file is opened at the first use; it is created if it is missing, and created anew if it
    /// is damaged or of another version. If it cannot be written, the index is one in memory.
    #[must_use]
    pub fn new(file: IndexFile) -> Self {
        Self::with(Some(file), None)
    }

    /// The index of a data directory.
    pub fn in_folder(
        disk: Arc<dyn Disk>,
        folder: &std::path::Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SearchError> {
        let name = RelPath::parse(INDEX_FILE).map_err(std::io::Error::from)?;
        Ok(Self::new(IndexFile { disk, name, path: folder.join(INDEX_FILE), clock }))
    }

    /// An index that lasts as long as the process.
    pub fn in_memory() -> Result<Self, SearchError> {
        Ok(Self::with(None, Some(open_in_memory()?)))
    }

    fn with(file: Option<IndexFile>, writer: Option<Connection>) -> Self {
        let inner = Inner {
            file,
            is_unwritable: AtomicBool::new(false),
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || inner.with_writer(work)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || inner.with_reader(work)).await
    }
}

impl Inner {
    /// The file that the index is in; none where it is in memory.
    fn file(&self) -> Option<&IndexFile> {
        self.file.as_ref().filter(|_| !self.is_unwritable.load(Ordering::Acquire))
    }

    fn open(&self, file: &IndexFile) -> Result<Connection, SearchError> {
        match open_writer(file) {
            Err(SearchError::Unwritable { .. }) => {
                self.is_unwritable.store(true, Ordering::Release);
                open_in_memory()
            }
            other => other,
        }
    }

    fn with_writer<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let mut slot = lock(&self.writer);
        if let (None, Some(file)) = (slot.as_ref(), &self.file) {
            *slot = Some(self.open(file)?);
        }
        let closed = || SearchError::Unavailable { reason: "it is closed".to_owned() };
        work(slot.as_mut().ok_or_else(closed)?)
    }

    fn with_reader<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let kept = lock(&self.readers).pop();
        let reader = match kept {
            Some(reader) => reader,
            None => {
                // Whichever process comes first creates the tables, and sees whether the file can be written.
                self.with_writer(|_| Ok(()))?;
                match self.file() {
                    Some(file) => connect(file)?,
                    // An index in memory is one connection.
                    None => return self.with_writer(|writer| work(writer)),
                }
            }
        };
        let done = work(&reader);
        let mut readers = lock(&self.readers);
        if done.is_ok() && readers.len() < READERS_KEPT {
            readers.push(reader);
        }
        done
    }
}

#[async_trait]
impl SearchIndex for NativeIndex {
    async fn cursor(&self) -> Result<Option<String>, SearchError> {
        self.read(|connection| Ok(read::cursor(connection)?)).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<IndexedSession>, SearchError> {
        let session = session.clone();
        self.read(move |connection| Ok(read::session(connection, &session)?)).await
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<IndexedSession>, SearchError> {
        let after = after.map_or(String::new(), |after| after.as_str().to_owned());
        self.read(move |connection| Ok(read::sessions(connection, &after, limit)?)).await
    }

    async fn stale(&self, limit: usize) -> Result<Vec<IndexedSession>, SearchError> {
        self.read(move |connection| Ok(read::stale(connection, limit)?)).await
    }

    async fn apply(&self, batch: IndexBatch) -> Result<(), SearchError> {
        let inner = self.inner.clone();
        let is_waited_for = batch.is_waited_for;
        let work = move || inner.with_writer(|connection| write::apply(connection, &batch));
        match is_waited_for {
            true => off_worker(work).await,
            false => background::run(work).await,
        }
    }

    async fn search(&self, ask: &SearchAsk<'_>) -> Result<CandidatePage, SearchError> {
        let ask = read::Ask::of(ask)?;
        self.read(move |connection| Ok(read::search(connection, &ask)?)).await
    }

    async fn clear(&self) -> Result<(), SearchError> {
        self.write(|connection| Ok(schema::clear(connection)?)).await
    }

    async fn lock(&self) -> Result<Option<IndexLock>, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || {
            inner.with_writer(|_| Ok(()))?;
            let Some(file) = inner.file() else { return Ok(Some(IndexLock::new(()))) };
            let name = RelPath::parse(&format!("{}.lock", file.name));
            match file.disk.lock(&name.map_err(std::io::Error::from)?, "search") {
                Ok(held) => Ok(Some(IndexLock::new(held))),
                Err(LockError::Held { .. }) => Ok(None),
                Err(LockError::Io(error)) => Err(error.into()),
            }
        })
        .await
    }
}

/// Runs on a blocking thread: SQLite waits for the disk and for other processes, which a worker of
/// the runtime must not.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
) -> Result<T, SearchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(SearchError::Unavailable { reason: error.to_string() }))
}

// After a panic SQLite rolls its own transaction back, so a poisoned lock can be used as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_in_memory() -> Result<Connection, SearchError> {
    let mut writer = Connection::open_in_memory()?;
    schema::prepare(&mut writer)?;
    Ok(writer)
}

fn open_writer(file: &IndexFile) -> Result<Connection, SearchError> {
    match try_open_writer(file) {
        Err(SearchError::Corrupt { .. }) => {
            remove_files(file)?;
            try_open_writer(file)
        }
        other => other,
    }
}

fn try_open_writer(file: &IndexFile) -> Result<Connection, SearchError> {
    // Create it here, with private rights; SQLite gives its side files the same rights.
    match file.disk.create(&file.name) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let mut writer = connect(file)?;
    // SQLite opens a file that it may not write for reading, and says so only when it is to write.
    if writer.is_readonly(MAIN_DB)? {
        return Err(std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem).into());
    }
    schema::prepare(&mut writer)?;
    Ok(writer)
}

/// Opens a connection. Switching a new file to a write-ahead log needs exclusive access, and SQLite does not wait for
/// that by itself.
fn connect(file: &IndexFile) -> Result<Connection, SearchError> {
    for _ in 0..OPEN_RETRIES_MAX {
        match try_connect(file) {
            Err(error) if is_busy(&error) => file.clock.sleep(OPEN_PAUSE),
            other => return Ok(other?),
        }
    }
    Ok(try_connect(file)?)
}

fn try_connect(file: &IndexFile) -> rusqlite::Result<Connection> {
    let connection = Connection::open(&file.path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Enough for a derived file: a power cut may lose the last batches, never the whole file.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Fewer checkpoints: each syncs the disk that appends are waiting for.
    connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn remove_files(file: &IndexFile) -> Result<(), SearchError> {
    for suffix in ["", "-wal", "-shm"] {
        let name = RelPath::parse(&format!("{}{suffix}", file.name));
        match file.disk.remove_file(&name.map_err(std::io::Error::from)?) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
