use bough_session::{JsonMap, SessionId, SessionMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Output of `session::delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteResponse {
    /// False when the session did not exist (no event fires).
    pub deleted: bool,
}

/// Input of `session::list-trash`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListTrashRequest {
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// Every given key must equal the session's own metadata.
    pub metadata: Option<JsonMap>,
}

/// One deleted session that can still be brought back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashItem {
    /// The incarnation that was deleted; `session::undelete` takes it if the id was deleted more than once.
    pub incarnation: String,
    /// The metadata record as it was when the session was deleted.
    pub meta: SessionMeta,
    /// The name that an entry of it gave it, where it has no title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of its first user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// When it was deleted, milliseconds since epoch.
    pub deleted_at: i64,
    /// When its retention ends and it may be purged, milliseconds since epoch; absent when it is kept until it is
    /// purged by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// Output of `session::list-trash`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListTrashResponse {
    /// One page, most recently deleted first.
    pub sessions: Vec<TrashItem>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::undelete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UndeleteRequest {
    /// The deleted session.
    pub session_id: SessionId,
    /// The incarnation; the most recently deleted one when omitted.
    pub incarnation: Option<String>,
}

/// Output of `session::undelete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UndeleteResponse {
    /// The session's metadata record, back as it was.
    pub meta: SessionMeta,
}

/// Input of `session::purge`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeRequest {
    /// The deleted session.
    pub session_id: SessionId,
    /// The incarnation; the most recently deleted one when omitted.
    pub incarnation: Option<String>,
}

/// Output of `session::purge`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeResponse {
    /// False when no such session is in the trash.
    pub purged: bool,
}
