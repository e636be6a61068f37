//! Messages of the Anthropic Messages API: those of a request, and the `message` object of a reply.
//!
//! A user message that is one `tool_result` and nothing else is a function result. One with several, or with other
//! blocks beside them, is a user message with function results in its content.

use serde_json::value::RawValue;

use super::block::{
    Picture, arguments_object, image, image_at, is_mark, is_reply, keep_whole, kept, lose_error,
    lose_mime, lose_plain, lose_reply, name_of, picture, placed, plain_role, result_message,
    signature_is_ours, stop_word, system_message, whole_block,
};
use super::check::Check;
use super::input::only;
use super::read::{Members, list};
use super::write::{Mapping, Object, members_of};
use super::{Codec, Format, block::PlainRole};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultBlock, ImageBlock, LossReason, RawJson, StopReason, TextBlock, ThinkingBlock,
    Usage, UserMessage,
};

const FORMAT: Format = Format::Anthropic;
const PROVIDER: &str = "anthropic";

/// The codec.
pub(super) struct Anthropic;

impl Codec for Anthropic {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        check.one_of("role", &["user", "assistant", "system"])?;
        check.text_or_list("content", |block| {
            block.text("type")?;
            Ok(())
        })
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let mut members = Members::parse(text)?;
        let role = members.text("role")?;
        members.take("role");
        members.take_word("type", "message");
        let content = content_of(&mut members);
        let message = match role.as_str() {
            "user" => user(members, content, entry_time),
            "assistant" => assistant(members, content, entry_time),
            "system" => system_message(content, entry_time, kept(FORMAT, members)),
            _ => return None,
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        let object = match plain_role(message) {
            PlainRole::Assistant(said) => write_assistant(said, mapping),
            PlainRole::Result(said) => {
                mapping.lose_some("", "function_id", some_text(&said.function_id));
                let mut block = Object::with("type", "tool_result");
                block.put("tool_use_id", &said.function_call_id);
                block.put("content", write_content("", &said.content, None, mapping));
                if said.is_error {
                    block.put("is_error", true);
                }
                block.put_back(mapping.kept("", &said.unknown, &[]));
                let mut object = Object::with("role", "user");
                object.put("content", [block.into_raw()]);
                object
            }
            PlainRole::User => write_plain("user", message, mapping),
            PlainRole::System => write_plain("system", message, mapping),
        };
        vec![object.into_raw()]
    }

    fn input(&self, json: RawJson, mapping: &mut Mapping) -> Vec<RawJson> {
        let json = only(json, &["role", "content"], mapping);
        let Some(content) = Members::parse(json.get()).and_then(|mut all| all.take("content"))
        else {
            return vec![json];
        };
        match without_unsigned_thoughts(content) {
            Some(content) => {
                mapping.note("/content".to_owned(), LossReason::NotInput);
                let mut members = members_of(&json);
                members.set("content", content);
                vec![RawJson::of(&members).unwrap_or_default()]
            }
            None => vec![json],
        }
    }

    fn joins_results(&self) -> bool {
        true
    }

    fn system_list(&self) -> Option<&'static str> {
        Some("content")
    }
}

fn some_text(text: &String) -> Option<&String> {
    Some(text).filter(|text| !text.is_empty())
}

fn user(members: Members<'_>, mut content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    if members.is_empty()
        && content.len() == 1
        && let Some(ContentBlock::FunctionResult(_)) = content.first()
        && let Some(ContentBlock::FunctionResult(block)) = content.pop()
    {
        return AgentMessage::FunctionResult(result_message(block, String::new(), timestamp));
    }
    AgentMessage::User(UserMessage { content, timestamp, unknown: kept(FORMAT, members) })
}

fn assistant(mut members: Members<'_>, content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    let native = members.take_text("stop_reason");
    let model = members.take_text("model").unwrap_or_default();
    let usage = members.take_object("usage").map(usage);
    AgentMessage::Assistant(AssistantMessage {
        stop_reason: native.as_deref().and_then(stop_reason).unwrap_or(StopReason::End),
        native_stop_reason: native,
        usage,
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, PROVIDER.to_owned(), model, timestamp)
    })
}

