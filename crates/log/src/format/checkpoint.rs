use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{schema, seal, unseal};
use crate::error::{Damage, DamageKind, Result};
use bough_record::Head;

/// A place in the segments: where a scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The segment's number, from 1.
    pub segment: u64,
    /// Bytes of whole frames in it.
    pub bytes: u64,
    /// Frames in it.
    pub frames: u64,
    /// Nothing is appended to this segment any more: the next frame begins the next one.
    pub closed: bool,
}

impl Position {
    /// Before the first frame.
    pub const START: Self = Self { segment: 1, bytes: 0, frames: 0, closed: false };

    /// The segment that the next frame goes to, and where in it.
    #[must_use]
    pub fn next(self) -> Self {
        if self.closed {
            Self { segment: self.segment + 1, bytes: 0, frames: 0, closed: false }
        } else {
            self
        }
    }
}

/// One entry that no other entry has as its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchHead {
    /// Its id.
    pub entry_id: String,
    /// Its record.
    pub seq: u64,
}

/// The branch heads, or the fact that they are too many to list here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BranchHeads {
    /// All of them, by record.
    All {
        /// The heads.
        heads: Vec<BranchHead>,
    },
    /// More than a checkpoint names; the index knows them.
    TooMany,
}

/// One sorted id table of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdTableRef {
    /// Its number, which is its file's name.
    pub number: u64,
    /// Ids in it.
    pub rows: u64,
    /// Pages in it.
    pub pages: u64,
}

/// A streaming message whose deltas are still in `stream.log`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStream {
    /// The entry that streams.
    pub entry_id: String,
    /// The record that opened the stream.
    pub seq: u64,
    /// The revision that the entry had then; deltas in `stream.log` go on from it.
    pub base: u64,
}

/// What opening a log needs to know so that it reads only the tail after this point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// [`schema::CHECKPOINT`].
    pub schema: String,
    /// Its number, from 1, rising by one.
    pub checkpoint_seq: u64,
    /// When it was made, milliseconds since the epoch.
    pub created_at_ms: i64,
    /// The head that it speaks of; the same as the manifest's when it was made (INV-004).
    pub head: Head,
    /// The end of the frames at that head.
    pub position: Position,
    /// The newest entry's id: the usual parent of the next.
    pub last_entry_id: Option<String>,
    /// The active leaf's id.
    pub active_leaf: Option<String>,
    /// Entries without children (INV-006).
    pub branch_heads: BranchHeads,
    /// The id tables, newest first.
    pub id_tables: Vec<IdTableRef>,
    /// Records up to this one are in the id tables.
    pub id_tables_end: u64,
    /// Messages that were streaming.
    pub open_streams: Vec<OpenStream>,
    /// The number of the newest step of any stream. Format 1 did not have it.
    #[serde(default)]
    pub last_step: u64,
    /// When the log was deleted, if it is.
    pub deleted_at_ms: Option<i64>,
    /// The fold's own snapshot at that head.
    pub fold: Option<Box<RawValue>>,
}

impl PartialEq for Checkpoint {
    fn eq(&self, other: &Self) -> bool {
        serde_json::to_string(self).ok() == serde_json::to_string(other).ok()
    }
}

impl Checkpoint {
    /// The file's bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        seal(self)
    }

    /// Reads the file's bytes.
    pub fn decode(bytes: &[u8], file: &str) -> std::result::Result<Self, Damage> {
        let damage = |detail: String| Damage::new(DamageKind::Checkpoint, file, 0, detail);
        let checkpoint: Self = unseal(bytes).map_err(|error| damage(error.to_string()))?;
        if checkpoint.schema != schema::CHECKPOINT {
            return Err(damage(format!("schema {:?} is not a checkpoint's", checkpoint.schema)));
        }
        Ok(checkpoint)
    }
}
