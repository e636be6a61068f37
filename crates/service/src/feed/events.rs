//! The payloads of each type of event.

use std::sync::Arc;

use bough_session::{
    AgentMessage, Canonical, CustomPayload, Entry, EntryId, JsonMap, SessionId, SessionMeta,
    SessionStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A session exists (created, forked, ensured, brought back).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedEvent {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Its status.
    pub status: SessionStatus,
    /// The session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// When it was created, milliseconds since epoch.
    pub created_at: i64,
}

impl CreatedEvent {
    pub(super) fn of(meta: &SessionMeta) -> Self {
        Self {
            session_id: meta.session_id.clone(),
            title: meta.title.clone(),
            description: meta.description.clone(),
            status: meta.status,
            forked_from: meta.forked_from.clone(),
            created_at: meta.created_at,
        }
    }
}

/// An entry was appended: exactly one of `message` and `custom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageAddedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The new entry.
    pub entry_id: EntryId,
    /// Its parent; `null` at the root.
    pub parent_id: Option<EntryId>,
    /// What it says, when it is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<AgentMessage>>,
    /// What it keeps, when it is a custom entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomPayload>,
    /// The writer's correlation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<JsonMap>,
    /// When it was appended, milliseconds since epoch.
    pub timestamp: i64,
}

impl MessageAddedEvent {
    pub(super) fn of(session_id: SessionId, entry: &Entry, timestamp: i64) -> Self {
        let (message, custom) = match entry.canonical() {
            Canonical::Message(message) => (Some(message), None),
            Canonical::Custom(custom) => (None, Some(custom)),
        };
        Self {
            session_id,
            entry_id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            message,
            custom,
            origin: entry.origin.clone(),
            timestamp,
        }
    }
}

/// A message's content changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageUpdatedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
    /// The whole message as it is at `revision`.
    pub message: Arc<AgentMessage>,
    /// Which revision this is; keep the highest.
    pub revision: u64,
    /// The writer's correlation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<JsonMap>,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// A session's status changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChangedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The status now.
    pub status: SessionStatus,
    /// The status before.
    pub previous_status: SessionStatus,
    /// Why, on `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// A session's title, description or metadata changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetaUpdatedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The title now.
    pub title: String,
    /// The description now.
    pub description: String,
    /// The metadata now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonMap>,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// A session was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedEvent {
    /// The session.
    pub session_id: SessionId,
    /// When it was deleted, milliseconds since epoch.
    pub timestamp: i64,
}

/// The active leaf moved without an append.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeafMovedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The active leaf now; `null` before the first entry.
    pub entry_id: Option<EntryId>,
    /// When it moved, milliseconds since epoch.
    pub timestamp: i64,
}

/// A session was archived, or taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchivedEvent {
    /// The session.
    pub session_id: SessionId,
    /// Whether it is archived now.
    pub archived: bool,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// A session's task was named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskChangedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The task's name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// An entry was named, or lost its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelChangedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The named entry.
    pub entry_id: EntryId,
    /// Its name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it changed, milliseconds since epoch.
    pub timestamp: i64,
}

/// An entry was hidden: no read shows it any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageRemovedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The hidden entry. Entries that follow it stay.
    pub entry_id: EntryId,
    /// When it was hidden, milliseconds since epoch.
    pub timestamp: i64,
}

/// Something happened in a loop of an agent, in the recorder's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopChangedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The loop.
    pub loop_id: String,
    /// The entry that holds the message which the event speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// The event.
    pub event: Value,
    /// When it happened, milliseconds since epoch.
    pub timestamp: i64,
}
