use bough_session::{EntryId, SessionId, SessionMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::fork`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForkRequest {
    /// Source session.
    pub session_id: SessionId,
    /// The path from the root to this entry is copied, and is the new session's active path. Default: the active leaf.
    pub entry_id: Option<EntryId>,
    /// Title of the new session (default: the source's title).
    pub title: Option<String>,
    /// Id of the new session; one that is in use is refused. Default: a fresh one.
    pub new_session_id: Option<SessionId>,
    /// Whether to copy every branch; `entry_id` then says only where the active path ends. Default false.
    pub whole: Option<bool>,
    /// Whether the copies have the ids of their originals. Default false: fresh ids.
    pub keep_ids: Option<bool>,
}

/// Output of `session::fork`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForkResponse {
    /// The new session.
    pub session_id: SessionId,
    /// Its metadata record, with `forked_from` set.
    pub meta: SessionMeta,
}

/// Input of `session::set-active-leaf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetActiveLeafRequest {
    /// The session.
    pub session_id: SessionId,
    /// Where the active path should end. Later appends without `parent_id` go on from here.
    pub entry_id: EntryId,
    /// Move only if the active leaf still is this entry (`""` for none); otherwise `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
}

/// Output of `session::set-active-leaf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetActiveLeafResponse {
    /// The active leaf now.
    pub active_leaf: EntryId,
}

/// Input of `session::clear-active-leaf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClearActiveLeafRequest {
    /// The session. Later appends without `parent_id` begin a new tree beside what is there.
    pub session_id: SessionId,
    /// Move only if the active leaf still is this entry; otherwise `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
}

/// Output of `session::clear-active-leaf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClearActiveLeafResponse {
    /// Whether the active path had an end before.
    pub moved: bool,
}

/// Input of `session::set-label`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetLabelRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry to name.
    pub entry_id: EntryId,
    /// The name; omit to take it away.
    pub label: Option<String>,
}

/// Output of `session::set-label`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetLabelResponse {
    /// The entry that was named.
    pub entry_id: EntryId,
    /// Its label now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Input of `session::branches`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchesRequest {
    /// The session.
    pub session_id: SessionId,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
}

/// One branch, by the entry at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    /// The entry at the end of the branch.
    pub entry_id: EntryId,
    /// How many entries lead to it, itself included.
    pub depth: u64,
    /// When something last happened on it, milliseconds since epoch.
    pub last_activity: i64,
    /// Whether the active path ends here.
    pub active: bool,
    /// The label of the entry at its end, or of the one that the entry at its end labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Output of `session::branches`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchesResponse {
    /// The branches, the most recently active first.
    pub branches: Vec<Branch>,
    /// Where the active path ends; not at the end of a branch when the leaf was moved back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// For the next page; absent on the last. A branch that goes on meanwhile is at the front of a new list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
