use bough_session::{EntryId, JsonMap, Role, SessionDetails, SessionMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRequest {
    /// What to look for: words, "a phrase", -not, and filters: `role:user`, `tool:bash`, `model:opus`, `agent:NAME`,
    /// `is:thinking` (or text, call, result, error, summary, label, title, about, data, old), `after:2026-10-01`, `before:3d`,
    /// `session:ID`, `project:/dir`.
    pub query: String,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// Every given key must equal the session's own metadata.
    pub metadata: Option<JsonMap>,
    /// Whether to list sessions: one hit for each, the best that it has on the page, with the session's `details`. Default false.
    pub by_session: Option<bool>,
}

/// One entry, or one session, that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// The session.
    pub meta: SessionMeta,
    /// What else is known of the session, when sessions were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<SessionDetails>,
    /// The beginning of its first user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The entry; absent when the session itself was found, by its title or what else it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// The revision, when an old one was asked for and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Who speaks in the entry, if it is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When the entry was made, milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The text that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<SearchSnippet>,
    /// Whether the entry is on the active path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_active_path: Option<bool>,
    /// How well it fits; higher is better, and only hits of one search compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A line of text with the places that were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchSnippet {
    /// What the text is: text, thinking, call, result, error, summary, label, title, about or data.
    pub kind: String,
    /// The text.
    pub text: String,
    /// Start and end of each place, in characters (Unicode code points) of the text.
    pub highlights: Vec<(usize, usize)>,
}

/// Output of `session::search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResponse {
    /// What was found, the best first; newer ones and titles rank higher. Archived sessions are found too.
    pub hits: Vec<SearchHit>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How far the index is; absent when there is none, and only titles and the like were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexStatus>,
}

/// How far a search index is behind what is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexStatus {
    /// Whether everything that was stored when the search began is in it.
    pub is_complete: bool,
    /// Changes of sessions that it has not seen. Always 0 for a caller who does not see every session.
    pub behind_changes: u64,
    /// Sessions of which it knows that they have come further. Always 0 for a caller who does not see every session.
    pub behind_sessions: u64,
    /// Documents added since it was built, which grow while it catches up. Always 0 for a caller who does not see every session.
    #[serde(default)]
    pub indexed_documents: u64,
    /// Whether another process updates it, so that this one can only wait.
    #[serde(default)]
    pub is_elsewhere: bool,
}

/// Input of `session::search-status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchStatusRequest {}

/// Input of `session::reindex`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReindexRequest {}
