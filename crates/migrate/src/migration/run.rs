//! The way forward: stage, verify, cut over, complete.

use bough_record::Envelope;
use bough_session::SessionId;
use bough_store::origin::{Outcome as EventOutcome, Phase, Pointer, Verification};
use bough_store::{SessionDirectory, StagedSession, StoreError};
use serde::Serialize;

use super::events::{ALL_MATCH, EventDetails, Evidence, NATIVE, fresh_id, success};
use super::log_records::EndMark;
use super::verify::{Checked, Expectation, check};
use super::{Migrator, Plan, Standing};
use crate::error::{MigrateError, Result};
use crate::limits::BATCH_BYTES;
use crate::v1::{Mapper, V1File, Want, fallback_id};

/// Where a long piece of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// Bytes of the source that are done.
    pub done_bytes: u64,
    /// Bytes of the source.
    pub total_bytes: u64,
    /// Entries so far.
    pub entries: u64,
}

/// The steps of a migration, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Reading the source.
    Plan,
    /// Building the log out of sight.
    Stage,
    /// Holding it against the source.
    Verify,
    /// Moving the pointer.
    CutOver,
    /// Done.
    Complete,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is migrated now.
    Migrated,
    /// It was migrated before; nothing was done.
    AlreadyMigrated,
}

/// What a migration did.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What became of the file.
    pub outcome: Outcome,
    /// The plan that was carried out.
    pub plan: Plan,
    /// Identifies this migration; empty when nothing was done.
    pub migration_id: String,
    /// Links the migrations of one run.
    pub correlation_id: String,
    /// What was compared.
    pub verification: Verification,
    /// Records of the log.
    pub records: u64,
}

impl Migrator {
    /// Carries a plan out. The file is only read. Run again it finds the session migrated and does
    /// nothing; a file that changed since it was planned is refused.
    pub fn migrate(
        &self,
        plan: Plan,
        correlation_id: Option<&str>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary> {
        let session = plan.session_id.clone();
        self.recover_session(&session)?;
        let file = self.files.locate(&plan.address)?;
        match self.standing(&session, &file, &plan.snapshot)? {
            Standing::Migrated => return Ok(already(plan, correlation_id)),
            Standing::Taken => {
                return Err(MigrateError::Exists { session: session.to_string() });
            }
            Standing::MigratedThenChanged => {
                let (address, session) = (plan.address, session.to_string());
                return Err(MigrateError::ChangedSince { address, session });
            }
            Standing::New | Standing::ServedFromFile => {}
        }
        let migration_id = fresh_id(&self.platform, "mig")?;
        let correlation_id = correlation_id.unwrap_or(&migration_id).to_owned();
        let evidence = Evidence {
            migration_id,
            correlation_id,
            snapshot_id: plan.snapshot_id.clone(),
            path: Some(plan.address.clone()),
            source: plan.format.name().to_owned(),
            target: NATIVE.to_owned(),
        };
        let run = Run { migrator: self, file: &file, plan: &plan, evidence, progress };
        let (evidence, checked) = self.move_marked(&session, &file, || run.carry_out())?;
        Ok(Summary {
            outcome: Outcome::Migrated,
            plan,
            migration_id: evidence.migration_id,
            correlation_id: evidence.correlation_id,
            verification: checked.verification,
            records: checked.head.map_or(0, |head| head.seq),
        })
    }
}

fn already(plan: Plan, correlation_id: Option<&str>) -> Summary {
    Summary {
        outcome: Outcome::AlreadyMigrated,
        plan,
        migration_id: String::new(),
        correlation_id: correlation_id.unwrap_or_default().to_owned(),
        verification: ALL_MATCH,
        records: 0,
    }
}

struct Run<'a> {
    migrator: &'a Migrator,
    file: &'a V1File,
    plan: &'a Plan,
    evidence: Evidence,
    progress: &'a mut dyn FnMut(Progress),
}

