//! redb: a copy-on-write tree in one file, one transaction an append.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;

use redb::backends::FileBackend;
use redb::{Database, Durability, ReadableTable, StorageBackend, TableDefinition};

use super::{Peer, Syncing, Writer};
use crate::Outcome;
use crate::entries::Entry;

/// Session and place to entry.
const ENTRIES: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("entries");

/// Session and id to place, which reading by id needs.
const BY_ID: TableDefinition<'_, (u64, &str), u64> = TableDefinition::new("by_id");

pub(crate) struct Redb {
    database: Database,
    sync: Syncing,
}

impl Redb {
    pub(crate) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let path = folder.join("entries.redb");
        let backend = SyncedBackend {
            backend: FileBackend::new(options.open(&path)?)?,
            file: options.open(&path)?,
            sync,
        };
        let database = Database::builder().create_with_backend(backend)?;
        Ok(Self { database, sync })
    }

    /// How many entries a session has.
    #[cfg(test)]
    pub(crate) fn count(&self, session: usize) -> Outcome<usize> {
        use redb::ReadableDatabase;
        let session = session as u64;
        let table = self.database.begin_read()?.open_table(ENTRIES)?;
        Ok(table.range((session, 0)..(session + 1, 0))?.count())
    }
}

impl Peer for Redb {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        Ok(Box::new(RedbWriter { peer: self, session: session as u64 }))
    }
}

struct RedbWriter<'a> {
    peer: &'a Redb,
    session: u64,
}

impl Writer for RedbWriter<'_> {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        let mut transaction = self.peer.database.begin_write()?;
        if matches!(self.peer.sync, Syncing::Never) {
            transaction.set_durability(Durability::None)?;
        }
        {
            let mut table = transaction.open_table(ENTRIES)?;
            let mut by_id = transaction.open_table(BY_ID)?;
            let all = (self.session, 0)..(self.session + 1, 0);
            let last = table.range(all)?.next_back().transpose()?;
            let mut place = last.map_or(0, |(key, _)| key.value().1);
            for entry in &entries {
                place += 1;
                table.insert((self.session, place), entry.line.as_str())?;
                by_id.insert((self.session, entry.id.as_str()), place)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// redb's own file with a sync of our choice.
#[derive(Debug)]
struct SyncedBackend {
    backend: FileBackend,
    /// The same file once more: the backend keeps its own handle to itself.
    file: File,
    sync: Syncing,
}

impl StorageBackend for SyncedBackend {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.backend.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync.sync(&self.file)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backend.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }
}
