use std::sync::Arc;

use bough_session::{
    AgentMessage, ContentBlock, ContentOrText, CustomPayload, EntryId, JsonMap, RawJson, Role,
    SessionEntry, SessionId,
};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::{Schema, SchemaObject, SubschemaValidation};
use serde::{Deserialize, Serialize};

/// Input of `session::append`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendRequest {
    /// The session.
    pub session_id: SessionId,
    /// The message to append. Exactly one of `message` and `custom` must be given.
    pub message: Option<Arc<AgentMessage>>,
    /// A bookkeeping entry to append instead of a message. It is not counted in `message_count` and is shown by
    /// `session::messages` only when `include_custom` is set.
    pub custom: Option<CustomPayload>,
    /// The parent, when it is not the active leaf. Appending always moves the leaf to the new entry.
    pub parent_id: Option<EntryId>,
    /// Id chosen by the caller: appending an id that exists already changes nothing and answers with the
    /// entry that is there.
    pub entry_id: Option<EntryId>,
    /// Opaque correlation (for example `{ "turn_id": ... }`), kept with the entry and shown on its events.
    pub origin: Option<JsonMap>,
    /// Whether the message streams: it grows by deltas until it is finished. For messages of the model only.
    pub stream: Option<bool>,
    /// Append only if the active leaf still is this entry (`""` for a session without entries); otherwise
    /// `session/leaf_conflict`. Changes of status, metadata or a streaming message do not count.
    pub expected_leaf: Option<String>,
}

/// Output of `session::append`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendResponse {
    /// The entry's id.
    pub entry_id: EntryId,
    /// Its parent; `null` at the root.
    pub parent_id: Option<EntryId>,
    /// When it was appended, milliseconds since epoch.
    pub timestamp: i64,
}

/// Input of `session::append-many`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendManyRequest {
    /// The session.
    pub session_id: SessionId,
    /// Appended in order, each chained to the one before. All of them or none. Not idempotent: where a call may be
    /// repeated, use `session::append` with `entry_id`.
    pub messages: Vec<Arc<AgentMessage>>,
    /// Parent of the first one, when it is not the active leaf.
    pub parent_id: Option<EntryId>,
    /// Opaque correlation, kept with every entry and shown on its events.
    pub origin: Option<JsonMap>,
    /// Append only if the active leaf still is this entry (`""` for a session without entries); otherwise
    /// `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
}

/// Output of `session::append-many`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendManyResponse {
    /// The new entries' ids, in order.
    pub entry_ids: Vec<EntryId>,
    /// The last of them: the active leaf now.
    pub last_entry_id: EntryId,
}

/// Input of `session::update-message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The message's entry.
    pub entry_id: EntryId,
    /// The whole new content: blocks, or one text. Only what differs from the old is written.
    #[serde(deserialize_with = "content_or_text")]
    #[schemars(schema_with = "blocks_or_text")]
    pub content: Vec<ContentBlock>,
    /// New `details`, for `function_result` and `custom` messages only.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "non_null")]
    #[schemars(schema_with = "anything")]
    pub details: Option<RawJson>,
    /// Write only if this still is the entry's revision. Otherwise nothing is written, and the answer says the revision
    /// that is there: 409 `session/revision_conflict` over HTTP, `{ updated: false }` on the bus.
    pub expected_revision: Option<u64>,
    /// Opaque correlation, shown on the event.
    pub origin: Option<JsonMap>,
}

/// Output of `session::update-message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateMessageResponse {
    /// False when `expected_revision` did not match; over HTTP that is 409 and no such answer.
    pub updated: bool,
    /// The entry's revision after this call.
    pub revision: u64,
}

impl UpdateMessageResponse {
    /// The revision that is there, when it is not the one that was expected.
    pub(crate) fn stale(&self) -> Option<u64> {
        (!self.updated).then_some(self.revision)
    }
}

/// What kind of block a delta begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaBlock {
    /// What the model says.
    #[default]
    Text,
    /// What the model thinks.
    Thinking,
    /// The arguments of a function that the model calls, as it writes them.
    ToolArguments,
}

impl DeltaBlock {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolArguments => "tool_arguments",
        }
    }
}

/// Input of `session::append-delta`: add text to a message that is still being written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendDeltaRequest {
    /// The session.
    pub session_id: SessionId,
    /// The message's entry.
    pub entry_id: EntryId,
    /// Which block, counted from 0. The number of blocks that there are begins a new one.
    pub block: u32,
    /// What to add at the block's end.
    pub text: String,
    /// The kind of the block, when this begins it; otherwise it may be left out. Default `text`.
    #[serde(alias = "block_type")]
    pub kind: Option<DeltaBlock>,
    /// The id of the call, when this begins a block of kind `tool_arguments`.
    pub function_call_id: Option<String>,
    /// The function that is called, when this begins a block of kind `tool_arguments`.
    pub function_id: Option<String>,
    /// Write only if this still is the entry's revision. Otherwise nothing is written, and the answer says the revision
    /// that is there: 409 `session/revision_conflict` over HTTP, `{ updated: false }` on the bus.
    pub expected_revision: Option<u64>,
    /// Opaque correlation, shown on the event.
    pub origin: Option<JsonMap>,
}

/// Input of `session::messages`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesRequest {
    /// The session.
    pub session_id: SessionId,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// Only messages with these roles; leaves out custom entries too.
    pub roles: Option<Vec<Role>>,
    /// Show the path that ends at this entry instead of the active leaf.
    pub from_entry_id: Option<EntryId>,
    /// Show custom entries at their place on the path. Default false.
    pub include_custom: Option<bool>,
}

/// One item of a path: exactly one of `message` and `custom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageItem {
    /// The entry.
    pub entry_id: EntryId,
    /// What it says, when it is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<AgentMessage>>,
    /// What it keeps, when it is a custom entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomPayload>,
}

/// Output of `session::messages` (oldest first) and `session::messages-tail` (newest first).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesResponse {
    /// One page.
    pub messages: Vec<MessageItem>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Input of `session::get-message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
}

/// Output of `session::get-message`; `null` when the session or entry is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetMessageResponse {
    /// The entry with its place in the tree and its revision.
    pub entry: SessionEntry,
}

fn non_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<RawJson>, D::Error> {
    Ok(Some(RawJson::deserialize(from)?).filter(|value| !value.is_null()))
}

fn content_or_text<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<ContentBlock>, D::Error> {
    ContentOrText::deserialize(from).map(|content| content.0)
}

fn blocks_or_text(generator: &mut SchemaGenerator) -> Schema {
    let choices =
        vec![generator.subschema_for::<Vec<ContentBlock>>(), generator.subschema_for::<String>()];
    let subschemas = SubschemaValidation { any_of: Some(choices), ..Default::default() };
    SchemaObject { subschemas: Some(Box::new(subschemas)), ..Default::default() }.into()
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::Object(SchemaObject::default())
}
