//! Records: the closed set of changes that a session's log holds.

use bough_record::{Envelope, kind};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec;

use crate::revision::Revision;
use crate::{
    Entry, EntryId, JsonMap, LoopId, RawJson, RequestDigest, SessionId, SessionMeta, SessionStatus,
};

/// One change of a session. The log is a list of these, and everything else is a fold.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The session's own fields change. The first record of every session is one of these.
    Meta(MetaChange),
    /// A node is added to the tree, and becomes the active leaf.
    Entry(Entry),
    /// The message with this id, which the next record adds, is a stream: it grows until it is finished.
    Streaming(EntryId),
    /// The content of a message changes.
    Revision(Revision),
    /// An entry is hidden from every read. Its children stay, and paths lead through it.
    Removed(Removal),
    /// The active leaf moves; `None` is before the first entry.
    Leaf(Option<EntryId>),
    /// Something happened in a loop of an agent.
    Loop(LoopEvent),
    /// A document is put under a key, or removed; in sessions of kind [`KIND_DOCUMENTS`] only.
    Document(DocumentRecord),
    /// The session is deleted.
    Tombstone,
    /// The session is back.
    Restored,
    /// A record of a kind, or in a form, that this version does not know: stored, and never
    /// interpreted.
    Unknown(Envelope<'static>),
    /// A record of a known kind with unknown fields. Its known part is applied, and it is written back as it came.
    Newer {
        /// The part that this version understands.
        known: Box<Self>,
        /// The record as it came.
        verbatim: Envelope<'static>,
    },
}

/// The kind of the sessions that hold documents by key instead of a conversation.
pub const KIND_DOCUMENTS: &str = "kv";

/// A put or a removal of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord {
    /// The key.
    pub key: String,
    /// The version that the key has with this record. Versions are counted through the whole session, so a key never
    /// has the same version twice.
    pub version: u64,
    /// When the document was first put, if that was before this record.
    pub created_at: Option<i64>,
    /// The request that made the record, if it may be repeated.
    pub request: Option<RequestDigest>,
    /// The document, kept byte for byte; `None` removes the key.
    pub value: Option<RawJson>,
}

/// A record with its time, as it is passed to a store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRecord {
    /// When, milliseconds since the epoch. For showing, never for order.
    pub at_ms: i64,
    /// The record.
    pub record: Record,
}

impl Serialize for NewRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        codec::encode(&self.record, self.at_ms).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NewRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let envelope = Envelope::deserialize(deserializer)?;
        let at_ms = envelope.at_ms;
        Ok(codec::decode(envelope).at(at_ms))
    }
}

/// A change of the session's own fields. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaChange {
    /// A new title.
    pub title: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// New metadata, in place of all of the old.
    pub metadata: Option<JsonMap>,
    /// A new status. The old reason is dropped.
    pub status: Option<StatusChange>,
    /// The session that this one was forked from; set at creation.
    pub forked_from: Option<SessionId>,
    /// When the session was created, if that was before this record (an import).
    pub created_at: Option<i64>,
    /// When the session was last changed, if that is not the time of this record (an import).
    pub updated_at: Option<i64>,
    /// Whether it is archived.
    pub archived: Option<bool>,
    /// The name of its task.
    pub task_name: Option<String>,
    /// The digest of the request that created the session, so that a repeated request can be recognised; set at
    /// creation.
    pub digest: Option<RequestDigest>,
    /// The kind of a session that is not a conversation; set at creation. See [`KIND_DOCUMENTS`].
    pub kind: Option<String>,
}

/// A new status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    /// The status.
    pub status: SessionStatus,
    /// Why; kept for `error` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl StatusChange {
    /// The reason, if it is kept.
    #[must_use]
    pub fn kept_reason(&self) -> Option<&String> {
        self.reason.as_ref().filter(|_| self.status == SessionStatus::Error)
    }
}

/// An entry is hidden. The record has what the fold needs of the entry, so that it need not be
/// looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The entry.
    pub entry_id: EntryId,
    /// Whether it counted as a message.
    pub is_message: bool,
    /// Whether the session's preview is its beginning.
    pub is_preview: bool,
}

