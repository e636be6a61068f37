//! What a store speaks of: heads, positions, pages.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use bough_session::{
    Entry, EntryId, Incarnation, JsonMap, Record, SessionDetails, SessionId, SessionMeta,
    SessionState, SessionStatus, TaskStatus, hex, unhex,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::StoreError;

/// Where a session's log ends: which life, how many records, and the hash over all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The life of the session.
    pub incarnation: Incarnation,
    /// The number of the last record; records count from 1.
    pub seq: u64,
    /// The hash over everything up to that record.
    pub chain: ChainHash,
}

/// A hash over a log up to some record. Shown as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

/// A place in a session's feed: a record, and how many steps of a stream have followed it.
///
/// A store that keeps the steps of a stream apart counts them in `revision` until they become a record;
/// a position inside such a run is followed by the records that took its place, which is no gap. All steps
/// become records in front of the next batch, one for each message, in the order of their last steps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// The number of a record; 0 is before the first.
    pub seq: u64,
    /// How many steps of a stream have followed that record.
    pub revision: u64,
}

/// What is durable of a session, in short.
#[derive(Clone, Debug, PartialEq)]
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

/// A record with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// Its place. A step of a stream that is not yet a record of its own has a `revision` above 0,
    /// and is a [`Record::Revision`].
    pub position: Position,
    /// When it was made, milliseconds since the epoch.
    pub at_ms: i64,
    /// What it is.
    pub record: Record,
    /// For a record that the store made of steps of a stream: the `revision` of the position of the last
    /// step that it stands for, so that a reader knows whether it was told them already. 0 for a record that
    /// the store made and that stands for no step: those before it are yet to become records.
    pub settles: Option<u64>,
}

/// Records in order, and where the feed ended when they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordPage {
    /// The life that they are of; a cursor of another life does not fit.
    pub incarnation: Incarnation,
    /// The records, oldest first.
    pub records: Vec<StoredRecord>,
    /// Where the feed ended. More is to be read while this is beyond the last record.
    pub end: Position,
}

/// Which part of a path to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathQuery {
    /// The entry that the path leads to; `None` is the active leaf.
    pub leaf: Option<EntryId>,
    /// Where on the path to start, and in which direction.
    pub start: PathStart,
    /// How many entries at most.
    pub limit: usize,
}

/// Where on a path to start, and in which direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStart {
    /// At the root, oldest first.
    Root,
    /// After an entry of the path, oldest first.
    After(EntryId),
    /// At the leaf, newest first.
    Leaf,
    /// Before an entry of the path, newest first.
    Before(EntryId),
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPage {
    /// The entries, in the direction that was asked for.
    pub entries: Vec<StoredEntry>,
    /// Whether the path goes on in that direction.
    pub more: bool,
    /// The leaf of the path; `None` in a session without entries.
    pub leaf: Option<EntryId>,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its own record.
    pub meta: SessionMeta,
    /// What is known beyond that.
    pub details: SessionDetails,
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// The sessions, in order.
    pub sessions: Vec<Listed>,
    /// Where the next page starts; absent at the end.
    pub next_cursor: Option<String>,
}

/// A deleted session that is still there.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Position {
    /// The position right after a record.
    #[must_use]
    pub const fn at(seq: u64) -> Self {
        Self { seq, revision: 0 }
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

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChainHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = unhex(&text).ok_or_else(|| serde::de::Error::custom("not a chain hash"))?;
        Ok(Self(bytes))
    }
}
