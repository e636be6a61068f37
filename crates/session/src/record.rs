//! Records: the closed set of things that a session's log holds.

use bough_record::{Envelope, kind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec;

use crate::revision::Revision;
use crate::{Entry, EntryId, JsonMap, LoopId, RawJson, RequestDigest, SessionId, SessionStatus};

/// One thing that happened to a session. The log is a list of these, and everything else is a fold.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The session's own record changes; the first record of every session is one.
    Meta(MetaChange),
    /// A node is added to the tree, and becomes the active leaf.
    Entry(Entry),
    /// The message with this id, which the next record adds, streams: it grows until it is finished.
    Streaming(EntryId),
    /// The content of a message changes.
    Revision(Revision),
    /// An entry is hidden from every read. Its children stay, and paths lead through it.
    Removed(Removal),
    /// The active leaf moves; `None` is before the first entry.
    Leaf(Option<EntryId>),
    /// Something happened in a loop of an agent.
    Loop(LoopEvent),
    /// A document is put under a key, or taken away; in sessions of kind [`KIND_DOCUMENTS`] only.
    Document(DocumentRecord),
    /// The session is deleted.
    Tombstone,
    /// The session is back.
    Restored,
    /// A record of a kind, or in a form, that this version does not know: kept, and never read.
    Unknown(Envelope<'static>),
    /// A record of a kind that this version knows, with fields that it does not: read by what is known,
    /// written back as it came.
    Newer {
        /// What this version understands of it.
        known: Box<Self>,
        /// The record as it came.
        verbatim: Envelope<'static>,
    },
}

/// The kind of the sessions that hold documents by key instead of a conversation.
pub const KIND_DOCUMENTS: &str = "kv";

/// A document under a key, as of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord {
    /// The key.
    pub key: String,
    /// The version that the key has with this record. Versions are counted through the whole session, so that no key ever
    /// has the same one twice.
    pub version: u64,
    /// When the document was first put, where that was before this record.
    pub created_at: Option<i64>,
    /// Which request made the record, where it may be repeated.
    pub request: Option<RequestDigest>,
    /// The document, kept byte for byte; `None` takes the key away.
    pub value: Option<RawJson>,
}

/// A record and when it was made, as it is handed to a store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRecord {
    /// When, milliseconds since the epoch. For showing, never for order.
    pub at_ms: i64,
    /// What.
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

/// A change of the session's own record: what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaChange {
    /// A new title.
    pub title: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// New metadata, in place of all of the old.
    pub metadata: Option<JsonMap>,
    /// A new status. The reason of the old one goes with it.
    pub status: Option<StatusChange>,
    /// The session that this one was forked from; said at creation.
    pub forked_from: Option<SessionId>,
    /// When the session was made, where that was before this record (an import).
    pub created_at: Option<i64>,
    /// When the session was last changed, where that is not the time of this record (an import).
    pub updated_at: Option<i64>,
    /// Whether it is put away.
    pub archived: Option<bool>,
    /// What its task is called.
    pub task_name: Option<String>,
    /// What the request said that made the session, so that a repeated request is told from another one; said at creation.
    pub digest: Option<RequestDigest>,
    /// What the session is, where it is no conversation; said at creation. See [`KIND_DOCUMENTS`].
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

/// An entry is hidden, and what the fold must know of it: what it said is not looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The entry.
    pub entry_id: EntryId,
    /// Whether it counted as a message.
    pub is_message: bool,
    /// Whether the session's preview is its beginning.
    pub is_preview: bool,
}

/// Something that happened in a loop: the recorder's own words, and what the fold must know of them.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopEvent {
    /// Which loop.
    pub loop_id: LoopId,
    /// Where the loop stands after this, when this changes it.
    pub phase: Option<LoopPhase>,
    /// The entry that holds the message which the event speaks of, so that it is stored once.
    pub entry_id: Option<EntryId>,
    /// The event in the recorder's words.
    pub event: RawJson,
}

/// Where a loop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopPhase {
    /// Announced, not started.
    Pending,
    /// Started.
    Running,
    /// Ended well.
    Completed,
    /// Refused.
    Rejected,
    /// Broken off.
    Aborted,
}

impl LoopPhase {
    /// Whether the loop is still to end.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl Record {
    /// What this version understands of the record: itself, or the known part of a newer one.
    #[must_use]
    pub fn known(&self) -> &Self {
        match self {
            Self::Newer { known, .. } => known.known(),
            _ => self,
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

    /// Takes away what the record says of an entry that was hidden since. Its place in the log stays.
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

impl MetaChange {
    /// Whether this changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this counts as activity. Putting a session away, or taking it back, does not: a list by
    /// last activity stays in order.
    #[must_use]
    pub const fn is_activity(&self) -> bool {
        self.title.is_some()
            || self.description.is_some()
            || self.metadata.is_some()
            || self.status.is_some()
            || self.task_name.is_some()
    }
}