fn stop_reason(native: &str) -> Option<StopReason> {
    Some(match native {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::FunctionCall,
        "refusal" => StopReason::Error,
        "end_turn" | "stop_sequence" | "pause_turn" => StopReason::End,
        _ => return None,
    })
}

const USUAL: &[(StopReason, &str)] = &[
    (StopReason::End, "end_turn"),
    (StopReason::Length, "max_tokens"),
    (StopReason::FunctionCall, "tool_use"),
];

fn usage(mut members: Members<'_>) -> Usage {
    Usage {
        input: members.take_as("input_tokens"),
        output: members.take_as("output_tokens"),
        cache_read: members.take_as("cache_read_input_tokens"),
        cache_write: members.take_as("cache_creation_input_tokens"),
        reasoning: None,
        cost_usd: None,
        unknown: kept(FORMAT, members),
    }
}

/// Reads content, which is one text or a list of blocks. Anything else is left in place.
fn content_of(members: &mut Members<'_>) -> Vec<ContentBlock> {
    if let Some(text) = members.take_text("content") {
        return vec![ContentBlock::text(text)];
    }
    members.take_list("content").unwrap_or_default().into_iter().map(block).collect()
}

fn block(raw: &RawValue) -> ContentBlock {
    let Some(mut members) = Members::of(raw) else {
        return whole_block(FORMAT, raw, raw.get().to_owned());
    };
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => match members.take_text("text") {
            Some(text) => ContentBlock::Text(TextBlock { text, unknown: kept(FORMAT, members) }),
            None => whole_block(FORMAT, raw, "[text]".to_owned()),
        },
        "thinking" => ContentBlock::Thinking(ThinkingBlock {
            text: members.take_text("thinking").unwrap_or_default(),
            signature: members.take_text("signature"),
            unknown: kept(FORMAT, members),
        }),
        "redacted_thinking" => {
            let mut block = ContentBlock::Thinking(ThinkingBlock {
                text: String::new(),
                signature: None,
                unknown: UnknownMembers::NONE,
            });
            keep_whole(&mut block, FORMAT, raw);
            block
        }
        "image" => image_block(raw, members),
        "tool_use" => ContentBlock::FunctionCall(FunctionCallBlock {
            id: members.take_text("id").unwrap_or_default(),
            function_id: members.take_text("name").unwrap_or_default(),
            arguments: members.take_some("input").unwrap_or_default(),
            unknown: kept(FORMAT, members),
        }),
        "tool_result" => ContentBlock::FunctionResult(FunctionResultBlock {
            function_call_id: members.take_text("tool_use_id").unwrap_or_default(),
            content: content_of(&mut members),
            is_error: members.take_as("is_error"),
            unknown: kept(FORMAT, members),
        }),
        // Documents, search results, tools that the server runs, and types of later versions.
        _ => whole_block(FORMAT, raw, name_of(&kind, &members)),
    }
}

fn image_block(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let Some(mut source) = members.take_object("source") else {
        return whole_block(FORMAT, raw, "[image]".to_owned());
    };
    let mut found = match source.take_text("type").as_deref() {
        Some("base64") => image(
            source.take_text("media_type").unwrap_or_default(),
            source.take_text("data").unwrap_or_default(),
        ),
        Some("url") => image_at(&source.take_text("url").unwrap_or_default(), ""),
        _ => return whole_block(FORMAT, raw, name_of("image", &source)),
    };
    for (key, value) in kept(FORMAT, members) {
        found.unknown_mut().set(key, value);
    }
    found
}

