use std::sync::Arc;

use bough_session::{AgentMessage, EntryId, JsonMap, SessionId, SessionMeta, UsageByModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The end of the branch to add up (default: the active leaf).
    pub from_entry_id: Option<EntryId>,
}

/// Output of `session::usage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageResponse {
    /// All branches together.
    pub session: UsageByModel,
    /// The path to the asked entry.
    pub branch: UsageByModel,
}

/// Input of `session::context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextRequest {
    /// The session.
    pub session_id: SessionId,
    /// The end of the path (default: the active leaf).
    pub from_entry_id: Option<EntryId>,
    /// Leave out the oldest messages until the rest fits into this many tokens (an estimate: characters / 4).
    pub max_tokens: Option<u64>,
}

/// One message of a context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextItem {
    /// The entry that the message comes from; for a summary, the compaction or branch summary entry.
    pub entry_id: EntryId,
    /// What a model would be sent.
    pub message: Arc<AgentMessage>,
}

/// Output of `session::context`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextResponse {
    /// The path with compactions and branch summaries applied, oldest first.
    pub messages: Vec<ContextItem>,
    /// How many tokens it is, estimated as characters / 4.
    pub estimated_tokens: u64,
    /// How many messages the budget left out. Where a long path is not read to its beginning, those that were not read
    /// are not counted.
    pub left_out: u64,
}

/// Input of `session::search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRequest {
    /// Text to look for in titles, descriptions, names, tasks, first messages, models and working directories, whatever its
    /// case.
    pub query: String,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// Every given key must equal the session's own metadata.
    pub metadata: Option<JsonMap>,
}

/// One session that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// The session.
    pub meta: SessionMeta,
    /// The beginning of its first user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Output of `session::search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResponse {
    /// What was found, the last changed first. Archived sessions are found too.
    pub hits: Vec<SearchHit>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
