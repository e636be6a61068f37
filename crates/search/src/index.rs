//! The trait that every index implements.

use async_trait::async_trait;
use bough_record::{Incarnation, Position};
use bough_session::{JsonMap, SessionId};

use crate::SearchError;
use crate::document::Document;
use crate::query::Query;

/// A session that an index knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSession {
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The position up to which it is indexed.
    pub place: Position,
    /// Whether the session is known to have newer records than the index.
    pub is_stale: bool,
    /// The agent that its documents were indexed with.
    pub agent: Option<String>,
}

/// How much an index has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Sessions that are known to have newer records than the index.
    pub stale_sessions: u64,
    /// Documents that were added since the index was made; documents that were removed again count too.
    pub documents: u64,
}

/// A change of an index: all of it, or nothing.
#[derive(Clone, Debug, Default)]
pub struct IndexBatch {
    /// The cursor in the feed of all sessions that the index must have for this batch to apply.
    pub expected_cursor: Option<String>,
    /// The cursor afterwards.
    pub cursor: Option<String>,
    /// The changes of sessions.
    pub updates: Vec<SessionUpdate>,
    /// Whether a caller waits for it. If not, it is applied where it takes nothing from others.
    pub is_waited_for: bool,
}

/// The change of one session.
#[derive(Clone, Debug)]
pub enum SessionUpdate {
    /// More of it is indexed.
    Put(Box<SessionPut>),
    /// The session has newer records, and will be indexed later.
    Stale {
        /// The session.
        session_id: SessionId,
    },
    /// It is gone.
    Remove {
        /// The session.
        session_id: SessionId,
        /// Its incarnation; `None` is whichever is indexed.
        incarnation: Option<Incarnation>,
    },
}

/// More of a session.
#[derive(Clone, Debug)]
pub struct SessionPut {
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation. Another incarnation that was indexed is removed.
    pub incarnation: Incarnation,
    /// The position up to which this incarnation must be indexed for the batch to apply. The first position also
    /// removes everything indexed before.
    pub from: Position,
    /// The position up to which it is indexed afterwards.
    pub to: Position,
    /// Whether the session is known to have newer records than this batch.
    pub is_stale: bool,
    /// What filters compare, if it may have changed.
    pub facts: Option<SessionFacts>,
    /// New documents, and documents that replace those with the same number and revision.
    pub documents: Vec<Document>,
    /// Numbers of entries that were hidden. No document of these is kept, whatever its revision.
    pub hidden: Vec<u64>,
}

/// The facts of a session that filters compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// Its metadata.
    pub metadata: JsonMap,
    /// The directory that it works in.
    pub project: Option<String>,
    /// The agent that its documents are indexed with.
    pub agent: Option<String>,
}

/// A search.
#[derive(Clone, Debug)]
pub struct SearchAsk<'a> {
    /// The query.
    pub query: &'a Query,
    /// Only sessions with these metadata: all of the pairs.
    pub metadata: Vec<(&'a str, &'a serde_json::Value)>,
    /// The number of candidates.
    pub limit: usize,
    /// The cursor of the previous page.
    pub cursor: Option<&'a str>,
    /// The time now; newer documents rank higher.
    pub now_ms: i64,
}

/// A document that may match. An index never leaves out an indexed document that matches; the caller compares it with
/// the entry that the store has now.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The number of the record that added the entry; 0 is the session itself.
    pub seq: u64,
    /// The revision, for a document of an old one.
    pub old_revision: Option<u64>,
    /// How well it matches; higher is better.
    pub score: f64,
    /// The cursor that continues after it; `None` for the last candidate.
    pub cursor: Option<String>,
}

/// Candidates, the best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidatePage {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Where the next page starts; absent at the end.
    pub next_cursor: Option<String>,
}

/// The exclusive right to change an index, held by one process at a time. Dropping it releases the
/// right.
pub struct IndexLock(
    #[expect(dead_code, reason = "held until it is dropped")] Box<dyn Send + Sync>,
);

impl IndexLock {
    /// A right that lasts as long as `held`.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl std::fmt::Debug for IndexLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IndexLock")
    }
}

/// A derived index over the text of sessions. It can be cleared and built again from the store.
///
/// It is updated after the writes, by a task that follows the store's feed, in batches that change the documents and
/// the cursor together. So a crash between two batches costs a catch-up and nothing else.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// The cursor of the index in the feed of all sessions; `None` before the first batch.
    async fn cursor(&self) -> Result<Option<String>, SearchError>;

    /// The state of a session in the index.
    async fn session(&self, session: &SessionId) -> Result<Option<IndexedSession>, SearchError>;

    /// Indexed sessions with an id after `after`, in order of their ids.
    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<IndexedSession>, SearchError>;

    /// Sessions that are known to have newer records than the index.
    async fn stale(&self, limit: usize) -> Result<Vec<IndexedSession>, SearchError>;

    /// How much the index has.
    async fn counts(&self) -> Result<IndexCounts, SearchError>;

    /// Applies a batch. Fails with `Conflict`, and changes nothing, if the cursor or a session is not where the batch
    /// expects it.
    async fn apply(&self, batch: IndexBatch) -> Result<(), SearchError>;

    /// Documents that may match a query, the best first.
    async fn search(&self, ask: &SearchAsk<'_>) -> Result<CandidatePage, SearchError>;

    /// Forgets everything, however damaged the index is.
    async fn clear(&self) -> Result<(), SearchError>;

    /// Takes the right to change the index; `None` while another process has it.
    async fn lock(&self) -> Result<Option<IndexLock>, SearchError>;
}
