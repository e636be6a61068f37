//! Messages of OpenAI's Chat Completions API: those of a request, and the `chat.completion` object of a reply.

use serde_json::value::RawValue;

use super::block::{
    PlainRole, arguments_of, arguments_text, image_at, is_mark, is_reply, kept, kept_members,
    lose_error, lose_mime, lose_plain, lose_reply, name_of, picture, picture_url, placed,
    plain_role, stop_word, system_message, whole_block,
};
use super::check::Check;
use super::input::first_in;
use super::openai_usage::Names;
use super::read::{Members, typed};
use super::write::{Mapping, Object, members_of};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultMessage, RawJson, StopReason, TextBlock, UserMessage,
};

const FORMAT: Format = Format::OpenaiChat;
const PROVIDER: &str = "openai";
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];
/// Where the members of a completion, and of its first choice, are kept.
const RESPONSE: &str = "$response";
const CHOICE: &str = "$choice";
/// The member with the function that is called, and the member in it with the arguments.
const FUNCTION: (&str, &str) = ("function", "arguments");
const CUSTOM: (&str, &str) = ("custom", "input");
/// The mark of a text that is a refusal.
const REFUSAL: &str = "refusal";

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
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if check.has("choices") {
            return check.answers("choices", "message", "assistant", check_message);
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
            PlainRole::Assistant(said) => vec![write_assistant(said, mapping)],
            PlainRole::Result(said) => vec![write_result(said, mapping)],
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
    let content = content_of(&mut members);
    Some(match role.as_str() {
        "user" => {
            AgentMessage::User(UserMessage { content, timestamp, unknown: kept(FORMAT, members) })
        }
        "assistant" => assistant(members, content, timestamp),
        "tool" | "function" => AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: members.take_text("tool_call_id").unwrap_or_default(),
            function_id: members.take_text("name").unwrap_or_default(),
            unknown: kept(FORMAT, members),
            ..FunctionResultMessage::new(String::new(), String::new(), content, timestamp)
        }),
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
    let calls = members.take_list("tool_calls").unwrap_or_default();
    content.extend(calls.into_iter().map(call));
    let stop_reason =
        if content.iter().any(is_call) { StopReason::FunctionCall } else { StopReason::End };
    AgentMessage::Assistant(AssistantMessage {
        stop_reason,
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, PROVIDER.to_owned(), String::new(), timestamp)
    })
}

const fn is_call(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::FunctionCall(_))
}

fn completion(mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let mut choices = members.take_list("choices")?;
    let mut choice = Members::of(choices.first()?)?;
    let inner = choice.take_object("message")?;
    let AgentMessage::Assistant(mut said) = message(inner, timestamp)? else { return None };
    said.native_stop_reason = choice.take_text("finish_reason");
    if let Some(reason) = said.native_stop_reason.as_deref().and_then(stop_reason) {
        said.stop_reason = reason;
    }
    members.take_word("object", "chat.completion");
    said.model = members.take_text("model").unwrap_or_default();
    said.usage = members.take_object("usage").map(|usage| USAGE.read(usage));
    let mut rest = said.unknown.get(FORMAT.name()).map(members_of).unwrap_or_default();
    let mut around = members.into_unknown();
    if choices.len() > 1 {
        choices.remove(0);
        around.set("choices", RawJson::of(&choices).unwrap_or_default());
    }
    for (key, members) in [(RESPONSE, around), (CHOICE, choice.into_unknown())] {
        if !members.is_empty() {
            rest.set(key, RawJson::of(&members).unwrap_or_default());
        }
    }
    said.unknown = kept_members(FORMAT, rest);
    Some(AgentMessage::Assistant(said))
}

fn stop_reason(native: &str) -> Option<StopReason> {
    Some(match native {
        "stop" => StopReason::End,
        "length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::FunctionCall,
        "content_filter" => StopReason::Error,
        _ => return None,
    })
}

