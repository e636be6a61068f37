//! Items of OpenAI's Responses API, and the `response` object of a reply.
//!
//! A response is one message of the model: its reasoning, messages and calls are blocks of it, in their order. An item
//! that stands alone is a message too. Where an item had members of its own, its first block keeps them.

use serde_json::value::RawValue;

use super::block::{
    PlainRole, arguments_of, arguments_text, image, is_reply, kept, kept_members, lose_error,
    lose_plain, lose_reply, name_of, placed, plain_role, signature_is_ours, stop_reason_of,
    system_message, whole_block,
};
use super::check::Check;
use super::openai_parts::{self as parts, text_or_parts, write_parts};
use super::openai_usage::Names;
use super::read::{Members, list, typed};
use super::write::{Mapping, Object, members_of, own_members, to_json};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultMessage, LossReason, RawJson, StopReason, ThinkingBlock, UserMessage,
};

pub(super) const FORMAT: Format = Format::OpenaiResponses;
const PROVIDER: &str = "openai";
const ROLES: &[&str] = &["user", "assistant", "system", "developer"];
/// The member that keeps those members of an item that its blocks do not have.
const ITEM: &str = "$item";

/// The item with a picture that the model made, and the member with the picture.
const MADE_PICTURE: &str = "image_generation_call";
const RESULT: &str = "result";

const USAGE: Names = Names {
    format: FORMAT,
    input: "input_tokens",
    input_details: "input_tokens_details",
    output: "output_tokens",
    output_details: "output_tokens_details",
};

/// The codec.
pub(super) struct OpenaiResponses;

impl Codec for OpenaiResponses {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if check.has("object") {
            check.one_of("object", &["response"])?;
            return check.list("output", check_item);
        }
        check_item(check)
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let members = Members::parse(text)?;
        let message = if is_response(&members) {
            response(members, entry_time)?
        } else {
            item(text, members, entry_time)?
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        match plain_role(message) {
            PlainRole::Assistant(reply) => write_assistant(reply, mapping),
            PlainRole::Result(result) => {
                let name = Some(&result.function_id).filter(|name| !name.is_empty());
                mapping.lose_some("", "function_id", name);
                mapping.lose_some("", "is_error", result.is_error.then_some(&()));
                let output = write_parts("", &result.content, "input", mapping);
                let output = text_or_parts("input_text", output);
                let object = Object::with("type", "function_call_output")
                    .and("call_id", &result.function_call_id)
                    .and("output", output);
                vec![object.with_kept(mapping.kept("", &result.unknown, &[]))]
            }
            PlainRole::System => vec![write_message("system", message, mapping)],
            PlainRole::User => vec![write_message("user", message, mapping)],
        }
    }

    fn input(&self, json: RawJson, mapping: &mut Mapping) -> Vec<RawJson> {
        // Results of tools have a list in `output` too.
        let Some(mut members) = Members::parse(json.get()).filter(is_response) else {
            return vec![json];
        };
        let Some(items) = members.take_list("output") else { return vec![json] };
        for (key, _) in members.into_unknown() {
            mapping.note(format!("/{}", super::write::escaped(&key)), LossReason::NotInput);
        }
        items.into_iter().map(RawJson::from).collect()
    }
}

/// Whether this is a whole answer of the API, and not one item.
fn is_response(members: &Members<'_>) -> bool {
    members.text("object").as_deref() == Some("response")
}

fn check_item(check: &Check<'_>) -> Result<(), FormatError> {
    let kind = if check.has("type") { check.text("type")? } else { "message".to_owned() };
    match kind.as_str() {
        "message" => {
            check.one_of("role", ROLES)?;
            check.text_or_list("content", |part| part.text("type").map(|_| ()))
        }
        "function_call" => {
            check.text("call_id")?;
            check.text("name").map(|_| ())
        }
        "function_call_output" => check.text("call_id").map(|_| ()),
        _ => Ok(()),
    }
}

fn response(mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let items = members.take_list("output")?;
    let content: Vec<ContentBlock> = items.into_iter().flat_map(blocks_of).collect();
    members.take_word("object", "response");
    let status = members.take_text("status");
    let incomplete = members.get("incomplete_details").and_then(Members::of);
    let reason = incomplete.and_then(|details| details.text("reason"));
    let error = members.get("error").and_then(Members::of);
    let stop_reason = match status.as_deref() {
        Some("incomplete") if reason.as_deref() == Some("content_filter") => StopReason::Error,
        Some("incomplete") => StopReason::Length,
        Some("failed") => StopReason::Error,
        Some("cancelled") => StopReason::Aborted,
        _ => stop_reason_of(&content),
    };
    let model = members.take_text("model").unwrap_or_default();
    Some(AgentMessage::Assistant(AssistantMessage {
        stop_reason,
        native_stop_reason: reason.or(status),
        error_message: error.and_then(|error| error.text("message")),
        usage: members.take_object("usage").map(|usage| USAGE.read(usage)),
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, PROVIDER.to_owned(), model, timestamp)
    }))
}

