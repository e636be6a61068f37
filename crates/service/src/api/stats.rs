use bough_session::{EntryId, JsonMap, Role, SessionDetails, SessionId, SessionMeta, UsageTotals};
use bough_store::UsageGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EntryItem;

/// Input of `session::stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatsRequest {
    /// By what the sums are kept apart: `day`, `model` or `tool`, `project`, `agent`, `tenant`, `session`. Default: by nothing.
    pub by: Option<Vec<UsageGroup>>,
    /// The first day that counts, such as `2026-11-01`, `today` or `7d`; days are those of UTC.
    pub from: Option<String>,
    /// The last day that counts.
    pub to: Option<String>,
    /// Only sessions with these metadata: every given key must equal.
    pub metadata: Option<JsonMap>,
    /// How many sums at most. Default 1,000, at most 10,000.
    pub limit: Option<usize>,
}

/// One sum. What it is not kept apart by is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatsRow {
    /// The day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The directory that the sessions work in: their metadata `cwd` or `project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The agent that the sessions' metadata name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The metadata `tenant` of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Tokens and money.
    pub usage: UsageTotals,
    /// How long models took, milliseconds.
    pub model_time_ms: u64,
    /// Results of tools.
    pub tool_calls: u64,
    /// Results of tools that say that they failed.
    pub tool_errors: u64,
    /// How long tools took, milliseconds.
    pub tool_time_ms: u64,
}

/// Output of `session::stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatsResponse {
    /// The sums: the oldest day first where days are kept apart, then the largest cost.
    pub rows: Vec<StatsRow>,
    /// Whether there are more than `limit`.
    pub more: bool,
    /// How many sessions there are with these metadata, whatever they used.
    pub sessions: u64,
}

/// One session of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionItem {
    /// The session's metadata record.
    #[serde(flatten)]
    pub meta: SessionMeta,
    /// What else is known of it, when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<SessionDetails>,
}

/// Output of `session::sessions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsResponse {
    /// One page.
    pub sessions: Vec<SessionItem>,
    /// Present when more pages remain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::tree`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeRequest {
    /// The session.
    pub session_id: SessionId,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// The entry.
    pub entry_id: EntryId,
    /// Its parent; `null` at a root. A parent comes before its children.
    pub parent_id: Option<EntryId>,
    /// When it was made, milliseconds since epoch.
    pub timestamp: i64,
    /// Who speaks, when it is a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The type, when it is a document or bookkeeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// The beginning of what it says.
    pub preview: String,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Output of `session::tree`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeResponse {
    /// One page, in the order in which the entries were added. It may be empty although more pages remain.
    pub nodes: Vec<TreeNode>,
    /// Where the active path ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// Present when more pages remain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::compare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRequest {
    /// The session.
    pub session_id: SessionId,
    /// The end of one branch.
    pub left: EntryId,
    /// The end of the other.
    pub right: EntryId,
    /// How many entries of each side at most, from where they part. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchSide {
    /// Its first entries that the other side does not have, the oldest first.
    pub entries: Vec<EntryItem>,
    /// How many entries the other side does not have.
    pub count: u64,
}

/// Output of `session::compare`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareResponse {
    /// The last entry that both paths have; absent when they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_entry_id: Option<EntryId>,
    /// What only the left path has.
    pub left: BranchSide,
    /// What only the right path has.
    pub right: BranchSide,
}
