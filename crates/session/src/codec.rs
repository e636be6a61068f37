//! Records as the log keeps them.
//!
//! The log knows what it needs to walk a tree (kind, id, parent, target, time) and nothing else; the
//! rest of a record is its payload, one line of JSON that does not repeat them.
//!
//! | kind | `id` | `parent` | `target` | payload |
//! |---|---|---|---|---|
//! | `entry` | the new entry | its parent | | one of `message`; `custom`, `data`; `opaque`, `json`; `foreign`, `json`, `replaced?`; then `origin?`, `timestamp?` (when it is not the record's time), `revision?` (when it is not 0), `digest?`, `previous?` |
//! | `meta` | | | | the fields that change |
//! | `streaming` | | | | `entry`: the message that the next record adds streams until a `rev` of it has `finish` |
//! | `rev` | | | the entry | `from`, one of `append`, `edit`, `content`; then `details?`, `origin?`, `finish?` |
//! | `removed` | | | the hidden entry | `message?` (when it was one), `preview?` (when the session's preview was its beginning) |
//! | `redacted` | | | the redacted entry | those of `removed`, `hidden?` (when a record hid it before); then who, when and why. It is read as a `removed` record and given back byte for byte |
//! | `leaf` | | | the new leaf, absent for none | `{}` |
//! | `loop` | | | | `loop`, `phase?`, `entry?`, `event` |
//! | `kv` | | | | `key`, `version`, `created_at?` (when it is not the record's time), `request?`, `value?` (absent: the key is taken away) |
//! | `tomb`, `restored` | | | | `{}` |
//!
//! A `rev` also has a `revision`: the one that it leads to. The active leaf follows from the first
//! columns alone: a record with an `id` makes that entry the leaf, and a record of kind `leaf` makes
//! its `target` the leaf.
//!
//! What this version does not know comes back from [`decode`] as [`Record::Unknown`] or
//! [`Record::Newer`], and [`encode`] gives it back byte for byte.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use bough_record::{Envelope, kind};

use crate::diff::ContentChange;
use crate::formats::{ForeignBody, Replaced};
use crate::json::Short;
use crate::limits::{ENTRY_BYTES_MEANT, SHORT_PAYLOAD_BYTES};
use crate::members::raw_members;
use crate::record::{
    DocumentRecord, LoopEvent, LoopPhase, MetaChange, Record, Removal, StatusChange,
};
use crate::revision::{Delta, Revision};
use crate::{
    CustomPayload, Entry, EntryBody, EntryId, EntryMarks, JsonMap, LoopId, OpaqueBody, RawJson,
    SessionId, SessionStatus,
};

/// The record's form in the log.
#[must_use]
pub fn encode(record: &Record, at_ms: i64) -> Envelope<'_> {
    fn name(id: &EntryId) -> Cow<'_, str> {
        Cow::Borrowed(id.as_str())
    }
    let plain = |kind: &'static str, payload: String| Envelope::plain(kind, at_ms, payload);
    let bare = |kind: &'static str| Envelope::plain(kind, at_ms, "{}");
    match record {
        Record::Meta(change) => plain("meta", encode_meta(change)),
        Record::Entry(entry) => Envelope {
            id: Some(name(&entry.id)),
            parent: entry.parent_id.as_ref().map(name),
            ..plain("entry", encode_entry(entry, at_ms))
        },
        Record::Streaming(entry) => plain("streaming", encode_streaming(entry)),
        Record::Revision(revision) => Envelope {
            target: Some(name(&revision.entry_id)),
            revision: Some(revision.to),
            ..plain("rev", encode_revision(revision))
        },
        Record::Removed(removal) => Envelope {
            target: Some(name(&removal.entry_id)),
            ..plain(kind::REMOVED, encode_removal(removal))
        },
        Record::Leaf(leaf) => Envelope { target: leaf.as_ref().map(name), ..bare("leaf") },
        Record::Loop(event) => plain("loop", encode_loop(event)),
        Record::Document(document) => plain("kv", encode_document(document)),
        Record::Tombstone => bare("tomb"),
        Record::Restored => bare("restored"),
        Record::Unknown(verbatim) | Record::Newer { verbatim, .. } => verbatim.borrowed(),
    }
}

