//! What a store speaks of: writes, queries, and the answers to them.

mod queries;
mod usage;
mod writes;

pub use queries::{EntryQuery, ListOrder, ListQuery, PathQuery, RecordFilter, RecordQuery};
pub use usage::{UsageGroup, UsageName, UsageQuery, UsageReport, UsageSum};
pub use writes::{Appended, Batch, Durable, Write};
pub(crate) use writes::{check_batch, check_first, check_stored};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bough_record::{Head, Incarnation, Position};
use bough_session::{
    Entry, EntryId, NewRecord, Record, SessionDetails, SessionId, SessionMeta, SessionState,
    UsageByDay,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::StoreError;
use crate::changes::FeedEnd;

/// The answer to a caller that may know the session already.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// There is no such session, or it was deleted.
    Absent,
    /// The last accepted write left it where the caller knows it.
    Unchanged,
    /// What is durable of it.
    Changed(Box<Snapshot>),
}

impl Loaded {
    /// A session that the caller does not know in its newest form.
    #[must_use]
    pub fn found(snapshot: Option<Snapshot>) -> Self {
        snapshot.map_or(Self::Absent, |snapshot| Self::Changed(Box::new(snapshot)))
    }

    /// The same in a store where everything that is accepted is durable.
    #[must_use]
    pub fn unless(known: Option<&Head>, snapshot: Option<Snapshot>) -> Self {
        match (known, snapshot) {
            (Some(known), Some(snapshot)) if snapshot.head == *known => Self::Unchanged,
            (_, snapshot) => Self::found(snapshot),
        }
    }
}

/// What is durable of a session, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where its log ends.
    pub head: Head,
    /// Where its feed ends.
    pub position: Position,
    /// The fold over its log.
    pub state: Arc<SessionState>,
}

/// An entry as it is now, and the record that added it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// The number of the record that added it.
    pub seq: u64,
    /// The entry at its newest durable revision.
    pub entry: Entry,
}

/// A record, or a step of a stream, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// The record's number; for a step, the number of the record that it follows.
    pub seq: u64,
    /// What it has to do with the steps of a stream.
    pub steps: Steps,
    /// When it was made, milliseconds since the epoch.
    pub at_ms: i64,
    /// What it is. A step is a [`Record::Revision`].
    pub record: Record,
}

/// What a stored record has to do with the steps of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steps {
    /// Nothing: it is an ordinary record.
    None,
    /// It is a record that took the place of steps, up to this one.
    UpTo(u64),
    /// It is a step of this number, which is not part of a record yet.
    One(u64),
}

/// A stored record as it travels: the parts of a [`StoredRecord`] with the record in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredRecordForm<R> {
    seq: u64,
    steps: Steps,
    record: R,
}

impl Serialize for StoredRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = bough_session::codec::encode(&self.record, self.at_ms);
        StoredRecordForm { seq: self.seq, steps: self.steps, record }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = StoredRecordForm::<NewRecord>::deserialize(deserializer)?;
        let NewRecord { at_ms, record } = form.record;
        Ok(Self { seq: form.seq, steps: form.steps, at_ms, record })
    }
}

/// A stored entry as it travels.
#[derive(Serialize, Deserialize)]
struct StoredEntryForm<R> {
    seq: u64,
    record: R,
}

impl Serialize for StoredEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = Record::Entry(self.entry.clone());
        let record = bough_session::codec::encode(&record, self.entry.timestamp);
        StoredEntryForm { seq: self.seq, record }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = StoredEntryForm::<NewRecord>::deserialize(deserializer)?;
        let entry = form.record.record.as_entry().cloned();
        let entry = entry.ok_or_else(|| serde::de::Error::custom("the record is not an entry"))?;
        Ok(Self { seq: form.seq, entry })
    }
}

impl Steps {
    /// What a reader learns with a record, or a step, of this kind and number.
    #[must_use]
    pub const fn position(self, seq: u64) -> Position {
        match self {
            Self::None => Position::at(seq),
            Self::UpTo(step) | Self::One(step) => Position::new(seq, step),
        }
    }

    /// Whether a reader at a position knows a record, or a step, of this kind and number.
    #[must_use]
    pub const fn is_known_at(self, seq: u64, position: Position) -> bool {
        match self {
            Self::None => seq <= position.seq,
            Self::UpTo(step) => seq <= position.seq || step <= position.step,
            Self::One(step) => step <= position.step,
        }
    }
}

