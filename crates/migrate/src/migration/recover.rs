//! After an interruption: the three rules, and nothing that depends on when it happened.
//!
//! | the manifest says | the ledger says | what is done |
//! |---|---|---|
//! | V1 live, MIGRATION_STAGING | anything | rule 1, no commit marker: the source goes on, ROLLED_BACK |
//! | log live | a migration not completed | the copy is verified again: completed, or rule 2 |
//! | log live | a rollback not done | the log goes on; the file keeps what was added to it |
//! | V1 live, ROLLED_BACK | a rollback not done | the file is verified: done, or rule 3 |
//! | FAILED | anything | the file is there again: ROLLED_BACK; else rule 3 |
//! | anything else | anything | nothing |
//!
//! Rule 2, verification fails after the commit marker: forced rollback, by way of FAILED. Rule 3, nothing
//! to go back to: FAILED, which serves nothing until a person helps.

use bough_platform::Lock;
use bough_session::SessionId;
use bough_store::SessionDirectory;
use bough_store::origin::{Origin, Outcome, Phase, Pointer, StoreState, Verification};
use serde::Serialize;

use super::events::{ALL_MATCH, EventDetails, Evidence, Trail, success};
use super::since::Since;
use super::verify::{Checked, check};
use super::{Migrator, target};
use crate::error::{MigrateError, Result};
use crate::v1::{LiveV1, Snapshot, V1File};

/// What recovery did with a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "did")]
pub enum Recovered {
    /// There was nothing to do.
    Nothing,
    /// Rule 1: the migration was interrupted before its pointer moved; the V1 file goes on.
    SourceGoesOn,
    /// The migration was interrupted after its pointer moved; it is right, and completed now.
    Completed,
    /// Rule 2: the migration was interrupted after its pointer moved and is not right; the V1 file answers
    /// again.
    ForcedBack {
        /// What was wrong, and what stayed in the log.
        reason: String,
    },
    /// A rollback was interrupted before its pointer moved; the log goes on.
    RollbackAbandoned,
    /// A rollback was interrupted after its pointer moved; it is done now.
    RollbackFinished,
    /// Another process is at it: a migration or a rollback is under way.
    UnderWay,
    /// Rule 3: there is nothing to go back to. Nothing is served until a person helps.
    NeedsOperator {
        /// What is missing.
        reason: String,
    },
}

impl Migrator {
    /// Finishes or undoes what was interrupted, for every session of the data directory. `visit` is called
    /// for each session where something was done.
    pub fn recover_all(&self, visit: &mut dyn FnMut(&SessionId, &Result<Recovered>)) -> Result<()> {
        let mut sessions = self.sessions.sessions()?;
        sessions.extend(self.sessions.trashed()?);
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            let recovered = self.recover_session(&session);
            if !matches!(recovered, Ok(Recovered::Nothing)) {
                visit(&session, &recovered);
            }
        }
        Ok(())
    }

    /// Finishes or undoes what was interrupted, for one session. Doing it twice is doing it once.
    pub fn recover_session(&self, session: &SessionId) -> Result<Recovered> {
        self.sessions.settle_replaced(session)?;
        if self.need(session)?.is_none() {
            return Ok(Recovered::Nothing);
        }
        holding(self.lock_of(session), || self.recover_locked(session))
    }

    /// The same for a caller that holds the lock of the V1 file.
    pub(super) fn recover_holding_lock(&self, session: &SessionId) -> Result<Recovered> {
        self.sessions.settle_replaced(session)?;
        self.recover_locked(session)
    }

    fn recover_locked(&self, session: &SessionId) -> Result<Recovered> {
        let Some((origin, need)) = self.need(session)? else {
            return Ok(Recovered::Nothing);
        };
        self.sessions.repair_ledger(session)?;
        let recovery = Recovery { migrator: self, session, origin: &origin };
        match need {
            Need::MendLedger => Ok(Recovered::Nothing),
            Need::RetryFailed(evidence) => recovery.retry_failed(evidence),
            Need::VerifyAgain(evidence) => recovery.verify_again(evidence),
            Need::AbandonRollback(evidence) => recovery.abandon_rollback(&evidence),
            Need::SourceGoesOn(evidence) => recovery.source_goes_on(evidence),
            Need::FinishRollback(evidence) => recovery.finish_rollback(&evidence),
        }
    }

    /// The lock of the V1 file that a session has to do with; `None` where there is none to take.
    fn lock_of(&self, session: &SessionId) -> Result<Option<Box<dyn Lock>>> {
        let origin = self.origin(session)?;
        match V1File::address_in([Some(&origin.pointer), origin.previous.as_ref()]) {
            Some(address) => self.files.locate(address)?.lock(),
            None => Ok(None),
        }
    }

    /// What manifest and ledger ask for: the table above.
    pub(super) fn need(&self, session: &SessionId) -> Result<Option<(Origin, Need)>> {
        let Some(origin) = self.sessions.origin(session)? else { return Ok(None) };
        if origin.is_log() && origin.previous.is_none() {
            return Ok(None);
        }
        let ledger = self.sessions.ledger(session)?;
        let newest = Trail::newest(&ledger);
        let need = match (origin.is_log(), origin.state, Trail::of(&ledger)) {
            (_, StoreState::Failed, _) => Need::RetryFailed(newest),
            (true, _, Trail::Forward(evidence)) => Need::VerifyAgain(evidence),
            (true, _, Trail::Backward(evidence)) => Need::AbandonRollback(evidence),
            (false, StoreState::MigrationStaging, _) => Need::SourceGoesOn(newest),
            (false, _, Trail::Forward(evidence) | Trail::Backward(evidence)) => {
                Need::FinishRollback(evidence.backward())
            }
            _ if self.sessions.has_torn_ledger(session)? => Need::MendLedger,
            _ => return Ok(None),
        };
        Ok(Some((origin, need)))
    }
}

