//! The adapter over session-manager's files: one JSONL file a session.
//!
//! It opens a data directory of session-manager and continues it, and session-manager can read what is appended here.
//! Beside its files there are `bough.lock` (the process that writes), `bough-stream/` (streams that are not yet in
//! their files), `bough-trash/` (deleted sessions) and `bough-torn/` (ends of files that were cut off).
//!
//! Promises beyond session-manager's:
//! - a batch is one write, synced before it is acknowledged; after a crash there is all of it or none;
//! - a torn end is repaired before the next append, and nothing is lost;
//! - a file that cannot be read hides no other;
//! - one process writes; another gets an error that names the writer, and can read.

mod batch;
mod compose;
mod file;
pub(crate) mod line;
mod names;
pub(crate) mod replay;
mod slot;
mod store;
mod stream;
mod summaries;
mod trash;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bough_platform::{Disk, Lock, LockError, Platform, RelPath, host_facts};
use bough_session::{NewRecord, SessionId};

use crate::StoreError;
use crate::changes::ChangeHub;
use crate::memory::new_incarnation;
use crate::sync::lock;
use crate::types::Appended;
use slot::Slot;
use summaries::Summaries;

/// How many sessions are kept in memory; the longest unused ones are read again when they are needed.
const SLOTS_MAX: usize = 256;
/// The file whose lock names the writer.
const LOCK_NAME: &str = "bough.lock";

/// Sessions in session-manager's files. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct FsStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    platform: Platform,
    /// Where the directory is, for the log.
    root: PathBuf,
    hub: ChangeHub,
    slots: Mutex<Slots>,
    lock: Mutex<Option<Box<dyn Lock>>>,
    summaries: Mutex<Summaries>,
}

#[derive(Debug, Default)]
struct Slots {
    by_id: HashMap<SessionId, Kept>,
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    slot: Arc<Mutex<Slot>>,
    used: u64,
}

impl FsStore {
    /// Opens the data directory `root`, which the platform's disk is rooted at. Nothing is written before
    /// the first write of a session.
    pub fn open(platform: Platform, root: PathBuf) -> Result<Self, StoreError> {
        let hub = ChangeHub::going_on(new_incarnation(platform.entropy.as_ref())?);
        Ok(Self {
            shared: Arc::new(Shared {
                platform,
                root,
                hub,
                slots: Mutex::default(),
                lock: Mutex::default(),
                summaries: Mutex::default(),
            }),
        })
    }

    /// Runs blocking disk work on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| {
            Err(StoreError::Unavailable {
                reason: format!("the work on the session broke off: {error}"),
            })
        })
    }
}

