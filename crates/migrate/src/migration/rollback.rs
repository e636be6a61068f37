//! The way back: the V1 file gets what was written since, is verified, and answers again.

use bough_log::format::{Manifest, Phase, Pointer, StoreState, Verification};
use bough_log::{Head, LogError, Switch};
use serde::Serialize;

use super::Migrator;
use super::events::{ALL_MATCH, Evidence, Trail, success};
use super::lost::Lost;
use super::since::Since;
use super::target::{self, Written};
use crate::error::{MigrateError, Result};
use crate::v1::{Snapshot, V1File};

/// How a rollback behaves.
#[derive(Clone, Debug, Default)]
pub struct RollbackOptions {
    /// Why, in words, for the ledger.
    pub reason: String,
    /// Go back even if something cannot be said in the V1 file. It stays in the log, out of use.
    pub accept_loss: bool,
    /// Go back even if another program wrote to the V1 file since the migration.
    pub accept_changed_target: bool,
}

/// What a rollback did.
#[derive(Clone, Debug, Serialize)]
pub struct RollbackSummary {
    /// The session.
    pub session_id: String,
    /// The V1 file that answers for it now.
    pub address: String,
    /// Identifies that file's bytes.
    pub snapshot_id: String,
    /// The migration that was undone.
    pub migration_id: String,
    /// What links it to others.
    pub correlation_id: String,
    /// Lines that the file got.
    pub exported: u64,
    /// What stayed behind in the log.
    pub lost: Vec<Lost>,
    /// What was compared.
    pub verification: Verification,
    /// Nothing was done: the file answered for the session already.
    pub already: bool,
}

impl Migrator {
    /// The V1 file that a session came from, which a rollback would make answer for it.
    pub fn file_behind(&self, session: &str) -> Result<String> {
        let nothing = || MigrateError::NothingToRollBackTo { session: session.to_owned() };
        // A file that was never brought in may be served and has no manifest.
        let manifest = self.log.manifest(session)?.ok_or_else(nothing)?;
        let pointers = [Some(&manifest.pointer), manifest.previous.as_ref()];
        let found = pointers.into_iter().flatten().find_map(V1File::of_pointer);
        found.map(|(address, _)| address.to_owned()).ok_or_else(nothing)
    }

    /// Makes the V1 file answer for a session again. What was written since the migration is added to the
    /// file first; what the file cannot say is named and refused, unless the loss is accepted.
    pub fn rollback(&self, session: &str, options: &RollbackOptions) -> Result<RollbackSummary> {
        self.recover_session(session)?;
        let manifest = self.manifest(session)?;
        self.refuse_failed(&manifest)?;
        let ledger = self.log.ledger(session)?;
        let nothing = || MigrateError::NothingToRollBackTo { session: session.to_owned() };
        let evidence = Trail::newest(&ledger).ok_or_else(nothing)?.backward();
        if let Some((address, snapshot_id)) = V1File::of_pointer(&manifest.pointer) {
            return Ok(already(session, address, snapshot_id, &evidence));
        }
        let previous = manifest.previous.as_ref().and_then(V1File::of_pointer);
        let (address, snapshot_id) = previous.ok_or_else(nothing)?;
        let snapshot = Snapshot::parse(snapshot_id).ok_or_else(nothing)?;
        let file = self.files.locate(address)?;
        let lock = file.lock()?;
        let back = Back { migrator: self, session, options, file: &file, snapshot, evidence };
        let done = self.mark(session, address).and_then(|()| back.run(&manifest));
        self.unmark_settled(session)?;
        if let Some(lock) = lock {
            lock.remove()?;
        }
        done
    }
}

fn already(
    session: &str,
    address: &str,
    snapshot_id: &str,
    evidence: &Evidence,
) -> RollbackSummary {
    RollbackSummary {
        session_id: session.to_owned(),
        address: address.to_owned(),
        snapshot_id: snapshot_id.to_owned(),
        migration_id: evidence.migration_id.clone(),
        correlation_id: evidence.correlation_id.clone(),
        exported: 0,
        lost: Vec::new(),
        verification: ALL_MATCH,
        already: true,
    }
}