/// An item that stands alone.
fn item(text: &str, mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let kind = members.text("type").unwrap_or_else(|| "message".to_owned());
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    if matches!(kind.as_str(), "function_call_output" | "custom_tool_call_output") {
        members.take_word("type", "function_call_output");
        let function_call_id = members.take_text("call_id").unwrap_or_default();
        let content = parts::content_of(&mut members, "output");
        return Some(AgentMessage::FunctionResult(FunctionResultMessage {
            unknown: kept(FORMAT, members),
            ..FunctionResultMessage::new(function_call_id, String::new(), content, timestamp)
        }));
    }
    if kind != "message" || members.text("role").as_deref() == Some("assistant") {
        let content = blocks_of(raw);
        return Some(AgentMessage::Assistant(AssistantMessage::new(
            content,
            PROVIDER.to_owned(),
            String::new(),
            timestamp,
        )));
    }
    let role = members.text("role").filter(|role| ROLES.contains(&role.as_str()))?;
    if role != "developer" {
        members.take("role");
    }
    let content = parts::content_of(&mut members, "content");
    let unknown = kept(FORMAT, members);
    Some(if role == "user" {
        AgentMessage::User(UserMessage { content, timestamp, unknown })
    } else {
        system_message(content, timestamp, unknown)
    })
}

/// The blocks of an item of the model.
fn blocks_of(raw: &RawValue) -> Vec<ContentBlock> {
    let Some(mut members) = Members::of(raw) else {
        return vec![whole_block(FORMAT, raw, raw.get().to_owned())];
    };
    let kind = members.text("type").unwrap_or_else(|| "message".to_owned());
    match kind.as_str() {
        "message" => message_blocks(raw, members),
        "reasoning" => vec![reasoning(members)],
        "function_call" | "custom_tool_call" => {
            let is_function = members.take_word("type", "function_call");
            let key = if is_function { "arguments" } else { "input" };
            let arguments = members
                .take_text(key)
                .map(|text| if is_function { arguments_of(&text) } else { to_json(&text) });
            vec![ContentBlock::FunctionCall(FunctionCallBlock {
                id: members.take_text("call_id").unwrap_or_default(),
                function_id: members.take_text("name").unwrap_or_default(),
                arguments: arguments.unwrap_or_default(),
                unknown: kept(FORMAT, members),
            })]
        }
        MADE_PICTURE if members.text(RESULT).is_some() => vec![made_picture(members)],
        _ => vec![whole_block(FORMAT, raw, name_of(&kind, &members))],
    }
}

/// A picture that the model made. The item keeps its `type`, so that it is known when it is written.
fn made_picture(mut members: Members<'_>) -> ContentBlock {
    let data = members.take_text(RESULT).unwrap_or_default();
    let made = members.text("output_format").unwrap_or_else(|| "png".to_owned());
    let mut block = image(format!("image/{made}"), data);
    block.unknown_mut().extend(kept(FORMAT, members));
    block
}

/// Whether a picture is an item of its own.
fn is_made_picture(block: &ContentBlock) -> bool {
    let ContentBlock::Image(image) = block else { return false };
    let kind = own_members(FORMAT, &image.unknown).remove("type");
    kind.is_some_and(|kind| typed::<String>(kind.raw()).as_deref() == Some(MADE_PICTURE))
}

fn message_blocks(raw: &RawValue, mut members: Members<'_>) -> Vec<ContentBlock> {
    members.take_word("type", "message");
    members.take_word("role", "assistant");
    let mut content = parts::content_of(&mut members, "content");
    if content.is_empty() {
        content.push(whole_block(FORMAT, raw, String::new()));
    }
    let Some(first) = content.first_mut() else { return content };
    let own = first.unknown_mut();
    let mut rest = own_members(FORMAT, own);
    rest.set(ITEM, to_json(&members.into_unknown()));
    own.extend(kept_members(FORMAT, rest));
    content
}

/// The text of a reasoning item: its summary, or its content.
fn reasoning_text(members: &Members<'_>) -> String {
    let texts = |key: &str| -> Vec<String> {
        let items = members.get(key).and_then(list).unwrap_or_default();
        items.into_iter().filter_map(|item| Members::of(item)?.text("text")).collect()
    };
    let summary = texts("summary");
    let texts = if summary.is_empty() { texts("content") } else { summary };
    texts.join("\n\n")
}

fn reasoning(mut members: Members<'_>) -> ContentBlock {
    members.take("type");
    ContentBlock::Thinking(ThinkingBlock {
        text: reasoning_text(&members),
        signature: members.take_text("encrypted_content"),
        unknown: kept(FORMAT, members),
    })
}

