//! The limit of a shared commit: writers of one file leave their lines in a buffer, and one of them writes and syncs for all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Peer, Syncing, Writer};
use crate::Outcome;
use crate::entries::{Entry as SessionEntry, session_name};

/// One file a session. Beside this, what a store does more than to hand lines over shows.
pub(crate) struct RawGroup {
    folder: PathBuf,
    sync: Syncing,
    files: Mutex<HashMap<usize, Arc<Shared>>>,
}

struct Shared {
    file: File,
    waiting: Mutex<Waiting>,
    progress: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    accepted: u64,
    durable: u64,
    is_led: bool,
}

impl RawGroup {
    pub(crate) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, sync, files: Mutex::default() })
    }

    pub(crate) fn path(&self, session: usize) -> PathBuf {
        self.folder.join(session_name(session))
    }
}

impl Peer for RawGroup {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        let shared = match lock(&self.files).entry(session) {
            Entry::Occupied(open) => Arc::clone(open.get()),
            Entry::Vacant(place) => {
                let file = OpenOptions::new().create(true).append(true).open(self.path(session))?;
                let (waiting, progress) = (Mutex::default(), Condvar::new());
                Arc::clone(place.insert(Arc::new(Shared { file, waiting, progress })))
            }
        };
        Ok(Box::new(GroupWriter { shared, sync: self.sync }))
    }
}

struct GroupWriter {
    shared: Arc<Shared>,
    sync: Syncing,
}

impl Writer for GroupWriter {
    fn append(&mut self, entries: Vec<SessionEntry>) -> Outcome<()> {
        let shared = &*self.shared;
        let mut waiting = lock(&shared.waiting);
        for entry in &entries {
            waiting.lines.extend_from_slice(entry.line.as_bytes());
            waiting.lines.push(b'\n');
        }
        waiting.accepted += 1;
        let mine = waiting.accepted;
        while waiting.durable < mine {
            if waiting.is_led {
                waiting = shared.progress.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            waiting.is_led = true;
            let (lines, reached) = (std::mem::take(&mut waiting.lines), waiting.accepted);
            drop(waiting);
            (&shared.file).write_all(&lines)?;
            self.sync.sync(&shared.file)?;
            waiting = lock(&shared.waiting);
            waiting.durable = reached;
            waiting.is_led = false;
            shared.progress.notify_all();
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
