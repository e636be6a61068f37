//! The protocol between an instance and the main that it stores through: the operations of a store, as JSON.
//!
//! `session::store::commit` carries the writes, each of them atomic; `session::store::read` the reads. An answer is
//! `ok` with the result, or `error`. Records have the form of the log, so unknown parts survive.

use bough_record::{Head, Incarnation, Position};
use bough_session::{EntryId, NewRecord, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::types::{ChangeCursor, EntryQuery, ListQuery, PathQuery, RecordQuery, UsageQuery};

/// The main's answer for a session that is still at the head that the caller knows.
pub(super) const UNCHANGED: &str = "unchanged";

/// Input of `session::store::commit`: one atomic write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum CommitRequest {
    /// Begin a session with these records.
    Create {
        /// The session.
        session_id: SessionId,
        /// Its first records.
        #[schemars(with = "Vec<Value>")]
        records: Vec<NewRecord>,
    },
    /// Append these records, if the log ends at `expected`.
    Append {
        /// The session.
        session_id: SessionId,
        /// Where its log must end.
        #[schemars(with = "Value")]
        expected: Head,
        /// The records.
        #[schemars(with = "Vec<Value>")]
        records: Vec<NewRecord>,
    },
    /// Replace the session whose log ends at `expected` by one with these records.
    Replace {
        /// The session.
        session_id: SessionId,
        /// Where its log must end.
        #[schemars(with = "Value")]
        expected: Head,
        /// The records of the new one.
        #[schemars(with = "Vec<Value>")]
        records: Vec<NewRecord>,
    },
    /// Add one step of a stream.
    Delta {
        /// The session.
        session_id: SessionId,
        /// The step, in its stored form.
        delta: String,
    },
    /// Delete a session.
    Delete {
        /// The session.
        session_id: SessionId,
        /// When, milliseconds since epoch.
        at_ms: i64,
    },
    /// Bring a deleted session back.
    Undelete {
        /// The session.
        session_id: SessionId,
        /// Which of its incarnations.
        #[schemars(with = "String")]
        incarnation: Incarnation,
        /// When, milliseconds since epoch.
        at_ms: i64,
    },
    /// Remove a deleted session for good.
    Purge {
        /// The session.
        session_id: SessionId,
        /// Which of its incarnations.
        #[schemars(with = "String")]
        incarnation: Incarnation,
        /// Only if it was deleted at this time, milliseconds since epoch.
        #[serde(default)]
        deleted_at: Option<i64>,
    },
}

/// Input of `session::store::read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ReadRequest {
    /// What is known of a session.
    State {
        /// The session.
        session_id: SessionId,
        /// Where the caller knows it already; the answer is then only `UNCHANGED`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Value")]
        known: Option<Head>,
    },
    /// One entry.
    Entry {
        /// The session.
        session_id: SessionId,
        /// Which, of which incarnation, at which revision.
        #[serde(flatten)]
        #[schemars(with = "serde_json::Map<String, Value>")]
        query: EntryQuery,
    },
    /// A part of a path.
    Path {
        /// The session.
        session_id: SessionId,
        /// Which part.
        #[schemars(with = "Value")]
        query: PathQuery,
    },
    /// Records after a position.
    Records {
        /// The session.
        session_id: SessionId,
        /// Which, of which incarnation.
        #[serde(flatten)]
        #[schemars(with = "serde_json::Map<String, Value>")]
        query: RecordQuery,
    },
    /// The ends of the branches.
    BranchHeads {
        /// The session.
        session_id: SessionId,
        /// Only those that are older than this entry.
        #[serde(default)]
        before: Option<EntryId>,
        /// How many at most.
        limit: usize,
    },
    /// Deleted sessions.
    Trash {
        /// Only incarnations of this session.
        session_id: Option<SessionId>,
    },
    /// A page of sessions.
    List {
        /// Which.
        #[schemars(with = "Value")]
        query: ListQuery,
    },
    /// Sums of what sessions used.
    Usage {
        /// Which.
        #[schemars(with = "Value")]
        query: UsageQuery,
    },
    /// The sessions that changed since a cursor.
    Changes {
        /// The cursor; without one, only the present cursor is asked for.
        #[serde(default)]
        #[schemars(with = "Value")]
        after: Option<ChangeCursor>,
        /// How many at most.
        limit: usize,
        /// Wait this long for one when there is none, milliseconds.
        wait_ms: Option<u64>,
    },
    /// Clear the latch of a session whose write failed.
    Reopen {
        /// The session.
        session_id: SessionId,
    },
}