const USUAL: &[(StopReason, &str)] = &[
    (StopReason::End, "stop"),
    (StopReason::Length, "length"),
    (StopReason::FunctionCall, "tool_calls"),
];

/// Reads content, which is one text or a list of parts. Anything else is left in place.
fn content_of(members: &mut Members<'_>) -> Vec<ContentBlock> {
    if let Some(text) = members.take_text("content") {
        return vec![ContentBlock::text(text)];
    }
    members.take_list("content").unwrap_or_default().into_iter().map(part).collect()
}

fn part(raw: &RawValue) -> ContentBlock {
    let Some(mut members) = Members::of(raw) else {
        return whole_block(FORMAT, raw, raw.get().to_owned());
    };
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" if members.text("text").is_some() => {
            let text = members.take_text("text").unwrap_or_default();
            ContentBlock::Text(TextBlock { text, unknown: kept(FORMAT, members) })
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
    let Some(mut source) = members.take_object("image_url") else {
        return whole_block(FORMAT, raw, "[image]".to_owned());
    };
    let Some(url) = source.take_text("url") else {
        return whole_block(FORMAT, raw, "[image]".to_owned());
    };
    let mut block = image_at(&url, "");
    let mut rest = members.into_unknown();
    if !source.is_empty() {
        rest.set("image_url", RawJson::of(&source.into_unknown()).unwrap_or_default());
    }
    for (key, value) in kept_members(FORMAT, rest) {
        block.unknown_mut().set(key, value);
    }
    block
}

fn call(raw: &RawValue) -> ContentBlock {
    let Some(mut members) = Members::of(raw) else {
        return whole_block(FORMAT, raw, raw.get().to_owned());
    };
    // A custom tool takes one text. Its `type` stays with the call, so that it is known when the call is written.
    let is_function = members.take_word("type", "function");
    let (key, arguments) = if is_function { FUNCTION } else { CUSTOM };
    let Some(mut function) = members.take_object(key) else {
        return whole_block(FORMAT, raw, name_of("tool call", &members));
    };
    let arguments = function.take_text(arguments).map(|text| {
        if is_function { arguments_of(&text) } else { RawJson::of(&text).unwrap_or_default() }
    });
    let mut block = FunctionCallBlock::new(
        members.take_text("id").unwrap_or_default(),
        function.take_text("name").unwrap_or_default(),
        arguments.unwrap_or_default(),
    );
    let mut rest = members.into_unknown();
    if !function.is_empty() {
        rest.set(key, RawJson::of(&function.into_unknown()).unwrap_or_default());
    }
    block.unknown = kept_members(FORMAT, rest);
    ContentBlock::FunctionCall(block)
}