/// Recovers with the lock of the V1 file, if the file is there. A migration or a rollback that is under way holds it.
pub(super) fn holding(
    lock: Result<Option<Box<dyn Lock>>>,
    recover: impl FnOnce() -> Result<Recovered>,
) -> Result<Recovered> {
    let lock = match lock {
        Err(MigrateError::Locked { .. }) => return Ok(Recovered::UnderWay),
        Err(MigrateError::Missing { .. }) => None,
        lock => lock?,
    };
    let recovered = recover();
    if let Some(lock) = lock {
        lock.remove()?;
    }
    recovered
}

/// What there is to do.
pub(super) enum Need {
    MendLedger,
    RetryFailed(Option<Evidence>),
    VerifyAgain(Evidence),
    AbandonRollback(Evidence),
    SourceGoesOn(Option<Evidence>),
    FinishRollback(Evidence),
}

struct Recovery<'a> {
    migrator: &'a Migrator,
    session: &'a SessionId,
    origin: &'a Origin,
}

impl Recovery<'_> {
    fn record(&self, evidence: &Evidence, details: EventDetails<'_>) -> Result<()> {
        let Migrator { sessions, platform, .. } = self.migrator;
        evidence.record(sessions, platform, self.session, details)
    }

    fn sessions(&self) -> &SessionDirectory {
        &self.migrator.sessions
    }

    /// Rule 1.
    fn source_goes_on(&self, evidence: Option<Evidence>) -> Result<Recovered> {
        self.sessions().switch_to_file(self.session, self.origin.pointer.clone(), None)?;
        if let Some(evidence) = evidence {
            let details = EventDetails {
                phase: Phase::RolledBack,
                verification: Verification::default(),
                reason: "interrupted before the pointer moved; the source goes on",
                outcome: Outcome::RecoverableError,
            };
            self.record(&evidence.backward(), details)?;
        }
        Ok(Recovered::SourceGoesOn)
    }

    /// The commit marker is there, but no event confirms that its copy was verified.
    fn verify_again(&self, evidence: Evidence) -> Result<Recovered> {
        let evidence = evidence.forward();
        let checked = check(self.sessions(), self.session, None)?;
        if checked.is_well() {
            let words = "interrupted after the pointer moved; verified again";
            self.record(&evidence, success(Phase::Completed, checked.verification, words))?;
            return Ok(Recovered::Completed);
        }
        self.force_back(&evidence.backward(), &checked)
    }

    /// Rule 2, and rule 3 where there is nothing to go back to.
    fn force_back(&self, evidence: &Evidence, checked: &Checked) -> Result<Recovered> {
        let previous = self.origin.previous.as_ref().unwrap_or(&self.origin.pointer);
        let failed = format!("the copy failed its verification ({})", checked.detail);
        match self.ready_target(previous) {
            Ok((pointer, words)) => {
                let reason = format!("{failed}; {words}");
                self.sessions().switch_from_failed_log(self.session, pointer)?;
                let details = EventDetails {
                    phase: Phase::RolledBack,
                    verification: checked.verification,
                    reason: &reason,
                    outcome: Outcome::RecoverableError,
                };
                self.record(evidence, details)?;
                Ok(Recovered::ForcedBack { reason })
            }
            Err(error) => {
                let reason = format!("{failed}, and there is nothing to go back to: {error}");
                self.sessions().switch_to_failed(self.session, previous.clone())?;
                self.give_up(evidence, reason)
            }
        }
    }

    /// Adds to the target what can still be read of what was written since, and says what could not.
    fn ready_target(&self, previous: &Pointer) -> Result<(Pointer, String)> {
        let file = self.target_of(previous)?;
        LiveV1::open(file.clone())?;
        let unread = |what: &str| format!("what was written since {what}");
        let words = match self.export_since(&file, previous) {
            Ok((added, 0)) => format!("{added} lines written since were added to the file"),
            Ok((added, lost)) => {
                format!("{added} lines written since were added, {lost} records stay in the log")
            }
            Err(error) => unread(&format!("stays in the log: {error}")),
        };
        Ok((file.format().pointer(file.address(), &file.snapshot()?), words))
    }

    fn export_since(&self, file: &V1File, previous: &Pointer) -> Result<(u64, u64)> {
        let reader = self.sessions().read_log(self.session)?;
        let Some(since) = Since::read(&reader)? else { return Ok((0, 0)) };
        let snapshot = V1File::of_pointer(previous).and_then(|(_, id)| Snapshot::parse(id));
        let Some(snapshot) = snapshot else { return Ok((0, 0)) };
        let kept = target::inspect(file, &snapshot, &since, true)?;
        let mut written = kept.write(file, &|visit| since.each_line(&reader, visit))?;
        written.bring_over_late_lines(file, &*self.migrator.platform.clock)?;
        let added = written.added;
        let damaged = u64::from(reader.is_damaged());
        Ok((added, damaged + since.lost().iter().map(|lost| lost.count).sum::<u64>()))
    }

    fn target_of(&self, pointer: &Pointer) -> Result<V1File> {
        let (address, _) = V1File::of_pointer(pointer).ok_or_else(|| {
            MigrateError::NothingToRollBackTo { session: self.session.to_string() }
        })?;
        let file = self.migrator.files.locate(address)?;
        file.sweep()?;
        Ok(file)
    }

    /// Rule 3.
    fn give_up(&self, evidence: &Evidence, reason: String) -> Result<Recovered> {
        let details = EventDetails {
            phase: Phase::RolledBack,
            verification: Verification::default(),
            reason: &reason,
            outcome: Outcome::FatalError,
        };
        self.record(evidence, details)?;
        Ok(Recovered::NeedsOperator { reason })
    }

    /// Somebody may have put the file back.
    fn retry_failed(&self, evidence: Option<Evidence>) -> Result<Recovered> {
        let pointer = &self.origin.pointer;
        let found = self.target_of(pointer).and_then(|file| {
            LiveV1::open(file.clone())?;
            Ok(file.format().pointer(file.address(), &file.snapshot()?))
        });
        match found {
            Ok(pointer) => {
                self.sessions().switch_to_file(self.session, pointer, None)?;
                if let Some(evidence) = evidence {
                    let words = "the file to go back to is there again";
                    self.record(
                        &evidence.backward(),
                        success(Phase::RolledBack, ALL_MATCH, words),
                    )?;
                }
                Ok(Recovered::RollbackFinished)
            }
            Err(error) => Ok(Recovered::NeedsOperator { reason: error.to_string() }),
        }
    }

    fn abandon_rollback(&self, evidence: &Evidence) -> Result<Recovered> {
        // A target that is gone is no reason to stop serving a log that is well.
        let previous = self.origin.previous.as_ref();
        if let Some(pointer) = previous {
            drop(self.target_of(pointer));
        }
        let details = EventDetails {
            phase: Phase::Recovery,
            verification: Verification::default(),
            reason: "a rollback was interrupted before the pointer moved; the log goes on",
            outcome: Outcome::RecoverableError,
        };
        self.record(evidence, details)?;
        Ok(Recovered::RollbackAbandoned)
    }

    /// The pointer moved back, but no event confirms that the file was verified.
    fn finish_rollback(&self, evidence: &Evidence) -> Result<Recovered> {
        let opened = self.target_of(&self.origin.pointer).and_then(LiveV1::open);
        match opened {
            Ok(_) => {
                let words = "interrupted after the pointer moved; the file is readable";
                self.record(evidence, success(Phase::RolledBack, ALL_MATCH, words))?;
                Ok(Recovered::RollbackFinished)
            }
            Err(error) => {
                self.sessions().switch_to_failed(self.session, self.origin.pointer.clone())?;
                self.give_up(evidence, format!("the file to go back to cannot be read: {error}"))
            }
        }
    }
}
