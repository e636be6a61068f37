//! Runs a history against a store and records the requests and answers.

mod resolve;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::LogStore;
use bough_log::LogError;
use bough_platform::Disk;

use super::engine;
use super::history::{Batch, Event, History, LifeId, Place};
use super::report::Verdict;
use super::workload::{Action, Scale, Workload};
use crate::{BrokenPromise, FaultyDisk, Seeded, SimClock, SimDisk};

/// The fault that the harness puts between the store and the disk.
pub(crate) type DiskFault = Option<(BrokenPromise, &'static str)>;

/// A store with all requests that were made to it.
pub(crate) struct Driver {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) history: History,
    pub(crate) verdicts: Vec<Verdict>,
    scale: Scale,
    disk_fault: DiskFault,
    process: SimDisk,
    store: Option<LogStore>,
    processes: u64,
    sessions: BTreeMap<u8, Tracked>,
    /// The batch whose append failed last.
    failed: Option<Batch>,
    /// Makes the texts of twins differ.
    flavour: u64,
}

/// The seed of a twin's randomness.
const TWIN_SEED: u64 = 500;

/// What the driver knows of a session.
#[derive(Clone, Debug)]
struct Tracked {
    life: LifeId,
    id: String,
    /// Entries that are there for certain.
    entries: Vec<String>,
    /// Numbers what is written, so that all texts differ.
    written: usize,
    flavour: u64,
    /// The newest revision of entries that were revised or streamed.
    revisions: BTreeMap<String, u64>,
}

impl Driver {
    pub(crate) fn new(scale: Scale, disk_fault: DiskFault) -> Self {
        let clock = Arc::new(SimClock::default());
        let disk = SimDisk::new().with_clock(clock.clone());
        Self {
            process: disk.another_process(),
            disk,
            clock,
            history: History::default(),
            verdicts: Vec::new(),
            scale,
            disk_fault,
            store: None,
            processes: 0,
            sessions: BTreeMap::new(),
            failed: None,
            flavour: 0,
        }
    }

    /// Runs a whole history that nothing disturbs.
    pub(crate) fn run(workload: &Workload, disk_fault: DiskFault) -> Self {
        Self::new(workload.scale, disk_fault).through(workload)
    }

    /// The same history with other texts and other incarnations: equal in every number, and not the
    /// same.
    pub(crate) fn run_twin(workload: &Workload) -> Self {
        let mut driver = Self::new(workload.scale, None);
        driver.flavour = 1;
        driver.processes = TWIN_SEED;
        driver.through(workload)
    }

    fn through(self, workload: &Workload) -> Self {
        let mut driver = self;
        driver.disk.record();
        for action in &workload.actions {
            if let Err(error) = driver.act(*action) {
                let words = format!("{action:?} failed: {error}");
                driver.verdicts.push(Verdict::broken(words));
                break;
            }
        }
        driver
    }

    /// Does one step.
    pub(crate) fn act(&mut self, action: Action) -> Result<(), LogError> {
        match action {
            Action::Create(session) => self.create(session),
            Action::Import(session) => self.import(session),
            Action::Append(session, size) => {
                let batch = self.batch(session, size);
                self.append(session, batch)
            }
            Action::Group(session, count) => self.group(session, count),
            Action::Stale(session) => self.stale(session),
            Action::OldLife(session) => self.old_life(session),
            Action::SecondWriter(session) => self.second_writer(session),
            Action::Repeat(session) => self.repeat(session),
            Action::Branch(session) => self.branch(session),
            Action::MoveLeaf(session) => self.move_leaf(session),
            Action::Revise(session) => self.revise(session),
            Action::Delta(session) => self.delta(session, 15),
            Action::LongDelta(session) => self.delta(session, 2600),
            Action::Note(session) => self.note(session),
            Action::Checkpoint(session) => self.on_session(session, LogStore::checkpoint),
            Action::Close(session) => self.on_session(session, LogStore::close),
            Action::Restart => {
                self.store()?.close_all()?;
                self.everything_is_synced();
                self.next_process();
                Ok(())
            }
            Action::Kill => {
                self.next_process();
                self.resolve_all()
            }
            Action::ReadElsewhere => self.read_elsewhere(),
            Action::Delete(session) => self.delete(session),
            Action::Undo(session) => self.undo(session),
            Action::Purge => self.purge(),
            Action::ClockJump(hours) => {
                self.clock.jump_by(hours * 3_600_000);
                Ok(())
            }
        }
    }

