//! The record of one line, made when the line is read, and made again when its record is asked for.
//!
//! | line | record |
//! |---|---|
//! | header | `v1`: `{"line":1,"what":"header","json":{...}}` |
//! | entry | `entry`: `{"foreign":"pi","json":{...}}`, the JSON as it came |
//! | anything else | `v1`: `{"line":n,"what":"...","json":...}`, or `"text"`, or `"base64"` |
//!
//! A `v1` record is of a kind that folds pass over: it carries what an export must give back and what is
//! not part of the tree. The one thing ever added to an entry's JSON is `firstKeptEntryId` of a version-1
//! compaction; the entry's origin says so, and [`super::source_line`] takes it off again.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bough_record::Envelope;
use bough_session::{AgentMessage, Entry, EntryBody, EntryId, NewRecord, Record};
use memchr::memchr2;
use serde_json::{Value, json};

use super::links::{EntryLinker, EntryLinks, Node};
use super::report::FindingKind;

/// The kind of a record that carries a line which is not an entry.
pub const V1_KIND: &str = "v1";

/// The members of an entry's origin that say what was added to its JSON.
pub(super) const ORIGIN: &str = "v1";
pub(super) const ADDED: &str = "added";
pub(super) const FIRST_KEPT: &str = "firstKeptEntryId";

/// A record, and what it was made from.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) record: MappedRecord,
    pub(crate) form: Form,
}

#[derive(Debug)]
pub(crate) enum MappedRecord {
    /// As it is stored in a log.
    Stored(Envelope<'static>),
    /// A message without its content: enough for a fold.
    Short(NewRecord),
}

/// What a record was made from: whether the line alone says enough to make it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// It says more than its line, or has none.
    Kept,
    /// The same of an entry.
    KeptEntry(Node),
    /// The line of an entry.
    Entry(Node),
    /// A line that is kept as it is.
    Opaque(What),
}

impl Form {
    /// The entry that the record adds.
    pub(crate) const fn node(self) -> Option<Node> {
        match self {
            Self::Entry(node) | Self::KeptEntry(node) => Some(node),
            Self::Kept | Self::Opaque(_) => None,
        }
    }

    /// The same of a record that does not come from a line of a file.
    pub(crate) const fn kept(self) -> Self {
        match self.node() {
            Some(node) => Self::KeptEntry(node),
            None => Self::Kept,
        }
    }

    /// Whether the line alone does not say enough.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::KeptEntry(_))
    }
}

/// What a line is that is not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Header,
    HeaderAgain,
    NotAnObject,
    NotJson,
    NotUtf8,
    Torn,
    SqliteMeta,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::HeaderAgain => "header_again",
            Self::NotAnObject => "not_an_object",
            Self::NotJson => "not_json",
            Self::NotUtf8 => "not_utf8",
            Self::Torn => "torn",
            Self::SqliteMeta => "sqlite_meta",
        }
    }

    pub(super) const fn finding(self) -> Option<FindingKind> {
        match self {
            Self::Header | Self::SqliteMeta => None,
            Self::HeaderAgain => Some(FindingKind::HeaderAgain),
            Self::NotAnObject => Some(FindingKind::NotAnObject),
            Self::NotJson => Some(FindingKind::NotJson),
            Self::NotUtf8 => Some(FindingKind::NotUtf8),
            Self::Torn => Some(FindingKind::TornTail),
        }
    }
}

