//! Bough's own log as one side of a row.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bough_log::{Durability, Envelope, Expected, LogStore, Options};
use bough_platform::{OsDisk, OsEntropy, Platform, SystemClock};
use bough_testkit::{SlowSync, SyncDelay};

use crate::Outcome;
use crate::entries::{Entry, session_name};
use crate::peers::{Peer, Syncing, Writer};

/// A directory of logs.
pub(super) struct Bough {
    store: LogStore,
    /// Whether records carry the whole line, as after an import, or the message alone.
    carries: Carries,
}

/// What a record's payload is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carries {
    /// The message: id and parent are the record's own.
    Message,
    /// The line of another system, as it came, with its own id and parent once more.
    Line,
}

impl Bough {
    pub(super) fn new(folder: PathBuf, sync: Syncing) -> Outcome<Self> {
        Self::carrying(&folder, sync, Carries::Message)
    }

    pub(super) fn carrying(folder: &Path, sync: Syncing, carries: Carries) -> Outcome<Self> {
        let options = Options {
            durability: match sync {
                Syncing::Real | Syncing::Wait(_) => Durability::Synced,
                Syncing::Never => Durability::MayLoseNewestOnPowerCut,
            },
            ..Options::default()
        };
        let store = <LogStore>::open(platform(folder, sync)?, options)?;
        Ok(Self { store, carries })
    }

    fn record(&self, entry: &Entry) -> Envelope<'static> {
        let payload = match self.carries {
            Carries::Message => entry.message(),
            Carries::Line => entry.line.as_str(),
        };
        Envelope::entry(&entry.id, entry.parent.as_deref(), 0, payload.to_owned())
    }
}

/// The machine, with its disk's syncs as a row wants them.
pub(super) fn platform(folder: &Path, sync: Syncing) -> Outcome<Platform> {
    let (disk, clock) = (Arc::new(OsDisk::create(folder)?), Arc::new(SystemClock::new()));
    let injected = |wait: Duration| {
        let delay = SyncDelay::Instead(wait);
        Arc::new(SlowSync::new(disk.clone(), delay, clock.clone()))
    };
    Ok(Platform {
        disk: match sync {
            Syncing::Real | Syncing::Never => disk,
            Syncing::Wait(wait) => injected(wait),
        },
        clock,
        entropy: Arc::new(OsEntropy),
    })
}

impl Peer for Bough {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        let id = session_name(session);
        let exists = self.store.contains(&id)?;
        if exists {
            // Taking the lock and opening the files is not part of an append.
            self.store.open_for_writing(&id)?;
        }
        Ok(Box::new(BoughWriter { bough: self, id, exists }))
    }

    /// Closes every log as an orderly end does.
    fn finish(&self) -> Outcome<()> {
        Ok(self.store.close_all()?)
    }
}

struct BoughWriter<'a> {
    bough: &'a Bough,
    id: String,
    exists: bool,
}

impl Writer for BoughWriter<'_> {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        let records: Vec<_> = entries.iter().map(|entry| self.bough.record(entry)).collect();
        let store = &self.bough.store;
        if self.exists {
            store.append(&self.id, Expected::Any, records)?;
        } else {
            store.create(&self.id, records)?;
            self.exists = true;
        }
        Ok(())
    }
}
