use bough_session::{EntryId, Format, JsonMap, Loss, OpaqueBody, RawJson, Role, SessionId};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::{InstanceType, Schema, SchemaObject, SingleOrVec};
use serde::{Deserialize, Serialize};

use super::given;

/// Input of `session::append-entry`: exactly one of `message` and `custom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendEntryRequest {
    /// The session.
    pub session_id: SessionId,
    /// Id chosen by the caller. Appending it again with the same content changes nothing; with another content it is refused.
    pub entry_id: Option<EntryId>,
    /// The parent, when it is not the active leaf; `null` begins a new tree.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EntryId>")]
    pub parent_id: Option<Option<EntryId>>,
    /// The format of the message. Default: what the session's metadata has as `message_format`, or else `bough`.
    pub format: Option<Format>,
    /// A message in that format. It is kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_or_null")]
    pub message: Option<RawJson>,
    /// A document of the application, kept byte for byte.
    pub custom: Option<OpaqueBody>,
    /// Opaque correlation, kept with the entry and shown on its events.
    pub origin: Option<JsonMap>,
    /// Whether the message streams: it grows by deltas until it is finished. For messages of the model only.
    pub stream: Option<bool>,
    /// Append only if the active leaf still is this entry (`""` for a session without entries). Labels do not count. `null` sets
    /// no condition.
    pub expected_leaf: Option<String>,
    /// Whether to create the session when there is none. Default false.
    pub create: Option<bool>,
}

/// One entry of a batch: exactly one of `message` and `custom`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEntry {
    /// Id chosen by the caller. An entry that is there already with the same content is passed over.
    pub entry_id: Option<EntryId>,
    /// The parent, when it is not the entry before it in the batch: any entry of the session, or an earlier one of the batch; `null`
    /// begins a new tree.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EntryId>")]
    pub parent_id: Option<Option<EntryId>>,
    /// The format of the message. Default: what the session's metadata has as `message_format`, or else `bough`.
    pub format: Option<Format>,
    /// A message in that format. It is kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_or_null")]
    pub message: Option<RawJson>,
    /// A document of the application, kept byte for byte.
    pub custom: Option<OpaqueBody>,
    /// Opaque correlation, kept with the entry and shown on its events.
    pub origin: Option<JsonMap>,
}

/// What a batch says about its session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaPatch {
    /// New title; omit to keep the current one.
    pub title: Option<String>,
    /// New description; omit to keep the current one.
    pub description: Option<String>,
    /// Members to merge into the metadata (RFC 7396): `null` removes a member.
    pub metadata: Option<JsonMap>,
}

/// Input of `session::append-entries`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendEntriesRequest {
    /// The session.
    pub session_id: SessionId,
    /// Appended in order, all of them or none, in one durable write.
    pub entries: Vec<NewEntry>,
    /// Changes of the session's title, description and metadata, in the same write.
    pub meta: Option<MetaPatch>,
    /// Append only if the active leaf still is this entry (`""` for a session without entries). Labels do not count. `null` sets
    /// no condition.
    pub expected_leaf: Option<String>,
    /// Whether to create the session when there is none. Default false.
    pub create: Option<bool>,
}

/// An entry that was appended, or was there already. Output of `session::append-entry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendedEntry {
    /// The entry's id.
    pub entry_id: EntryId,
    /// Its parent; `null` at a root.
    pub parent_id: Option<EntryId>,
    /// When it was appended, milliseconds since epoch.
    pub timestamp: i64,
    /// How often its content was changed since: 0, unless the entry was there already and has changed.
    pub revision: u64,
}

/// Output of `session::append-entries`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendEntriesResponse {
    /// The entries, in the order of the request.
    pub entries: Vec<AppendedEntry>,
}

/// The order of entries: as they were added, or the newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryOrder {
    /// As they were added.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

/// Input of `session::entries`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesRequest {
    /// The session.
    pub session_id: SessionId,
    /// These entries, in this order; those that do not exist are left out. Without it, all entries of every branch.
    pub ids: Option<Vec<EntryId>>,
    /// Only documents of this custom type.
    pub custom_type: Option<String>,
    /// Only entries whose id begins so.
    pub id_prefix: Option<String>,
    /// Default `oldest`. The newest of a custom type are found without reading other entries.
    pub order: Option<EntryOrder>,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// End the page before it is larger than this many bytes of entries; it has one entry at least. Default 8 MiB.
    pub max_bytes: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// The format that messages are given in. Default: the canonical message.
    pub format: Option<Format>,
}

/// Output of `session::entries`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesResponse {
    /// One page. It may be empty although more pages remain.
    pub entries: Vec<EntryItem>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry with its place in the tree: one of `message`, `messages` and `custom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryItem {
    /// The entry.
    pub entry_id: EntryId,
    /// Its parent; `null` at a root.
    pub parent_id: Option<EntryId>,
    /// When it was made, milliseconds since epoch.
    pub timestamp: i64,
    /// How often its content was changed since.
    pub revision: u64,
    /// On a path: the messages that follow the same message, itself among them, the oldest first. Labels and other bookkeeping
    /// between do not count. Absent when it is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<EntryId>,
    /// The writer's own correlation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<JsonMap>,
    /// What it says, when it is a message: the very bytes in the format that it came in, mapped in others. Of a message that
    /// still streams, `stop_reason` is absent until it finishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub message: Option<RawJson>,
    /// The same, where the format says it in several messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<RawJson>>,
    /// The document, when it is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<OpaqueBody>,
    /// What the format could not carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

/// Input of `session::entry`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
    /// The format that a message is given in. Default: the canonical message.
    pub format: Option<Format>,
}

/// Output of `session::entry`; `null` when the session or entry is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryResponse {
    /// The entry.
    pub entry: EntryItem,
}

/// Input of `session::hide-entries`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HideEntriesRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entries to hide, all or none. Those that are hidden already are passed over.
    pub entry_ids: Vec<EntryId>,
}

/// Output of `session::hide-entries`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HideEntriesResponse {
    /// How many entries were hidden now.
    pub hidden: usize,
}

/// Input of `session::path` and `session::path-tail`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRequest {
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
    /// The format that messages are given in. Default: the canonical message.
    pub format: Option<Format>,
}

/// Output of `session::path` (oldest first) and `session::path-tail` (newest first).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathResponse {
    /// One page.
    pub messages: Vec<EntryItem>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    of_types(InstanceType::Object.into())
}

fn object_or_null(_: &mut SchemaGenerator) -> Schema {
    of_types(vec![InstanceType::Object, InstanceType::Null].into())
}

fn of_types(types: SingleOrVec<InstanceType>) -> Schema {
    SchemaObject { instance_type: Some(types), ..Default::default() }.into()
}
