//! The limit: write(2) at the end of a growing file, then fdatasync.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Peer, Syncing, Writer};
use crate::Outcome;
use crate::entries::{Entry, session_name};

/// One file a session, one write and one sync an append. Nothing that stores durably can be faster.
pub(crate) struct Raw {
    folder: PathBuf,
    sync: Syncing,
    work: Work,
}

/// What is done to a line before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Nothing,
    /// What a chain of checked records asks for whoever writes it: the payload is JSON, its digest, the digest of the
    /// header with those before it, a checksum over all.
    Chained,
}

impl Raw {
    pub(crate) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, sync, work: Work::Nothing })
    }

    pub(crate) fn working(self, work: Work) -> Self {
        Self { work, ..self }
    }

    pub(crate) fn path(&self, session: usize) -> PathBuf {
        self.folder.join(session_name(session))
    }
}

impl Peer for Raw {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(self.path(session))?;
        Ok(Box::new(RawWriter {
            file,
            sync: self.sync,
            work: self.work,
            chain: [0; 32],
            buffer: Vec::new(),
        }))
    }
}

struct RawWriter {
    file: File,
    sync: Syncing,
    work: Work,
    chain: [u8; 32],
    buffer: Vec<u8>,
}

impl RawWriter {
    fn chain(&mut self, line: &str) -> Outcome<()> {
        /// About as long as the header of a record.
        const HEADER_BYTES: usize = 190;
        serde_json::from_str::<&serde_json::value::RawValue>(line)?;
        let payload = Sha256::digest(line);
        let header = line.as_bytes().get(..HEADER_BYTES).unwrap_or_default();
        let mut chain = Sha256::new();
        chain.update(self.chain);
        chain.update(payload);
        chain.update(header);
        self.chain = chain.finalize().into();
        let checksum = crc32c::crc32c(line.as_bytes()) ^ crc32c::crc32c(&self.chain);
        std::hint::black_box(checksum);
        Ok(())
    }
}

impl Writer for RawWriter {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        self.buffer.clear();
        for entry in &entries {
            if self.work == Work::Chained {
                self.chain(&entry.line)?;
            }
            self.buffer.extend_from_slice(entry.line.as_bytes());
            self.buffer.push(b'\n');
        }
        self.file.write_all(&self.buffer)?;
        self.sync.sync(&self.file)?;
        Ok(())
    }
}