fn write_plain(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> Object {
    let mut object = Object::with("role", role);
    object.put("content", write_content("", message.content(), None, mapping));
    object.put_back(mapping.kept("", message.unknown(), &[]));
    object
}

fn write_assistant(said: &AssistantMessage, mapping: &mut Mapping) -> Object {
    let mut object = Object::default();
    if is_reply(said) {
        object.put("type", "message");
    }
    object.put("role", "assistant");
    object.put("content", write_content("", &said.content, Some(&said.provider), mapping));
    lose_reply(mapping, said, PROVIDER);
    lose_error(mapping, said);
    if is_reply(said) {
        object.put("model", &said.model);
        object.put("stop_reason", stop_word(mapping, said, PROVIDER, stop_reason, USUAL));
        object.put_some("usage", said.usage.as_ref().map(|usage| write_usage(usage, mapping)));
    }
    object.put_back(mapping.kept("", &said.unknown, &[]));
    object
}

fn write_usage(usage: &Usage, mapping: &mut Mapping) -> RawJson {
    let mut object = Object::default();
    object.put_some("input_tokens", usage.input);
    object.put_some("output_tokens", usage.output);
    object.put_some("cache_read_input_tokens", usage.cache_read);
    object.put_some("cache_creation_input_tokens", usage.cache_write);
    mapping.lose_some("/usage", "reasoning", usage.reasoning.as_ref());
    mapping.lose_some("/usage", "cost_usd", usage.cost_usd.as_ref());
    object.put_back(mapping.kept("/usage", &usage.unknown, &[]));
    object.into_raw()
}

fn write_content(
    at: &str,
    content: &[ContentBlock],
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    let mut blocks = Vec::with_capacity(content.len());
    for (at, block) in placed(at, content) {
        if let Some(whole) = mapping.original(block.unknown()) {
            blocks.push(whole);
            continue;
        }
        let carried = match block {
            ContentBlock::Image(image) => picture(image).1,
            _ => &[],
        };
        let kept = mapping.kept(&at, block.unknown(), carried);
        if is_mark(block) {
            continue;
        }
        let mut object = write_block(&at, block, provider, mapping);
        object.put_back(kept);
        blocks.push(object.into_raw());
    }
    blocks
}

fn write_block(
    at: &str,
    block: &ContentBlock,
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Object {
    match block {
        ContentBlock::Text(block) => {
            let mut object = Object::with("type", "text");
            object.put("text", &block.text);
            object
        }
        ContentBlock::Image(image) => {
            lose_mime(mapping, at, image);
            write_image(image)
        }
        ContentBlock::Thinking(block) => {
            let mut object = Object::with("type", "thinking");
            object.put("thinking", &block.text);
            if signature_is_ours(provider, PROVIDER) {
                object.put_some("signature", block.signature.as_ref());
            } else {
                mapping.lose_some(at, "signature", block.signature.as_ref());
            }
            object
        }
        ContentBlock::FunctionCall(call) => {
            let mut object = Object::with("type", "tool_use");
            object.put("id", &call.id);
            object.put("name", &call.function_id);
            object.put("input", arguments_object(&call.arguments));
            object
        }
        ContentBlock::FunctionResult(result) => {
            let mut object = Object::with("type", "tool_result");
            object.put("tool_use_id", &result.function_call_id);
            object.put("content", write_content(at, &result.content, provider, mapping));
            object.put_some("is_error", result.is_error);
            object
        }
    }
}

fn write_image(image: &ImageBlock) -> Object {
    let source = match picture(image).0 {
        Picture::At(url) => {
            let mut source = Object::with("type", "url");
            source.put("url", url);
            source
        }
        Picture::Here => {
            let mut source = Object::with("type", "base64");
            source.put("media_type", &image.mime);
            source.put("data", &image.data);
            source
        }
    };
    let mut object = Object::with("type", "image");
    object.put("source", source.into_raw());
    object
}

/// The API accepts a thought only with its signature.
fn is_unsigned_thought(raw: &RawValue) -> bool {
    Members::of(raw).is_some_and(|block| {
        block.text("type").as_deref() == Some("thinking") && !block.has("signature")
    })
}

/// The content of a message without the thoughts that the API would refuse; `None` if there are
/// none.
fn without_unsigned_thoughts(content: &RawValue) -> Option<RawJson> {
    let blocks = list(content)?;
    let left: Vec<_> = blocks.iter().filter(|block| !is_unsigned_thought(block)).collect();
    (left.len() < blocks.len()).then(|| RawJson::of(&left).unwrap_or_default())
}
