//! Contents of the Gemini API, and the object that `generateContent` answers with.
//!
//! Gemini need not give a call an id. A call without one is named by its function (`name`, then `name#2`), and so is
//! its response, so that the two still find each other.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::block::{
    Picture, PlainRole, StopWords, arguments_object, image, image_at, is_reply, kept, kept_members,
    lose_error, lose_plain, lose_reply, name_of, picture, placed, plain_role, read_block,
    result_as_block, result_message, signature_is_ours, some_mime, stop_reason_of, system_message,
    text_block, user_message, whole_block,
};
use super::check::Check;
use super::gemini_results::{result_block, take_name, write_result};
use super::input::first_in;
use super::read::Members;
use super::response::ResponseNames;
use super::write::{Mapping, Object, set_members, take_members};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    ImageBlock, RawJson, StopReason, ThinkingBlock,
};

pub(super) const FORMAT: Format = Format::Gemini;
const PROVIDER: &str = "google";
const RESPONSE: ResponseNames = ResponseNames {
    format: FORMAT,
    answers: "candidates",
    message: "content",
    first: "$candidate",
};
const SIGNATURE: &str = "thoughtSignature";
/// The members with a call and with its response. What they keep holds a null `id` if they came without one.
const CALL: &str = "functionCall";
pub(super) const RESULT: &str = "functionResponse";

/// The codec.
pub(super) struct Gemini;

impl Codec for Gemini {
    fn joins_calls(&self) -> bool {
        true
    }

    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if check.has("candidates") {
            return check.answers("candidates", "content", "model", check_content);
        }
        check_content(check)
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let members = Members::parse(text)?;
        let message = if members.has("candidates") {
            response(members, entry_time)?
        } else {
            content(members, entry_time)?
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        let object = match plain_role(message) {
            PlainRole::Assistant(reply) => write_assistant(reply, mapping),
            PlainRole::Result(result) => {
                let block = result_as_block(result.clone());
                let part = write_result("", &block, Some(&result.function_id), mapping);
                Object::with("role", "user").and("parts", [part]).into_raw()
            }
            PlainRole::User => write_content("user", message, mapping),
            PlainRole::System => write_content("system", message, mapping),
        };
        vec![object]
    }

    fn input(&self, json: RawJson, mapping: &mut Mapping) -> Vec<RawJson> {
        vec![first_in(&json, "candidates", "content", mapping).unwrap_or(json)]
    }

    fn joins_results(&self) -> bool {
        true
    }

    fn system_list(&self) -> Option<&'static str> {
        Some("parts")
    }
}

fn check_content(check: &Check<'_>) -> Result<(), FormatError> {
    if check.has("role") {
        check.one_of("role", &["user", "model", "function", "system"])?;
    }
    check.list("parts", |_| Ok(()))
}

fn content(mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let parts = members.take_list("parts")?;
    let mut names = HashMap::new();
    let mut content: Vec<_> = parts.into_iter().map(|raw| part(raw, &mut names)).collect();
    let role = members.text("role").unwrap_or_default();
    if matches!(role.as_str(), "user" | "model" | "system") {
        members.take("role");
    }
    Some(match role.as_str() {
        "model" => AgentMessage::Assistant(AssistantMessage {
            stop_reason: stop_reason_of(&content),
            unknown: kept(FORMAT, members),
            ..AssistantMessage::new(content, PROVIDER.to_owned(), String::new(), timestamp)
        }),
        "system" => system_message(content, timestamp, kept(FORMAT, members)),
        "user" | "function" | "" => {
            if content.len() == 1
                && let Some(ContentBlock::FunctionResult(_)) = content.first()
                && let Some(ContentBlock::FunctionResult(mut block)) = content.pop()
            {
                let name = take_name(&mut block.unknown);
                return Some(AgentMessage::FunctionResult(result_message(block, name, timestamp)));
            }
            user_message(FORMAT, content, timestamp, members)
        }
        _ => return None,
    })
}