/// Output of `session::store::commit` and `session::store::read`: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreAnswer {
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// Why nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

impl<T: Serialize> From<Result<T, StoreError>> for StoreAnswer {
    fn from(done: Result<T, StoreError>) -> Self {
        match done.and_then(|value| to_json(&value)) {
            Ok(value) => Self { ok: Some(value), error: None },
            Err(error) => Self { ok: None, error: Some(error.into()) },
        }
    }
}

/// A value as the protocol carries it.
pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::invalid(error.to_string()))
}

/// What a store answers to a write when it is durable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// The head after the write.
    pub head: Head,
    /// The feed's position after the write.
    pub position: Position,
}

/// Why a store did not do something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum WireError {
    /// There is no such session.
    NotFound {
        /// The session.
        session: SessionId,
    },
    /// There is no such entry.
    EntryNotFound {
        /// The entry.
        entry: EntryId,
    },
    /// The entry is not on the path.
    NotOnPath {
        /// The entry.
        entry: EntryId,
    },
    /// The session exists already.
    Exists {
        /// The session.
        session: SessionId,
    },
    /// Another writer appended meanwhile.
    Conflict {
        /// Where the log ends now.
        #[schemars(with = "Value")]
        current: Head,
    },
    /// Another writer changed the message meanwhile.
    RevisionConflict {
        /// The message.
        entry: EntryId,
        /// Its revision.
        current: u64,
    },
    /// Another process writes here.
    Locked {
        /// What it says of itself.
        holder: String,
    },
    /// The request makes no sense, or is too large.
    Invalid {
        /// What is wrong.
        what: String,
    },
    /// The cursor is not one of ours.
    InvalidCursor,
    /// An earlier write failed.
    Latched {
        /// What happened.
        reason: String,
    },
    /// The disk is full.
    Full,
    /// The store failed.
    Failed {
        /// What happened, without places on the disk.
        reason: String,
    },
}

impl From<StoreError> for WireError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { session } => Self::NotFound { session },
            StoreError::EntryNotFound { entry } => Self::EntryNotFound { entry },
            StoreError::NotOnPath { entry } => Self::NotOnPath { entry },
            StoreError::Exists { session } => Self::Exists { session },
            StoreError::Conflict { current } => Self::Conflict { current },
            StoreError::RevisionConflict { entry, current } => {
                Self::RevisionConflict { entry, current }
            }
            StoreError::Locked { holder } => Self::Locked { holder },
            StoreError::TooLarge(limit) => Self::Invalid { what: limit.to_string() },
            StoreError::Invalid { what } => Self::Invalid { what },
            StoreError::InvalidCursor => Self::InvalidCursor,
            StoreError::Latched { .. } => {
                Self::Latched { reason: "an earlier write of this session failed".to_owned() }
            }
            StoreError::Full => Self::Full,
            StoreError::Corrupt { what, .. } => Self::Failed { reason: what },
            StoreError::Io(error) => {
                Self::Failed { reason: format!("disk error: {}", error.kind()) }
            }
            other => Self::Failed { reason: other.to_string() },
        }
    }
}

impl From<WireError> for StoreError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::NotFound { session } => Self::NotFound { session },
            WireError::EntryNotFound { entry } => Self::EntryNotFound { entry },
            WireError::NotOnPath { entry } => Self::NotOnPath { entry },
            WireError::Exists { session } => Self::Exists { session },
            WireError::Conflict { current } => Self::Conflict { current },
            WireError::RevisionConflict { entry, current } => {
                Self::RevisionConflict { entry, current }
            }
            WireError::Locked { holder } => Self::Locked { holder },
            WireError::Invalid { what } => Self::Invalid { what },
            WireError::InvalidCursor => Self::InvalidCursor,
            WireError::Latched { reason } => Self::Latched { reason },
            WireError::Full => Self::Full,
            WireError::Failed { reason } => Self::Unavailable { reason },
        }
    }
}
