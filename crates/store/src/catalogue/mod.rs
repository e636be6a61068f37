//! The catalogue: a derived table of sessions that lists and the feed of all sessions are read from.
//!
//! It is SQLite, shared by processes (write-ahead log, a wait for a busy writer), and written behind:
//! rows are queued in memory and written in one transaction, by the thread that flushes. A list flushes first, so
//! within a process it is exact. Nothing is stored only here: delete the file, and it is rebuilt. Where it cannot be written
//! (a full disk, a directory that is read-only), it is rebuilt in memory, so that everything can be read.
//!
//! Tables:
//! - `sessions`: one row a session, with what a list shows and what orders it;
//! - `facets`: for each session its status, task status and metadata pairs, as 16-byte digests, with the
//!   columns that order a list beside them. A filtered page is read from the index of its rarest facet,
//!   so its cost does not grow with the sessions that do not match;
//! - `usage`: what each session used, by day, model and tool, for sums over all of them;
//! - `changes`: the feed of all sessions, in order, bounded;
//! - `gone`: incarnations that were deleted, so that a late write does not bring one back;
//! - `facts`: the epoch, the newest change number, how far the feed has been forgotten, and the boot of the machine.

mod facets;
mod feed;
mod pages;
mod queue;
mod rows;
mod schema;
mod unshared;
mod usage;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bough_platform::{Clock, Disk, RelPath, if_there, takes_no_writing};
use bough_session::{Incarnation, SessionId};
use rusqlite::{Connection, MAIN_DB};

pub use rows::{CatalogueRow, Fingerprint};

use crate::StoreError;
use crate::limits::{CONNECT_PAUSE, CONNECT_RETRIES_MAX};
use crate::sync::lock;
use crate::types::{ChangeCursor, ChangePage, ListPage, ListQuery, UsageQuery, UsageReport};
use bough_record::Position;
use feed::Written;
use queue::{Pending, Queue};
use unshared::Unshared;

/// How many deleted incarnations are remembered.
pub const GONE_KEPT: u64 = 10_000;

/// How long a writer waits for another process's transaction.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Where a catalogue is.
#[derive(Clone, Debug)]
pub struct CatalogueFile {
    /// The disk that the file is on; for making it private, and for removing it.
    pub disk: Arc<dyn Disk>,
    /// The file on that disk.
    pub name: RelPath,
    /// The same file in the operating system's words; SQLite opens it by itself.
    pub path: PathBuf,
    /// For waiting until another process releases it.
    pub clock: Arc<dyn Clock>,
}

/// A derived table of sessions.
#[derive(Debug)]
pub struct Catalogue {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    pending: Mutex<Queue>,
    epoch: Incarnation,
    /// Where it is in memory: what is done so that other processes learn of what it alone knows.
    unshared: Option<Unshared>,
}

/// What opening a catalogue found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A catalogue of ours, with what it knew when it was last written.
    Known,
    /// Nothing, or something unusable that was removed: every session is to be put in again.
    Empty,
}

impl Catalogue {
    /// Opens the catalogue, making it where it is missing. A file that is damaged or of another version
    /// is removed and made anew: it holds nothing of its own. `fresh_epoch` is used when it is made. Where the file cannot
    /// be written, the catalogue is one in memory.
    pub fn open(
        file: &CatalogueFile,
        fresh_epoch: Incarnation,
    ) -> Result<(Self, Found), StoreError> {
        let opened = match Self::try_open(file, fresh_epoch) {
            Err(StoreError::Corrupt { .. }) => {
                remove_files(file).and_then(|()| Self::try_open(file, fresh_epoch))
            }
            other => other,
        };
        match opened {
            Err(error) if cannot_write(&error) => Self::in_memory(file, fresh_epoch),
            other => other,
        }
    }

    fn in_memory(
        file: &CatalogueFile,
        fresh_epoch: Incarnation,
    ) -> Result<(Self, Found), StoreError> {
        let connect = || unshared::connect(fresh_epoch).map_err(sqlite_error);
        let mut writer = connect()?;
        let (epoch, found) = schema::prepare(&mut writer, fresh_epoch).map_err(sqlite_error)?;
        let catalogue = Self {
            reader: Mutex::new(connect()?),
            writer: Mutex::new(writer),
            pending: Mutex::default(),
            epoch,
            unshared: Some(Unshared::beside(file, epoch)?),
        };
        Ok((catalogue, found))
    }

