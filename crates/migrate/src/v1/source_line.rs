//! From the records of a log back to the lines that they came from, borrowed where possible: a line of
//! many megabytes is not copied to be looked at.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bough_session::{Entry, EntryBody, FORMAT_PI, JsonMap, Record};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::line_record::{ADDED, FIRST_KEPT, ORIGIN, V1_KIND};

/// A line of the file, as a record kept it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Empty for an entry; else what kind of line it is.
    pub(crate) what: String,
}

#[derive(Deserialize)]
struct V1Payload<'a> {
    what: String,
    #[serde(borrow, default, deserialize_with = "also_null")]
    json: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// A member that is there, also when it says null: `null` is a line like any other.
fn also_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct EntryPayload<'a> {
    foreign: String,
    #[serde(borrow)]
    json: &'a RawValue,
    #[serde(default)]
    origin: Option<JsonMap>,
}

/// The line that a record of the log came from; `None` when it came from no line.
pub(crate) fn source_line_of<'a>(kind: &str, payload: &'a str) -> Option<SourceLine<'a>> {
    match kind {
        V1_KIND => {
            let payload: V1Payload<'a> = serde_json::from_str(payload).ok()?;
            let bytes = match (payload.json, payload.text, payload.base64) {
                (Some(json), _, _) => Cow::Borrowed(json.get().as_bytes()),
                (_, Some(text), _) => Cow::Owned(text.into_bytes()),
                (_, _, Some(base64)) => Cow::Owned(STANDARD.decode(base64).ok()?),
                _ => return None,
            };
            Some(SourceLine { bytes, what: payload.what })
        }
        "entry" => {
            let payload: EntryPayload<'a> = serde_json::from_str(payload).ok()?;
            if payload.foreign != FORMAT_PI {
                return None;
            }
            Some(entry_line(without_added(payload.json.get(), payload.origin.as_ref())?))
        }
        _ => None,
    }
}

/// The same, of a record that was read already.
pub(crate) fn source_line(record: &Record) -> Option<SourceLine<'_>> {
    match record.known() {
        Record::Entry(entry) => source_json(entry).map(entry_line),
        Record::Unknown(stored) => source_line_of(&stored.kind, &stored.payload),
        _ => None,
    }
}

fn entry_line(text: Cow<'_, str>) -> SourceLine<'_> {
    let bytes = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    SourceLine { bytes, what: String::new() }
}

/// The JSON of a pi entry as it came.
pub(crate) fn source_json(entry: &Entry) -> Option<Cow<'_, str>> {
    match &entry.body {
        EntryBody::Foreign(body) if body.format == FORMAT_PI => {
            without_added(body.json.get(), entry.origin.as_ref())
        }
        _ => None,
    }
}

/// Takes off what reading a version-1 file added.
fn without_added<'a>(text: &'a str, origin: Option<&JsonMap>) -> Option<Cow<'a, str>> {
    let added = origin.and_then(|origin| origin.get(ORIGIN)?.get(ADDED));
    if added.and_then(Value::as_str) != Some(FIRST_KEPT) {
        return Some(Cow::Borrowed(text));
    }
    let at = text.rfind(&format!(",\"{FIRST_KEPT}\":"))?;
    Some(Cow::Owned(format!("{}}}", text.get(..at)?)))
}
