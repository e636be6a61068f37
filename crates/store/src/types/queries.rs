//! What is asked of a store.

use bough_record::{Incarnation, PathStart, Position};
use bough_session::{EntryId, JsonMap, SessionStatus, TaskStatus};
use serde::{Deserialize, Serialize};

use super::StoredRecord;

/// Which entry to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryQuery {
    /// The entry.
    #[serde(rename = "entry_id")]
    pub id: EntryId,
    /// The incarnation of the session, which may be in the trash; `None` is the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// The revision; `None` is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

impl EntryQuery {
    /// An entry of the present session at its newest revision.
    #[must_use]
    pub fn newest(id: &EntryId) -> Self {
        Self { id: id.clone(), incarnation: None, revision: None }
    }
}

/// Which records to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordQuery {
    /// The incarnation of the session, which may be in the trash; `None` is the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// What the reader knows already.
    pub after: Position,
    /// How many at most; at least one.
    pub limit: usize,
    /// Which of them.
    #[serde(default)]
    pub filter: RecordFilter,
}

/// Which records of a session to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordFilter {
    /// All of them, and the steps of streams.
    #[default]
    All,
    /// Those up to this number that neither add nor change an entry: what they say is of the session itself.
    WithoutEntries {
        /// The number of the last record.
        up_to: u64,
    },
    /// Those with these numbers, in this order. One that does not exist is left out.
    Numbers(Vec<u64>),
}

impl RecordQuery {
    /// All records of the present session after a position.
    #[must_use]
    pub const fn after(after: Position, limit: usize) -> Self {
        Self { incarnation: None, after, limit, filter: RecordFilter::All }
    }

    /// The same of another incarnation.
    #[must_use]
    pub fn of(self, incarnation: Incarnation) -> Self {
        Self { incarnation: Some(incarnation), ..self }
    }

    /// The same up to a number, without records that add or change entries.
    #[must_use]
    pub fn without_entries(self, up_to: u64) -> Self {
        Self { filter: RecordFilter::WithoutEntries { up_to }, ..self }
    }

    /// The records of an incarnation with these numbers.
    #[must_use]
    pub fn numbers(incarnation: Incarnation, numbers: Vec<u64>) -> Self {
        let first = numbers.iter().min().map_or(0, |first| first.saturating_sub(1));
        Self {
            incarnation: Some(incarnation),
            after: Position::at(first),
            limit: numbers.len(),
            filter: RecordFilter::Numbers(numbers),
        }
    }

    /// Whether a record is one of those that are asked for.
    #[must_use]
    pub fn wants(&self, stored: &StoredRecord) -> bool {
        let is_entry = || stored.record.changed_entry().is_some();
        match &self.filter {
            RecordFilter::All => true,
            RecordFilter::WithoutEntries { up_to } => stored.seq <= *up_to && !is_entry(),
            RecordFilter::Numbers(numbers) => numbers.contains(&stored.seq),
        }
    }
}

/// Which part of a path to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathQuery {
    /// The entry that the path leads to; `None` is the active leaf.
    pub leaf: Option<EntryId>,
    /// Where on the path to start, and in which direction.
    pub start: PathStart<EntryId>,
    /// How many entries at most.
    pub limit: usize,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListQuery {
    /// In which order.
    pub order: ListOrder,
    /// Only with this status.
    pub status: Option<SessionStatus>,
    /// Only with this task status.
    pub task_status: Option<TaskStatus>,
    /// Only with a task of this name.
    pub task_name: Option<String>,
    /// Only archived ones, or only others; `None` is both.
    pub archived: Option<bool>,
    /// Only with an id that begins so.
    pub id_prefix: Option<String>,
    /// Only with these metadata: every key equals.
    pub metadata: JsonMap,
    /// Only with these metadata too: what the caller may see at all.
    pub scope: JsonMap,
    /// Only with this text in title, description, name, task, first message, model or working directory,
    /// whatever its case.
    pub text: Option<String>,
    /// How many at most.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// The order of a list.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// The first made first.
    CreatedAsc,
    /// The last made first.
    CreatedDesc,
    /// The last changed first.
    #[default]
    UpdatedDesc,
}

impl ListOrder {
    /// The order's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreatedAsc => "created_asc",
            Self::CreatedDesc => "created_desc",
            Self::UpdatedDesc => "updated_desc",
        }
    }
}
