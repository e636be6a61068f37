//! Contents of the Gemini API, and the object that `generateContent` answers with.
//!
//! Gemini need not give a call an id. A call without one is named by its function (`name`, then `name#2`), and so is
//! its response, so that the two still find each other.
//!
//! A reply may have no content: when the question was blocked, or when the thoughts took all tokens. It is a message
//! of the model without blocks.

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
    ImageBlock, LossReason, RawJson, StopReason, ThinkingBlock,
};

pub(super) const FORMAT: Format = Format::Gemini;
const PROVIDER: &str = "google";
const RESPONSE: ResponseNames = ResponseNames {
    format: FORMAT,
    answers: "candidates",
    message: "content",
    first: "$candidate",
};
/// What the API says of the question, in place of candidates if it was blocked; also as Python programs write it.
const FEEDBACK: [&str; 2] = ["promptFeedback", "prompt_feedback"];
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
        if !check.is_null(RESPONSE.answers) {
            return check.answers(RESPONSE.answers, check_candidate);
        }
        if FEEDBACK.iter().any(|name| check.has(name)) { Ok(()) } else { check_content(check) }
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let members = Members::parse(text)?;
        let message = if !members.is_null(RESPONSE.answers) {
            response(members, entry_time)?
        } else if FEEDBACK.iter().any(|name| members.has(name)) {
            blocked(members, entry_time)
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
        let content = first_in(&json, RESPONSE.answers, RESPONSE.message, mapping);
        let members = Members::parse(content.as_ref().unwrap_or(&json).get()).unwrap_or_default();
        if !members.is_null("parts") {
            return vec![content.unwrap_or(json)];
        }
        // No request may have a content without parts.
        for (key, _) in members.into_unknown() {
            mapping.note(format!("/{}", super::write::escaped(&key)), LossReason::NotInput);
        }
        Vec::new()
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

fn check_candidate(candidate: &Check<'_>) -> Result<(), FormatError> {
    if candidate.is_null(RESPONSE.message) {
        return Ok(());
    }
    let content = candidate.object(RESPONSE.message)?;
    if content.is_null("parts") {
        return Ok(());
    }
    content.one_of("role", &["model"])?;
    check_content(&content)
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
    let (mut response, message) = RESPONSE.read(members.in_camel_case())?;
    response.first = response.first.in_camel_case();
    let mut reply = match message {
        Some(message) if !message.is_null("parts") => {
            let AgentMessage::Assistant(reply) = content(message, timestamp)? else { return None };
            reply
        }
        message => empty_reply(message.unwrap_or_default(), timestamp),
    };
    reply.native_stop_reason = response.first.take_text("finishReason");
    match reply.native_stop_reason.as_deref().and_then(|word| STOP_WORDS.reason(word)) {
        // Gemini stops in the same way for a call.
        Some(StopReason::End) | None => {}
        Some(reason) => reply.stop_reason = reason,
    }
    take_figures(&mut response.members, &mut reply);
    response.keep_in(&mut reply);
    Some(AgentMessage::Assistant(reply))
}

/// The answer to a question that was blocked: it has no candidate.
fn blocked(members: Members<'_>, timestamp: i64) -> AgentMessage {
    let mut members = members.in_camel_case();
    let mut reply = empty_reply(Members::default(), timestamp);
    reply.stop_reason = StopReason::Error;
    take_figures(&mut members, &mut reply);
    RESPONSE.keep_in(members, &mut reply);
    AgentMessage::Assistant(reply)
}

/// A reply whose content has no parts.
fn empty_reply(mut content: Members<'_>, timestamp: i64) -> AssistantMessage {
    content.take_word("role", "model");
    // Kept, it would stand in the place of the parts that the reply may get.
    content.take("parts");
    AssistantMessage {
        unknown: kept(FORMAT, content),
        ..AssistantMessage::new(Vec::new(), PROVIDER.to_owned(), String::new(), timestamp)
    }
}

/// The model and the usage of a response.
fn take_figures(response: &mut Members<'_>, reply: &mut AssistantMessage) {
    reply.model = response.take_text("modelVersion").unwrap_or_default();
    let usage = response.take_object("usageMetadata");
    reply.usage = usage.map(|usage| super::gemini_usage::read(usage.in_camel_case()));
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
                signature: members
                    .take_text(SIGNATURE)
                    .or_else(|| members.take_text("thought_signature")),
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
    let is_blocked = parts.is_empty()
        && reply.native_stop_reason.is_none()
        && FEEDBACK
            .iter()
            .any(|name| response.members.get(name).is_some_and(|said| !said.is_null()));
    let is_reply = is_reply(reply) || is_blocked;
    let parts = Some(parts).filter(|parts| !(is_reply && parts.is_empty()));
    let content = Object::with("role", "model").and_some("parts", parts).with_kept(kept);
    if !is_reply {
        return content;
    }
    let candidates = (!is_blocked).then(|| {
        let first = Object::with(RESPONSE.message, content)
            .and("finishReason", STOP_WORDS.word(reply, mapping));
        response.answers(first)
    });
    let usage = reply.usage.as_ref().map(|usage| super::gemini_usage::write(usage, mapping));
    Object::default()
        .and_some(RESPONSE.answers, candidates)
        .and_some("usageMetadata", usage)
        .and_some("modelVersion", Some(&reply.model).filter(|model| !model.is_empty()))
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
