//! The steps of a migration that must stand beside the manifest: moving the one pointer, keeping the ledger.
//!
//! What is migrated, in which order and why is not the log's business; that each step is one durable
//! change, and that no step leaves the state machine, is.
//!
//! ```text
//!   staging/<name>/sessions/...   built like any log, see `staged`
//!   --- present ---               pointer: the V1 file     state: MIGRATION_STAGING
//!   --- publish ---               the same, in sessions/
//!   --- switch ---                pointer: native_v2       state: MIGRATED        (one rename)
//! ```

use bough_platform::{Lock, RelPath};

use crate::container::{Container, TRASH, not_found};
use crate::error::Result;
use crate::format::{ActiveStore, LedgerEvent, Manifest, Pointer, StoreState};
use crate::ledger::Ledger;
use crate::load::{Horizon, Trust, load, read_manifest};
use crate::open::{LOCK_TRIES, take_lock};
use crate::reader::Reader;
use crate::store::{ListedLog, LogStore};
use bough_record::{Fold, Head, Incarnation};

/// One move of the pointer: the states that the store passes through, and what is live after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch<'a> {
    /// The states in order; each step must be one that the contract allows, the last one stays.
    pub through: &'a [StoreState],
    /// What answers for the log from now on.
    pub pointer: Pointer,
    /// Where a rollback would return to.
    pub previous: Option<Pointer>,
    /// Refuse when the log is not exactly here any more: what the caller read is then not all there is.
    pub head: Option<Head>,
}

impl<F: Fold> LogStore<F> {
    /// The manifest of the live container of an id, whatever it points to.
    pub fn manifest(&self, id: &str) -> Result<Option<Manifest>> {
        let Some(container) = self.locate(id)? else {
            return Ok(None);
        };
        Ok(Some(read_manifest(&self.files(container))?))
    }