/// Makes the record of a line again: the same as when the line was read first. `None` where it has to be kept, and
/// where the line is another than it was.
pub(super) fn record_again(
    form: Form,
    number: u64,
    bytes: &[u8],
    at_ms: i64,
    linker: &EntryLinker,
) -> Option<Envelope<'static>> {
    match form {
        Form::Kept | Form::KeptEntry(_) => None,
        Form::Entry(node) => {
            let json = json_of(text_of(number, bytes)?);
            let parent = linker.parent(node).and_then(|parent| linker.name_of(parent));
            let (id, parent) = (linker.name_of(node)?.to_owned(), parent.map(str::to_owned));
            Some(entry_record(&json, EntryLinks { node, id, parent, first_kept: None }, at_ms))
        }
        Form::Opaque(What::NotUtf8) => {
            Some(v1_record(at_ms, Kept::Bytes(bytes).payload(number, What::NotUtf8)))
        }
        Form::Opaque(what @ (What::NotJson | What::Torn)) => {
            let text = text_of(number, bytes)?;
            Some(v1_record(at_ms, Kept::Text(text).payload(number, what)))
        }
        Form::Opaque(what) => {
            let json = json_of(text_of(number, bytes)?);
            Some(v1_record(at_ms, Kept::Json(&json).payload(number, what)))
        }
    }
}

/// A line as text, without the mark that some programs put before the first.
pub(super) fn text_of(number: u64, bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(if number == 1 { text.trim_start_matches('\u{feff}') } else { text })
}

/// What of a line is JSON, if any of it is.
pub(super) fn json_of(text: &str) -> Cow<'_, str> {
    one_line(text.trim_matches([' ', '\t', '\r', '\n']))
}

/// A line break between tokens becomes a space: records are lines. Inside a string JSON has none. A file's lines
/// have carriage returns at most, the rows of a database any.
fn one_line(text: &str) -> Cow<'_, str> {
    if memchr2(b'\r', b'\n', text.as_bytes()).is_some() {
        Cow::Owned(text.replace(['\r', '\n'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// A line that is kept as it is.
pub(super) enum Kept<'a> {
    Json(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Kept<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(text) | Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(super) fn payload(&self, line: u64, what: What) -> String {
        let what = what.name();
        let start = format!("{{\"line\":{line},\"what\":\"{what}\",");
        match self {
            Self::Json(json) => format!("{start}\"json\":{json}}}"),
            Self::Text(text) => format!("{start}\"text\":{}}}", Value::from(*text)),
            Self::Bytes(bytes) => format!("{start}\"base64\":\"{}\"}}", STANDARD.encode(bytes)),
        }
    }
}

/// A record of kind [`V1_KIND`].
pub(crate) fn v1_record(at_ms: i64, payload: String) -> Envelope<'static> {
    Envelope::plain(V1_KIND, at_ms, payload)
}

/// The record of an entry. Built as text, so that a line of many megabytes is copied once.
pub(super) fn entry_record(json: &str, links: EntryLinks, at_ms: i64) -> Envelope<'static> {
    let mut payload = String::with_capacity(json.len() + 96);
    payload.push_str("{\"foreign\":\"pi\",\"json\":");
    match &links.first_kept {
        None => payload.push_str(json),
        Some(id) => {
            payload.push_str(json.strip_suffix('}').unwrap_or(json));
            payload.push_str(&added(id));
        }
    }
    if links.first_kept.is_some() {
        let origin = json!({ ORIGIN: { ADDED: FIRST_KEPT } });
        payload.push_str(&format!(",\"origin\":{origin}"));
    }
    payload.push('}');
    Envelope {
        kind: Cow::Borrowed("entry"),
        id: Some(links.id.into()),
        parent: links.parent.map(Into::into),
        target: None,
        revision: None,
        at_ms,
        payload: payload.into(),
    }
}

/// The record of an entry for a fold: a message without its content.
pub(super) fn short_record(message: AgentMessage, links: EntryLinks, at_ms: i64) -> NewRecord {
    let (id, parent) = (links.id, links.parent.map(EntryId::from_stored));
    let body = EntryBody::Message(message.into());
    Record::Entry(Entry::new(EntryId::from_stored(id), parent, at_ms, body)).at(at_ms)
}

/// The end of an object to which the kept entry was added.
fn added(id: &str) -> String {
    format!(",\"{FIRST_KEPT}\":{}}}", Value::from(id))
}