    fn try_open(
        file: &CatalogueFile,
        fresh_epoch: Incarnation,
    ) -> Result<(Self, Found), StoreError> {
        // Made here, so that it is private; SQLite gives its side files the same rights.
        match file.disk.create(&file.name) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        let mut writer = connect(file)?;
        // SQLite opens a file that it may not write for reading, and says so only when it is to write.
        if writer.is_readonly(MAIN_DB).map_err(sqlite_error)? {
            return Err(std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem).into());
        }
        let (epoch, found) = schema::prepare(&mut writer, fresh_epoch).map_err(sqlite_error)?;
        Ok((
            Self {
                reader: Mutex::new(connect(file)?),
                writer: Mutex::new(writer),
                pending: Mutex::default(),
                epoch,
                unshared: None,
            },
            found,
        ))
    }

    /// Queues what is now known of a session. It is listed from now on, and written at the next flush.
    pub fn put(&self, row: CatalogueRow) {
        let session = row.listed.meta.session_id.clone();
        self.queue(session, Pending::Put(Box::new(row)));
    }

    /// Queues that a session which is listed has come to a new place: the feed has it at the next flush, and the row follows
    /// when it is put.
    pub fn moved(&self, session: SessionId, incarnation: Incarnation, position: Position) {
        self.queue(session, Pending::Moved { incarnation, position });
    }

    /// Queues that an incarnation of a session is gone.
    pub fn remove(&self, session: &SessionId, incarnation: Incarnation, position: Position) {
        let gone = Pending::Gone { incarnation, position };
        self.queue(session.clone(), gone);
    }

    /// Queues that a deleted incarnation is back.
    pub fn revive(&self, row: CatalogueRow) {
        let session = row.listed.meta.session_id.clone();
        self.queue(session, Pending::Revived(Box::new(row)));
    }

    /// Sessions that hold documents are neither listed nor in the feed.
    fn queue(&self, session: SessionId, change: Pending) {
        if !session.is_documents() {
            self.lock_pending().add(session, change);
        }
    }

    /// Writes what is queued, in one transaction; says how many changes there were. When it fails,
    /// everything stays queued.
    pub fn flush(&self) -> Result<usize, StoreError> {
        Ok(self.write()?.map_or(0, |written| written.count()))
    }

    fn write(&self) -> Result<Option<Written>, StoreError> {
        let mut writer = self.lock_writer();
        // Taken under the writer's lock, so that a second flush cannot overtake with newer rows.
        let queued = std::mem::take(&mut *self.lock_pending());
        if queued.is_empty() {
            return Ok(None);
        }
        match rows::write(&mut writer, &queued) {
            Ok(written) => {
                self.unshared.iter().for_each(Unshared::note_written);
                Ok(Some(written))
            }
            Err(error) => {
                self.put_back(queued);
                Err(sqlite_error(error))
            }
        }
    }

    /// Begins a new epoch: the rows stay, and every cursor that was given out before meets a gap.
    pub fn begin_epoch(&self, epoch: Incarnation) -> Result<(), StoreError> {
        let mut writer = self.lock_writer();
        feed::begin_epoch(&mut writer, epoch).map_err(sqlite_error)
    }

    /// Forgets the changes so far: they are of sessions that were put in again, not of what happened.
    pub fn forget_changes(&self) -> Result<(), StoreError> {
        self.flush()?;
        self.unshared.iter().for_each(Unshared::note_filled);
        feed::forget_all(&mut self.lock_writer()).map_err(sqlite_error)
    }

    /// Whether the catalogue was last opened in this boot of the machine. An unknown boot is never the same.
    pub fn is_of_boot(&self, boot: &str) -> Result<bool, StoreError> {
        let noted = schema::fact(&self.lock_reader(), "boot").map_err(sqlite_error)?;
        Ok(!boot.is_empty() && noted.is_some_and(|noted: String| noted == boot))
    }

    /// Notes the boot of the machine, for [`is_of_boot`](Self::is_of_boot).
    pub fn note_boot(&self, boot: &str) -> Result<(), StoreError> {
        schema::put_fact(&self.lock_writer(), "boot", boot).map_err(sqlite_error)
    }

    /// Whether deleted incarnations were forgotten, so that one which is not known may be an old one.
    pub fn has_forgotten_incarnations(&self) -> Result<bool, StoreError> {
        rows::gone_count(&self.lock_reader()).map(|count| count >= GONE_KEPT).map_err(sqlite_error)
    }

    /// Writes what is queued and brings all of it onto the disk, so that a power cut takes nothing of it.
    pub fn settle(&self) -> Result<(), StoreError> {
        self.flush()?;
        let busy = |_: &rusqlite::Row<'_>| Ok(());
        let settled = self.lock_writer().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], busy);
        settled.map_err(sqlite_error)
    }

    /// A page of a list, exact for what this process has put in, and the sessions on it whose rows could not be read and are
    /// to be put in again.
    pub fn list(&self, query: &ListQuery) -> Result<(ListPage, Vec<SessionId>), StoreError> {
        self.flush_if_possible()?;
        pages::list(&self.lock_reader(), query)
    }

    /// Sums of what sessions used, exact for what this process has put in.
    pub fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        self.flush_if_possible()?;
        usage::sums(&self.lock_reader(), query).map_err(sqlite_error)
    }

    /// Where the feed of all sessions is, counting the changes of all processes that have flushed.
    pub fn newest(&self) -> Result<ChangeCursor, StoreError> {
        feed::newest(&self.lock_reader()).map_err(sqlite_error)
    }

    /// The changes after a cursor, of all processes that have flushed.
    pub fn changes_after(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        // A close follower asks for what was just written.
        let written = self.write()?;
        if let Some(page) = written.and_then(|written| written.page_after(cursor, limit)) {
            return Ok(page);
        }
        feed::changes_after(&self.lock_reader(), cursor, limit).map_err(sqlite_error)
    }

    /// What the catalogue knows of one session's container.
    pub fn fingerprint(&self, session: &SessionId) -> Result<Option<Fingerprint>, StoreError> {
        self.flush()?;
        rows::fingerprint(&self.lock_reader(), session).map_err(sqlite_error)
    }

    /// What the catalogue knows of the containers, by session id, for comparing with what is on the
    /// disk after an unclean end.
    pub fn fingerprints(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<Fingerprint>, StoreError> {
        self.flush()?;
        rows::fingerprints(&self.lock_reader(), after, limit).map_err(sqlite_error)
    }

    /// The epoch that this catalogue was opened in.
    #[must_use]
    pub const fn epoch(&self) -> Incarnation {
        self.epoch
    }

    /// Writes what is queued, if the disk takes it. A list of what was written before is better than none.
    fn flush_if_possible(&self) -> Result<(), StoreError> {
        match self.flush() {
            Err(error) if cannot_write(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Puts a queue that could not be written in front of what came since.
    fn put_back(&self, mut queued: Queue) {
        let mut pending = self.lock_pending();
        for (session, change) in pending.in_order() {
            queued.add(session.clone(), change.clone());
        }
        *pending = queued;
    }

    // A panic while one of these is held leaves SQLite's own transaction to roll back, and the queue
    // whole; so a poisoned lock is as good as any.
    fn lock_writer(&self) -> MutexGuard<'_, Connection> {
        lock(&self.writer)
    }

    fn lock_reader(&self) -> MutexGuard<'_, Connection> {
        lock(&self.reader)
    }

    fn lock_pending(&self) -> MutexGuard<'_, Queue> {
        lock(&self.pending)
    }
}