fn write_message(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> RawJson {
    let parts = write_parts("", message.content(), "input", mapping);
    let kept = mapping.kept("", message.unknown(), &[]);
    Object::with("type", "message").and("role", role).and("content", parts).with_kept(kept)
}

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> Vec<RawJson> {
    let items = write_items(reply, mapping);
    let kept = mapping.kept("", &reply.unknown, &[]);
    lose_reply(mapping, reply, PROVIDER);
    if !is_reply(reply) {
        lose_error(mapping, reply);
        return items;
    }
    if reply.native_stop_reason.is_some() && reply.provider != PROVIDER {
        mapping.note("/native_stop_reason".to_owned(), LossReason::Changed);
    }
    let mut object = Object::with("object", "response");
    object.put("model", &reply.model);
    object.put("status", if mapping.is_unfinished { "in_progress" } else { status(reply, &kept) });
    object.put("output", items);
    object.put_some("usage", reply.usage.as_ref().map(|usage| USAGE.write(usage, mapping)));
    object.put_back(kept);
    if reply.stop_reason == StopReason::Length && object.is_null("incomplete_details") {
        let reason = Object::with("reason", "max_output_tokens").into_raw();
        object.put("incomplete_details", reason);
    }
    if let Some(text) = reply.error_message.as_ref().filter(|_| object.is_null("error")) {
        let error = Object::with("code", "server_error").and("message", text);
        object.put("error", error.into_raw());
    }
    vec![object.into_raw()]
}

/// The status of a response. A reply that a filter cut is an error for us and an incomplete response there.
fn status(reply: &AssistantMessage, kept: &UnknownMembers) -> &'static str {
    let is_cut = kept.get("incomplete_details").is_some_and(|details| !details.is_null());
    match (reply.stop_reason, reply.native_stop_reason.as_deref()) {
        (StopReason::End | StopReason::FunctionCall, Some("in_progress")) => "in_progress",
        (StopReason::End | StopReason::FunctionCall, Some("queued")) => "queued",
        (StopReason::End | StopReason::FunctionCall, _) => "completed",
        (StopReason::Length, _) => "incomplete",
        (StopReason::Error, _) if is_cut => "incomplete",
        (StopReason::Error, _) => "failed",
        (StopReason::Aborted, _) => "cancelled",
    }
}

/// The items of a message: texts and pictures that follow each other are parts of one item.
fn write_items(reply: &AssistantMessage, mapping: &mut Mapping) -> Vec<RawJson> {
    let mut items = Vec::new();
    let mut open: Option<(UnknownMembers, Vec<RawJson>)> = None;
    for (at, block) in placed("", &reply.content) {
        let part = if is_made_picture(block) {
            None
        } else {
            parts::write_part(&at, block, "output", mapping)
        };
        if let Some(part) = part {
            let (part, own) = split_item(part);
            if own.is_some() {
                items.extend(open.take().map(close));
            }
            let (_, parts) = open.get_or_insert_with(|| (own.unwrap_or_default(), Vec::new()));
            parts.push(part);
            continue;
        }
        items.extend(open.take().map(close));
        items.extend(write_item(&at, block, reply, mapping));
    }
    items.extend(open.map(close));
    items
}

/// A part without what it keeps for its item.
fn split_item(part: RawJson) -> (RawJson, Option<UnknownMembers>) {
    let mut members = members_of(&part);
    match members.remove(ITEM) {
        Some(own) => (to_json(&members), Some(members_of(&own))),
        None => (part, None),
    }
}

fn close((own, parts): (UnknownMembers, Vec<RawJson>)) -> RawJson {
    Object::with("type", "message").and("role", "assistant").and("content", parts).with_kept(own)
}

fn write_item(
    at: &str,
    block: &ContentBlock,
    reply: &AssistantMessage,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    if let Some(whole) = mapping.original(block.unknown()) {
        return Some(whole);
    }
    let mut kept = mapping.kept(at, block.unknown(), &[]);
    let object = match block {
        ContentBlock::Thinking(thought) => {
            let mut summary = Vec::new();
            if !thought.text.is_empty() && !keeps_text(&kept, &thought.text) {
                let part = Object::with("type", "summary_text").and("text", &thought.text);
                summary.push(part.into_raw());
                kept.remove("summary");
            }
            let mut object = Object::with("type", "reasoning").and("summary", summary);
            let is_ours = signature_is_ours(Some(&reply.provider), PROVIDER);
            mapping.put_signature(&mut object, "encrypted_content", at, thought, is_ours);
            object
        }
        ContentBlock::FunctionCall(call) => {
            let is_custom = kept.get("type").is_some_and(|kind| kind.get().contains("custom"));
            let key = if is_custom { "input" } else { "arguments" };
            Object::with("type", "function_call")
                .and("call_id", &call.id)
                .and("name", &call.function_id)
                .and(key, arguments_text(&call.arguments, mapping))
        }
        ContentBlock::FunctionResult(_) => {
            mapping.lose(at.to_owned());
            return None;
        }
        ContentBlock::Image(image) => Object::with(RESULT, &image.data),
        ContentBlock::Text(_) => return None,
    };
    Some(object.with_kept(kept))
}

/// Whether the kept summary still has this text.
fn keeps_text(kept: &UnknownMembers, text: &str) -> bool {
    let json = to_json(kept);
    Members::parse(json.get()).is_some_and(|members| reasoning_text(&members) == text)
}
