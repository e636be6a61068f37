//! Messages of OpenAI's Chat Completions API: those of a request, and the `chat.completion` object of a reply.
//!
//! Before there were tools, a message had one call, in `function_call`, and neither it nor its result had an id. Both
//! are named by the function, so that they find each other.

use serde_json::value::RawValue;

use super::block::{
    PlainRole, StopWords, arguments_of, arguments_text, image_at, is_reply, kept, kept_members,
    lose_error, lose_mime, lose_plain, lose_reply, name_of, picture_url, placed, plain_role,
    read_block, stop_reason_of, system_message, take_content, text_block, user_message,
    whole_block,
};
use super::check::Check;
use super::input::first_in;
use super::openai_parts::text_or_parts;
use super::openai_usage::Names;
use super::read::{Members, typed};
use super::response::ResponseNames;
use super::write::{Mapping, Object, set_members, take_members, to_json};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultMessage, RawJson, StopReason, TextBlock,
};

const FORMAT: Format = Format::OpenaiChat;
const PROVIDER: &str = "openai";
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];
const RESPONSE: ResponseNames =
    ResponseNames { format: FORMAT, answers: "choices", message: "message", first: "$choice" };
/// The member with the function that is called, and the member in it with the arguments.
const FUNCTION: (&str, &str) = ("function", "arguments");
const CUSTOM: (&str, &str) = ("custom", "input");
/// The member with the call of a message of before there were tools, and the mark of that call.
const OLD_CALL: &str = "function_call";
/// The role of its result.
const OLD_RESULT: &str = "function";
/// The mark of a text that is a refusal.
const REFUSAL: &str = "refusal";
/// The mark of a text that a reply speaks: its words are in `audio`.
const SPOKEN: &str = "$spoken";

const USAGE: Names = Names {
    format: FORMAT,
    input: "prompt_tokens",
    input_details: "prompt_tokens_details",
    output: "completion_tokens",
    output_details: "completion_tokens_details",
};

/// The codec.
pub(super) struct OpenaiChat;

impl Codec for OpenaiChat {
    fn joins_calls(&self) -> bool {
        true
    }

    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if check.has("choices") {
            return check.answers(RESPONSE.answers, |choice| {
                let message = choice.object(RESPONSE.message)?;
                message.one_of("role", &["assistant"])?;
                check_message(&message)
            });
        }
        check_message(check)
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let members = Members::parse(text)?;
        let message = if members.has("choices") {
            completion(members, entry_time)?
        } else {
            message(members, entry_time)?
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        match plain_role(message) {
            PlainRole::Assistant(reply) => vec![write_assistant(reply, mapping)],
            PlainRole::Result(result) => vec![write_result(result, mapping)],
            PlainRole::System => vec![write_plain("system", message, mapping)],
            PlainRole::User => vec![write_plain("user", message, mapping)],
        }
    }

    fn input(&self, json: RawJson, mapping: &mut Mapping) -> Vec<RawJson> {
        vec![first_in(&json, "choices", "message", mapping).unwrap_or(json)]
    }
}

fn check_message(check: &Check<'_>) -> Result<(), FormatError> {
    let role = check.one_of("role", ROLES)?;
    if role == "assistant" && check.has("tool_calls") && !check.is_null("tool_calls") {
        check.list("tool_calls", |call| {
            call.text("id")?;
            call.text("type").map(|_| ())
        })?;
    }
    if role == "tool" {
        check.text("tool_call_id")?;
    }
    if matches!(role.as_str(), "assistant" | "function") && check.is_null("content") {
        return Ok(());
    }
    check.text_or_list("content", |part| part.text("type").map(|_| ()))
}

fn message(mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let role = members.text("role").filter(|role| ROLES.contains(&role.as_str()))?;
    if role != "developer" && role != "function" {
        members.take("role");
    }
    let content = take_content(FORMAT, &mut members, "content", part);
    if members.is_null("content") {
        // Kept, it would stand in the place of the text that the message may get.
        members.take("content");
    }
    Some(match role.as_str() {
        "user" => user_message(FORMAT, content, timestamp, members),
        "assistant" => assistant(members, content, timestamp),
        "tool" | OLD_RESULT => {
            let name = members.take_text("name").unwrap_or_default();
            let call = if role == OLD_RESULT { Some(name.clone()) } else { None };
            let call = call.or_else(|| members.take_text("tool_call_id")).unwrap_or_default();
            AgentMessage::FunctionResult(FunctionResultMessage {
                unknown: kept(FORMAT, members),
                ..FunctionResultMessage::new(call, name, content, timestamp)
            })
        }
        _ => system_message(content, timestamp, kept(FORMAT, members)),
    })
}