impl StoredRecord {
    /// What a reader learns with it.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.steps.position(self.seq)
    }

    /// Whether it is a step of a stream, not a record.
    #[must_use]
    pub const fn is_step(&self) -> bool {
        matches!(self.steps, Steps::One(_))
    }

    /// Whether a reader at a position knows all that this says.
    #[must_use]
    pub const fn is_known_at(&self, position: Position) -> bool {
        self.steps.is_known_at(self.seq, position)
    }
}

/// Records in order, and where the feed ended when they were read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordPage {
    /// The incarnation that they are of; a cursor of another one does not fit.
    pub incarnation: Incarnation,
    /// The records, oldest first.
    pub records: Vec<StoredRecord>,
    /// What a reader knows that has read everything.
    pub end: Position,
    /// Whether there is more after these.
    pub more: bool,
}

impl SessionChange {
    /// Where the session's feed ends with this change.
    #[must_use]
    pub const fn end(&self) -> FeedEnd {
        let Self { incarnation, position, deleted, .. } = *self;
        FeedEnd { incarnation, position, deleted }
    }
}

impl RecordPage {
    /// What a reader knows that was at `before` and has read this page.
    #[must_use]
    pub fn position_after(&self, before: Position) -> Position {
        let read = self.records.iter().fold(before, |known, stored| known.join(stored.position()));
        if self.more { read } else { read.join(self.end) }
    }
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathPage {
    /// The entries, in the direction that was asked for.
    pub entries: Vec<StoredEntry>,
    /// Whether the path goes on in that direction.
    pub more: bool,
    /// The leaf of the path; `None` in a session without entries.
    pub leaf: Option<EntryId>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Its own record.
    pub meta: SessionMeta,
    /// What is known beyond that.
    pub details: SessionDetails,
    /// What it used day by day. It is not sent: sums of it are asked for.
    #[serde(skip)]
    pub by_day: Arc<UsageByDay>,
}

impl Listed {
    /// What a list shows of a session.
    #[must_use]
    pub fn of(state: &SessionState) -> Self {
        Self { meta: state.meta.clone(), details: state.details(), by_day: state.usage_by_day() }
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListPage {
    /// The sessions, in order.
    pub sessions: Vec<Listed>,
    /// Where the next page starts; absent at the end.
    pub next_cursor: Option<String>,
}

/// A deleted session that is still there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trashed {
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// When it was deleted, milliseconds since the epoch. `None`: it was being brought back, and that was cut short;
    /// [`Store::undelete`](crate::Store::undelete) finishes it, and its retention does not end.
    pub deleted_at: Option<i64>,
    /// Its state as of then.
    pub state: SessionState,
}

/// A position in the feed of all sessions. A store that cannot continue from an old position (it was rebuilt, or
/// replaced by another store) has another epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCursor {
    /// Which count.
    pub epoch: Incarnation,
    /// How far in it.
    pub number: u64,
}

/// A session that changed: a range of its records became durable, or it went away.
///
/// The changes of one incarnation follow each other without a hole: each begins where the one before ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionChange {
    /// The number of the change.
    pub number: u64,
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Where its feed was before the change.
    pub after: Position,
    /// Where its feed is after it.
    pub position: Position,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Sessions that changed since a cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePage {
    /// The changes, oldest first.
    pub changes: Vec<SessionChange>,
    /// Where to go on.
    pub next: ChangeCursor,
    /// Whether changes between the given cursor and the first of these may be missing: the reader must
    /// look at all sessions anew.
    pub gap: bool,
}

impl ChangePage {
    /// No changes, and where to go on from.
    #[must_use]
    pub const fn none_before(next: ChangeCursor) -> Self {
        Self { changes: Vec::new(), next, gap: false }
    }
}

/// A position in the feed of one incarnation of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncarnationPosition {
    pub(crate) incarnation: Incarnation,
    pub(crate) position: Position,
}

impl IncarnationPosition {
    pub(crate) const fn new(incarnation: Incarnation, position: Position) -> Self {
        Self { incarnation, position }
    }
}

/// What a store can do beyond the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its name in configuration and health.
    pub name: &'static str,
    /// What was acknowledged is there after a restart.
    pub survives_restart: bool,
    /// Several processes may use it at once.
    pub other_processes: bool,
    /// A change cursor still fits after a restart.
    pub keeps_change_cursor: bool,
    /// Records of kinds that this version does not know are kept byte for byte.
    pub keeps_unknown_records: bool,
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.number)
    }
}

impl FromStr for ChangeCursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let (epoch, number) = text.split_once('.').ok_or(StoreError::InvalidCursor)?;
        Ok(Self {
            epoch: epoch.parse().map_err(|_| StoreError::InvalidCursor)?,
            number: number.parse().map_err(|_| StoreError::InvalidCursor)?,
        })
    }
}
