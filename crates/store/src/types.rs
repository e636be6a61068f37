//! What a store speaks of: heads, positions, pages.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bough_record::{Head, Incarnation, PathStart, Position};
use bough_session::{
    Entry, EntryId, JsonMap, NewRecord, Record, SessionDetails, SessionId, SessionMeta,
    SessionState, SessionStatus, TaskStatus,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::StoreError;
use crate::changes::FeedEnd;

/// Records to append, and what the session is after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The records, in order.
    pub records: Vec<NewRecord>,
    /// The state after the last of them, where the caller has folded it. A store that keeps states takes it over; the fold is
    /// not done twice.
    pub state: Option<Arc<SessionState>>,
}

impl From<Vec<NewRecord>> for Batch {
    fn from(records: Vec<NewRecord>) -> Self {
        Self { records, state: None }
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
    pub state: SessionState,
}

/// An append that was accepted: it has its place, and no other can take it.
#[derive(Debug)]
pub struct Appended {
    /// The head after the batch; what the next append expects.
    pub head: Head,
    /// The feed's position after the batch.
    pub position: Position,
    /// Resolves when the batch is durable, or has failed. Only then may anyone be told.
    pub durable: Durable,
}

/// The wait until an accepted batch is durable. Dropping it does not take the batch back.
pub struct Durable(Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'static>>);

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
    /// The life that they are of; a cursor of another life does not fit.
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

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Its own record.
    pub meta: SessionMeta,
    /// What is known beyond that.
    pub details: SessionDetails,
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
    /// Its life.
    pub incarnation: Incarnation,
    /// When it was deleted, milliseconds since the epoch. `None`: it was being brought back, and that was cut short;
    /// [`Store::undelete`](crate::Store::undelete) finishes it, and its retention does not end.
    pub deleted_at: Option<i64>,
    /// Its state as of then.
    pub state: SessionState,
}

/// A place in the feed of all sessions. A store that cannot go on from an old place (it was rebuilt, or
/// another store stands here now) has another epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCursor {
    /// Which count.
    pub epoch: Incarnation,
    /// How far in it.
    pub number: u64,
}

/// A session that changed: a range of its records became durable, or it went away.
///
/// The changes of one life follow each other without a hole: each begins where the one before ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionChange {
    /// The number of the change.
    pub number: u64,
    /// The session.
    pub session_id: SessionId,
    /// Its life.
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

impl Durable {
    /// A wait for `future`.
    pub fn new(future: impl Future<Output = Result<(), StoreError>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    /// No wait: it is durable already.
    #[must_use]
    pub fn ready() -> Self {
        Self::new(std::future::ready(Ok(())))
    }
}

impl Future for Durable {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Durable")
    }
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
