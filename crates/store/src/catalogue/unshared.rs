//! A catalogue in memory, for a disk that takes no writing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bough_platform::{Disk, RelPath};
use bough_session::Incarnation;
use rusqlite::{Connection, OpenFlags};

use super::{BUSY_TIMEOUT, CatalogueFile};
use crate::StoreError;

/// The folder of marks that processes leave; one that is not locked makes other processes compare the logs with their
/// catalogue.
const PROCESSES: &str = "processes";

/// What a catalogue in memory owes other processes. When the disk takes writing again, sessions may be written that only this
/// catalogue lists; a mark that is not locked then makes the others compare.
#[derive(Debug)]
pub(super) struct Unshared {
    disk: Arc<dyn Disk>,
    mark: RelPath,
    /// Whether it holds what the logs held when it was opened; what comes after that is new.
    is_filled: AtomicBool,
    /// Whether the mark was left.
    is_marked: AtomicBool,
}

impl Unshared {
    pub(super) fn beside(file: &CatalogueFile, epoch: Incarnation) -> Result<Self, StoreError> {
        let name = format!("{PROCESSES}/{epoch}");
        let mark = RelPath::parse(&name).map_err(std::io::Error::from)?;
        let (is_filled, is_marked) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { disk: Arc::clone(&file.disk), mark, is_filled, is_marked })
    }

    /// Everything that the logs hold is in it.
    pub(super) fn note_filled(&self) {
        self.is_filled.store(true, Ordering::Relaxed);
    }

    /// Rows were written. Where no mark can be left, no log can have been written either.
    pub(super) fn note_written(&self) {
        let is_news =
            self.is_filled.load(Ordering::Relaxed) && !self.is_marked.load(Ordering::Relaxed);
        if is_news && self.disk.create(&self.mark).is_ok() {
            self.is_marked.store(true, Ordering::Relaxed);
        }
    }
}

/// Opens a connection to the database in memory that an epoch names; connections of one epoch share it.
pub(super) fn connect(epoch: Incarnation) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:/bough-{epoch}?vfs=memdb"), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
