//! Entries: the nodes of a session's tree.

use std::sync::Arc;

use bough_record::BorrowedText;
use schemars::JsonSchema;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::formats::{self, ForeignBody};
use crate::json::json_bytes;
use crate::members::{Draft, UnknownMembers, read_draft};
use crate::{AgentMessage, Bookkeeping, ContentBlock, EntryId, JsonMap, RawJson, Role};

/// A node of the tree as it is stored: id, parent, time, and a body that may be another system's.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Names the entry within its session.
    pub id: EntryId,
    /// The entry that this one follows; `None` at a root.
    pub parent_id: Option<EntryId>,
    /// When the entry was made, milliseconds since the epoch. Copies keep it.
    pub timestamp: i64,
    /// How often the content was changed since.
    pub revision: u64,
    /// The writer's own correlation, such as a turn id.
    pub origin: Option<JsonMap>,
    /// What the service recorded when it appended the entry.
    pub marks: EntryMarks,
    /// What the entry holds.
    pub body: EntryBody,
}

/// What the service records beside an entry when it appends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryMarks {
    /// The digest of the request's content. It distinguishes a repeated request from another request with the same id.
    pub digest: Option<RequestDigest>,
    /// The previous entry of the same custom type in the session. So the entries of a type can be read from the newest
    /// one backwards, without reading the others.
    pub previous: Option<EntryId>,
}

impl EntryMarks {
    /// No marks.
    pub const NONE: Self = Self { digest: None, previous: None };
}

/// The SHA-256 of a request's content about an entry or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest(pub [u8; 32]);

impl Serialize for RequestDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bough_record::hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for RequestDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let BorrowedText(text) = BorrowedText::deserialize(deserializer)?;
        let digest = bough_record::unhex(&text);
        digest.map(Self).ok_or_else(|| D::Error::custom("the digest is not 64 hex digits"))
    }
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryBody {
    /// A canonical message. Holders of the entry share it, and a change copies it.
    Message(Arc<AgentMessage>),
    /// Bookkeeping, ours or an application's.
    Custom(CustomPayload),
    /// An application's document under a custom type, kept byte for byte.
    Opaque(OpaqueBody),
    /// Another system's JSON, converted to a message or bookkeeping when it is read.
    Foreign(ForeignBody),
}

/// The type of an entry that was hidden.
pub(crate) const HIDDEN_TYPE: &str = "bough.hidden";
/// The type of an entry in whose frame nothing was kept when it was redacted.
pub(crate) const EMPTIED_TYPE: &str = "bough.redacted";

fn body_without_content(custom_type: &str) -> EntryBody {
    EntryBody::Custom(CustomPayload { custom_type: custom_type.to_owned(), data: Value::Null })
}

impl EntryBody {
    /// The custom type of bookkeeping or of a document; `None` for messages and for another system's JSON.
    #[must_use]
    pub fn own_custom_type(&self) -> Option<&str> {
        match self {
            Self::Custom(custom) => Some(&custom.custom_type),
            Self::Opaque(document) => Some(&document.custom_type),
            Self::Message(_) | Self::Foreign(_) => None,
        }
    }
}

/// An application's document, as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpaqueBody {
    /// The application's word for what this is.
    pub custom_type: String,
    /// The document: any JSON.
    #[serde(default)]
    pub data: RawJson,
}

impl OpaqueBody {
    /// The document as a custom payload, for reading its content.
    #[must_use]
    pub fn to_custom(&self) -> CustomPayload {
        CustomPayload { custom_type: self.custom_type.clone(), data: self.data.value() }
    }
}

/// Bookkeeping of a custom entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomPayload {
    /// The application's word for what this is; names that start with `bough.` are ours.
    pub custom_type: String,
    /// The application's data.
    #[serde(default)]
    pub data: Value,
}

/// The content of an entry in canonical terms, whatever form it is stored in.
#[derive(Clone, Debug, PartialEq)]
pub enum Canonical {
    /// A message.
    Message(Arc<AgentMessage>),
    /// Bookkeeping.
    Custom(CustomPayload),
}

/// An entry as the API shows it, told apart by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionEntry {
    /// A message of the transcript.
    Message {
        /// Names the entry.
        id: EntryId,
        /// The entry that this one follows; null at a root.
        parent_id: Option<EntryId>,
        /// When the entry was made, milliseconds since the epoch.
        timestamp: i64,
        /// How often the content was changed since.
        #[serde(default)]
        revision: u64,
        /// The writer's own correlation.
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<JsonMap>,
        /// The message.
        message: Arc<AgentMessage>,
    },
    /// Bookkeeping about the conversation.
    Custom {
        /// Names the entry.
        id: EntryId,
        /// The entry that this one follows; null at a root.
        parent_id: Option<EntryId>,
        /// When the entry was made, milliseconds since the epoch.
        timestamp: i64,
        /// How often the content was changed since.
        #[serde(default)]
        revision: u64,
        /// The writer's own correlation.
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<JsonMap>,
        /// What this is.
        custom_type: String,
        /// Its data.
        #[serde(default)]
        data: Value,
    },
}