impl Shared {
    /// Runs `read` on a session as it is on the disk now.
    fn with<T>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Slot) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = self.slot(session)?;
        let mut slot = lock(&kept);
        let done = match slot.refresh(self.platform.disk.as_ref()) {
            Ok(()) => work(&mut slot),
            Err(error) => Err(error),
        };
        let unused = slot.any_image().is_none() && !slot.is_latched();
        drop(slot);
        if unused {
            self.let_go(session, &kept);
        }
        done
    }

    /// Runs a write on a session as the one writing process, and announces the result.
    fn write(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Slot) -> Result<Appended, StoreError>,
    ) -> Result<Appended, StoreError> {
        self.take_lock()?;
        self.with(session, |slot| {
            let before = slot.end();
            let appended = work(slot)?;
            self.announce(slot, before);
            Ok(appended)
        })
    }

    /// Appends to a session that exists.
    fn append(
        &self,
        session: &SessionId,
        append: impl FnOnce(&dyn Disk, &mut Slot) -> Result<Appended, StoreError>,
    ) -> Result<Appended, StoreError> {
        self.write(session, |slot| {
            if slot.image().is_none() {
                return Err(slot.not_found());
            }
            append(self.platform.disk.as_ref(), slot)
        })
    }

    fn create(&self, session: &SessionId, records: &[NewRecord]) -> Result<Appended, StoreError> {
        let incarnation = new_incarnation(self.platform.entropy.as_ref())?;
        self.write(session, |slot| {
            if slot.image().is_some() {
                return Err(StoreError::exists(session));
            }
            if slot.any_image().is_some() {
                // A deletion that a crash cut short.
                self.move_to_trash(slot, slot.end())?;
            }
            self.refuse_other_case(session)?;
            slot.create(self.platform.disk.as_ref(), incarnation, records)
        })
    }

    /// On a case-insensitive disk, two ids may mean one file.
    fn refuse_other_case(&self, session: &SessionId) -> Result<(), StoreError> {
        let probe = Slot::new(session)?;
        let names = self.platform.disk.list(&RelPath::root())?;
        let taken = names.iter().any(|listed| listed.name == probe.path.file_name());
        let there = self.platform.disk.stat(&probe.path)?.is_some();
        if there && !taken {
            let what = format!(
                "session {session} would share its file with one whose id differs in case only"
            );
            return Err(StoreError::invalid(what));
        }
        Ok(())
    }

    /// Becomes the one process that writes here.
    fn take_lock(&self) -> Result<(), StoreError> {
        let mut held = lock(&self.lock);
        if held.is_some() {
            return Ok(());
        }
        let facts = host_facts();
        let holder = format!("process {} of boot {}", facts.pid, facts.boot_id);
        let path = RelPath::root().join(LOCK_NAME).map_err(std::io::Error::from)?;
        match self.platform.disk.lock(&path, &holder) {
            Ok(lock) => {
                *held = Some(lock);
                Ok(())
            }
            Err(LockError::Held { holder }) => Err(StoreError::Locked { holder }),
            Err(LockError::Io(error)) => Err(error.into()),
        }
    }

    fn slot(&self, session: &SessionId) -> Result<Arc<Mutex<Slot>>, StoreError> {
        let mut slots = lock(&self.slots);
        slots.uses += 1;
        let used = slots.uses;
        if let Some(kept) = slots.by_id.get_mut(session) {
            kept.used = used;
            return Ok(Arc::clone(&kept.slot));
        }
        slots.make_room();
        let slot = Arc::new(Mutex::new(Slot::new(session)?));
        let kept = Kept { slot: Arc::clone(&slot), used };
        slots.by_id.insert(session.clone(), kept);
        Ok(slot)
    }

    /// Drops the slot of a session that does not exist, so that look-ups of unknown names cost no memory. If there are
    /// two holders, they are this call and the map: no other call can have the slot, or get it now.
    fn let_go(&self, session: &SessionId, slot: &Arc<Mutex<Slot>>) {
        let mut slots = lock(&self.slots);
        if Arc::strong_count(slot) == 2 {
            slots.by_id.remove(session);
        }
    }

    /// Puts every stream into its session file, and releases the lock.
    fn close(&self) -> Result<(), StoreError> {
        let sessions: Vec<SessionId> = lock(&self.slots).by_id.keys().cloned().collect();
        let holds = lock(&self.lock).is_some();
        for session in sessions.iter().filter(|_| holds) {
            self.with(session, |slot| {
                let before = slot.end();
                if !slot.is_latched() && slot.settle(self.platform.disk.as_ref())? {
                    self.announce(slot, before);
                }
                Ok(())
            })?;
        }
        drop(lock(&self.lock).take());
        Ok(())
    }
}

impl Slots {
    fn make_room(&mut self) {
        if self.by_id.len() < SLOTS_MAX {
            return;
        }
        // Only those that are not in use. A latched one must not be dropped, or it would be trusted
        // again without having been reopened.
        let idle = self.by_id.iter().filter(|(_, kept)| {
            Arc::strong_count(&kept.slot) == 1 && !lock(&kept.slot).is_latched()
        });
        let oldest = idle.min_by_key(|(_, kept)| kept.used);
        if let Some(session) = oldest.map(|(session, _)| session.clone()) {
            self.by_id.remove(&session);
        }
    }
}
