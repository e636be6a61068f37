//! Messages of the Anthropic Messages API: those of a request, and the `message` object of a reply.
//!
//! A user message that is one `tool_result` and nothing else is a function result. One with several, or with other
//! blocks beside them, is a user message with function results in its content.

use serde_json::value::RawValue;

use super::block::{
    Picture, PlainRole, StopWords, arguments_object, image, image_at, is_reply, keep_whole, kept,
    lose_error, lose_mime, lose_plain, lose_reply, name_of, picture, plain_role, result_message,
    signature_is_ours, system_message, take_content, text_block, user_message, whole_block,
};
use super::check::Check;
use super::input::only;
use super::read::{Members, list};
use super::write::{Mapping, Object, members_of, to_json};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultBlock, ImageBlock, LossReason, RawJson, StopReason, ThinkingBlock, Usage,
};

const FORMAT: Format = Format::Anthropic;
const PROVIDER: &str = "anthropic";

/// The codec.
pub(super) struct Anthropic;

impl Codec for Anthropic {
    fn joins_calls(&self) -> bool {
        true
    }

    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        check.one_of("role", &["user", "assistant", "system"])?;
        check.text_or_list("content", |block| block.text("type").map(|_| ()))
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let mut members = Members::parse(text)?;
        let role = members.text("role")?;
        members.take("role");
        members.take_word("type", "message");
        let content = take_content(FORMAT, &mut members, "content", block);
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
            PlainRole::Assistant(reply) => write_assistant(reply, mapping),
            PlainRole::Result(result) => {
                let name = Some(&result.function_id).filter(|name| !name.is_empty());
                mapping.lose_some("", "function_id", name);
                let block = Object::with("type", "tool_result")
                    .and("tool_use_id", &result.function_call_id)
                    .and("content", write_content("", &result.content, None, mapping))
                    .and_some("is_error", result.is_error.then_some(true));
                let block = block.with_kept(mapping.kept("", &result.unknown, &[]));
                Object::with("role", "user").and("content", [block]).into_raw()
            }
            PlainRole::User => write_plain("user", message, mapping),
            PlainRole::System => write_plain("system", message, mapping),
        };
        vec![object]
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
                vec![to_json(&members)]
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

fn user(members: Members<'_>, mut content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    if members.is_empty()
        && content.len() == 1
        && let Some(ContentBlock::FunctionResult(_)) = content.first()
        && let Some(ContentBlock::FunctionResult(block)) = content.pop()
    {
        return AgentMessage::FunctionResult(result_message(block, String::new(), timestamp));
    }
    user_message(FORMAT, content, timestamp, members)
}

fn assistant(mut members: Members<'_>, content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    let native = members.take_text("stop_reason");
    let model = members.take_text("model").unwrap_or_default();
    let usage = members.take_object("usage").map(usage);
    AgentMessage::Assistant(AssistantMessage {
        stop_reason: native
            .as_deref()
            .and_then(|word| STOP_WORDS.reason(word))
            .unwrap_or(StopReason::End),
        native_stop_reason: native,
        usage,
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, PROVIDER.to_owned(), model, timestamp)
    })
}

const STOP_WORDS: StopWords = StopWords {
    provider: Some(PROVIDER),
    usual: &[
        ("end_turn", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("tool_use", StopReason::FunctionCall),
    ],
    others: &[
        ("stop_sequence", StopReason::End),
        ("pause_turn", StopReason::End),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Error),
    ],
};

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

fn block(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => match members.take_text("text") {
            Some(text) => text_block(FORMAT, text, members),
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
            content: take_content(FORMAT, &mut members, "content", block),
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
    found.unknown_mut().extend(kept(FORMAT, members));
    found
}

fn write_plain(role: &str, message: &AgentMessage, mapping: &mut Mapping) -> RawJson {
    let content = write_content("", message.content(), None, mapping);
    let kept = mapping.kept("", message.unknown(), &[]);
    Object::with("role", role).and("content", content).with_kept(kept)
}

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> RawJson {
    let is_reply = is_reply(reply);
    let mut object = Object::default()
        .and_some("type", is_reply.then_some("message"))
        .and("role", "assistant")
        .and("content", write_content("", &reply.content, Some(&reply.provider), mapping));
    lose_reply(mapping, reply, PROVIDER);
    lose_error(mapping, reply);
    if is_reply {
        object.put("model", &reply.model);
        object.put("stop_reason", STOP_WORDS.word(reply, mapping));
        object.put_some("usage", reply.usage.as_ref().map(|usage| write_usage(usage, mapping)));
    }
    object.with_kept(mapping.kept("", &reply.unknown, &[]))
}

fn write_usage(usage: &Usage, mapping: &mut Mapping) -> RawJson {
    mapping.lose_some("/usage", "reasoning", usage.reasoning.as_ref());
    mapping.lose_some("/usage", "cost_usd", usage.cost_usd.as_ref());
    Object::default()
        .and_some("input_tokens", usage.input)
        .and_some("output_tokens", usage.output)
        .and_some("cache_read_input_tokens", usage.cache_read)
        .and_some("cache_creation_input_tokens", usage.cache_write)
        .with_kept(mapping.kept("/usage", &usage.unknown, &[]))
}

fn write_content(
    at: &str,
    content: &[ContentBlock],
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    mapping.blocks(at, content, |mapping, at, block, kept| {
        Some(write_block(at, block, provider, mapping).with_kept(kept))
    })
}

fn write_block(
    at: &str,
    block: &ContentBlock,
    provider: Option<&str>,
    mapping: &mut Mapping,
) -> Object {
    match block {
        ContentBlock::Text(block) => Object::with("type", "text").and("text", &block.text),
        ContentBlock::Image(image) => {
            lose_mime(mapping, at, image);
            write_image(image)
        }
        ContentBlock::Thinking(block) => {
            let mut object = Object::with("type", "thinking").and("thinking", &block.text);
            let is_ours = signature_is_ours(provider, PROVIDER);
            mapping.put_signature(&mut object, "signature", at, block, is_ours);
            object
        }
        ContentBlock::FunctionCall(call) => Object::with("type", "tool_use")
            .and("id", &call.id)
            .and("name", &call.function_id)
            .and("input", arguments_object(&call.arguments)),
        ContentBlock::FunctionResult(result) => Object::with("type", "tool_result")
            .and("tool_use_id", &result.function_call_id)
            .and("content", write_content(at, &result.content, provider, mapping))
            .and_some("is_error", result.is_error),
    }
}

fn write_image(image: &ImageBlock) -> Object {
    let source = match picture(image).0 {
        Picture::At(url) => Object::with("type", "url").and("url", url),
        Picture::Here => {
            Object::with("type", "base64").and("media_type", &image.mime).and("data", &image.data)
        }
    };
    Object::with("type", "image").and("source", source.into_raw())
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
    (left.len() < blocks.len()).then(|| to_json(&left))
}
