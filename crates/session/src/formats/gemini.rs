//! Contents of the Gemini API, and the object that `generateContent` answers with.
//!
//! Gemini need not give a call an id. A call without one is named by its function (`name`, then `name#2`), and so is
//! its response, so that the two still find each other.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::block::{
    Picture, PlainRole, arguments_object, image, image_at, is_mark, is_reply, kept, kept_members,
    lose_error, lose_plain, lose_reply, name_of, picture, placed, plain_role, result_message,
    signature_is_ours, some_mime, stop_word, system_message, whole_block,
};
use super::check::Check;
use super::gemini_results::{result_block, take_name, write_result};
use super::input::first_in;
use super::read::Members;
use super::write::{Mapping, Object, members_of};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultBlock, ImageBlock, RawJson, StopReason, TextBlock, ThinkingBlock, UserMessage,
};

pub(super) const FORMAT: Format = Format::Gemini;
const PROVIDER: &str = "google";
/// Where the members of an answer, and of its first candidate, are kept.
const RESPONSE: &str = "$response";
const CANDIDATE: &str = "$candidate";
const SIGNATURE: &str = "thoughtSignature";
/// Where the members of a call or a response are kept, and the mark of one without an id.
const CALL: &str = "functionCall";
pub(super) const RESULT: &str = "functionResponse";

/// The codec.
pub(super) struct Gemini;

impl Codec for Gemini {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if check.has("candidates") {
            return check.answers("candidates", "content", "model", check_content);
        }
        check_content(check)
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let members = Members::parse(text)?;
        let message = if members.has("candidates") {
            answer(members, entry_time)?
        } else {
            content(members, entry_time)?
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        let object = match plain_role(message) {
            PlainRole::Assistant(said) => write_assistant(said, mapping),
            PlainRole::Result(said) => {
                let block = FunctionResultBlock {
                    function_call_id: said.function_call_id.clone(),
                    content: said.content.clone(),
                    is_error: Some(said.is_error),
                    unknown: said.unknown.clone(),
                };
                let part = write_result("", &block, Some(&said.function_id), mapping);
                let mut object = Object::with("role", "user");
                object.put("parts", [part]);
                object
            }
            PlainRole::User => write_content("user", message, mapping),
            PlainRole::System => write_content("system", message, mapping),
        };
        vec![object.into_raw()]
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
        "model" => {
            let is_call = |block: &ContentBlock| matches!(block, ContentBlock::FunctionCall(_));
            let calls = content.iter().any(is_call);
            AgentMessage::Assistant(AssistantMessage {
                stop_reason: if calls { StopReason::FunctionCall } else { StopReason::End },
                unknown: kept(FORMAT, members),
                ..AssistantMessage::new(content, PROVIDER.to_owned(), String::new(), timestamp)
            })
        }
        "system" => system_message(content, timestamp, kept(FORMAT, members)),
        "user" | "function" | "" => {
            if content.len() == 1
                && let Some(ContentBlock::FunctionResult(_)) = content.first()
                && let Some(ContentBlock::FunctionResult(mut block)) = content.pop()
            {
                let name = take_name(&mut block.unknown);
                return Some(AgentMessage::FunctionResult(result_message(block, name, timestamp)));
            }
            AgentMessage::User(UserMessage { content, timestamp, unknown: kept(FORMAT, members) })
        }
        _ => return None,
    })
}

fn answer(mut members: Members<'_>, timestamp: i64) -> Option<AgentMessage> {
    let mut candidates = members.take_list("candidates")?;
    let mut candidate = Members::of(candidates.first()?)?;
    let inner = candidate.take_object("content")?;
    let AgentMessage::Assistant(mut said) = content(inner, timestamp)? else { return None };
    said.native_stop_reason = candidate.take_text("finishReason");
    match said.native_stop_reason.as_deref().and_then(stop_reason) {
        // Gemini stops in the same way for a call.
        Some(StopReason::End) | None => {}
        Some(reason) => said.stop_reason = reason,
    }
    said.model = members.take_text("modelVersion").unwrap_or_default();
    said.usage = members.take_object("usageMetadata").map(super::gemini_usage::read);
    let mut rest = said.unknown.get(FORMAT.name()).map(members_of).unwrap_or_default();
    let mut around = members.into_unknown();
    if candidates.len() > 1 {
        candidates.remove(0);
        around.set("candidates", RawJson::of(&candidates).unwrap_or_default());
    }
    for (key, members) in [(RESPONSE, around), (CANDIDATE, candidate.into_unknown())] {
        if !members.is_empty() {
            rest.set(key, RawJson::of(&members).unwrap_or_default());
        }
    }
    said.unknown = kept_members(FORMAT, rest);
    Some(AgentMessage::Assistant(said))
}

fn stop_reason(native: &str) -> Option<StopReason> {
    Some(match native {
        "STOP" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MALFORMED_FUNCTION_CALL"
        | "IMAGE_SAFETY"
        | "OTHER" => StopReason::Error,
        _ => return None,
    })
}

const USUAL: &[(StopReason, &str)] = &[
    (StopReason::End, "STOP"),
    (StopReason::Length, "MAX_TOKENS"),
    (StopReason::FunctionCall, "STOP"),
    (StopReason::Error, "OTHER"),
];

/// A member by the name that the API writes, or by the one that Python programs write.
fn take_either<'a>(members: &mut Members<'a>, name: &str, snake: &str) -> Option<Members<'a>> {
    members.take_object(name).or_else(|| members.take_object(snake))
}