fn response(members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let (mut response, message) = RESPONSE.read(members)?;
    let AgentMessage::Assistant(mut reply) = content(message, timestamp)? else { return None };
    reply.native_stop_reason = response.first.take_text("finishReason");
    match reply.native_stop_reason.as_deref().and_then(|word| STOP_WORDS.reason(word)) {
        // Gemini stops in the same way for a call.
        Some(StopReason::End) | None => {}
        Some(reason) => reply.stop_reason = reason,
    }
    reply.model = response.members.take_text("modelVersion").unwrap_or_default();
    reply.usage = response.members.take_object("usageMetadata").map(super::gemini_usage::read);
    response.keep_in(&mut reply);
    Some(AgentMessage::Assistant(reply))
}

const STOP_WORDS: StopWords = StopWords {
    provider: Some(PROVIDER),
    usual: &[
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::Length),
        ("STOP", StopReason::FunctionCall),
        ("OTHER", StopReason::Error),
    ],
    others: &[
        ("SAFETY", StopReason::Error),
        ("RECITATION", StopReason::Error),
        ("LANGUAGE", StopReason::Error),
        ("BLOCKLIST", StopReason::Error),
        ("PROHIBITED_CONTENT", StopReason::Error),
        ("SPII", StopReason::Error),
        ("MALFORMED_FUNCTION_CALL", StopReason::Error),
        ("IMAGE_SAFETY", StopReason::Error),
    ],
};

/// A member by the name that the API writes, or by the one that Python programs write.
fn take_either<'a>(members: &mut Members<'a>, name: &str, snake: &str) -> Option<Members<'a>> {
    members.take_object(name).or_else(|| members.take_object(snake))
}

pub(super) fn part(raw: &RawValue, names: &mut HashMap<String, usize>) -> ContentBlock {
    read_block(FORMAT, raw, |members| part_of(raw, members, names))
}

fn part_of(
    raw: &RawValue,
    mut members: Members<'_>,
    names: &mut HashMap<String, usize>,
) -> ContentBlock {
    if let Some(text) = members.take_text("text") {
        if members.take_as("thought") == Some(true) {
            return ContentBlock::Thinking(ThinkingBlock {
                text,
                signature: members.take_text(SIGNATURE),
                unknown: kept(FORMAT, members),
            });
        }
        return text_block(FORMAT, text, members);
    }
    if let Some(call) = take_either(&mut members, CALL, "function_call") {
        return call_block(call, members, names);
    }
    if let Some(result) = take_either(&mut members, RESULT, "function_response") {
        return result_block(result, members, names);
    }
    media(raw, members)
}

fn media(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let either = |data: &mut Members<'_>, name: &str, snake: &str| {
        data.take_text(name).or_else(|| data.take_text(snake)).unwrap_or_default()
    };
    let mut found = if let Some(mut data) = take_either(&mut members, "inlineData", "inline_data") {
        let mime = either(&mut data, "mimeType", "mime_type");
        if !mime.starts_with("image/") || data.text("data").is_none() {
            return whole_block(FORMAT, raw, format!("[{mime}]"));
        }
        image(mime, data.take_text("data").unwrap_or_default())
    } else if let Some(mut data) = take_either(&mut members, "fileData", "file_data") {
        let mime = either(&mut data, "mimeType", "mime_type");
        let uri = either(&mut data, "fileUri", "file_uri");
        if !mime.starts_with("image/") {
            return whole_block(FORMAT, raw, format!("[{mime}: {uri}]"));
        }
        image_at(&uri, &mime)
    } else {
        let kinds = ["executableCode", "codeExecutionResult"].into_iter();
        let found = kinds.filter_map(|key| Some((key, members.take_object(key)?))).next();
        let (kind, inside) = found.unwrap_or_else(|| ("part", Members::default()));
        return whole_block(FORMAT, raw, name_of(kind, &inside));
    };
    found.unknown_mut().extend(kept(FORMAT, members));
    found
}

/// The name of the next call or response of a function in this message.
pub(super) fn next_name(names: &mut HashMap<String, usize>, name: &str) -> String {
    let count = names.entry(name.to_owned()).or_insert(0);
    *count += 1;
    if *count == 1 { name.to_owned() } else { format!("{name}#{count}") }
}