struct Back<'a> {
    migrator: &'a Migrator,
    session: &'a str,
    options: &'a RollbackOptions,
    file: &'a V1File,
    snapshot: Snapshot,
    evidence: Evidence,
}

impl Back<'_> {
    fn run(&self, manifest: &Manifest) -> Result<RollbackSummary> {
        let log = &self.migrator.log;
        // Holds the writer's lock: nobody appends from here on.
        log.open_for_writing(self.session)?;
        let prepared = self.prepare();
        // MIGRATED -> DIRTY -> ... -> CHECKPOINTED, with the lock given up.
        let closed = log.close(self.session);
        let mut prepared = prepared?;
        closed?;
        self.switch(manifest, &prepared)?;
        let said = success(Phase::RolledBack, prepared.verification, self.reason());
        self.evidence.say(log, &self.migrator.platform, self.session, said)?;
        // Whoever had the file open before it was replaced has written by now.
        prepared.written.bring_over_late_lines(self.file)?;
        Ok(RollbackSummary {
            session_id: self.session.to_owned(),
            address: self.file.address().to_owned(),
            snapshot_id: prepared.snapshot.to_string(),
            migration_id: self.evidence.migration_id.clone(),
            correlation_id: self.evidence.correlation_id.clone(),
            exported: prepared.written.added,
            lost: prepared.lost,
            verification: prepared.verification,
            already: false,
        })
    }

    fn reason(&self) -> &str {
        if self.options.reason.is_empty() { "asked for" } else { &self.options.reason }
    }

    /// Everything but the switch: nothing of it changes who answers for the session.
    fn prepare(&self) -> Result<Prepared> {
        let log = &self.migrator.log;
        let reader = log.read(self.session)?;
        let since = Since::read(&reader)?.ok_or_else(|| MigrateError::NothingToRollBackTo {
            session: self.session.to_owned(),
        })?;
        let lost = since.lost();
        if !lost.is_empty() && !self.options.accept_loss {
            return Err(MigrateError::WouldLose { lost });
        }
        let changed = self.options.accept_changed_target;
        let kept = target::inspect(self.file, &self.snapshot, &since, changed)?;
        let say = |said| self.evidence.say(log, &self.migrator.platform, self.session, said);
        say(success(Phase::Planned, Verification::default(), self.reason()))?;
        let written = kept.write(self.file, &|visit| since.each_line(&reader, visit))?;
        let exported = written.added;
        let (verification, snapshot) = kept.verify(self.file, exported)?;
        if verification != ALL_MATCH {
            let detail = format!("{} is not what it should be", self.file.address());
            return Err(MigrateError::VerificationFailed { verification, detail });
        }
        let words = format!("{exported} lines added to {}", self.file.address());
        say(success(Phase::Verified, verification, &words))?;
        Ok(Prepared { head: since.head, written, lost, verification, snapshot })
    }

    fn switch(&self, manifest: &Manifest, prepared: &Prepared) -> Result<()> {
        let format = self.file.format();
        let switch = Switch {
            through: &[StoreState::RolledBack],
            pointer: format.pointer(self.file.address(), &prepared.snapshot),
            previous: Some(Pointer::NativeV2),
            head: Some(prepared.head),
        };
        debug_assert_eq!(manifest.pointer, Pointer::NativeV2, "looked at before");
        match self.migrator.log.switch(self.session, &switch) {
            Ok(_) => Ok(()),
            // Somebody wrote between our last look and the switch: what they wrote is not in the file.
            Err(LogError::Conflict { current }) => Err(moved_on(current)),
            Err(error) => Err(error.into()),
        }
    }
}

fn moved_on(current: Head) -> MigrateError {
    MigrateError::Log(LogError::Conflict { current })
}

struct Prepared {
    head: Head,
    written: Written,
    lost: Vec<Lost>,
    verification: Verification,
    snapshot: Snapshot,
}