fn assistant(
    mut members: Members<'_>,
    mut content: Vec<ContentBlock>,
    timestamp: i64,
) -> AgentMessage {
    if let Some(text) = members.take_text(REFUSAL) {
        let mark = Object::with(REFUSAL, true).into_members();
        content.push(ContentBlock::Text(TextBlock { text, unknown: kept_members(FORMAT, mark) }));
    }
    let audio = members.get("audio").and_then(Members::of);
    if content.is_empty()
        && let Some(text) = audio.and_then(|audio| audio.text("transcript"))
    {
        let mark = Object::with(SPOKEN, true).into_members();
        content.push(ContentBlock::Text(TextBlock { text, unknown: kept_members(FORMAT, mark) }));
    }
    let calls = members.take_list("tool_calls").unwrap_or_default();
    content
        .extend(calls.into_iter().map(|raw| read_block(FORMAT, raw, |members| call(raw, members))));
    content.extend(members.take_object(OLD_CALL).map(old_call));
    AgentMessage::Assistant(AssistantMessage {
        stop_reason: stop_reason_of(&content),
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, PROVIDER.to_owned(), String::new(), timestamp)
    })
}

fn completion(members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let (mut response, inner) = RESPONSE.read(members)?;
    let AgentMessage::Assistant(mut reply) = message(inner?, timestamp)? else { return None };
    reply.native_stop_reason = response.first.take_text("finish_reason");
    let reason = reply.native_stop_reason.as_deref().and_then(|word| STOP_WORDS.reason(word));
    reply.stop_reason = reason.unwrap_or(reply.stop_reason);
    response.members.take_word("object", "chat.completion");
    reply.model = response.members.take_text("model").unwrap_or_default();
    reply.usage = response.members.take_object("usage").map(|usage| USAGE.read(usage));
    response.keep_in(&mut reply);
    Some(AgentMessage::Assistant(reply))
}

const STOP_WORDS: StopWords = StopWords {
    provider: Some(PROVIDER),
    usual: &[
        ("stop", StopReason::End),
        ("length", StopReason::Length),
        ("tool_calls", StopReason::FunctionCall),
    ],
    others: &[("function_call", StopReason::FunctionCall), ("content_filter", StopReason::Error)],
};

fn part(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" if members.text("text").is_some() => {
            let text = members.take_text("text").unwrap_or_default();
            text_block(FORMAT, text, members)
        }
        "image_url" => image_part(raw, members),
        // The text of a refusal is shown as the text of the message.
        REFUSAL => whole_block(FORMAT, raw, members.text(REFUSAL).unwrap_or_default()),
        "file" => {
            let file = members.take_object("file").unwrap_or_default();
            whole_block(FORMAT, raw, name_of("file", &file))
        }
        "input_audio" => whole_block(FORMAT, raw, "[audio]".to_owned()),
        _ => whole_block(FORMAT, raw, name_of(&kind, &members)),
    }
}

fn image_part(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let mut source = members.take_object("image_url").unwrap_or_default();
    let Some(url) = source.take_text("url") else {
        return whole_block(FORMAT, raw, "[image]".to_owned());
    };
    let mut block = image_at(&url, "");
    let mut rest = members.into_unknown();
    set_members(&mut rest, "image_url", &source.into_unknown());
    block.unknown_mut().extend(kept_members(FORMAT, rest));
    block
}

fn call(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    // A custom tool takes one text. Its `type` stays with the call, so that it is known when the call is written.
    let is_function = members.take_word("type", "function");
    let (key, arguments) = if is_function { FUNCTION } else { CUSTOM };
    let Some(mut function) = members.take_object(key) else {
        return whole_block(FORMAT, raw, name_of("tool call", &members));
    };
    let arguments = function
        .take_text(arguments)
        .map(|text| if is_function { arguments_of(&text) } else { to_json(&text) });
    let mut block = FunctionCallBlock::new(
        members.take_text("id").unwrap_or_default(),
        function.take_text("name").unwrap_or_default(),
        arguments.unwrap_or_default(),
    );
    let mut rest = members.into_unknown();
    set_members(&mut rest, key, &function.into_unknown());
    block.unknown = kept_members(FORMAT, rest);
    ContentBlock::FunctionCall(block)
}

fn old_call(mut function: Members<'_>) -> ContentBlock {
    let name = function.take_text("name").unwrap_or_default();
    let arguments = function.take_text(FUNCTION.1).map(|text| arguments_of(&text));
    let mut block = FunctionCallBlock::new(name.clone(), name, arguments.unwrap_or_default());
    let mark = Object::with(OLD_CALL, function.into_unknown());
    block.unknown = kept_members(FORMAT, mark.into_members());
    ContentBlock::FunctionCall(block)
}

