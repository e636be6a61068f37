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
    /// Up to where it is indexed.
    pub place: Position,
    /// Whether it is known to have come further.
    pub is_stale: bool,
    /// The agent that its documents were indexed with.
    pub agent: Option<String>,
}

/// A change of an index: all of it, or nothing.
#[derive(Clone, Debug, Default)]
pub struct IndexBatch {
    /// Where the index must be in the feed of all sessions for this batch to fit.
    pub expected_cursor: Option<String>,
    /// Where it is afterwards.
    pub cursor: Option<String>,
    /// What changes.
    pub updates: Vec<SessionUpdate>,
}

/// What changes of one session.
#[derive(Clone, Debug)]
pub enum SessionUpdate {
    /// More of it is indexed.
    Put(Box<SessionPut>),
    /// It has come further, and will be indexed later.
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
    /// Up to where this incarnation must be indexed for the batch to fit. The beginning also means: forget what was indexed.
    pub from: Position,
    /// Up to where it is indexed afterwards.
    pub to: Position,
    /// Whether it is known to have come further.
    pub is_stale: bool,
    /// What filters compare, where it may have changed.
    pub facts: Option<SessionFacts>,
    /// New documents, and documents that take the place of those with the same number and revision.
    pub documents: Vec<Document>,
    /// Numbers of entries that were hidden: no document of them is kept, of no revision.
    pub hidden: Vec<u64>,
}

/// What filters compare of a session.
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
    /// What is looked for.
    pub query: &'a Query,
    /// Only sessions with these metadata: all of the pairs.
    pub metadata: Vec<(&'a str, &'a serde_json::Value)>,
    /// How many candidates.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<&'a str>,
    /// The time now; newer documents rank higher.
    pub now_ms: i64,
}

/// A document that may fit. An index never leaves one out that fits and was indexed; the caller compares it with what the
/// store says now.
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
    /// How well it fits; higher is better.
    pub score: f64,
    /// Where to go on after it; absent for the last of all.
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

/// The right to change an index, which one process has at a time. Dropping it gives it back.
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

/// A derived index over the text of sessions. Nothing true lives only in it: cleared, it is built again.
///
/// It is changed behind the writes, by whoever follows a store, in batches that move the documents and the place in the
/// feed together. A crash between two batches therefore costs a catch-up and nothing else.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Where the index is in the feed of all sessions; `None` before the first batch.
    async fn cursor(&self) -> Result<Option<String>, SearchError>;

    /// What the index knows of a session.
    async fn session(&self, session: &SessionId) -> Result<Option<IndexedSession>, SearchError>;

    /// Indexed sessions with an id after `after`, in order of their ids.
    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<IndexedSession>, SearchError>;

    /// Sessions that are known to have come further than they are indexed.
    async fn stale(&self, limit: usize) -> Result<Vec<IndexedSession>, SearchError>;

    /// Changes the index. `Conflict` when it is not where the batch expects it, and nothing is changed.
    async fn apply(&self, batch: IndexBatch) -> Result<(), SearchError>;

    /// Documents that may fit a query, the best first.
    async fn search(&self, ask: &SearchAsk<'_>) -> Result<CandidatePage, SearchError>;

    /// Forgets everything.
    async fn clear(&self) -> Result<(), SearchError>;

    /// Takes the right to change the index; `None` while another process has it.
    async fn lock(&self) -> Result<Option<IndexLock>, SearchError>;
}
