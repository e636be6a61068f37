use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, Position};
use super::state::StoreState;
use super::{schema, seal, unseal};
use crate::error::{Damage, DamageKind, LogError, Result};
use bough_record::{Head, Incarnation};

/// The newest layout that this build reads and the one that it writes. A writer raises the format of an
/// older log before its first append, so that a program of that format refuses it instead of misreading it.
///
/// - 1: the first.
/// - 2: steps of streams are numbered through the incarnation (`s` in frames, `last_step` in checkpoints);
///   frames may name blobs (`d`) and may be redacted (`z`); a manifest may name its tenant.
pub const FORMAT_VERSION: u64 = 2;

/// Which kind of store answers for the session: the contract's "active store marker".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActiveStore {
    /// The segments beside this manifest.
    NativeV2,
    /// A V1 JSONL file elsewhere.
    JsonlV3,
    /// A V1 SQLite file elsewhere.
    SqliteV1,
}

/// What the marker points to; it moves together with the marker because both are in one file (INV-007).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pointer {
    /// The segments beside this manifest.
    NativeV2,
    /// A V1 JSONL file.
    JsonlV3 {
        /// Where it is.
        path: String,
        /// Identifies its bytes at the time of the migration.
        snapshot_id: String,
    },
    /// A V1 SQLite file.
    SqliteV1 {
        /// Where it is.
        path: String,
        /// Identifies its bytes at the time of the migration.
        snapshot_id: String,
    },
}

impl Pointer {
    /// The marker that belongs to this pointer.
    #[must_use]
    pub fn marker(&self) -> ActiveStore {
        match self {
            Self::NativeV2 => ActiveStore::NativeV2,
            Self::JsonlV3 { .. } => ActiveStore::JsonlV3,
            Self::SqliteV1 { .. } => ActiveStore::SqliteV1,
        }
    }
}

/// `manifest.json`: what the container is, and how far it is known to be durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`schema::MANIFEST`].
    pub schema: String,
    /// The layout's version.
    pub format: u64,
    /// The tenant that the log belongs to; absent for the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The log's id, unescaped.
    pub session_id: String,
    /// Which incarnation.
    pub incarnation: Incarnation,
    /// When this incarnation began, milliseconds since the epoch.
    pub created_at_ms: i64,
    /// The state at the time of writing; frames after `head` make it DIRTY.
    pub state: StoreState,
    /// Which kind of store answers.
    pub active_store: ActiveStore,
    /// What that marker points to.
    pub pointer: Pointer,
    /// Where a rollback would return to.
    pub previous: Option<Pointer>,
    /// The head at the time of writing.
    pub head: Head,
    /// Where the next frame goes; `closed` when not to this segment but to the next.
    pub position: Position,
    /// When the log was deleted, if it is: its retention counts from then.
    pub deleted_at_ms: Option<i64>,
    /// Rows of the index that are synced; 0 when a tiny log keeps none.
    pub index_rows: u64,
    /// The newest checkpoint file; 0 when there is none.
    pub checkpoint_seq: u64,
    /// The checkpoint itself, for a log that is too small to keep a file for it.
    pub checkpoint: Option<Box<Checkpoint>>,
}

impl Manifest {
    /// The manifest of a log that was just made.
    #[must_use]
    pub fn new(id: &str, incarnation: Incarnation, now_ms: i64) -> Self {
        Self {
            schema: schema::MANIFEST.to_owned(),
            format: FORMAT_VERSION,
            tenant: None,
            session_id: id.to_owned(),
            incarnation,
            created_at_ms: now_ms,
            state: StoreState::Clean,
            active_store: ActiveStore::NativeV2,
            pointer: Pointer::NativeV2,
            previous: None,
            head: Head::genesis(id, incarnation),
            position: Position::START,
            deleted_at_ms: None,
            index_rows: 0,
            checkpoint_seq: 0,
            checkpoint: None,
        }
    }

    /// The file's bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        seal(self)
    }

    /// Reads the file's bytes. A newer format is not damage: it has an error of its own.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        match unseal::<Self>(bytes) {
            Ok(manifest) => manifest.checked(),
            Err(error) => match format_of(bytes) {
                Some(found) if found > FORMAT_VERSION => Err(newer(found)),
                _ => Err(damage(error.to_string()).into()),
            },
        }
    }

    fn checked(self) -> Result<Self> {
        if self.format > FORMAT_VERSION {
            return Err(newer(self.format));
        }
        if self.schema != schema::MANIFEST {
            return Err(damage(format!("schema {:?} is not a manifest's", self.schema)).into());
        }
        if self.active_store != self.pointer.marker() {
            let text = "the active store marker and the pointer disagree";
            return Err(Damage::new(DamageKind::Pointer, "manifest.json", 0, text).into());
        }
        Ok(self)
    }
}

fn newer(found: u64) -> LogError {
    LogError::NewerFormat { file: "manifest.json".to_owned(), found, supported: FORMAT_VERSION }
}

fn damage(detail: String) -> Damage {
    Damage::new(DamageKind::Manifest, "manifest.json", 0, detail)
}

/// The format that an otherwise unreadable manifest asks for, if its checksum fits.
fn format_of(bytes: &[u8]) -> Option<u64> {
    unseal::<serde_json::Value>(bytes).ok()?.get("format")?.as_u64()
}