impl Entry {
    /// A new entry: at its first revision, without origin and without marks.
    #[must_use]
    pub const fn new(
        id: EntryId,
        parent_id: Option<EntryId>,
        timestamp: i64,
        body: EntryBody,
    ) -> Self {
        Self { marks: EntryMarks::NONE, id, parent_id, timestamp, revision: 0, origin: None, body }
    }

    /// The content of the entry in canonical terms. Pure: a foreign body is mapped each time.
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        match &self.body {
            EntryBody::Message(message) => Canonical::Message(message.clone()),
            EntryBody::Custom(custom) => Canonical::Custom(custom.clone()),
            EntryBody::Opaque(body) => Canonical::Custom(body.to_custom()),
            EntryBody::Foreign(body) => formats::canonical(body, self.timestamp),
        }
    }

    /// The message, if the entry is one.
    #[must_use]
    pub fn message(&self) -> Option<Arc<AgentMessage>> {
        match self.canonical() {
            Canonical::Message(message) => Some(message),
            Canonical::Custom(_) => None,
        }
    }

    /// Whether the entry counts as a message.
    #[must_use]
    pub fn is_message(&self) -> bool {
        match &self.body {
            EntryBody::Message(_) => true,
            EntryBody::Custom(_) | EntryBody::Opaque(_) => false,
            EntryBody::Foreign(_) => matches!(self.canonical(), Canonical::Message(_)),
        }
    }

    /// The role, if the entry is a message.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match &self.body {
            EntryBody::Message(message) => Some(message.role()),
            EntryBody::Custom(_) | EntryBody::Opaque(_) => None,
            EntryBody::Foreign(_) => self.message().map(|message| message.role()),
        }
    }

    /// The bookkeeping, if the entry is of a kind that this version knows.
    #[must_use]
    pub fn bookkeeping(&self) -> Option<Bookkeeping> {
        match &self.body {
            EntryBody::Message(_) | EntryBody::Opaque(_) => None,
            EntryBody::Custom(custom) => Bookkeeping::from_payload(custom),
            EntryBody::Foreign(_) => match self.canonical() {
                Canonical::Custom(custom) => Bookkeeping::from_payload(&custom),
                Canonical::Message(_) => None,
            },
        }
    }

    /// The document or bookkeeping as it is stored, if the entry is not a message.
    #[must_use]
    pub fn to_opaque(&self) -> Option<OpaqueBody> {
        let custom = match &self.body {
            EntryBody::Message(_) => return None,
            EntryBody::Opaque(body) => return Some(body.clone()),
            EntryBody::Custom(custom) => custom.clone(),
            EntryBody::Foreign(_) => match self.canonical() {
                Canonical::Custom(custom) => custom,
                Canonical::Message(_) => return None,
            },
        };
        Some(OpaqueBody { custom_type: custom.custom_type, data: custom.data.into() })
    }

    /// The size of the body and the origin, in bytes of JSON as they are stored.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let body = match &self.body {
            EntryBody::Message(message) => json_bytes(message),
            EntryBody::Custom(custom) => json_bytes(custom),
            EntryBody::Opaque(body) => json_bytes(body),
            EntryBody::Foreign(body) => {
                body.json.get().len() + body.replaced.as_ref().map_or(0, json_bytes)
            }
        };
        body.saturating_add(self.origin.as_ref().map_or(0, json_bytes))
    }

    /// The entry as the API shows it.
    #[must_use]
    pub fn to_wire(&self) -> SessionEntry {
        let (id, parent_id) = (self.id.clone(), self.parent_id.clone());
        let (timestamp, revision) = (self.timestamp, self.revision);
        let origin = self.origin.clone();
        match self.canonical() {
            Canonical::Message(message) => {
                SessionEntry::Message { id, parent_id, timestamp, revision, origin, message }
            }
            Canonical::Custom(CustomPayload { custom_type, data }) => SessionEntry::Custom {
                id,
                parent_id,
                timestamp,
                revision,
                origin,
                custom_type,
                data,
            },
        }
    }

    /// A copy for another session, as a fork makes it: another id and parent, revision 0, the rest
    /// as it is now.
    #[must_use]
    pub fn into_copy(self, id: EntryId, parent_id: Option<EntryId>) -> Self {
        // The previous entry of the type may not be copied.
        let marks = EntryMarks { previous: None, ..self.marks };
        Self { id, parent_id, revision: 0, marks, ..self }
    }

    /// What the record of a redacted entry holds if only its place in the tree was kept.
    #[must_use]
    pub fn emptied(id: EntryId, parent_id: Option<EntryId>, timestamp: i64) -> Self {
        Self::new(id, parent_id, timestamp, body_without_content(EMPTIED_TYPE))
    }

    /// Whether nothing of its content was kept in its record. A `redacted` record of it follows.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.body.own_custom_type() == Some(EMPTIED_TYPE)
    }

    /// Removes the content. The entry keeps its place in the tree, and its link to the previous document of its type.
    pub fn hide(&mut self) {
        self.body = body_without_content(HIDDEN_TYPE);
        self.origin = None;
    }

    /// Whether it was hidden: only its place in the tree is left, and no read shows it.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        matches!(self.body.own_custom_type(), Some(HIDDEN_TYPE | EMPTIED_TYPE))
    }

    /// Replaces the content of a message, canonical or foreign. Returns whether the entry is a message.
    pub fn set_content(&mut self, content: Vec<ContentBlock>, details: Option<RawJson>) -> bool {
        match &mut self.body {
            EntryBody::Custom(_) | EntryBody::Opaque(_) => false,
            EntryBody::Message(message) => {
                let message = Arc::make_mut(message);
                *message.content_mut() = content;
                if let Some(details) = details {
                    message.set_details(details);
                }
                true
            }
            EntryBody::Foreign(body) => {
                let (old_details, finish) = match body.replaced.take() {
                    Some(old) => (old.details, old.finish),
                    None => (None, None),
                };
                let details = details.or(old_details);
                body.replaced = Some(formats::Replaced { content, details, finish });
                true
            }
        }
    }
}

