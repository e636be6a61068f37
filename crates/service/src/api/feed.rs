use bough_session::{JsonMap, Role, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::feed::EventKind;

/// Input of `session::watch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRequest {
    /// Only this session; all of them when omitted.
    pub session_id: Option<SessionId>,
    /// Go on after this cursor: the `next` of an earlier answer. From now on when omitted; `"start"` is
    /// before the first event of a session, or before the oldest change of all sessions that is kept.
    pub after: Option<String>,
    /// Only these types; the six public ones when omitted.
    pub types: Option<Vec<EventKind>>,
    /// Only messages of these roles.
    pub roles: Option<Vec<Role>>,
    /// Only sessions with these metadata.
    pub metadata: Option<JsonMap>,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Wait this long for an event when there is none yet, milliseconds; at most 30,000.
    pub wait_ms: Option<u64>,
}

/// One event with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEvent {
    /// The type.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Where to go on after this event.
    pub cursor: String,
    /// The number of the record in its session.
    pub seq: u64,
    /// The number of the step of a stream; 0 when it is not about a stream.
    pub step: u64,
    /// The payload of the type.
    pub payload: Value,
}

/// Output of `session::watch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchResponse {
    /// The events, in order within each session.
    pub events: Vec<WatchEvent>,
    /// Where to go on.
    pub next: String,
    /// True when events between the given cursor and the first of these may be missing: read the sessions
    /// anew, then go on from `next`.
    pub gap: bool,
}