/// What is kept of a part with an object in it: the part's members, and under `key` those of the object.
pub(super) fn with_inner(
    members: Members<'_>,
    key: &str,
    inner: &UnknownMembers,
) -> UnknownMembers {
    let mut rest = members.into_unknown();
    set_members(&mut rest, key, inner);
    rest
}

fn call_block(
    mut call: Members<'_>,
    members: Members<'_>,
    names: &mut HashMap<String, usize>,
) -> ContentBlock {
    let name = call.take_text("name").unwrap_or_default();
    let given = call.take_text("id");
    let arguments = call.take_some("args").unwrap_or_default();
    let mut rest = call.into_unknown();
    let id = given.unwrap_or_else(|| {
        rest.set("id", RawJson::default());
        next_name(names, &name)
    });
    let mut block = FunctionCallBlock::new(id, name, arguments);
    block.unknown = kept_members(FORMAT, with_inner(members, CALL, &rest));
    ContentBlock::FunctionCall(block)
}

fn write_content(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> RawJson {
    let parts = write_parts("", message.content(), None, mapping);
    let kept = mapping.kept("", message.unknown(), &[]);
    Object::with("role", role).and("parts", parts).with_kept(kept)
}

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> RawJson {
    let parts = write_parts("", &reply.content, Some(&reply.provider), mapping);
    lose_reply(mapping, reply, PROVIDER);
    lose_error(mapping, reply);
    let mut kept = mapping.kept("", &reply.unknown, &[]);
    let mut response = RESPONSE.take_kept(&mut kept);
    let content = Object::with("role", "model").and("parts", parts).with_kept(kept);
    if !is_reply(reply) {
        return content;
    }
    let first = Object::with(RESPONSE.message, content)
        .and("finishReason", STOP_WORDS.word(reply, mapping));
    let usage = reply.usage.as_ref().map(|usage| super::gemini_usage::write(usage, mapping));
    Object::with(RESPONSE.answers, response.answers(first))
        .and_some("usageMetadata", usage)
        .and("modelVersion", &reply.model)
        .with_kept(response.members)
}

pub(super) fn write_parts(
    at: &str,
    content: &[ContentBlock],
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    let mut parts = Vec::with_capacity(content.len());
    for (at, block) in placed(at, content) {
        if let Some(whole) = mapping.original(block.unknown()) {
            parts.push(whole);
        } else if let ContentBlock::FunctionResult(result) = block {
            parts.push(write_result(&at, result, None, mapping));
        } else {
            parts.extend(mapping.block(&at, block, |mapping, at, block, kept| {
                write_part(at, block, kept, provider, mapping)
            }));
        }
    }
    parts
}

fn write_part(
    at: &str,
    block: &ContentBlock,
    mut kept: UnknownMembers,
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    let object = match block {
        ContentBlock::Text(block) => Object::with("text", &block.text),
        ContentBlock::Thinking(block) => {
            let mut object = Object::with("text", &block.text).and("thought", true);
            let is_ours = signature_is_ours(provider, PROVIDER);
            mapping.put_signature(&mut object, SIGNATURE, at, block, is_ours);
            object
        }
        ContentBlock::Image(image) => write_image(image),
        ContentBlock::FunctionCall(call) => {
            let mut inner = take_members(&mut kept, CALL);
            let has_id = !inner.remove("id").is_some_and(|id| id.is_null());
            let call = Object::default()
                .and_some("id", has_id.then_some(&call.id))
                .and("name", &call.function_id)
                .and("args", arguments_object(&call.arguments));
            Object::with(CALL, call.with_kept(inner))
        }
        ContentBlock::FunctionResult(_) => return None,
    };
    Some(object.with_kept(kept))
}

fn write_image(image: &ImageBlock) -> Object {
    match picture(image).0 {
        Picture::At(url) => {
            let data = Object::with("mimeType", some_mime(image)).and("fileUri", url);
            Object::with("fileData", data.into_raw())
        }
        Picture::Here => {
            let data = Object::with("mimeType", &image.mime).and("data", &image.data);
            Object::with("inlineData", data.into_raw())
        }
    }
}