/// Reads a record of the log. Never fails: a record that cannot be read becomes
/// [`Record::Unknown`].
#[must_use]
pub fn decode(stored: Envelope<'_>) -> Record {
    match decode_known(&stored) {
        Some((known, true)) => known,
        Some((known, false)) => {
            Record::Newer { known: Box::new(known), verbatim: stored.into_owned() }
        }
        None => Record::Unknown(stored.into_owned()),
    }
}

/// A payload with its long texts cut to [`SHORT_TEXT_BYTES`](crate::limits::SHORT_TEXT_BYTES), which is all that a fold
/// needs, in little memory. A payload that is short, or cannot be read, is returned as it is.
#[must_use]
pub fn shortened(payload: &str) -> Cow<'_, str> {
    if payload.len() <= SHORT_PAYLOAD_BYTES {
        return Cow::Borrowed(payload);
    }
    match serde_json::from_str(payload) {
        Ok(Short(value)) => Cow::Owned(value.to_string()),
        Err(_) => Cow::Borrowed(payload),
    }
}

/// A step of a stream as one line of JSON: `at`, `entry`, `revision`, one of `append`, `edit`,
/// `content`, then `details?`, `origin?`.
#[must_use]
pub fn encode_delta(delta: &Delta) -> String {
    let mut payload = Payload::default();
    payload.put("at", &delta.at_ms);
    payload.put("entry", &delta.entry_id);
    payload.put("revision", &delta.revision);
    payload.put_change(&delta.change);
    payload.put_some("details", delta.details.as_ref());
    payload.put_some("origin", delta.origin.as_ref());
    payload.finish()
}

/// Reads a step of a stream; `None` when it is not one.
#[must_use]
pub fn decode_delta(text: &str) -> Option<Delta> {
    let mut fields = Fields::parse(text)?;
    Some(Delta {
        at_ms: fields.need("at")?,
        entry_id: fields.need("entry")?,
        revision: fields.need("revision")?,
        change: fields.need_change()?,
        details: fields.get("details")?,
        origin: fields.get("origin")?,
    })
}

fn encode_meta(change: &MetaChange) -> String {
    let mut payload = Payload::default();
    payload.put_some("title", change.title.as_ref());
    payload.put_some("description", change.description.as_ref());
    payload.put_some("metadata", change.metadata.as_ref());
    if let Some(status) = &change.status {
        payload.put("status", &status.status);
        payload.put_some("reason", status.reason.as_ref());
    }
    payload.put_some("forked_from", change.forked_from.as_ref());
    payload.put_some("created_at", change.created_at.as_ref());
    payload.put_some("updated_at", change.updated_at.as_ref());
    payload.put_some("archived", change.archived.as_ref());
    payload.put_some("task_name", change.task_name.as_ref());
    payload.put_some("digest", change.digest.as_ref());
    payload.put_some("kind", change.kind.as_ref());
    payload.finish()
}

fn encode_entry(entry: &Entry, at_ms: i64) -> String {
    let mut payload = Payload::with_capacity(ENTRY_BYTES_MEANT);
    match &entry.body {
        EntryBody::Message(message) => payload.put("message", message),
        EntryBody::Custom(custom) => {
            payload.put("custom", &custom.custom_type);
            payload.put("data", &custom.data);
        }
        EntryBody::Opaque(body) => {
            payload.put("opaque", &body.custom_type);
            payload.put("json", &body.data);
        }
        EntryBody::Foreign(body) => {
            payload.put("foreign", &body.format);
            payload.put("json", &body.json);
            payload.put_some("replaced", body.replaced.as_ref());
        }
    }
    payload.put_some("origin", entry.origin.as_ref());
    if entry.timestamp != at_ms {
        payload.put("timestamp", &entry.timestamp);
    }
    if entry.revision != 0 {
        payload.put("revision", &entry.revision);
    }
    payload.put_some("digest", entry.marks.digest.as_ref());
    payload.put_some("previous", entry.marks.previous.as_ref());
    payload.finish()
}

fn encode_streaming(entry: &EntryId) -> String {
    let mut payload = Payload::default();
    payload.put("entry", entry);
    payload.finish()
}

fn encode_revision(revision: &Revision) -> String {
    let mut payload = Payload::default();
    payload.put("from", &revision.from);
    payload.put_change(&revision.change);
    payload.put_some("details", revision.details.as_ref());
    payload.put_some("origin", revision.origin.as_ref());
    payload.put_some("finish", revision.finish.as_ref());
    payload.finish()
}

