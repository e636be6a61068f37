use serde::{Deserialize, Serialize};

use super::sealed::seal_line;
use super::{Pointer, schema, unseal};
use crate::error::Result;

/// How far a migration, a rollback or a recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Decided, nothing built.
    Planned,
    /// Being built in staging.
    Staged,
    /// Checked against the source.
    Verified,
    /// The pointer moved.
    CutOver,
    /// Done.
    Completed,
    /// The pointer moved back.
    RolledBack,
    /// The open path repaired something that can be derived.
    Recovery,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Went well, or goes on.
    Ok,
    /// Failed in a way that opening again repairs.
    RecoverableError,
    /// Failed in a way that a person has to repair.
    FatalError,
}

/// What was compared before the pointer moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// As many entries as the source has.
    pub entry_count_match: bool,
    /// The chain verifies and covers the source's bytes.
    pub hash_chain_match: bool,
    /// Every index row leads to its frame.
    pub index_consistent: bool,
}

/// One line of `migrations/ledger.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEvent {
    /// [`schema::MIGRATION_EVENT`].
    pub schema: String,
    /// Identifies the migration that this event is part of.
    pub migration_id: String,
    /// Links events of several stores that belong together.
    pub correlation_id: String,
    /// Identifies the source's bytes; empty for a recovery.
    pub source_snapshot_id: String,
    /// Where the V1 file is; absent in a recovery, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// How far it is.
    pub phase: Phase,
    /// From which format.
    pub source_format: String,
    /// To which format.
    pub target_format: String,
    /// What was compared.
    pub verification: Verification,
    /// Why, in words.
    pub reason: String,
    /// How it ended.
    pub outcome: Outcome,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
}

impl LedgerEvent {
    /// The record of a repair made while opening.
    #[must_use]
    pub fn recovery(id: &str, reason: String, at_ms: i64) -> Self {
        Self {
            schema: schema::MIGRATION_EVENT.to_owned(),
            migration_id: id.to_owned(),
            correlation_id: id.to_owned(),
            source_snapshot_id: String::new(),
            source_path: None,
            phase: Phase::Recovery,
            source_format: "native_v2".to_owned(),
            target_format: "native_v2".to_owned(),
            verification: Verification {
                entry_count_match: true,
                hash_chain_match: true,
                index_consistent: true,
            },
            reason,
            outcome: Outcome::RecoverableError,
            at_ms,
        }
    }

    /// The pointer to the V1 file that a migration was made from, where the event names it.
    #[must_use]
    pub fn source(&self) -> Option<Pointer> {
        let (path, snapshot_id) = (self.source_path.clone()?, self.source_snapshot_id.clone());
        match self.source_format.as_str() {
            "jsonl_v3" => Some(Pointer::JsonlV3 { path, snapshot_id }),
            "sqlite_v1" => Some(Pointer::SqliteV1 { path, snapshot_id }),
            _ => None,
        }
    }

    /// The line, with its line break.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        seal_line(self, &mut line)?;
        Ok(line)
    }

    /// Reads a line without its line break; `None` when it cannot be believed.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        unseal::<Self>(line).ok().filter(|event| event.schema == schema::MIGRATION_EVENT)
    }
}