    fn read_ledger(&self, id: &str) -> Result<Ledger<'_>> {
        Ledger::read(&*self.inner.platform.disk, &self.existing(id)?)
    }

    /// The ledger of a log: every line that can be believed, in order.
    pub fn ledger(&self, id: &str) -> Result<Vec<LedgerEvent>> {
        Ok(self.read_ledger(id)?.events)
    }

    /// Adds an event to the ledger, in the place of a torn tail that a crash left; durable when it returns.
    pub fn record_event(&self, id: &str, event: &LedgerEvent) -> Result<()> {
        self.read_ledger(id)?.append(event)
    }

    /// Bytes of a torn tail of the ledger that a crash left.
    pub fn torn_ledger_bytes(&self, id: &str) -> Result<u64> {
        Ok(self.read_ledger(id)?.torn_bytes())
    }

    /// Cuts off a torn tail of the ledger that a crash left; returns the number of its bytes. The caller knows that no
    /// process is adding to the ledger.
    pub fn repair_ledger(&self, id: &str) -> Result<u64> {
        self.read_ledger(id)?.cut_torn_bytes()
    }

    /// Moves the pointer: one rename of the manifest, under the writer's lock. Refused while anybody
    /// writes the log, and when the states are not ones that the contract allows.
    pub fn switch(&self, id: &str, switch: &Switch<'_>) -> Result<Manifest> {
        self.close(id)?;
        let container = self.existing(id)?;
        let lock = self.take_writer_lock(&container, id)?;
        let switched = self.switch_locked(&container, switch);
        lock.remove()?;
        switched
    }

    pub(crate) fn take_writer_lock(
        &self,
        container: &Container,
        id: &str,
    ) -> Result<Box<dyn Lock>> {
        let inner = &self.inner;
        take_lock(&inner.platform, &inner.options, &container.lock()?, LOCK_TRIES)?
            .ok_or_else(|| not_found(id))
    }

    fn switch_locked(&self, container: &Container, switch: &Switch<'_>) -> Result<Manifest> {
        let manifest = read_manifest(&self.files(container.clone()))?;
        if let Some(expected) = switch.head {
            self.expect_end(container, expected)?;
        }
        let state = manifest.state.go_through(switch.through)?;
        let switched = Manifest {
            state,
            active_store: switch.pointer.marker(),
            pointer: switch.pointer.clone(),
            previous: switch.previous.clone(),
            ..manifest
        };
        self.files(container.clone()).write_manifest(&switched)?;
        Ok(switched)
    }

    /// Reads the segments of a log even while a V1 file answers for it.
    pub fn read_segments(&self, id: &str) -> Result<Reader<F>> {
        let container = self.existing(id)?;
        let files = self.files(container);
        let manifest = read_manifest(&files)?;
        Ok(Reader::read_only(load(files, manifest, Trust::Checkpoint, Horizon::WholeTail)?))
    }

    /// Finishes what a crash in [`StagedLog::publish`](crate::StagedLog::publish) left of an incarnation that was being replaced: brings it
    /// back when nothing took its place, files it as deleted when something did. Says whether it found
    /// one.
    pub fn settle_replaced(&self, id: &str) -> Result<bool> {
        let undecided = |log: &ListedLog| log.id == id && log.deleted_at_ms.is_none();
        if !self.trash()?.iter().any(undecided) {
            return Ok(false);
        }
        let shard = self.lock_shard(id)?;
        let mut live = self.locate(id)?.is_some();
        for log in self.trash()?.into_iter().filter(undecided) {
            if live {
                self.file_as_deleted(id, log.incarnation)?;
            } else {
                let home = Container::live(id, log.incarnation)?;
                self.move_container(&home.moved_to(TRASH)?.dir, &home.dir)?;
                live = true;
            }
        }
        drop(shard);
        Ok(true)
    }

    pub(crate) fn move_container(&self, from: &RelPath, to: &RelPath) -> Result<()> {
        let disk = &self.inner.platform.disk;
        disk.rename(from, to)?;
        // A move between folders is certain only when both are synced.
        disk.sync_dir(&to.parent())?;
        Ok(disk.sync_dir(&from.parent())?)
    }

    /// An incarnation that was replaced is an ordinary deleted one: it can be read, and its retention ends.
    fn file_as_deleted(&self, id: &str, incarnation: Incarnation) -> Result<()> {
        let container = Container::live(id, incarnation)?.moved_to(TRASH)?;
        let manifest = read_manifest(&self.files(container.clone()))?;
        let state = manifest.state.go_through(&StoreState::ROUND)?;
        let filed = Manifest {
            state,
            active_store: ActiveStore::NativeV2,
            pointer: Pointer::NativeV2,
            previous: None,
            deleted_at_ms: Some(self.inner.platform.clock.now_ms()),
            ..manifest
        };
        self.files(container).write_manifest(&filed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bough_platform::Platform;
    use bough_testkit::{SimClock, SimDisk, SimEntropy};

    use super::*;
    use crate::{Envelope, LogError, Maintenance, Options, StagedLog};

    fn store(disk: &SimDisk) -> LogStore {
        let platform = Platform {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(SimClock::default()),
            entropy: Arc::new(SimEntropy::new(1)),
        };
        let options = Options { maintenance: Maintenance::Inline, ..Options::default() };
        <LogStore>::open(platform, options).unwrap()
    }

    fn source() -> Pointer {
        Pointer::JsonlV3 { path: "/v1/s.jsonl".to_owned(), snapshot_id: "sha256:0:0".to_owned() }
    }

    fn built(store: &LogStore) -> StagedLog {
        let mut staged = store.stage("m", "s").unwrap();
        staged.add([Envelope::plain("meta", 1, "{}")]).unwrap();
        staged
    }

    fn staged(store: &LogStore) -> StagedLog {
        let staged = built(store);
        staged.present(&source()).unwrap();
        staged
    }

    fn switch_to(through: &[StoreState], pointer: Pointer) -> Switch<'_> {
        Switch { through, pointer, previous: Some(source()), head: None }
    }

    #[test]
    fn a_staged_log_is_hidden_until_it_is_published_and_served_only_after_the_switch() {
        let disk = SimDisk::new();
        let store = store(&disk);
        let staged = staged(&store);
        assert!(!store.contains("s").unwrap());
        staged.publish().unwrap();
        staged.discard().unwrap();
        assert_eq!(store.manifest("s").unwrap().unwrap().state, StoreState::MigrationStaging);
        assert!(store.read("s").is_err(), "the V1 file answers");
        assert!(store.read_segments("s").is_ok());
        store.switch("s", &switch_to(&[StoreState::Migrated], Pointer::NativeV2)).unwrap();
        assert_eq!(store.read("s").unwrap().head().seq, 1);
    }

    #[test]
    fn a_switch_keeps_to_the_state_machine_and_to_the_expected_head() {
        let store = store(&SimDisk::new());
        staged(&store).publish().unwrap();
        let skipped = store.switch("s", &switch_to(&[StoreState::Dirty], Pointer::NativeV2));
        assert!(matches!(skipped, Err(LogError::Transition { .. })));
        let elsewhere = Switch {
            head: Some(Head::genesis("s", Incarnation::new([0; 16]))),
            ..switch_to(&[StoreState::Migrated], Pointer::NativeV2)
        };
        assert!(matches!(store.switch("s", &elsewhere), Err(LogError::Conflict { .. })));
        assert_eq!(store.manifest("s").unwrap().unwrap().state, StoreState::MigrationStaging);
    }

    #[test]
    fn a_native_log_is_not_replaced_by_a_migration() {
        let store = store(&SimDisk::new());
        store.create("s", vec![Envelope::plain("meta", 1, "{}")]).unwrap();
        let staged = staged(&store);
        assert!(matches!(staged.publish(), Err(LogError::Exists { .. })));
        let native = Pointer::NativeV2;
        assert!(staged.present(&native).is_err(), "a staged log is not live");
    }

    #[test]
    fn a_log_that_a_v1_file_answers_for_is_replaced_by_a_migration_only() {
        let store = store(&SimDisk::new());
        staged(&store).publish().unwrap();
        let first = store.manifest("s").unwrap().unwrap().incarnation;
        assert!(matches!(built(&store).publish(), Err(LogError::Exists { .. })));
        assert_eq!(store.manifest("s").unwrap().unwrap().incarnation, first);
        staged(&store).publish().unwrap();
        assert_ne!(store.manifest("s").unwrap().unwrap().incarnation, first);
    }

    #[test]
    fn a_staged_log_that_is_dropped_leaves_nothing_behind() {
        let disk = SimDisk::new();
        drop(built(&store(&disk)));
        assert_eq!(disk.files(), []);
    }

    #[test]
    fn a_torn_ledger_line_is_cut_off_and_one_without_its_break_is_closed() {
        let disk = SimDisk::new();
        let store = store(&disk);
        store.create("s", vec![Envelope::plain("meta", 1, "{}")]).unwrap();
        let event = LedgerEvent::recovery("r", "why".to_owned(), 1);
        store.record_event("s", &event).unwrap();
        let path = store.locate("s").unwrap().unwrap().ledger().unwrap();
        let line = event.encode().unwrap();
        let torn = [line.as_slice(), b"{\"schema\":\"pi."].concat();
        disk.plant(&path, &torn).unwrap();
        assert_eq!(store.torn_ledger_bytes("s").unwrap(), 14);
        store.record_event("s", &event).unwrap();
        assert_eq!(store.torn_ledger_bytes("s").unwrap(), 0);
        assert_eq!(store.ledger("s").unwrap().len(), 2);
        disk.plant(&path, line.trim_ascii_end()).unwrap();
        store.record_event("s", &event).unwrap();
        assert_eq!(store.ledger("s").unwrap().len(), 2);
        disk.plant(&path, &torn).unwrap();
        assert_eq!(store.repair_ledger("s").unwrap(), 14);
        assert!(store.verify("s").unwrap().is_well());
    }
}