fn write_plain(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> RawJson {
    let mut object = Object::with("role", role);
    object.put("content", write_parts("", message.content(), mapping).0);
    object.put_back(mapping.kept("", message.unknown(), &[]));
    object.into_raw()
}

fn write_result(said: &FunctionResultMessage, mapping: &mut Mapping) -> RawJson {
    let mut object = Object::with("role", "tool");
    object.put("tool_call_id", &said.function_call_id);
    if !said.function_id.is_empty() {
        object.put("name", &said.function_id);
    }
    object.put("content", write_parts("", &said.content, mapping).0);
    if said.is_error {
        mapping.lose("/is_error".to_owned());
    }
    object.put_back(mapping.kept("", &said.unknown, &[]));
    object.into_raw()
}

fn write_assistant(said: &AssistantMessage, mapping: &mut Mapping) -> RawJson {
    let mut object = Object::with("role", "assistant");
    let (parts, refusal) = write_parts("", &said.content, mapping);
    object.put("content", Some(parts).filter(|parts| !parts.is_empty()).map(text_or_parts));
    object.put_some(REFUSAL, refusal);
    let calls = write_calls(said, mapping);
    object.put_some("tool_calls", Some(calls).filter(|calls| !calls.is_empty()));
    lose_reply(mapping, said, PROVIDER);
    lose_error(mapping, said);
    let mut kept = mapping.kept("", &said.unknown, &[]);
    let (around, choice) = (kept.remove(RESPONSE), kept.remove(CHOICE));
    object.put_back(kept);
    if !is_reply(said) {
        return object.into_raw();
    }
    let mut first = Object::with("index", 0);
    first.put("message", object.into_raw());
    first.put("finish_reason", stop_word(mapping, said, PROVIDER, stop_reason, USUAL));
    first.put_back(choice.as_ref().map(members_of).unwrap_or_default());
    write_completion(said, first, around.as_ref(), mapping)
}

fn write_completion(
    said: &AssistantMessage,
    first: Object,
    around: Option<&RawJson>,
    mapping: &mut Mapping,
) -> RawJson {
    let mut around = around.map(members_of).unwrap_or_default();
    let mut choices = vec![first.into_raw()];
    if let Some(more) = around.remove("choices") {
        choices.extend(
            super::read::list(more.raw()).unwrap_or_default().into_iter().map(RawJson::from),
        );
    }
    let mut object = Object::with("object", "chat.completion");
    object.put("model", &said.model);
    object.put("choices", choices);
    object.put_some("usage", said.usage.as_ref().map(|usage| USAGE.write(usage, mapping)));
    object.put_back(around);
    object.into_raw()
}

/// One plain text is written as a text.
fn text_or_parts(parts: Vec<RawJson>) -> RawJson {
    if let [part] = parts.as_slice()
        && let Some(mut members) = Members::parse(part.get())
        && members.take_word("type", "text")
        && let Some(text) = members.take("text")
        && members.is_empty()
    {
        return text.into();
    }
    RawJson::of(&parts).unwrap_or_default()
}

fn write_calls(said: &AssistantMessage, mapping: &mut Mapping) -> Vec<RawJson> {
    let mut calls = Vec::new();
    for (at, block) in placed("", &said.content) {
        let ContentBlock::FunctionCall(call) = block else { continue };
        let mut kept = mapping.kept(&at, &call.unknown, &[]);
        let is_custom = kept.get("type").is_some_and(|kind| kind.get() == "\"custom\"");
        let (key, arguments) = if is_custom { CUSTOM } else { FUNCTION };
        let mut function = Object::with("name", &call.function_id);
        function.put(arguments, arguments_text(&call.arguments));
        function.put_back(kept.remove(key).as_ref().map(members_of).unwrap_or_default());
        let mut object = Object::with("id", &call.id);
        object.put("type", "function");
        object.put(key, function.into_raw());
        object.put_back(kept);
        calls.push(object.into_raw());
    }
    calls
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
        if let Some(whole) = mapping.original(block.unknown()) {
            parts.push(whole);
            continue;
        }
        match block {
            ContentBlock::Text(block) => {
                let mut kept = mapping.kept(&at, &block.unknown, &[]);
                if kept.remove(REFUSAL).is_some_and(|mark| typed(mark.raw()) == Some(true)) {
                    refusal = Some(block.text.clone());
                } else if !is_mark(&ContentBlock::Text(block.clone())) {
                    let mut object = Object::with("type", "text");
                    object.put("text", &block.text);
                    object.put_back(kept);
                    parts.push(object.into_raw());
                }
            }
            ContentBlock::Image(image) => {
                let mut kept = mapping.kept(&at, &image.unknown, picture(image).1);
                lose_mime(mapping, &at, image);
                let mut source = Object::with("url", picture_url(image));
                let rest: Option<UnknownMembers> =
                    kept.remove("image_url").as_ref().map(members_of);
                source.put_back(rest.unwrap_or_default());
                let mut object = Object::with("type", "image_url");
                object.put("image_url", source.into_raw());
                object.put_back(kept);
                parts.push(object.into_raw());
            }
            ContentBlock::FunctionCall(_) => {}
            ContentBlock::Thinking(_) | ContentBlock::FunctionResult(_) => mapping.lose(at),
        }
    }
    (parts, refusal)
}