pub(super) fn part(raw: &RawValue, names: &mut HashMap<String, usize>) -> ContentBlock {
    let Some(mut members) = Members::of(raw) else {
        return whole_block(FORMAT, raw, raw.get().to_owned());
    };
    if let Some(text) = members.take_text("text") {
        if members.take_as("thought") == Some(true) {
            return ContentBlock::Thinking(ThinkingBlock {
                text,
                signature: members.take_text(SIGNATURE),
                unknown: kept(FORMAT, members),
            });
        }
        return ContentBlock::Text(TextBlock { text, unknown: kept(FORMAT, members) });
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
        let (kind, inside) = match ["executableCode", "codeExecutionResult"]
            .iter()
            .find_map(|key| Some((*key, members.take_object(key)?)))
        {
            Some((kind, inside)) => (kind, inside),
            None => ("part", Members::default()),
        };
        return whole_block(FORMAT, raw, name_of(kind, &inside));
    };
    for (key, value) in kept(FORMAT, members) {
        found.unknown_mut().set(key, value);
    }
    found
}

/// The name of the next call or response of a function in this message.
pub(super) fn next_name(names: &mut HashMap<String, usize>, name: &str) -> String {
    let count = names.entry(name.to_owned()).or_insert(0);
    *count += 1;
    if *count == 1 { name.to_owned() } else { format!("{name}#{count}") }
}

/// What is kept of a part with an object in it: the part's members, and the object's in their place.
pub(super) fn with_inner(members: Members<'_>, key: &str, inner: UnknownMembers) -> UnknownMembers {
    let mut rest = members.into_unknown();
    if !inner.is_empty() {
        rest.set(key, RawJson::of(&inner).unwrap_or_default());
    }
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
    block.unknown = kept_members(FORMAT, with_inner(members, CALL, rest));
    ContentBlock::FunctionCall(block)
}

fn write_content(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> Object {
    let mut object = Object::with("role", role);
    object.put("parts", write_parts("", message.content(), None, mapping));
    object.put_back(mapping.kept("", message.unknown(), &[]));
    object
}

fn write_assistant(said: &AssistantMessage, mapping: &mut Mapping) -> Object {
    let mut object = Object::with("role", "model");
    object.put("parts", write_parts("", &said.content, Some(&said.provider), mapping));
    lose_reply(mapping, said, PROVIDER);
    lose_error(mapping, said);
    let mut kept = mapping.kept("", &said.unknown, &[]);
    let around = kept.remove(RESPONSE).as_ref().map(members_of).unwrap_or_default();
    let candidate = kept.remove(CANDIDATE).as_ref().map(members_of).unwrap_or_default();
    object.put_back(kept);
    if !is_reply(said) {
        return object;
    }
    let mut first = Object::with("content", object.into_raw());
    first.put("finishReason", stop_word(mapping, said, PROVIDER, stop_reason, USUAL));
    first.put_back(candidate);
    write_answer(said, first, around, mapping)
}

fn write_answer(
    said: &AssistantMessage,
    first: Object,
    mut around: UnknownMembers,
    mapping: &mut Mapping,
) -> Object {
    let mut candidates = vec![first.into_raw()];
    if let Some(more) = around.remove("candidates") {
        let more = super::read::list(more.raw()).unwrap_or_default();
        candidates.extend(more.into_iter().map(RawJson::from));
    }
    let mut object = Object::with("candidates", candidates);
    let usage = said.usage.as_ref().map(|usage| super::gemini_usage::write(usage, mapping));
    object.put_some("usageMetadata", usage);
    object.put("modelVersion", &said.model);
    object.put_back(around);
    object
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
            parts.extend(write_part(&at, block, provider, mapping));
        }
    }
    parts
}

fn write_part(
    at: &str,
    block: &ContentBlock,
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    let carried = match block {
        ContentBlock::Image(image) => picture(image).1,
        _ => &[],
    };
    let mut kept = mapping.kept(at, block.unknown(), carried);
    if is_mark(block) {
        return None;
    }
    let mut object = match block {
        ContentBlock::Text(block) => Object::with("text", &block.text),
        ContentBlock::Thinking(block) => {
            let mut object = Object::with("text", &block.text);
            object.put("thought", true);
            if signature_is_ours(provider, PROVIDER) {
                object.put_some(SIGNATURE, block.signature.as_ref());
            } else {
                mapping.lose_some(at, "signature", block.signature.as_ref());
            }
            object
        }
        ContentBlock::Image(image) => write_image(image),
        ContentBlock::FunctionCall(call) => {
            let mut inner = kept.remove(CALL).as_ref().map(members_of).unwrap_or_default();
            let mut object = Object::default();
            if !inner.remove("id").is_some_and(|id| id.is_null()) {
                object.put("id", &call.id);
            }
            object.put("name", &call.function_id);
            object.put("args", arguments_object(&call.arguments));
            object.put_back(inner);
            Object::with(CALL, object.into_raw())
        }
        ContentBlock::FunctionResult(_) => return None,
    };
    object.put_back(kept);
    Some(object.into_raw())
}

fn write_image(image: &ImageBlock) -> Object {
    match picture(image).0 {
        Picture::At(url) => {
            let mut data = Object::with("mimeType", some_mime(image));
            data.put("fileUri", url);
            Object::with("fileData", data.into_raw())
        }
        Picture::Here => {
            let mut data = Object::with("mimeType", &image.mime);
            data.put("data", &image.data);
            Object::with("inlineData", data.into_raw())
        }
    }
}