fn encode_removal(removal: &Removal) -> String {
    let mut payload = Payload::default();
    payload.put_some("message", removal.is_message.then_some(&true));
    payload.put_some("preview", removal.is_preview.then_some(&true));
    payload.finish()
}

fn encode_loop(event: &LoopEvent) -> String {
    let mut payload = Payload::default();
    payload.put("loop", &event.loop_id);
    payload.put_some("phase", event.phase.as_ref());
    payload.put_some("entry", event.entry_id.as_ref());
    payload.put("event", &event.event);
    payload.finish()
}

fn encode_document(document: &DocumentRecord) -> String {
    let mut payload = Payload::default();
    payload.put("key", &document.key);
    payload.put("version", &document.version);
    payload.put_some("created_at", document.created_at.as_ref());
    payload.put_some("request", document.request.as_ref());
    payload.put_some("value", document.value.as_ref());
    payload.finish()
}

/// The record, and whether all of its fields are known. `None` when it cannot be read.
fn decode_known(stored: &Envelope<'_>) -> Option<(Record, bool)> {
    // The log's own records have a payload of `null`.
    let empty = stored.payload == "null";
    let mut fields = Fields::parse(if empty { "{}" } else { &stored.payload })?;
    let target = || stored.target.as_deref().map(EntryId::from_stored);
    let record = match &*stored.kind {
        "meta" => Record::Meta(decode_meta(&mut fields)?),
        // The frame was redacted, and nothing of the entry was kept but its place in the tree.
        "entry" if fields.0.is_empty() => Record::Entry(emptied_entry(stored)?),
        "entry" => Record::Entry(decode_entry(stored, &mut fields)?),
        "rev" => Record::Revision(decode_revision(target()?, stored.revision?, &mut fields)?),
        "streaming" => Record::Streaming(fields.need("entry")?),
        kind::REMOVED => Record::Removed(decode_removal(target()?, &mut fields)?),
        kind::REDACTED => Record::Removed(decode_redaction(target()?, &mut fields)?),
        "leaf" => Record::Leaf(target()),
        "loop" => Record::Loop(decode_loop(&mut fields)?),
        "kv" => Record::Document(decode_document(&mut fields)?),
        "tomb" => Record::Tombstone,
        "restored" => Record::Restored,
        _ => return None,
    };
    let is_redaction = stored.kind == kind::REDACTED;
    Some((record, fields.0.is_empty() && !empty && !is_redaction))
}

fn decode_meta(fields: &mut Fields<'_>) -> Option<MetaChange> {
    let status: Option<SessionStatus> = fields.get("status")?;
    let reason = fields.get("reason")?;
    Some(MetaChange {
        title: fields.get("title")?,
        description: fields.get("description")?,
        metadata: fields.get("metadata")?,
        status: status.map(|status| StatusChange { status, reason }),
        forked_from: fields.get::<SessionId>("forked_from")?,
        created_at: fields.get("created_at")?,
        updated_at: fields.get("updated_at")?,
        archived: fields.get("archived")?,
        task_name: fields.get("task_name")?,
        digest: fields.get("digest")?,
        kind: fields.get("kind")?,
    })
}

fn decode_entry(stored: &Envelope<'_>, fields: &mut Fields<'_>) -> Option<Entry> {
    let body = if let Some(message) = fields.get("message")? {
        EntryBody::Message(message)
    } else if let Some(custom_type) = fields.get("custom")? {
        let data = fields.get_raw("data").map(value_of);
        EntryBody::Custom(CustomPayload { custom_type, data: data.unwrap_or(Some(Value::Null))? })
    } else if let Some(custom_type) = fields.get("opaque")? {
        EntryBody::Opaque(OpaqueBody { custom_type, data: fields.need("json")? })
    } else {
        EntryBody::Foreign(ForeignBody {
            format: fields.need("foreign")?,
            json: fields.need("json")?,
            replaced: fields.get::<Replaced>("replaced")?,
        })
    };
    let marks = EntryMarks { digest: fields.get("digest")?, previous: fields.get("previous")? };
    Some(Entry {
        marks,
        id: EntryId::from_stored(stored.id.as_deref()?),
        parent_id: stored.parent.as_deref().map(EntryId::from_stored),
        timestamp: fields.get("timestamp")?.unwrap_or(stored.at_ms),
        revision: fields.get("revision")?.unwrap_or(0),
        origin: fields.get("origin")?,
        body,
    })
}

