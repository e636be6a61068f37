use bough_session::{EntryId, JsonMap, SessionEntry, SessionId, SessionMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Input of the `session::store::*` functions that name a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionIdRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Input of the `session::store::*` functions that name an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryIdRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
}

/// Input of `session::store::list-metas`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListMetasRequest {}

/// Output of `session::store::list-metas`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListMetasResponse {
    /// Every session's metadata record.
    pub metas: Vec<SessionMeta>,
}

/// Output of `session::store::list-entries`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListEntriesResponse {
    /// Every entry of the session.
    pub entries: Vec<SessionEntry>,
}

/// Input of `session::store::put-meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PutMetaRequest {
    /// The metadata record to store.
    pub meta: SessionMeta,
}

/// Input of `session::store::put-entry`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PutEntryRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry to store.
    pub entry: SessionEntry,
}

/// Output of the `session::store::*` functions that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OkResponse {
    /// Always true; a failure is an error.
    pub ok: bool,
}

/// Output of `session::store::get-active-leaf`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveLeafResponse {
    /// `null` when the session has no active leaf.
    pub entry_id: Option<EntryId>,
}

/// An event as it is sent between instances. It has the session's metadata, so that each instance can filter by them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventEnvelope {
    /// One of the six public event types.
    pub trigger_type: String,
    /// The payload of that type.
    pub payload: Value,
    /// The session's metadata as of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_metadata: Option<JsonMap>,
}

/// Input of `session::store::publish-events`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishEventsRequest {
    /// Event envelopes of a bridged instance's change.
    pub events: Vec<EventEnvelope>,
}

/// Output of `session::store::publish-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishEventsResponse {
    /// How many well-formed envelopes were accepted.
    pub published: usize,
}
