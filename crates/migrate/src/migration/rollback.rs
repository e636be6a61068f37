//! The way back: the V1 file gets what was written since, is verified, and answers again.

use bough_session::SessionId;
use bough_store::origin::{Phase, Verification};
use bough_store::{Head, LogReader};
use serde::Serialize;

use super::events::{ALL_MATCH, EventDetails, Evidence, Trail, fresh_id, success};
use super::lost::{Lost, LostKind};
use super::since::Since;
use super::target::{self, Kept, Written};
use super::{Migrator, refuse_failed};
use crate::error::{MigrateError, Result};
use crate::v1::{Snapshot, V1File};

/// How a rollback behaves.
#[derive(Clone, Debug, Default)]
pub struct RollbackOptions {
    /// Why, in words, for the ledger.
    pub reason: String,
    /// Go back even if something cannot be written to the V1 file. It stays in the log, unused.
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
    /// Another program still has the file open that was replaced. What it writes there from now on is lost.
    pub has_late_writer: bool,
}

impl Migrator {
    /// The V1 file that a session came from, which a rollback would make answer for it.
    pub fn file_behind(&self, session: &SessionId) -> Result<String> {
        let nothing = || MigrateError::NothingToRollBackTo { session: session.to_string() };
        // A file that was never brought in may be served and has no manifest.
        let origin = self.sessions.origin(session)?.ok_or_else(nothing)?;
        let found = V1File::address_in([Some(&origin.pointer), origin.previous.as_ref()]);
        found.map(str::to_owned).ok_or_else(nothing)
    }

    /// Makes the V1 file answer for a session again. What was written since the migration is added to the
    /// file first; what the file cannot say is named and refused, unless the loss is accepted.
    pub fn rollback(
        &self,
        session: &SessionId,
        options: &RollbackOptions,
    ) -> Result<RollbackSummary> {
        self.recover_session(session)?;
        let origin = self.origin(session)?;
        refuse_failed(session, &origin)?;
        let ledger = self.sessions.ledger(session)?;
        let nothing = || MigrateError::NothingToRollBackTo { session: session.to_string() };
        let evidence = Trail::newest(&ledger).ok_or_else(nothing)?.backward();
        if let Some((address, snapshot_id)) = V1File::of_pointer(&origin.pointer) {
            return Ok(already(session, address, snapshot_id, &evidence));
        }
        let previous = origin.previous.as_ref().and_then(V1File::of_pointer);
        let (address, snapshot_id) = previous.ok_or_else(nothing)?;
        let snapshot = Snapshot::parse(snapshot_id).ok_or_else(nothing)?;
        let file = self.files.locate(address)?;
        let back = Back { migrator: self, session, options, file: &file, snapshot, evidence };
        self.move_marked(session, &file, || back.run())
    }
}

fn already(
    session: &SessionId,
    address: &str,
    snapshot_id: &str,
    evidence: &Evidence,
) -> RollbackSummary {
    RollbackSummary {
        session_id: session.to_string(),
        address: address.to_owned(),
        snapshot_id: snapshot_id.to_owned(),
        migration_id: evidence.migration_id.clone(),
        correlation_id: evidence.correlation_id.clone(),
        exported: 0,
        lost: Vec::new(),
        verification: ALL_MATCH,
        already: true,
        has_late_writer: false,
    }
}

struct Back<'a> {
    migrator: &'a Migrator,
    session: &'a SessionId,
    options: &'a RollbackOptions,
    file: &'a V1File,
    snapshot: Snapshot,
    evidence: Evidence,
}