fn write_plain(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> RawJson {
    let (parts, _) = write_parts("", message.content(), mapping);
    let kept = mapping.kept("", message.unknown(), &[]);
    Object::with("role", role).and("content", parts).with_kept(kept)
}

fn write_result(result: &FunctionResultMessage, mapping: &mut Mapping) -> RawJson {
    let (parts, _) = write_parts("", &result.content, mapping);
    mapping.lose_some("", "is_error", result.is_error.then_some(&()));
    let kept = mapping.kept("", &result.unknown, &[]);
    let is_old = kept.get("role").is_some_and(|role| role.get() == "\"function\"");
    Object::with("role", "tool")
        .and_some("tool_call_id", (!is_old).then_some(&result.function_call_id))
        .and_some("name", Some(&result.function_id).filter(|name| !name.is_empty()))
        .and("content", parts)
        .with_kept(kept)
}

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> RawJson {
    let (parts, refusal) = write_parts("", &reply.content, mapping);
    let (calls, old_call) = write_calls(reply, mapping);
    lose_reply(mapping, reply, PROVIDER);
    lose_error(mapping, reply);
    let mut kept = mapping.kept("", &reply.unknown, &[]);
    let mut response = RESPONSE.take_kept(&mut kept);
    let message = Object::with("role", "assistant")
        .and(
            "content",
            Some(parts).filter(|parts| !parts.is_empty()).map(|parts| text_or_parts("text", parts)),
        )
        .and_some(REFUSAL, refusal)
        .and_some("tool_calls", Some(calls).filter(|calls| !calls.is_empty()))
        .and_some(OLD_CALL, old_call)
        .with_kept(kept);
    if !is_reply(reply) {
        return message;
    }
    let first = Object::with("index", 0)
        .and(RESPONSE.message, message)
        .and("finish_reason", STOP_WORDS.word(reply, mapping));
    Object::with("object", "chat.completion")
        .and("model", &reply.model)
        .and(RESPONSE.answers, response.answers(first))
        .and_some("usage", reply.usage.as_ref().map(|usage| USAGE.write(usage, mapping)))
        .with_kept(response.members)
}

/// The calls, and the one that has no id.
fn write_calls(reply: &AssistantMessage, mapping: &mut Mapping) -> (Vec<RawJson>, Option<RawJson>) {
    let (mut calls, mut old_call) = (Vec::new(), None);
    for (at, block) in placed("", &reply.content) {
        let ContentBlock::FunctionCall(call) = block else { continue };
        let mut kept = mapping.kept(&at, &call.unknown, &[]);
        let is_custom = kept.get("type").is_some_and(|kind| kind.get() == "\"custom\"");
        let (key, arguments) = if is_custom { CUSTOM } else { FUNCTION };
        let function = Object::with("name", &call.function_id)
            .and(arguments, arguments_text(&call.arguments, mapping));
        if kept.get(OLD_CALL).is_some() {
            old_call = Some(function.with_kept(take_members(&mut kept, OLD_CALL)));
            continue;
        }
        let function = function.with_kept(take_members(&mut kept, key));
        let object = Object::with("id", &call.id).and("type", "function").and(key, function);
        calls.push(object.with_kept(kept));
    }
    (calls, old_call)
}

/// The parts of a content, and the refusal in it. Calls and results are written elsewhere.
fn write_parts(
    at: &str,
    content: &[ContentBlock],
    mapping: &mut Mapping,
) -> (Vec<RawJson>, Option<String>) {
    let mut parts = Vec::with_capacity(content.len());
    let mut refusal = None;
    for (at, block) in placed(at, content) {
        let is_part = matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_));
        if is_part || mapping.original(block.unknown()).is_some() {
            parts.extend(mapping.block(&at, block, |mapping, at, block, kept| {
                write_part(at, block, kept, &mut refusal, mapping)
            }));
        } else if !matches!(block, ContentBlock::FunctionCall(_)) {
            mapping.lose(at);
        }
    }
    (parts, refusal)
}

fn write_part(
    at: &str,
    block: &ContentBlock,
    mut kept: UnknownMembers,
    refusal: &mut Option<String>,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    let object = match block {
        ContentBlock::Text(block) => {
            if kept.remove(REFUSAL).is_some_and(|mark| typed(mark.raw()) == Some(true)) {
                *refusal = Some(block.text.clone());
                return None;
            }
            if kept.remove(SPOKEN).is_some() {
                return None;
            }
            Object::with("type", "text").and("text", &block.text)
        }
        ContentBlock::Image(image) => {
            lose_mime(mapping, at, image);
            let source = Object::with("url", picture_url(image));
            let source = source.with_kept(take_members(&mut kept, "image_url"));
            Object::with("type", "image_url").and("image_url", source)
        }
        _ => return None,
    };
    Some(object.with_kept(kept))
}
