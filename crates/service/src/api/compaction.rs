use bough_session::{EntryId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compaction::{Files, NothingToCompact};

/// Input of `session::plan-compaction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanCompactionRequest {
    /// The session.
    pub session_id: SessionId,
    /// How much of the newest conversation stays as it is, in tokens. Default: the configured number (20,000).
    pub keep_recent_tokens: Option<u64>,
    /// Whether to plan only if the context exceeds the window of its model, less the reserve. Default false.
    pub only_if_due: Option<bool>,
    /// Whether to add the conversation that would be summarised, as text for a model. Default false.
    pub include_conversation: Option<bool>,
}

/// Input of `session::compact`: exactly one of `summary` and `digest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactRequest {
    /// The session.
    pub session_id: SessionId,
    /// The summary of what is replaced. The files that were read and changed are added to it.
    pub summary: Option<String>,
    /// Whether the summary is written by fixed rules, which need no model. Default false.
    pub digest: Option<bool>,
    /// How much of the newest conversation stays as it is, in tokens. Default: the configured number (20,000).
    pub keep_recent_tokens: Option<u64>,
    /// Whether to compact only if the context exceeds the window of its model, less the reserve. Default false.
    pub only_if_due: Option<bool>,
    /// Compact only if the active leaf still is this entry (`""` for a session without entries). Labels do not count.
    pub expected_leaf: Option<String>,
}

/// What a compaction does, or would do. Output of `session::plan-compaction` and `session::compact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionResponse {
    /// The session.
    pub session_id: SessionId,
    /// Whether it was written.
    pub written: bool,
    /// Why there is nothing to compact. Then nothing is written, and what follows `tokens_after` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NothingToCompact>,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_to_do: Option<String>,
    /// The active leaf now: what `expected_leaf` takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// The window of the session's model in tokens; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Tokens of the context before, as the newest answer reported them; estimated after that answer, or without one. Absent
    /// if they were not needed to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Tokens of the context with this summary, estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// The summary. In a plan it is the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The entry that was appended. A recorded session has blocks over its `loops` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// The first entry that stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<EntryId>,
    /// How many entries the summary replaces.
    pub summarised_entries: u64,
    /// How many entries stay as they are.
    pub kept_entries: u64,
    /// Tokens of what stays, estimated.
    pub kept_tokens: u64,
    /// Whether the summary replaces the beginning of a turn whose end stays.
    pub split_turn: bool,
    /// The files that were read and changed in what the summary replaces.
    pub files: Files,
    /// In a recorded session: the loops with turns that the summary replaces, the oldest first.
    pub loops: Vec<String>,
    /// In a recorded session: how many turns the summary replaces.
    pub summarised_turns: u64,
    /// The conversation that the summary replaces, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

/// Input of `session::undo-compaction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoCompactionRequest {
    /// The session.
    pub session_id: SessionId,
    /// Undo only if the active leaf still is this entry. Labels do not count.
    pub expected_leaf: Option<String>,
}

/// Output of `session::undo-compaction`. Without `undone` and `loops`, no compaction was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoCompactionResponse {
    /// The session.
    pub session_id: SessionId,
    /// The entry of the compaction that is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<EntryId>,
    /// The entry that undoes it. Absent if nothing followed the compaction: then the active leaf moved back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// In a recorded session: the loops whose turns are all in the context again.
    pub loops: Vec<String>,
    /// Why nothing was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_to_do: Option<String>,
}
