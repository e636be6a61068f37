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

use bough_log::Switch;
use bough_log::format::{ActiveStore, Manifest, Outcome, Phase, Pointer, StoreState, Verification};
use bough_platform::Lock;
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
    /// Finishes or undoes what was interrupted, for every session of the data directory; `visit` is told
    /// of each where something was done.
    pub fn recover_all(&self, visit: &mut dyn FnMut(&str, &Result<Recovered>)) -> Result<()> {
        let mut ids = Vec::new();
        self.log.visit(&mut |listed| ids.extend(listed.ok().map(|listed| listed.id)))?;
        ids.extend(self.log.trash()?.into_iter().map(|listed| listed.id));
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let recovered = self.recover_session(&id);
            if !matches!(recovered, Ok(Recovered::Nothing)) {
                visit(&id, &recovered);
            }
        }
        Ok(())
    }

    /// Finishes or undoes what was interrupted, for one session. Doing it twice is doing it once.
    pub fn recover_session(&self, session: &str) -> Result<Recovered> {
        self.log.settle_replaced(session)?;
        if self.need(session)?.is_none() {
            return Ok(Recovered::Nothing);
        }
        // Whoever migrates or rolls back holds the file's lock: without it, nobody is at it.
        let lock = match self.lock_of(session) {
            Ok(lock) => lock,
            Err(MigrateError::Locked { .. }) => return Ok(Recovered::UnderWay),
            Err(error) => return Err(error),
        };
        let recovered = self.recover_locked(session);
        if let Some(lock) = lock {
            lock.remove()?;
        }
        recovered
    }

    /// The same for a caller that holds the lock of the V1 file.
    pub(super) fn recover_holding_lock(&self, session: &str) -> Result<Recovered> {
        self.log.settle_replaced(session)?;
        self.recover_locked(session)
    }

    fn recover_locked(&self, session: &str) -> Result<Recovered> {
        let Some((manifest, need)) = self.need(session)? else {
            return Ok(Recovered::Nothing);
        };
        self.log.mend_ledger(session)?;
        let recovery = Recovery { migrator: self, session, manifest: &manifest };
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
    fn lock_of(&self, session: &str) -> Result<Option<Box<dyn Lock>>> {
        let manifest = self.manifest(session)?;
        let pointers = [Some(&manifest.pointer), manifest.previous.as_ref()];
        let address = pointers.into_iter().flatten().find_map(V1File::of_pointer);
        match address.map(|(address, _)| self.files.locate(address)) {
            Some(Ok(file)) => file.lock(),
            Some(Err(MigrateError::Missing { .. })) | None => Ok(None),
            Some(Err(error)) => Err(error),
        }
    }

    /// What manifest and ledger ask for: the table above.
    pub(super) fn need(&self, session: &str) -> Result<Option<(Manifest, Need)>> {
        let Some(manifest) = self.log.manifest(session)? else { return Ok(None) };
        let native = manifest.active_store == ActiveStore::NativeV2;
        if native && manifest.previous.is_none() {
            return Ok(None);
        }
        let ledger = self.log.ledger(session)?;
        let newest = Trail::newest(&ledger);
        let need = match (native, manifest.state, Trail::of(&ledger)) {
            (_, StoreState::Failed, _) => Need::RetryFailed(newest),
            (true, _, Trail::Forward(evidence)) => Need::VerifyAgain(evidence),
            (true, _, Trail::Backward(evidence)) => Need::AbandonRollback(evidence),
            (false, StoreState::MigrationStaging, _) => Need::SourceGoesOn(newest),
            (false, _, Trail::Forward(evidence) | Trail::Backward(evidence)) => {
                Need::FinishRollback(evidence.backward())
            }
            _ if self.log.torn_ledger_bytes(session)? > 0 => Need::MendLedger,
            _ => return Ok(None),
        };
        Ok(Some((manifest, need)))
    }
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
    session: &'a str,
    manifest: &'a Manifest,
}

