//! Lines of a session file.
//!
//! `meta`, `entry` and `leaf` lines are exactly session-manager's. Records without such a line are custom entries with
//! reserved types, outside the tree:
//! - `bough.life`: the incarnation of the session, as its first line;
//! - `bough.record`: a record as the log has it.
//!
//! A reserved line has the change; the plain lines that follow it in the same batch show the result to a reader that
//! knows only those.

use std::borrow::Cow;

use bough_record::Envelope;
use bough_session::codec;
use bough_session::{
    Entry, EntryBody, EntryId, FORMAT_SESSION_MANAGER, ForeignBody, Incarnation, NewRecord,
    RawJson, Record, SessionEntry, SessionMeta,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The type of the entry with the incarnation of a session.
pub(super) const INCARNATION: &str = "bough.life";
/// The type of an entry that carries a record.
pub(crate) const RECORD: &str = "bough.record";

/// What a line says.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Incarnation(Incarnation),
    /// A record, and the last step that it replaces, if it was made of steps.
    Record(Box<NewRecord>, Option<u64>),
    Entry(Box<Entry>),
    Leaf(Option<EntryId>),
    Meta(Box<SessionMeta>),
}

/// The items of a line; none if it cannot be read.
pub(crate) fn parse(line: &[u8]) -> Vec<Item> {
    match serde_json::from_slice::<Line<'_>>(line) {
        Ok(line) => items_of(&line),
        // Zeros are data that the disk never wrote: a line with them is not whole.
        Err(_) if line.contains(&0) => Vec::new(),
        Err(_) => parse_glued(line),
    }
}

/// Reads a line whose beginning was torn off and to which later records were appended, as session-manager leaves it:
/// the longest run of whole records that reaches the end of the line.
fn parse_glued(line: &[u8]) -> Vec<Item> {
    const START: &[u8] = br#"{"type":""#;
    let starts = (0..line.len()).filter(|at| {
        let rest = line.get(*at..).unwrap_or_default();
        rest.starts_with(START)
    });
    let whole_to_the_end = starts.filter_map(|at| {
        let rest = serde_json::Deserializer::from_slice(line.get(at..)?);
        let records = rest.into_iter::<Line<'_>>();
        records.collect::<Result<Vec<_>, _>>().ok()
    });
    let mut runs = whole_to_the_end;
    let found = runs.next().unwrap_or_default();
    found.iter().flat_map(items_of).collect()
}

fn items_of(line: &Line<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    // A later version of session-manager has lines with an entry and a meta; both parts are read,
    // whatever the type of the line.
    items.extend(line.entry.and_then(parse_entry));
    if line.kind == "leaf" {
        let leaf = line.entry_id.as_deref().map(EntryId::from_stored);
        items.push(Item::Leaf(leaf));
    }
    let meta = line.meta.and_then(|raw| serde_json::from_str(raw.get()).ok());
    items.extend(meta.map(|meta| Item::Meta(Box::new(meta))));
    items
}