impl Run<'_> {
    fn carry_out(mut self) -> Result<(Evidence, Checked)> {
        let name = self.evidence.migration_id.clone();
        let mut staged = self.migrator.sessions.stage(self.session(), &name)?;
        let checked = self.build_and_verify(&mut staged)?;
        let published = staged.publish();
        // Whether or not it stands among the sessions, nothing of it is needed in staging.
        drop(staged);
        match published {
            Err(StoreError::Exists { session }) => {
                return Err(MigrateError::Exists { session: session.to_string() });
            }
            published => published?,
        }
        self.cut_over(&checked)?;
        Ok((self.evidence, checked))
    }

    fn session(&self) -> &SessionId {
        &self.plan.session_id
    }

    fn pointer(&self) -> Pointer {
        self.plan.format.pointer(&self.plan.address, &self.plan.snapshot)
    }

    /// Writes an event into the ledger, where the session is built or where it stands.
    fn record(&self, sessions: &SessionDirectory, details: EventDetails<'_>) -> Result<()> {
        self.evidence.record(sessions, &self.migrator.platform, self.session(), details)
    }

    fn show(&mut self, step: Step, done_bytes: u64, entries: u64) {
        let total_bytes = self.plan.bytes;
        (self.progress)(Progress { step, done_bytes, total_bytes, entries });
    }

    fn build_and_verify(&mut self, staged: &mut StagedSession) -> Result<Checked> {
        self.build(staged)?;
        staged.present(&self.pointer())?;
        let built = &staged.directory();
        self.record(built, success(Phase::Staged, Verification::default(), "built out of sight"))?;
        let entries = self.plan.report.entries;
        self.show(Step::Verify, 0, entries);
        let expected = Expectation { entries, content: self.plan.content.clone() };
        let checked = check(built, self.session(), Some(&expected))?;
        if !checked.is_well() {
            let Checked { verification, detail, .. } = checked;
            return Err(MigrateError::VerificationFailed { verification, detail });
        }
        self.record(built, success(Phase::Verified, checked.verification, &checked.detail))?;
        self.show(Step::Verify, self.plan.bytes, entries);
        if self.file.len()? != Some(self.plan.bytes) {
            return Err(self.changed());
        }
        Ok(checked)
    }

    fn changed(&self) -> MigrateError {
        MigrateError::SourceChanged { address: self.plan.address.clone() }
    }

    /// Reads the source a second time, into the staged session.
    fn build(&mut self, staged: &mut StagedSession) -> Result<()> {
        let mut mapper = Mapper::new(self.file.name(), Want::Records);
        let mut builder = Builder { run: self, staged, batch: Vec::new(), bytes: 0 };
        let file = builder.run.file;
        let snapshot = file.feed(&mut mapper, &mut |mapper, done, _| {
            builder.take(mapper.take(), done, mapper.report().entries)
        })?;
        if snapshot != builder.run.plan.snapshot {
            return Err(builder.run.changed());
        }
        let last_ms = mapper.last_ms();
        let (mapped, rest) = mapper.finish(&fallback_id(&builder.run.plan.address));
        let mark = EndMark::new(&builder.run.evidence, &mapped.content, mapped.report);
        let entries = mapped.content.entries;
        let rest = rest.into_iter().chain([mark.to_record(last_ms)]).collect();
        builder.take(rest, snapshot.len, entries)?;
        builder.flush()
    }

    /// The pointer moves: from here on the log answers.
    fn cut_over(&mut self, checked: &Checked) -> Result<()> {
        let entries = self.plan.report.entries;
        self.show(Step::CutOver, self.plan.bytes, entries);
        let sessions = &self.migrator.sessions;
        sessions.switch_to_log(self.session(), self.pointer(), checked.head)?;
        self.record(sessions, success(Phase::CutOver, checked.verification, "the pointer moved"))?;
        // What was verified is what is live: the same head, through the ordinary way of reading.
        let live = sessions.read(self.session())?.head();
        if Some(live) != checked.head {
            let detail = format!("record {} is live, which was not verified", live.seq);
            let details = EventDetails {
                phase: Phase::CutOver,
                verification: Verification::default(),
                reason: &detail,
                outcome: EventOutcome::RecoverableError,
            };
            self.record(sessions, details)?;
            let verification = Verification::default();
            return Err(MigrateError::VerificationFailed { verification, detail });
        }
        self.record(sessions, success(Phase::Completed, checked.verification, "migrated"))?;
        sessions.settle_replaced(self.session())?;
        self.show(Step::Complete, self.plan.bytes, entries);
        Ok(())
    }
}

/// Collects records into batches.
struct Builder<'a, 'r> {
    run: &'a mut Run<'r>,
    staged: &'a mut StagedSession,
    batch: Vec<Envelope<'static>>,
    bytes: usize,
}

impl Builder<'_, '_> {
    fn take(&mut self, records: Vec<Envelope<'static>>, done: u64, entries: u64) -> Result<()> {
        for record in records {
            let size = record.payload.len();
            if !self.batch.is_empty() && self.bytes + size > BATCH_BYTES {
                self.flush()?;
            }
            self.bytes += size;
            self.batch.push(record);
            if self.batch.len() >= self.run.migrator.batch_records {
                self.flush()?;
            }
        }
        self.run.show(Step::Stage, done, entries);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let is_first = !self.staged.has_begun();
        self.staged.add(batch)?;
        if is_first {
            let plan = self.run.plan;
            let reason = format!("{} entries of {}", plan.report.entries, plan.address);
            let planned = success(Phase::Planned, Verification::default(), &reason);
            self.run.record(&self.staged.directory(), planned)?;
        }
        Ok(())
    }
}