impl SessionEntry {
    /// Names the entry.
    #[must_use]
    pub const fn id(&self) -> &EntryId {
        match self {
            Self::Message { id, .. } | Self::Custom { id, .. } => id,
        }
    }
}

impl From<SessionEntry> for Entry {
    fn from(entry: SessionEntry) -> Self {
        match entry {
            SessionEntry::Message { id, parent_id, timestamp, revision, origin, message } => {
                let body = EntryBody::Message(message);
                Self { revision, origin, ..Self::new(id, parent_id, timestamp, body) }
            }
            SessionEntry::Custom {
                id,
                parent_id,
                timestamp,
                revision,
                origin,
                custom_type,
                data,
            } => {
                let body = EntryBody::Custom(CustomPayload { custom_type, data });
                Self { revision, origin, ..Self::new(id, parent_id, timestamp, body) }
            }
        }
    }
}

/// The members of an entry of either kind. Unknown members of the message are kept, those of the entry are not.
#[derive(Default)]
struct EntryDraft {
    is_message: Option<bool>,
    id: Option<EntryId>,
    parent_id: Option<EntryId>,
    timestamp: Option<i64>,
    revision: u64,
    origin: Option<JsonMap>,
    message: Option<Arc<AgentMessage>>,
    custom_type: Option<String>,
    data: Value,
}

impl Draft for EntryDraft {
    const TAG: Option<&'static str> = Some("kind");
    const EXPECTED: &'static str = "an entry";

    fn has_tag(&self) -> bool {
        self.is_message.is_some()
    }

    fn set_tag<E: Error>(&mut self, word: &str) -> Result<(), E> {
        self.is_message = Some(match word {
            "message" => true,
            "custom" => false,
            _ => return Err(E::unknown_variant(word, &["message", "custom"])),
        });
        Ok(())
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_message = self.is_message == Some(true);
        match key {
            "id" => self.id = Some(map.next_value()?),
            "parent_id" => self.parent_id = map.next_value()?,
            "timestamp" => self.timestamp = Some(map.next_value()?),
            "revision" => self.revision = map.next_value()?,
            "origin" => self.origin = map.next_value()?,
            "message" if is_message => self.message = Some(map.next_value()?),
            "custom_type" if !is_message => self.custom_type = Some(map.next_value()?),
            "data" if !is_message => self.data = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn keep(&mut self, _unknown: UnknownMembers) {}
}

impl<'de> Deserialize<'de> for SessionEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let draft: EntryDraft = read_draft(deserializer)?;
        let missing = D::Error::missing_field;
        let id = draft.id.ok_or_else(|| missing("id"))?;
        let timestamp = draft.timestamp.ok_or_else(|| missing("timestamp"))?;
        let EntryDraft { parent_id, revision, origin, data, .. } = draft;
        if draft.is_message == Some(true) {
            let message = draft.message.ok_or_else(|| missing("message"))?;
            return Ok(Self::Message { id, parent_id, timestamp, revision, origin, message });
        }
        let custom_type = draft.custom_type.ok_or_else(|| missing("custom_type"))?;
        Ok(Self::Custom { id, parent_id, timestamp, revision, origin, custom_type, data })
    }
}