/// A `meta` line.
pub(super) fn meta_line(meta: &SessionMeta) -> String {
    #[derive(Serialize)]
    struct MetaLine<'a> {
        r#type: &'static str,
        meta: &'a SessionMeta,
    }
    text(&MetaLine { r#type: "meta", meta })
}

/// An `entry` line. A message of a later version keeps the fields that only that version knows.
pub(crate) fn entry_line(entry: &Entry) -> String {
    let later = match &entry.body {
        EntryBody::Foreign(body) if body.format == FORMAT_SESSION_MANAGER => {
            later_entry(entry, body)
        }
        _ => None,
    };
    match later {
        Some(entry) => text(&EntryLine { r#type: "entry", entry: &entry }),
        None => text(&EntryLine { r#type: "entry", entry: &entry.to_wire() }),
    }
}

/// An entry with its message as it came, and its later content.
fn later_entry(entry: &Entry, body: &ForeignBody) -> Option<Value> {
    let mut message = body.json.value();
    if let Some(replaced) = &body.replaced {
        let fields = message.as_object_mut()?;
        fields.insert("content".to_owned(), serde_json::to_value(&replaced.content).ok()?);
        if let Some(details) = &replaced.details {
            fields.insert("details".to_owned(), details.value());
        }
    }
    let mut shown = serde_json::to_value(entry.to_wire()).ok()?;
    shown.as_object_mut()?.insert("message".to_owned(), message);
    Some(shown)
}

/// A `leaf` line.
pub(super) fn leaf_line(leaf: Option<&EntryId>) -> String {
    #[derive(Serialize)]
    struct LeafLine<'a> {
        r#type: &'static str,
        entry_id: Option<&'a EntryId>,
    }
    text(&LeafLine { r#type: "leaf", entry_id: leaf })
}

/// The line with the incarnation of a session.
pub(super) fn incarnation_line(incarnation: Incarnation, at_ms: i64) -> String {
    reserved_line(INCARNATION, INCARNATION.to_owned(), at_ms, &incarnation.to_string())
}

/// A line that carries a record; `seq` makes its id, and `last_step` is the last step that it replaced.
pub(crate) fn record_line(
    record: &Record,
    at_ms: i64,
    (seq, last_step): (u64, Option<u64>),
) -> Option<String> {
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    let stored = codec::encode(record, at_ms);
    let payload = RawJson::parse(&*stored.payload).ok()?;
    let carried = Carried {
        kind: stored.kind.as_ref().into(),
        id: owned(stored.id),
        parent: owned(stored.parent),
        target: owned(stored.target),
        revision: stored.revision,
        last_step,
        at: stored.at_ms,
        payload,
    };
    Some(reserved_line(RECORD, format!("{RECORD}.{seq}"), at_ms, &carried))
}

/// Whether a custom type is one that these lines use themselves.
pub(super) fn is_reserved(custom_type: &str) -> bool {
    custom_type == INCARNATION || custom_type == RECORD
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    entry: Option<&'a RawValue>,
    #[serde(borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    entry_id: Option<String>,
}

#[derive(Serialize)]
struct EntryLine<'a, T> {
    r#type: &'static str,
    entry: &'a T,
}

/// A record inside a reserved entry. The payload keeps its bytes.
#[derive(Serialize, Deserialize)]
struct Carried {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_step: Option<u64>,
    at: i64,
    payload: RawJson,
}

/// The parts of an entry that decide how it is parsed.
#[derive(Deserialize)]
struct Peek<'a> {
    kind: String,
    #[serde(default)]
    custom_type: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    timestamp: i64,
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    origin: Option<bough_session::JsonMap>,
}

fn parse_entry(raw: &RawValue) -> Option<Item> {
    let peek: Peek<'_> = serde_json::from_str(raw.get()).ok()?;
    match (peek.custom_type.as_deref(), peek.data) {
        (Some(INCARNATION), Some(data)) => {
            return serde_json::from_str(data.get()).ok().map(Item::Incarnation);
        }
        (Some(RECORD), Some(data)) => return parse_carried(data),
        _ => {}
    }
    if let Some(entry) = parse_plain(raw) {
        return Some(Item::Entry(Box::new(entry.into())));
    }
    // A message of a later version: kept as it came, and read by its known parts.
    let message = peek.message.filter(|_| peek.kind == "message")?;
    let json = RawJson::parse(message.get()).ok()?;
    Some(Item::Entry(Box::new(Entry {
        revision: peek.revision,
        origin: peek.origin,
        ..Entry::new(
            EntryId::from_stored(peek.id),
            peek.parent_id.map(EntryId::from_stored),
            peek.timestamp,
            EntryBody::Foreign(ForeignBody::new(FORMAT_SESSION_MANAGER, json)),
        )
    })))
}

/// An entry in the published shape, without unknown members.
fn parse_plain(raw: &RawValue) -> Option<SessionEntry> {
    let entry: SessionEntry = serde_json::from_str(raw.get()).ok()?;
    let SessionEntry::Message { message, .. } = &entry else {
        return Some(entry);
    };
    let given: Value = serde_json::from_str(raw.get()).ok()?;
    let known = serde_json::to_value(message).ok()?;
    (given.get("message") == Some(&known)).then_some(entry)
}

fn parse_carried(data: &RawValue) -> Option<Item> {
    let carried: Carried = serde_json::from_str(data.get()).ok()?;
    let (at_ms, last_step) = (carried.at, carried.last_step);
    let record = Envelope {
        kind: carried.kind.into(),
        id: carried.id.map(Into::into),
        parent: carried.parent.map(Into::into),
        target: carried.target.map(Into::into),
        revision: carried.revision,
        at_ms,
        payload: carried.payload.get().into(),
    };
    Some(Item::Record(Box::new(codec::decode(record).at(at_ms)), last_step))
}

fn reserved_line<T: Serialize>(custom_type: &str, id: String, at_ms: i64, data: &T) -> String {
    #[derive(Serialize)]
    struct Reserved<'a, T> {
        kind: &'static str,
        id: String,
        parent_id: Option<String>,
        timestamp: i64,
        revision: u64,
        custom_type: &'a str,
        data: &'a T,
    }
    text(&EntryLine {
        r#type: "entry",
        entry: &Reserved {
            kind: "custom",
            id,
            parent_id: None,
            timestamp: at_ms,
            revision: 0,
            custom_type,
            data,
        },
    })
}

fn text<T: Serialize>(value: &T) -> String {
    // None of these types holds a value that JSON cannot represent.
    serde_json::to_string(value).unwrap_or_default()
}
