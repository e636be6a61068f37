use bough_session::{
    EntryId, JsonMap, SessionDetails, SessionId, SessionMeta, SessionStatus, TaskStatus,
};
use bough_store::ListOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::given;

/// Input of `session::create`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateRequest {
    /// Session title; `session::set-meta` may change it later. Empty when omitted.
    pub title: Option<String>,
    /// Session description. Empty when omitted.
    pub description: Option<String>,
    /// App-defined metadata, kept with the session: what lists, events and scopes filter by.
    pub metadata: Option<JsonMap>,
}

/// Output of `session::create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateResponse {
    /// The new session.
    pub session_id: SessionId,
    /// Its metadata record.
    pub meta: SessionMeta,
}

/// Input of `session::ensure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnsureRequest {
    /// The session id that should exist, chosen by the caller.
    pub session_id: SessionId,
    /// Title, applied only when the session is created.
    pub title: Option<String>,
    /// Description, applied only when the session is created.
    pub description: Option<String>,
    /// Metadata, applied only when the session is created.
    pub metadata: Option<JsonMap>,
}

/// Output of `session::ensure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnsureResponse {
    /// The session that was asked for.
    pub session_id: SessionId,
    /// Its metadata record.
    pub meta: SessionMeta,
    /// True when this call created the session.
    pub created: bool,
}

/// Input of `session::get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Output of `session::get`; `null` when the session is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetResponse {
    /// The session's metadata record.
    pub meta: SessionMeta,
}

/// Output of `session::describe`; `null` when the session is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeResponse {
    /// The session's metadata record.
    pub meta: SessionMeta,
    /// What else is known of it: tokens, cost, model and the like.
    pub details: SessionDetails,
    /// Where the active path ends, not counting labels: what `expected_leaf` is compared with. Absent in a session without
    /// entries, where `expected_leaf` is `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// Names what the session says of itself; `session::patch` takes it as `expected_version`. Entries do not change it.
    pub version: String,
}

/// Input of `session::patch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatchRequest {
    /// The session.
    pub session_id: SessionId,
    /// New title; omit to keep the current one. `null` removes it: the title is empty then.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New description; omit to keep the current one. `null` removes it: the description is empty then.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Members to merge into the metadata (RFC 7396): `null` removes a member, and in place of the object all of them.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<JsonMap>")]
    pub metadata: Option<Option<JsonMap>>,
    /// Change only if the session still has this version; otherwise `session/version_conflict`.
    pub expected_version: Option<String>,
}

/// Reads a text; `null` is the empty one.
fn null_is_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Some(Option::<String>::deserialize(from)?.unwrap_or_default()))
}

/// Output of `session::patch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatchResponse {
    /// The metadata record after the change.
    pub meta: SessionMeta,
    /// Its version after the change.
    pub version: String,
}

/// Whether a list shows archived sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArchivedFilter {
    /// Leave them out.
    #[default]
    Exclude,
    /// Show them among the others.
    Include,
    /// Show nothing else.
    Only,
}

/// Input of `session::list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListRequest {
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// Only sessions with this status.
    pub status: Option<SessionStatus>,
    /// Every given key must equal the session's own metadata.
    pub metadata: Option<JsonMap>,
    /// Sort order. Default `updated_desc`.
    pub order: Option<ListOrder>,
    /// Whether archived sessions are shown. Default `exclude`.
    pub archived: Option<ArchivedFilter>,
    /// Only sessions whose task has this name.
    pub task: Option<String>,
    /// Only sessions whose task has this status.
    pub task_status: Option<TaskStatus>,
    /// Only sessions whose id begins so.
    pub id_prefix: Option<String>,
    /// Only sessions with these words in title, description, task, first message, model or working directory. Searching looks into every
    /// message.
    pub query: Option<String>,
    /// Whether to say more of each session: `details`. Default false.
    pub include_details: Option<bool>,
}

/// Output of `session::list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListResponse {
    /// One page.
    pub sessions: Vec<SessionMeta>,
    /// What else is known of each, in the same order, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Vec<SessionDetails>>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::set-meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetMetaRequest {
    /// The session.
    pub session_id: SessionId,
    /// New title; omit to keep the current one.
    pub title: Option<String>,
    /// New description; omit to keep the current one.
    pub description: Option<String>,
    /// New metadata object. It replaces the stored one as a whole.
    pub metadata: Option<JsonMap>,
}

/// Output of `session::set-meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetMetaResponse {
    /// The metadata record after the change.
    pub meta: SessionMeta,
}

/// Input of `session::set-status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetStatusRequest {
    /// The session.
    pub session_id: SessionId,
    /// Target status.
    pub status: SessionStatus,
    /// Short cause, kept on `error` and cleared by any other status.
    pub reason: Option<String>,
}

/// Output of `session::set-status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetStatusResponse {
    /// The status now.
    pub status: SessionStatus,
    /// The status before the call.
    pub previous_status: SessionStatus,
}

/// Input of `session::set-task`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetTaskRequest {
    /// The session.
    pub session_id: SessionId,
    /// What the session works on; omit to clear it.
    pub task: Option<String>,
}

/// Output of `session::set-task`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetTaskResponse {
    /// The task's name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Input of `session::archive` and `session::unarchive`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Output of `session::archive` and `session::unarchive`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveResponse {
    /// Whether the session is archived now.
    pub archived: bool,
    /// Whether this call changed it.
    pub changed: bool,
}