/// An event of a loop: the recorder's own JSON, and what the fold needs of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopEvent {
    /// Which loop.
    pub loop_id: LoopId,
    /// The phase of the loop after this event, if the event changes it.
    pub phase: Option<LoopPhase>,
    /// The entry with the event's message, so that the message is stored once.
    pub entry_id: Option<EntryId>,
    /// The event as the recorder wrote it.
    pub event: RawJson,
}

/// Where a loop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LoopState")]
pub enum LoopPhase {
    /// Announced with its group, not started.
    Pending,
    /// Started.
    Running,
    /// Ended.
    Completed,
    /// Its input was refused.
    Rejected,
    /// Broken off before it ended.
    Aborted,
}

impl LoopPhase {
    /// Whether the loop has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl Record {
    /// The part of the record that this version understands: itself, or the known part of a newer
    /// one.
    #[must_use]
    pub fn known(&self) -> &Self {
        match self {
            Self::Newer { known, .. } => known.known(),
            _ => self,
        }
    }

    /// The same without what is not known of it.
    #[must_use]
    pub fn into_known(self) -> Self {
        match self {
            Self::Newer { known, .. } => known.into_known(),
            other => other,
        }
    }

    /// The entry that this record adds.
    #[must_use]
    pub fn as_entry(&self) -> Option<&Entry> {
        match self.known() {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    /// The entry that this record adds, changes or hides.
    #[must_use]
    pub fn changed_entry(&self) -> Option<&EntryId> {
        match self.known() {
            Self::Entry(entry) => Some(&entry.id),
            Self::Revision(revision) => Some(&revision.entry_id),
            Self::Removed(removal) => Some(&removal.entry_id),
            _ => None,
        }
    }

    /// Removes the content of a record about an entry that was hidden later. The record keeps its place in the log.
    pub fn hide(&mut self) {
        let (target, revision) = match self.known() {
            Self::Entry(entry) => {
                let mut entry = entry.clone();
                entry.hide();
                *self = Self::Entry(entry);
                return;
            }
            Self::Revision(revision) => (revision.entry_id.to_string(), revision.to),
            _ => return,
        };
        *self = Self::Unknown(Envelope {
            target: Some(target.into()),
            revision: Some(revision),
            ..Envelope::plain(kind::REVISION, 0, "{}".to_owned())
        });
    }

    /// The record with the time it was made.
    #[must_use]
    pub const fn at(self, at_ms: i64) -> NewRecord {
        NewRecord { at_ms, record: self }
    }
}

/// The change after which a session has these fields.
impl From<SessionMeta> for MetaChange {
    fn from(meta: SessionMeta) -> Self {
        Self {
            title: Some(meta.title),
            description: Some(meta.description),
            metadata: meta.metadata,
            status: Some(StatusChange { status: meta.status, reason: meta.status_reason }),
            forked_from: meta.forked_from,
            created_at: Some(meta.created_at),
            updated_at: Some(meta.updated_at),
            ..Self::default()
        }
    }
}

impl MetaChange {
    /// An earlier change and then this one, as one change.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        Self {
            title: self.title.or(earlier.title),
            description: self.description.or(earlier.description),
            metadata: self.metadata.or(earlier.metadata),
            status: self.status.or(earlier.status),
            forked_from: self.forked_from.or(earlier.forked_from),
            created_at: self.created_at.or(earlier.created_at),
            updated_at: self.updated_at.or(earlier.updated_at),
            archived: self.archived.or(earlier.archived),
            task_name: self.task_name.or(earlier.task_name),
            digest: self.digest.or(earlier.digest),
            kind: self.kind.or(earlier.kind),
        }
    }

    /// Whether this changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this counts as activity. Archiving a session, or restoring it, does not, so a list by last activity
    /// keeps its order.
    #[must_use]
    pub const fn is_activity(&self) -> bool {
        self.title.is_some()
            || self.description.is_some()
            || self.metadata.is_some()
            || self.status.is_some()
            || self.task_name.is_some()
    }
}
