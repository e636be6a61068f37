//! Entries as lines of a pi file.
//!
//! An entry that came from pi is given back as it came. Any other is written in pi's format; what pi cannot
//! express becomes a custom entry and is never left out.

use bough_session::{
    AgentMessage, AssistantMessage, Bookkeeping, Canonical, ContentBlock, CustomMessage,
    CustomPayload, Entry, EntryBody, FORMAT_PI, FunctionResultMessage, StopReason, Usage,
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
    rest: Map<String, Value>,
}

/// A line without its line break, with the id and the parent that the file is to have.
pub(crate) fn line_of(entry: &Entry, id: &str, parent: Option<&str>) -> String {
    if let Some(json) = unchanged(entry).and_then(|json| with_identity(&json, id, parent)) {
        return json;
    }
    let (kind, rest) = match patched(entry) {
        Some((kind, rest)) => (kind, rest),
        None => match entry.canonical() {
            Canonical::Message(message) => ("message".to_owned(), message_rest(&message)),
            Canonical::Custom(custom) => custom_rest(&custom),
        },
    };
    let timestamp = format_iso(entry.timestamp);
    let words = Words { r#type: &kind, id, parent_id: parent, timestamp, rest };
    // A map of strings and values has nothing that JSON cannot say.
    serde_json::to_string(&words).unwrap_or_default()
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
        holder.insert("content".to_owned(), blocks(&replaced.content));
        if let Some(details) = &replaced.details {
            holder.insert("details".to_owned(), details.value());
        }
    }
    Some((kind, members))
}

fn message_rest(message: &AgentMessage) -> Map<String, Value> {
    let value = match message {
        AgentMessage::User(user) => json!({
            "role": "user", "content": blocks(&user.content), "timestamp": user.timestamp,
        }),
        AgentMessage::Assistant(reply) => assistant(reply),
        AgentMessage::FunctionResult(result) => tool_result(result),
        AgentMessage::Custom(custom) => custom_message(custom),
    };
    Map::from_iter([("message".to_owned(), value)])
}

fn assistant(reply: &AssistantMessage) -> Value {
    let mut message = json!({
        "role": "assistant",
        "content": blocks(&reply.content),
        "api": "unknown",
        "provider": reply.provider,
        "model": reply.model,
        "usage": usage(reply.usage.as_ref()),
        "stopReason": stop_reason(reply),
        "timestamp": reply.timestamp,
    });
    if let (Some(text), Some(members)) = (&reply.error_message, message.as_object_mut()) {
        members.insert("errorMessage".to_owned(), Value::from(text.as_str()));
    }
    message
}

fn stop_reason(reply: &AssistantMessage) -> &str {
    match reply.stop_reason {
        StopReason::End => "stop",
        StopReason::Length => "length",
        StopReason::FunctionCall => "toolUse",
        StopReason::Aborted => "aborted",
        StopReason::Error => "error",
    }
}

/// pi's programs add these figures up without asking whether they are there.
fn usage(usage: Option<&Usage>) -> Value {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    let figures = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let [input, output, cache_read, cache_write] = figures.map(Option::unwrap_or_default);
    json!({
        "input": input,
        "output": output,
        "cacheRead": cache_read,
        "cacheWrite": cache_write,
        "totalTokens": input + output + cache_read + cache_write,
        "cost": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0,
            "total": usage.cost_usd.unwrap_or(0.0),
        },
    })
}

fn tool_result(result: &FunctionResultMessage) -> Value {
    json!({
        "role": "toolResult",
        "toolCallId": result.function_call_id,
        "toolName": result.function_id,
        "content": blocks(&result.content),
        "details": result.details,
        "isError": result.is_error,
        "timestamp": result.timestamp,
    })
}

fn custom_message(custom: &CustomMessage) -> Value {
    let shown = custom.display.as_deref() != Some("false");
    let mut message = json!({
        "role": "custom",
        "customType": custom.custom_type,
        "content": blocks(&custom.content),
        "display": shown,
        "timestamp": custom.timestamp,
    });
    if let (Some(details), Some(members)) = (&custom.details, message.as_object_mut()) {
        members.insert("details".to_owned(), details.value());
    }
    message
}

fn blocks(content: &[ContentBlock]) -> Value {
    content.iter().map(block).collect()
}

fn block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => {
            json!({"type": "image", "data": image.data, "mimeType": image.mime})
        }
        ContentBlock::Thinking(thought) => {
            let mut block = json!({"type": "thinking", "thinking": thought.text});
            if let (Some(signature), Some(members)) = (&thought.signature, block.as_object_mut()) {
                members.insert("thinkingSignature".to_owned(), Value::from(signature.as_str()));
            }
            block
        }
        ContentBlock::FunctionCall(call) => json!({
            "type": "toolCall", "id": call.id, "name": call.function_id,
            "arguments": call.arguments,
        }),
        // pi has no such block; its JSON as text keeps every word of it.
        ContentBlock::FunctionResult(_) => {
            json!({"type": "text", "text": json!(block).to_string()})
        }
    }
}

fn custom_rest(custom: &CustomPayload) -> (String, Map<String, Value>) {
    let members = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let known = Bookkeeping::from_payload(custom).map(|known| match known {
        Bookkeeping::ModelChange(change) => {
            ("model_change", json!({"provider": change.provider, "modelId": change.model_id}))
        }
        Bookkeeping::ThinkingLevelChange(change) => {
            ("thinking_level_change", json!({"thinkingLevel": change.thinking_level}))
        }
        Bookkeeping::Compaction(compaction) => (
            "compaction",
            some(json!({
                "summary": compaction.summary,
                "firstKeptEntryId": compaction.first_kept_entry_id,
                "tokensBefore": compaction.tokens_before,
                "details": compaction.details,
                "fromHook": compaction.from_hook,
            })),
        ),
        Bookkeeping::BranchSummary(summary) => (
            "branch_summary",
            some(json!({
                "fromId": summary.from_id,
                "summary": summary.summary,
                "details": summary.details,
                "fromHook": summary.from_hook,
            })),
        ),
        Bookkeeping::SessionInfo(info) => ("session_info", json!({"name": info.name})),
        Bookkeeping::Label(label) => {
            ("label", some(json!({"targetId": label.target_id, "label": label.label})))
        }
    });
    let (kind, rest) = known.unwrap_or_else(|| {
        ("custom", json!({"customType": custom.custom_type, "data": custom.data}))
    });
    (kind.to_owned(), members(rest))
}

/// The members that are not null.
fn some(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| !member.is_null());
    }
    value
}
