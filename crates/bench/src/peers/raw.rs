//! The limit: write(2) at the end of a growing file, then fdatasync.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::{Peer, Syncing, Writer};
use crate::Outcome;
use crate::entries::{Entry, session_name};

/// One file a session, one write and one sync an append. Nothing that stores durably can be faster.
pub(crate) struct Raw {
    folder: PathBuf,
    sync: Syncing,
}

impl Raw {
    pub(crate) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, sync })
    }

    pub(crate) fn path(&self, session: usize) -> PathBuf {
        self.folder.join(session_name(session))
    }
}

impl Peer for Raw {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(self.path(session))?;
        Ok(Box::new(RawWriter { file, sync: self.sync, buffer: Vec::new() }))
    }
}

struct RawWriter {
    file: File,
    sync: Syncing,
    buffer: Vec<u8>,
}

impl Writer for RawWriter {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        self.buffer.clear();
        for entry in &entries {
            self.buffer.extend_from_slice(entry.line.as_bytes());
            self.buffer.push(b'\n');
        }
        self.file.write_all(&self.buffer)?;
        self.sync.sync(&self.file)?;
        Ok(())
    }
}
