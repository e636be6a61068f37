//! The connections of an index to its file.
//!
//! An index is derived, so a file that cannot be read is removed and made anew. Another process may do the same, or a
//! person may delete the file: a connection is used only while its file is the one at the path.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_platform::{FileId, Lock, LockError, RelPath};
use rusqlite::{Connection, MAIN_DB};

use super::{IndexFile, schema};
use crate::SearchError;
use crate::index::IndexLock;
use crate::limits::{BUSY_TIMEOUT, OPEN_PAUSE, OPEN_RETRIES_MAX, READERS_KEPT};

/// A connection, and the file that it opened.
#[derive(Debug)]
struct Opened {
    connection: Connection,
    id: Option<FileId>,
}

#[derive(Debug)]
pub(super) struct Connections {
    file: Option<IndexFile>,
    /// The file cannot be written: the index is in memory, so that a full disk can be searched.
    is_unwritable: AtomicBool,
    /// This process has written to the file.
    has_written: AtomicBool,
    /// The index goes on in memory also if the disk becomes full after it was written.
    is_for_one_command: bool,
    /// Whether this process has the lock.
    is_locked: AtomicBool,
    /// Opened at the first use: most programs that could search never do.
    writer: Mutex<Option<Opened>>,
    readers: Mutex<Vec<Opened>>,
}

/// The lock while this process has it.
struct Held {
    #[expect(dead_code, reason = "held until it is dropped")]
    lock: Box<dyn Lock>,
    of: Arc<Connections>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.is_locked.store(false, Ordering::Release);
    }
}

impl Connections {
    pub(super) fn new(file: Option<IndexFile>, in_memory: Option<Connection>) -> Self {
        Self {
            file,
            is_unwritable: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
            is_for_one_command: false,
            is_locked: AtomicBool::new(false),
            writer: Mutex::new(in_memory.map(|connection| Opened { connection, id: None })),
            readers: Mutex::default(),
        }
    }

    pub(super) fn for_one_command(file: IndexFile) -> Self {
        Self { is_for_one_command: true, ..Self::new(Some(file), None) }
    }

    /// The file that the index is in; none where it is in memory.
    fn file(&self) -> Option<&IndexFile> {
        self.file.as_ref().filter(|_| !self.is_unwritable.load(Ordering::Acquire))
    }

    /// Notes that documents were written, so that the index stays in its file.
    pub(super) fn note_written(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// Goes on in memory if the disk takes no writing; says whether it did. In a server, an index that has been written
    /// stays in its file: the disk may have space again, and all of it may not fit into memory.
    fn leave_file(&self, slot: &mut Option<Opened>) -> Result<bool, SearchError> {
        let stays = self.has_written.load(Ordering::Acquire) && !self.is_for_one_command;
        if self.file().is_none() || stays {
            return Ok(false);
        }
        *slot = Some(Opened { connection: open_in_memory()?, id: None });
        self.is_unwritable.store(true, Ordering::Release);
        lock(&self.readers).clear();
        Ok(true)
    }

    /// Runs work with the connection that writes. A damaged file is replaced, and the work done on the new one.
    pub(super) fn with_writer<T>(
        &self,
        work: impl Fn(&mut Connection) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        match self.write_once(&work) {
            (Err(SearchError::Corrupt { reason }), id) => {
                self.replace(id, reason)?;
                self.write_once(&work).0
            }
            (other, _) => other,
        }
    }

    /// Runs work with a connection that reads. A damaged file is replaced here too.
    pub(super) fn with_reader<T>(
        &self,
        work: impl Fn(&Connection) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        match self.read_once(&work) {
            (Err(SearchError::Corrupt { reason }), id) => {
                self.replace(id, reason)?;
                self.read_once(&work).0
            }
            (other, _) => other,
        }
    }

    /// Takes the right to change the index; `None` while another process has it.
    pub(super) fn lock(self: &Arc<Self>) -> Result<Option<IndexLock>, SearchError> {
        self.with_writer(|_| Ok(()))?;
        let Some(file) = self.file() else { return Ok(Some(IndexLock::new(()))) };
        let held = match try_lock(file) {
            Err(SearchError::Unwritable { .. }) if self.leave_file(&mut lock(&self.writer))? => {
                return Ok(Some(IndexLock::new(())));
            }
            held => held?,
        };
        Ok(held.map(|lock| {
            self.is_locked.store(true, Ordering::Release);
            IndexLock::new(Held { lock, of: self.clone() })
        }))
    }

    /// Removes the files of the index, whoever has the lock.
    pub(super) fn remove(&self) -> Result<(), SearchError> {
        let mut writer = lock(&self.writer);
        let Some(file) = self.file() else { return Ok(()) };
        *writer = None;
        lock(&self.readers).clear();
        remove_files(file)
    }

    /// Removes a damaged file, unless another process has the lock and so may be using it.
    fn replace(&self, damaged: Option<FileId>, reason: String) -> Result<(), SearchError> {
        let Some(file) = self.file() else { return Err(SearchError::Corrupt { reason }) };
        let is_locked = self.is_locked.load(Ordering::Acquire);
        let held = if is_locked { None } else { try_lock(file)? };
        if !is_locked && held.is_none() {
            return Err(SearchError::Corrupt { reason });
        }
        // Another thread may have replaced it already.
        if id_of(file)? == damaged { self.remove() } else { Ok(()) }
    }

    fn open(&self, file: &IndexFile) -> Result<Opened, SearchError> {
        match open_writer(file) {
            Err(SearchError::Unwritable { .. }) => {
                self.is_unwritable.store(true, Ordering::Release);
                Ok(Opened { connection: open_in_memory()?, id: None })
            }
            other => other,
        }
    }

    /// Also returns which file was used.
    fn write_once<T>(
        &self,
        work: impl Fn(&mut Connection) -> Result<T, SearchError>,
    ) -> (Result<T, SearchError>, Option<FileId>) {
        let mut slot = lock(&self.writer);
        let (done, id) = match self.writer_in(&mut slot) {
            Ok(opened) => (work(&mut opened.connection), opened.id),
            Err(error) => (Err(error), None),
        };
        if !matches!(done, Err(SearchError::Unwritable { .. })) {
            return (done, id);
        }
        match self.leave_file(&mut slot) {
            // The caller begins again with what the index in memory knows.
            Ok(true) => (Err(SearchError::Conflict), None),
            Ok(false) => (done, id),
            Err(error) => (Err(error), id),
        }
    }

    fn writer_in<'a>(&self, slot: &'a mut Option<Opened>) -> Result<&'a mut Opened, SearchError> {
        if let Some(file) = self.file() {
            let is_current = slot.as_ref().is_some_and(|opened| opened.is_of(file));
            if !is_current {
                *slot = None;
                *slot = Some(self.open(file)?);
            }
        }
        let closed = || SearchError::Unavailable { reason: "it is closed".to_owned() };
        slot.as_mut().ok_or_else(closed)
    }

    /// Also returns which file was used.
    fn read_once<T>(
        &self,
        work: impl Fn(&Connection) -> Result<T, SearchError>,
    ) -> (Result<T, SearchError>, Option<FileId>) {
        let reader = match self.reader() {
            Ok(Some(reader)) => reader,
            // An index in memory is one connection.
            Ok(None) => return self.write_once(|writer| work(writer)),
            Err(error) => return (Err(error), None),
        };
        let (done, id) = (work(&reader.connection), reader.id);
        let mut readers = lock(&self.readers);
        if done.is_ok() && readers.len() < READERS_KEPT {
            readers.push(reader);
        }
        (done, id)
    }

    /// A connection to the file at the path; none for an index in memory.
    fn reader(&self) -> Result<Option<Opened>, SearchError> {
        let Some(file) = self.file() else { return Ok(None) };
        let kept = lock(&self.readers).pop();
        if let Some(kept) = kept.filter(|kept| kept.is_of(file)) {
            return Ok(Some(kept));
        }
        // Whichever process comes first creates the tables, and sees whether the file can be written.
        self.with_writer(|_| Ok(()))?;
        match self.file().map(connect).transpose() {
            Err(SearchError::Unwritable { .. }) if self.leave_file(&mut lock(&self.writer))? => {
                Ok(None)
            }
            connected => connected,
        }
    }
}

