use bough_session::{EntryId, SessionId};
use bough_store::bridge::protocol::ReadRequest;
use bough_store::{EntryQuery, PathQuery, Position, RecordQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Input of `session::raw`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawRequest {
    /// The session.
    pub session_id: SessionId,
    /// What to read of it.
    pub read: RawRead,
}

/// What can be read of one session as its store keeps it: the reads of the store protocol that are about one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum RawRead {
    /// What is known of it.
    State,
    /// One entry.
    Entry {
        /// The entry.
        entry_id: EntryId,
    },
    /// A part of a path.
    Path {
        /// Which part; its limit is clamped to the configured page size.
        #[schemars(with = "Value")]
        query: PathQuery,
    },
    /// Records after a position.
    Records {
        /// The position.
        #[schemars(with = "Value")]
        after: Position,
        /// How many at most; clamped to the configured page size.
        limit: usize,
    },
    /// The ends of the branches.
    BranchHeads {
        /// Only those that are older than this entry.
        before: Option<EntryId>,
        /// How many at most; clamped to the configured page size.
        limit: usize,
    },
}

impl RawRead {
    /// The same in the words of the store protocol.
    pub(crate) fn of(self, session_id: SessionId, page: impl Fn(usize) -> usize) -> ReadRequest {
        match self {
            Self::State => ReadRequest::State { session_id, known: None },
            Self::Entry { entry_id } => {
                ReadRequest::Entry { session_id, query: EntryQuery::newest(&entry_id) }
            }
            Self::Path { mut query } => {
                query.limit = page(query.limit);
                ReadRequest::Path { session_id, query }
            }
            Self::Records { after, limit } => {
                let query = RecordQuery::after(after, page(limit));
                ReadRequest::Records { session_id, query }
            }
            Self::BranchHeads { before, limit } => {
                ReadRequest::BranchHeads { session_id, before, limit: page(limit) }
            }
        }
    }
}