    /// The store of the process that runs now.
    pub(crate) fn store(&mut self) -> Result<LogStore, LogError> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let disk = self.door_to(&self.process);
        let platform = engine::platform(disk, &self.clock, self.processes);
        let store = LogStore::open(platform, engine::options(self.scale))?;
        self.store = Some(store.clone());
        Ok(store)
    }

    /// The disk of a process, with the broken promise of this history.
    fn door_to(&self, process: &SimDisk) -> Arc<dyn Disk> {
        let disk: Arc<dyn Disk> = Arc::new(process.clone());
        match self.disk_fault {
            None => disk,
            Some((promise, about)) => Arc::new(FaultyDisk::about(disk, promise, about)),
        }
    }

    /// Ends the process at once and starts another.
    pub(crate) fn next_process(&mut self) {
        self.process.kill();
        self.store = None;
        self.process = self.disk.another_process();
        self.processes += 1;
    }

    /// Records a request or an answer. In the weaker durability an answer does not mean a sync.
    fn note_event(&mut self, event: Event) {
        let event = match event {
            Event::AppendDone { life } if self.scale.is_weak() => Event::AppendWritten { life },
            Event::DeltaDone { life } if self.scale.is_weak() => Event::DeltaWritten { life },
            event => event,
        };
        self.history.push(self.disk.operations(), event);
    }

    fn everything_is_synced(&mut self) {
        for life in 0..self.history.now().lives.len() {
            self.note_event(Event::Synced { life });
        }
    }

    /// Notes that the power was cut, or pages were lost: unsynced records may be gone.
    pub(crate) fn forgive_the_unsynced(&mut self) {
        for life in 0..self.history.now().lives.len() {
            self.note_event(Event::PowerCut { life });
        }
    }

    fn tracked(&self, session: u8) -> Result<Tracked, LogError> {
        let missing = || LogError::NotFound { id: format!("session {session}") };
        self.sessions.get(&session).cloned().ok_or_else(missing)
    }

    fn on_session(
        &mut self,
        session: u8,
        call: impl FnOnce(&LogStore, &str) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let Tracked { id, life, .. } = self.tracked(session)?;
        call(&self.store()?, &id)?;
        self.note_event(Event::Synced { life });
        Ok(())
    }

    /// Repeats a failed action after everything was reopened: it must be applied exactly once.
    pub(crate) fn retry(&mut self, action: Action) -> Result<(), LogError> {
        let Some(session) = action.session() else { return Ok(()) };
        let is_creation = matches!(action, Action::Create(_));
        if is_creation && !self.sessions.contains_key(&session) {
            return self.create(session);
        }
        // An action that failed before it began has nothing to repeat.
        let Ok(Tracked { life, .. }) = self.tracked(session) else { return Ok(()) };
        let Some(now) = self.history.now().lives.get(life).cloned() else { return Ok(()) };
        if is_creation && now.place == Place::Nowhere {
            return self.create(session);
        }
        let Some(batch) = self.failed.take().filter(|_| now.place == Place::Live) else {
            return Ok(());
        };
        if batch.iter().all(|record| record.id.is_none()) {
            return Ok(());
        }
        let is_there = now.acked.contains(&batch);
        match (self.append(session, batch), is_there) {
            (Err(LogError::Duplicate { .. }), true) | (Ok(()), false) => Ok(()),
            // The parent may have been lost with unsynced pages.
            (Err(LogError::UnknownEntry { .. }), false) if self.scale.is_weak() => Ok(()),
            (Ok(()), true) => self.wrong("an append that was there landed again"),
            (Err(error), _) => Err(error),
        }
    }

    /// Starts a new process on the disk that a power cut after an operation left.
    pub(crate) fn start_again_on(&mut self, image: SimDisk, operations: usize) {
        self.disk = image.with_clock(self.clock.clone());
        self.disk.record();
        self.store = None;
        self.process = self.disk.another_process();
        self.processes += 1;
        self.history.cut_at(operations);
        let lives = self.history.now().lives.len();
        // A session that had not begun at that time falls back to its previous incarnation, if it
        // had one.
        for tracked in self.sessions.values_mut().filter(|tracked| tracked.life >= lives) {
            let earlier = &self.history.now().lives;
            let before = earlier.iter().rposition(|life| life.id == tracked.id);
            tracked.life = before.unwrap_or(usize::MAX);
        }
        self.sessions.retain(|_, tracked| tracked.life != usize::MAX);
        self.forgive_the_unsynced();
    }

    /// Where the oracle has a session.
    pub(crate) fn place_of(&self, session: u8) -> Place {
        let tracked = self.sessions.get(&session);
        let life = tracked.and_then(|tracked| self.history.now().lives.get(tracked.life));
        life.map_or(Place::Nowhere, |life| life.place)
    }

    /// The ids of all sessions.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.sessions.values().map(|tracked| tracked.id.clone()).collect()
    }

    pub(crate) fn id_of(&self, session: u8) -> Option<String> {
        Some(self.sessions.get(&session)?.id.clone())
    }
}

impl Tracked {
    /// A new entry's id, and a unique payload of about this many bytes.
    fn next_entry(&mut self, bytes: usize) -> (String, String) {
        self.written += 1;
        let number = self.written;
        let seed = self.flavour << 48 | (self.life as u64) << 32 | number as u64;
        let mut seeded = Seeded::new(seed);
        let letters =
            (0..bytes).map(|_| char::from(b'a' + u8::try_from(seeded.below(26)).unwrap_or(0)));
        let text: String = letters.collect();
        let payload = format!("{{\"n\":{number},\"life\":{},\"text\":\"{text}\"}}", self.life);
        (format!("{}-e{number}", self.id), payload)
    }

    fn next_revision(&mut self, target: &str) -> u64 {
        let newest = self.revisions.entry(target.to_owned()).or_insert(0);
        *newest += 1;
        *newest
    }
}

/// Whether an append was refused before any of it could reach the disk.
pub(crate) const fn is_refusal(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Conflict { .. }
            | LogError::Duplicate { .. }
            | LogError::UnknownEntry { .. }
            | LogError::Invalid { .. }
            | LogError::TooLarge { .. }
            | LogError::Locked { .. }
    )
}
