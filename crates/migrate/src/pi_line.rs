//! Entries as lines of a pi file.
//!
//! An entry that came from pi is given back as it came. Any other is written in pi's format; what pi cannot
//! express becomes a custom entry and is never left out.

use bough_session::{
    AgentMessage, Bookkeeping, Canonical, ContentBlock, CustomPayload, Entry, EntryBody, FORMAT_PI,
    Format, RESERVED_PREFIX, RawJson, UnknownMembers, UserMessage, text::camel_case,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{MigrateError, Result};
use crate::v1::{Field, ParsedLine, format_iso, parse_line};

/// How a version-1 compaction names the entry that it keeps from.
pub(crate) const FIRST_KEPT_INDEX: &str = "firstKeptEntryIndex";

/// The custom type of a line that only says where the leaf is: it hangs from there. pi keeps such lines and never
/// sends them to a model.
pub(crate) const LEAF_TYPE: &str = "bough.leaf";

/// The common members of a line, in pi's order, then the rest.
#[derive(Serialize)]
struct Words<'a> {
    r#type: &'a str,
    id: &'a str,
    #[serde(rename = "parentId")]
    parent_id: Option<&'a str>,
    timestamp: String,
    #[serde(flatten)]
    rest: UnknownMembers,
}

/// A line without its line break, with the id and the parent that the file is to have.
pub(crate) fn line_of(entry: &Entry, id: &str, parent: Option<&str>) -> String {
    if let Some(json) = unchanged(entry).and_then(|json| with_identity(&json, id, parent)) {
        return json;
    }
    let (kind, rest) = match patched(entry) {
        Some((kind, members)) => (kind, kept(members)),
        None => match entry.canonical() {
            Canonical::Message(message) => {
                let rest = [("message".to_owned(), message_of(&message))];
                ("message".to_owned(), rest.into_iter().collect())
            }
            Canonical::Custom(custom) => {
                let (kind, members) = custom_rest(&custom);
                (kind, kept(members))
            }
        },
    };
    let timestamp = format_iso(entry.timestamp);
    let words = Words { r#type: &kind, id, parent_id: parent, timestamp, rest };
    // A map of strings and values has nothing that JSON cannot say.
    serde_json::to_string(&words).unwrap_or_default()
}

fn kept(members: Map<String, Value>) -> UnknownMembers {
    members.into_iter().map(|(key, value)| (key, value.into())).collect()
}

/// A line that came from no entry, with these members beside the common ones. In a version-1 file it has no id.
pub(crate) fn plain_line(
    kind: &str,
    identity: Option<(&str, Option<&str>)>,
    at_ms: i64,
    members: Value,
) -> String {
    let mut line = json!({ "type": kind, "timestamp": format_iso(at_ms) });
    if let (Some(line), Value::Object(members)) = (line.as_object_mut(), members) {
        if let Some((id, parent)) = identity {
            line.insert("id".to_owned(), json!(id));
            line.insert("parentId".to_owned(), json!(parent));
        }
        line.extend(members);
    }
    line.to_string()
}

/// A line of a version-1 file: its place is all the identity that it has, and a compaction names the entry that
/// it keeps from by the number of its line. pi gives such a file new ids when it opens it, so ours would name
/// nothing. `index_of` knows the numbers; what has none is not named, and then nothing from before is kept.
pub(crate) fn version_1_line_of(
    entry: &Entry,
    index_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<String> {
    let line = line_of(entry, entry.id.as_str(), None);
    let mut members: Map<String, Value> = serde_json::from_str(&line).map_err(|error| {
        MigrateError::NotRepresentable { reason: format!("entry {}: {error}", entry.id) }
    })?;
    members.remove("id");
    members.remove("parentId");
    if members.get("type").is_some_and(|kind| kind == "compaction") {
        let kept = members.remove("firstKeptEntryId");
        if let Some(index) = kept.as_ref().and_then(Value::as_str).and_then(index_of) {
            members.insert(FIRST_KEPT_INDEX.to_owned(), Value::from(index));
        }
    }
    Ok(Value::Object(members).to_string())
}

/// The JSON of a pi entry that was not changed here, in the words of the current version: what reading a
/// version-1 file added is left in, and an extension's message is called what it is called now.
fn unchanged(entry: &Entry) -> Option<String> {
    let EntryBody::Foreign(body) = &entry.body else { return None };
    let json = body.json.get();
    let old_word = json.contains("\"hookMessage\"");
    let as_it_is = body.format == FORMAT_PI && body.replaced.is_none() && !old_word;
    as_it_is.then(|| json.to_owned())
}

/// The JSON with this id and parent: as it is where it has them, with the missing ones at its end, `None`
/// where it says others.
pub(crate) fn with_identity(json: &str, id: &str, parent: Option<&str>) -> Option<String> {
    let ParsedLine::Object(line_header) = parse_line(json) else { return None };
    let mut missing = String::new();
    match &line_header.id {
        Field::Text(given) if given == id => {}
        Field::Absent => missing.push_str(&format!(",\"id\":{}", Value::from(id))),
        _ => return None,
    }
    match (&line_header.parent, parent) {
        (Field::Text(given), Some(wanted)) if given == wanted => {}
        (Field::Null, None) => {}
        (Field::Absent, _) => {
            missing.push_str(&format!(",\"parentId\":{}", json!(parent)));
        }
        _ => return None,
    }
    if missing.is_empty() {
        return Some(json.to_owned());
    }
    let open = json.strip_suffix('}')?.trim_end();
    let missing = if open == "{" { missing.get(1..).unwrap_or_default() } else { &missing };
    Some(format!("{open}{missing}}}"))
}

/// A pi entry whose place or content differs from what its JSON says: the same members, re-written.
fn patched(entry: &Entry) -> Option<(String, Map<String, Value>)> {
    let EntryBody::Foreign(body) = &entry.body else { return None };
    if body.format != FORMAT_PI {
        return None;
    }
    let Value::Object(mut members) = body.json.value() else { return None };
    let kind = members.get("type").and_then(Value::as_str)?.to_owned();
    for common in ["type", "id", "parentId", "timestamp"] {
        members.remove(common);
    }
    let role = members.get_mut("message").and_then(|message| message.get_mut("role"));
    if let Some(role) = role.filter(|role| *role == "hookMessage") {
        *role = Value::from("custom");
    }
    if let Some(replaced) = &body.replaced {
        let holder = match members.get_mut("message") {
            Some(Value::Object(message)) => message,
            _ => &mut members,
        };
        holder.insert("content".to_owned(), content_of(&replaced.content));
        if let Some(details) = &replaced.details {
            holder.insert("details".to_owned(), details.value());
        }
    }
    Some((kind, members))
}

/// A message as pi has it.
fn message_of(message: &AgentMessage) -> RawJson {
    Format::Pi.from_canonical(message).messages.into_iter().next().unwrap_or_default()
}

/// Content as pi has it in any message.
fn content_of(content: &[ContentBlock]) -> Value {
    let message = AgentMessage::User(UserMessage::new(content.to_vec(), 0));
    let mut message = message_of(&message).value();
    message.get_mut("content").map(Value::take).unwrap_or_default()
}

/// Bookkeeping has the same words in pi, and its keys in another spelling.
fn custom_rest(custom: &CustomPayload) -> (String, Map<String, Value>) {
    let known = Bookkeeping::from_payload(custom).map(|known| known.to_payload());
    match known.map(|known| (known.custom_type, known.data)) {
        Some((custom_type, Value::Object(members))) => {
            let kind = custom_type.trim_start_matches(RESERVED_PREFIX).to_owned();
            (
                kind,
                members
                    .into_iter()
                    .map(|(key, value)| (camel_case(key.into()).into_owned(), value))
                    .collect(),
            )
        }
        _ => {
            let data = ("data".to_owned(), custom.data.clone());
            let name = ("customType".to_owned(), Value::from(custom.custom_type.as_str()));
            ("custom".to_owned(), Map::from_iter([name, data]))
        }
    }
}