impl Opened {
    /// Whether the file that it opened is still the one at the path.
    fn is_of(&self, file: &IndexFile) -> bool {
        id_of(file).is_ok_and(|now| now == self.id)
    }
}

fn id_of(file: &IndexFile) -> Result<Option<FileId>, SearchError> {
    Ok(file.disk.stat(&file.name)?.and_then(|stat| stat.id))
}

fn try_lock(file: &IndexFile) -> Result<Option<Box<dyn Lock>>, SearchError> {
    let name = RelPath::parse(&format!("{}.lock", file.name));
    match file.disk.lock(&name.map_err(std::io::Error::from)?, "search") {
        Ok(held) => Ok(Some(held)),
        Err(LockError::Held { .. }) => Ok(None),
        Err(LockError::Io(error)) => Err(error.into()),
    }
}

// After a panic SQLite rolls its own transaction back, so a poisoned lock can be used as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn open_in_memory() -> Result<Connection, SearchError> {
    let mut writer = Connection::open_in_memory()?;
    schema::prepare(&mut writer)?;
    Ok(writer)
}

fn open_writer(file: &IndexFile) -> Result<Opened, SearchError> {
    match try_open_writer(file) {
        Err(SearchError::Corrupt { .. }) => {
            remove_files(file)?;
            try_open_writer(file)
        }
        other => other,
    }
}

fn try_open_writer(file: &IndexFile) -> Result<Opened, SearchError> {
    // Create it here, with private rights; SQLite gives its side files the same rights.
    match file.disk.create(&file.name) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let mut writer = connect(file)?;
    // SQLite opens a file that it may not write for reading, and says so only when it is to write.
    if writer.connection.is_readonly(MAIN_DB)? {
        return Err(std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem).into());
    }
    schema::prepare(&mut writer.connection)?;
    Ok(writer)
}

/// Opens a connection. Switching a new file to a write-ahead log needs exclusive access, and SQLite does not wait for
/// that by itself.
fn connect(file: &IndexFile) -> Result<Opened, SearchError> {
    for _ in 0..OPEN_RETRIES_MAX {
        match try_connect(file) {
            Err(error) if is_busy(&error) => file.clock.sleep(OPEN_PAUSE),
            other => return opened(file, other?),
        }
    }
    opened(file, try_connect(file)?)
}

fn opened(file: &IndexFile, connection: Connection) -> Result<Opened, SearchError> {
    Ok(Opened { connection, id: id_of(file)? })
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