/// Opens a connection. Making a new file one with a write-ahead log needs the file alone, and for that SQLite does
/// not wait by itself: of two processes that begin at once, one would be refused.
fn connect(file: &CatalogueFile) -> Result<Connection, StoreError> {
    for _ in 0..CONNECT_RETRIES_MAX {
        match try_connect(&file.path) {
            Err(error) if is_busy(&error) => file.clock.sleep(CONNECT_PAUSE),
            other => return other.map_err(sqlite_error),
        }
    }
    try_connect(&file.path).map_err(sqlite_error)
}

fn try_connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Enough for a derived file: a power cut may take the last rows, never the whole.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn remove_files(file: &CatalogueFile) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let name =
            RelPath::parse(&format!("{}{suffix}", file.name)).map_err(std::io::Error::from)?;
        if_there(file.disk.remove_file(&name))?;
    }
    Ok(())
}

fn sqlite_error(error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::corrupt("the catalogue cannot be read", "catalogue")
        }
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            std::io::Error::new(std::io::ErrorKind::PermissionDenied, error).into()
        }
        _ if is_busy(&error) => {
            StoreError::Unavailable { reason: "the catalogue is busy".to_owned() }
        }
        _ => std::io::Error::other(error).into(),
    }
}

/// Whether an error says that nothing can be written here, while reading may go on.
pub(crate) fn cannot_write(error: &StoreError) -> bool {
    match error {
        StoreError::Full => true,
        StoreError::Io(error) => takes_no_writing(error) || is_failed_write(error),
        _ => false,
    }
}

/// Whether SQLite could not read or write a file. On a full disk its side files cannot grow, for which it has no code of
/// its own.
fn is_failed_write(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rusqlite::Error>());
    let code = inner.and_then(rusqlite::Error::sqlite_error_code);
    code == Some(rusqlite::ErrorCode::SystemIoFailure)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
