//! The format that came before: one file of lines, written anew on every save.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use super::{Peer, Syncing, Writer};
use crate::Outcome;
use crate::entries::{Entry, session_name};

/// A V1 file: the whole session in memory, saved to a temporary file that is synced and renamed over.
pub(crate) struct JsonlRewrite {
    folder: PathBuf,
    sync: Syncing,
}

impl JsonlRewrite {
    pub(crate) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, sync })
    }

    pub(crate) fn path(&self, session: usize) -> PathBuf {
        let name = format!("{}.jsonl", session_name(session));
        self.folder.join(name)
    }
}

impl Peer for JsonlRewrite {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        let path = self.path(session);
        let content = if path.exists() { fs::read(&path)? } else { Vec::new() };
        Ok(Box::new(JsonlWriter {
            temporary: path.with_extension("tmp"),
            path,
            content,
            sync: self.sync,
        }))
    }
}

struct JsonlWriter {
    path: PathBuf,
    temporary: PathBuf,
    content: Vec<u8>,
    sync: Syncing,
}

impl Writer for JsonlWriter {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        for entry in &entries {
            self.content.extend_from_slice(entry.line.as_bytes());
            self.content.push(b'\n');
        }
        let mut file = File::create(&self.temporary)?;
        file.write_all(&self.content)?;
        self.sync.sync(&file)?;
        fs::rename(&self.temporary, &self.path)?;
        Ok(())
    }
}