impl Recovery<'_> {
    fn say(&self, evidence: &Evidence, said: EventDetails<'_>) -> Result<()> {
        let Migrator { log, platform, .. } = self.migrator;
        evidence.say(log, platform, self.session, said)
    }

    fn switch(&self, through: &[StoreState], pointer: &Pointer) -> Result<()> {
        let native = self.manifest.active_store == ActiveStore::NativeV2;
        let previous =
            if native { Some(Pointer::NativeV2) } else { self.manifest.previous.clone() };
        let switch = Switch { through, pointer: pointer.clone(), previous, head: None };
        self.migrator.log.switch(self.session, &switch)?;
        Ok(())
    }

    /// Rule 1.
    fn source_goes_on(&self, evidence: Option<Evidence>) -> Result<Recovered> {
        self.switch(&[StoreState::RolledBack], &self.manifest.pointer)?;
        if let Some(evidence) = evidence {
            let said = EventDetails {
                phase: Phase::RolledBack,
                verification: Verification::default(),
                reason: "interrupted before the pointer moved; the source goes on",
                outcome: Outcome::RecoverableError,
            };
            self.say(&evidence.backward(), said)?;
        }
        Ok(Recovered::SourceGoesOn)
    }

    /// The commit marker is there and nobody says that what it points to was right.
    fn verify_again(&self, evidence: Evidence) -> Result<Recovered> {
        let evidence = evidence.forward();
        let checked = check(&self.migrator.log, self.session, None)?;
        if checked.is_well() {
            let words = "interrupted after the pointer moved; verified again";
            self.say(&evidence, success(Phase::Completed, checked.verification, words))?;
            return Ok(Recovered::Completed);
        }
        self.force_back(&evidence.backward(), &checked)
    }

    /// Rule 2, and rule 3 where there is nothing to go back to.
    fn force_back(&self, evidence: &Evidence, checked: &Checked) -> Result<Recovered> {
        let previous = self.manifest.previous.as_ref().unwrap_or(&self.manifest.pointer);
        let failed = format!("the copy failed its verification ({})", checked.detail);
        match self.ready_target(previous) {
            Ok((pointer, words)) => {
                let reason = format!("{failed}; {words}");
                self.switch(&[StoreState::Failed, StoreState::RolledBack], &pointer)?;
                let said = EventDetails {
                    phase: Phase::RolledBack,
                    verification: checked.verification,
                    reason: &reason,
                    outcome: Outcome::RecoverableError,
                };
                self.say(evidence, said)?;
                Ok(Recovered::ForcedBack { reason })
            }
            Err(error) => {
                let reason = format!("{failed}, and there is nothing to go back to: {error}");
                self.switch(&[StoreState::Failed], previous)?;
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
        let reader = self.migrator.log.read_segments(self.session)?;
        let Some(since) = Since::read(&reader)? else { return Ok((0, 0)) };
        let snapshot = V1File::of_pointer(previous).and_then(|(_, id)| Snapshot::parse(id));
        let Some(snapshot) = snapshot else { return Ok((0, 0)) };
        let kept = target::inspect(file, &snapshot, &since, true)?;
        let mut written = kept.write(file, &|visit| since.each_line(&reader, visit))?;
        written.bring_over_late_lines(file)?;
        let added = written.added;
        let damaged = u64::from(reader.damage().is_some());
        Ok((added, damaged + since.lost().iter().map(|lost| lost.count).sum::<u64>()))
    }

    fn target_of(&self, pointer: &Pointer) -> Result<V1File> {
        let (address, _) = V1File::of_pointer(pointer).ok_or_else(|| {
            MigrateError::NothingToRollBackTo { session: self.session.to_owned() }
        })?;
        let file = self.migrator.files.locate(address)?;
        file.sweep()?;
        Ok(file)
    }

    /// Rule 3.
    fn give_up(&self, evidence: &Evidence, reason: String) -> Result<Recovered> {
        let said = EventDetails {
            phase: Phase::RolledBack,
            verification: Verification::default(),
            reason: &reason,
            outcome: Outcome::FatalError,
        };
        self.say(evidence, said)?;
        Ok(Recovered::NeedsOperator { reason })
    }

    /// Somebody may have put the file back.
    fn retry_failed(&self, evidence: Option<Evidence>) -> Result<Recovered> {
        let pointer = &self.manifest.pointer;
        let found = self.target_of(pointer).and_then(|file| {
            LiveV1::open(file.clone())?;
            Ok(file.format().pointer(file.address(), &file.snapshot()?))
        });
        match found {
            Ok(pointer) => {
                self.switch(&[StoreState::RolledBack], &pointer)?;
                if let Some(evidence) = evidence {
                    let words = "the file to go back to is there again";
                    self.say(&evidence.backward(), success(Phase::RolledBack, ALL_MATCH, words))?;
                }
                Ok(Recovered::RollbackFinished)
            }
            Err(error) => Ok(Recovered::NeedsOperator { reason: error.to_string() }),
        }
    }

    fn abandon_rollback(&self, evidence: &Evidence) -> Result<Recovered> {
        // A target that is gone is no reason to stop serving a log that is well.
        let previous = self.manifest.previous.as_ref();
        if let Some(pointer) = previous {
            drop(self.target_of(pointer));
        }
        let said = EventDetails {
            phase: Phase::Recovery,
            verification: Verification::default(),
            reason: "a rollback was interrupted before the pointer moved; the log goes on",
            outcome: Outcome::RecoverableError,
        };
        self.say(evidence, said)?;
        Ok(Recovered::RollbackAbandoned)
    }

    /// The pointer moved back and nobody says that the file was right.
    fn finish_rollback(&self, evidence: &Evidence) -> Result<Recovered> {
        let opened = self.target_of(&self.manifest.pointer).and_then(LiveV1::open);
        match opened {
            Ok(_) => {
                let words = "interrupted after the pointer moved; the file is readable";
                self.say(evidence, success(Phase::RolledBack, ALL_MATCH, words))?;
                Ok(Recovered::RollbackFinished)
            }
            Err(error) => {
                self.switch(&[StoreState::Failed], &self.manifest.pointer)?;
                self.give_up(evidence, format!("the file to go back to cannot be read: {error}"))
            }
        }
    }
}
