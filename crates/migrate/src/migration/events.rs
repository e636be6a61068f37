//! The evidence: what every event of one migration says alike.

use bough_platform::Platform;
use bough_session::{SessionId, hex};
use bough_store::SessionDirectory;
use bough_store::origin::{LedgerEvent, MIGRATION_EVENT, Outcome, Phase, Verification};

use crate::error::Result;

pub(crate) const NATIVE: &str = "native_v2";

/// Everything was compared and is right.
pub(crate) const ALL_MATCH: Verification =
    Verification { entry_count_match: true, hash_chain_match: true, index_consistent: true };

/// What every event of one migration, or of its rollback, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) migration_id: String,
    pub(crate) correlation_id: String,
    pub(crate) snapshot_id: String,
    /// Where the V1 file is; `None` in events of earlier versions.
    pub(crate) path: Option<String>,
    pub(crate) source: String,
    pub(crate) target: String,
}

/// What one event says beyond that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventDetails<'a> {
    pub(crate) phase: Phase,
    pub(crate) verification: Verification,
    pub(crate) reason: &'a str,
    pub(crate) outcome: Outcome,
}

impl Evidence {
    /// The evidence that an event is part of.
    pub(crate) fn of(event: &LedgerEvent) -> Self {
        Self {
            migration_id: event.migration_id.clone(),
            correlation_id: event.correlation_id.clone(),
            snapshot_id: event.source_snapshot_id.clone(),
            path: event.source_path.clone(),
            source: event.source_format.clone(),
            target: event.target_format.clone(),
        }
    }

    /// The same migration, the other way.
    pub(crate) fn reversed(self) -> Self {
        Self { source: self.target, target: self.source, ..self }
    }

    /// The same migration, from the V1 file to the log.
    pub(crate) fn forward(self) -> Self {
        if self.source == NATIVE { self.reversed() } else { self }
    }

    /// The same migration, from the log to the V1 file.
    pub(crate) fn backward(self) -> Self {
        if self.source == NATIVE { self } else { self.reversed() }
    }

    fn event(&self, details: EventDetails<'_>, at_ms: i64) -> LedgerEvent {
        LedgerEvent {
            schema: MIGRATION_EVENT.to_owned(),
            migration_id: self.migration_id.clone(),
            correlation_id: self.correlation_id.clone(),
            source_snapshot_id: self.snapshot_id.clone(),
            source_path: self.path.clone(),
            phase: details.phase,
            source_format: self.source.clone(),
            target_format: self.target.clone(),
            verification: details.verification,
            reason: details.reason.to_owned(),
            outcome: details.outcome,
            at_ms,
        }
    }

    /// Writes an event, durably.
    pub(crate) fn record(
        &self,
        sessions: &SessionDirectory,
        platform: &Platform,
        session: &SessionId,
        details: EventDetails<'_>,
    ) -> Result<()> {
        let event = self.event(details, platform.clock.now_ms());
        Ok(sessions.record_event(session, &event)?)
    }
}

/// An event that went well.
pub(crate) fn success(phase: Phase, verification: Verification, reason: &str) -> EventDetails<'_> {
    EventDetails { phase, verification, reason, outcome: Outcome::Ok }
}

/// A fresh id with a prefix that says of what.
pub(crate) fn fresh_id(platform: &Platform, prefix: &str) -> Result<String> {
    let mut random = [0; 16];
    platform.entropy.fill(&mut random)?;
    Ok(format!("{prefix}_{}", hex(&random)))
}

/// How far a session's migration is, by its ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trail {
    /// Nothing was ever migrated here, or all of it ended.
    Settled,
    /// A migration without an event that it completed.
    Forward(Evidence),
    /// A rollback without an event that it is done.
    Backward(Evidence),
}

impl Trail {
    /// Reads the ledger. Repairs of the index, which the log notes by itself, are passed over: they speak
    /// of no snapshot.
    pub(crate) fn of(ledger: &[LedgerEvent]) -> Self {
        let last = ledger.iter().rev().find(|event| !event.source_snapshot_id.is_empty());
        let Some(last) = last else { return Self::Settled };
        match last.phase {
            Phase::Completed | Phase::RolledBack | Phase::Recovery => Self::Settled,
            Phase::Planned | Phase::Staged | Phase::Verified | Phase::CutOver => {
                let evidence = Evidence::of(last);
                if evidence.source == NATIVE {
                    Self::Backward(evidence)
                } else {
                    Self::Forward(evidence)
                }
            }
        }
    }

    /// The newest migration that the ledger speaks of, whether or not it ended.
    pub(crate) fn newest(ledger: &[LedgerEvent]) -> Option<Evidence> {
        let last = ledger.iter().rev().find(|event| !event.source_snapshot_id.is_empty());
        last.map(Evidence::of)
    }
}