fn emptied_entry(stored: &Envelope<'_>) -> Option<Entry> {
    let id = EntryId::from_stored(stored.id.as_deref()?);
    let parent = stored.parent.as_deref().map(EntryId::from_stored);
    Some(Entry::emptied(id, parent, stored.at_ms))
}

fn decode_revision(entry_id: EntryId, to: u64, fields: &mut Fields<'_>) -> Option<Revision> {
    Some(Revision {
        entry_id,
        from: fields.need("from")?,
        to,
        change: fields.need_change()?,
        details: fields.get("details")?,
        origin: fields.get::<JsonMap>("origin")?,
        finish: fields.get("finish")?,
    })
}

fn decode_removal(entry_id: EntryId, fields: &mut Fields<'_>) -> Option<Removal> {
    Some(Removal {
        entry_id,
        is_message: fields.get("message")?.unwrap_or(false),
        is_preview: fields.get("preview")?.unwrap_or(false),
    })
}

/// A redaction hides its entry. `None` if the entry was hidden before, so that nothing counts it twice.
fn decode_redaction(entry_id: EntryId, fields: &mut Fields<'_>) -> Option<Removal> {
    let was_hidden = fields.get("hidden")?.unwrap_or(false);
    if was_hidden { None } else { decode_removal(entry_id, fields) }
}

fn decode_loop(fields: &mut Fields<'_>) -> Option<LoopEvent> {
    Some(LoopEvent {
        loop_id: fields.need::<LoopId>("loop")?,
        phase: fields.get::<LoopPhase>("phase")?,
        entry_id: fields.get("entry")?,
        event: fields.need::<RawJson>("event")?,
    })
}

fn decode_document(fields: &mut Fields<'_>) -> Option<DocumentRecord> {
    Some(DocumentRecord {
        key: fields.need("key")?,
        version: fields.need("version")?,
        created_at: fields.get("created_at")?,
        request: fields.get("request")?,
        // A value of `null` is a value; only an absent one removes the key.
        value: fields.get_raw("value").map(RawJson::from),
    })
}

fn value_of(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

/// An object being written: fields in the order in which they are put. Each is written in its place, without a text of its own.
#[derive(Default)]
struct Payload(Vec<u8>);

impl Payload {
    /// An object that is meant to have this many bytes.
    fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    fn put<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.push(b'"');
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
        let start = self.0.len();
        // None of our types holds a value that JSON cannot represent.
        if serde_json::to_writer(&mut self.0, value).is_err() {
            self.0.truncate(start);
            self.0.extend_from_slice(b"null");
        }
    }

    fn put_some<T: Serialize + ?Sized>(&mut self, key: &'static str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_change(&mut self, change: &ContentChange) {
        match change {
            ContentChange::Append(append) => self.put("append", append),
            ContentChange::Edit(edit) => self.put("edit", edit),
            ContentChange::Content(content) => self.put("content", content),
        }
    }

    fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        // JSON is text.
        String::from_utf8(self.0).unwrap_or_default()
    }
}

/// An object being read: one level deep, in order. Reading a field takes it out; the fields that
/// are left are unknown.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        raw_members(text).map(Self)
    }

    fn get_raw(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Returns `None` if the field is there and is not a `T`, and `Some(None)` if it is absent or
    /// null.
    fn get<T: Deserialize<'a>>(&mut self, key: &str) -> Option<Option<T>> {
        match self.get_raw(key) {
            Some(raw) => serde_json::from_str(raw.get()).ok(),
            None => Some(None),
        }
    }

    fn need<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        let raw = self.get_raw(key)?;
        serde_json::from_str(raw.get()).ok()
    }

    fn need_change(&mut self) -> Option<ContentChange> {
        if let Some(append) = self.get("append")? {
            Some(ContentChange::Append(append))
        } else if let Some(edit) = self.get("edit")? {
            Some(ContentChange::Edit(edit))
        } else {
            self.need("content").map(ContentChange::Content)
        }
    }
}