impl Back<'_> {
    fn run(&self) -> Result<RollbackSummary> {
        let mut prepared = match self.prepare_whole() {
            Err(error) if error.is_damage() => self.prepare_damaged()?,
            prepared => prepared?,
        };
        let back = success(Phase::RolledBack, prepared.verification, self.reason());
        let switched = self.switch(&prepared).and_then(|()| self.record(back));
        // Whatever became of the switch, the file was replaced.
        let late = self.bring_over_late_lines(&mut prepared.written);
        switched?;
        let has_late_writer = late?;
        Ok(RollbackSummary {
            session_id: self.session.to_string(),
            address: self.file.address().to_owned(),
            snapshot_id: prepared.snapshot.to_string(),
            migration_id: self.evidence.migration_id.clone(),
            correlation_id: self.evidence.correlation_id.clone(),
            exported: prepared.written.added,
            lost: prepared.lost,
            verification: prepared.verification,
            already: false,
            has_late_writer,
        })
    }

    fn reason(&self) -> &str {
        if self.options.reason.is_empty() { "asked for" } else { &self.options.reason }
    }

    fn record(&self, details: EventDetails<'_>) -> Result<()> {
        let Migrator { sessions, platform, .. } = self.migrator;
        self.evidence.record(sessions, platform, self.session, details)
    }

    fn prepare_whole(&self) -> Result<Prepared> {
        self.migrator.sessions.read_locked(self.session, |reader| self.prepare(reader, 0))
    }

    /// The same for a log that is damaged: what is whole of it is copied aside and read there. What cannot be read is a
    /// loss that has to be accepted.
    fn prepare_damaged(&self) -> Result<Prepared> {
        let lost = vec![Lost { kind: LostKind::Damaged, count: 1 }];
        if !self.options.accept_loss {
            return Err(MigrateError::WouldLose { lost });
        }
        let name = fresh_id(&self.migrator.platform, "back")?;
        let sessions = &self.migrator.sessions;
        let mut staged = sessions.stage(self.session, &name)?;
        let report = staged.add_whole_of(sessions)?;
        let reader = staged.directory().read(self.session)?;
        let prepared = self.prepare(&reader, report.damage.len().max(1) as u64)?;
        Ok(Prepared { head: None, ..prepared })
    }

    /// Everything but the switch: nothing of it changes who answers for the session. `damaged`: how many stretches of the
    /// log cannot be read.
    fn prepare(&self, reader: &LogReader, damaged: u64) -> Result<Prepared> {
        let since = Since::read(reader)?.ok_or_else(|| MigrateError::NothingToRollBackTo {
            session: self.session.to_string(),
        })?;
        let mut lost = since.lost();
        if damaged > 0 {
            lost.push(Lost { kind: LostKind::Damaged, count: damaged });
        }
        if !lost.is_empty() && !self.options.accept_loss {
            return Err(MigrateError::WouldLose { lost });
        }
        let changed = self.options.accept_changed_target;
        let kept = target::inspect(self.file, &self.snapshot, &since, changed)?;
        self.record(success(Phase::Planned, Verification::default(), self.reason()))?;
        let mut written = kept.write(self.file, &|visit| since.each_line(reader, visit))?;
        match self.verify(&kept, written.added) {
            Ok((verification, snapshot)) => {
                Ok(Prepared { head: Some(since.head), written, lost, verification, snapshot })
            }
            Err(error) => {
                self.bring_over_late_lines(&mut written)?;
                Err(error)
            }
        }
    }

    fn verify(&self, kept: &Kept, added: u64) -> Result<(Verification, Snapshot)> {
        let (verification, snapshot) = kept.verify(self.file, added)?;
        if verification != ALL_MATCH {
            let detail = format!("{} is not what it should be", self.file.address());
            return Err(MigrateError::VerificationFailed { verification, detail });
        }
        let words = format!("{added} lines added to {}", self.file.address());
        self.record(success(Phase::Verified, verification, &words))?;
        Ok((verification, snapshot))
    }

    fn bring_over_late_lines(&self, written: &mut Written) -> Result<bool> {
        written.bring_over_late_lines(self.file, &*self.migrator.platform.clock)
    }

    /// Refused if something was written since the log was read, because it is not in the file.
    fn switch(&self, prepared: &Prepared) -> Result<()> {
        let sessions = &self.migrator.sessions;
        let pointer = self.file.format().pointer(self.file.address(), &prepared.snapshot);
        match prepared.head {
            Some(head) => sessions.switch_to_file(self.session, pointer, Some(head))?,
            None => sessions.switch_from_failed_log(self.session, pointer)?,
        }
        Ok(())
    }
}

struct Prepared {
    /// Where the log was; `None` when it is damaged, and then it goes by way of FAILED.
    head: Option<Head>,
    written: Written,
    lost: Vec<Lost>,
    verification: Verification,
    snapshot: Snapshot,
}
