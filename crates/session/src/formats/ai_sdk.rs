//! `UIMessage`s of the AI SDK, version 5 and later.
//!
//! A tool part is a call, and also its result once the tool has answered: two blocks. A result whose call is in another
//! message is a tool part with a mark, which says that the part is no call. Values that the SDK leaves to the application,
//! such as the model and its usage, are written under `bough` in the message's `metadata`.

use serde_json::value::RawValue;

use super::block::{
    PlainRole, image_at, joined_text, kept, kept_members, lose_plain, name_of, picture_url, placed,
    plain_role, result_as_block, result_message, some_mime, system_message, text_block,
    user_message, whole_block,
};
use super::check::Check;
use super::read::{Members, list, typed};
use super::write::{Mapping, Object, set_members, take_members, to_json};
use super::{Codec, Format};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, FormatError, FunctionCallBlock,
    FunctionResultBlock, LossReason, RawJson, StopReason, ThinkingBlock,
};

const FORMAT: Format = Format::AiSdk;
/// The member of the metadata for values of a reply that a `UIMessage` cannot express.
const OURS: &str = "bough";
/// The member that keeps those members of a tool part that its blocks do not have.
const PART: &str = "$part";
/// The member of a tool part for values of its provider, where the mark of a result without its call is, under our name.
const PROVIDER_METADATA: &str = "callProviderMetadata";
/// The mark.
const RESULT_ONLY: &str = "result_only";

/// The codec.
pub(super) struct AiSdk;

impl Codec for AiSdk {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        check.one_of("role", &["system", "user", "assistant"])?;
        check.list("parts", |part| {
            let kind = part.text("type")?;
            if kind == "text" || kind == "reasoning" {
                part.text("text")?;
            }
            if kind.starts_with("tool-") || kind == "dynamic-tool" {
                part.text("toolCallId")?;
            }
            Ok(())
        })
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let mut members = Members::parse(text)?;
        let role = members.text("role")?;
        members.take("role");
        let parts = members.take_list("parts")?;
        if let [part] = parts.as_slice()
            && role == "assistant"
            && let Some((name, block)) = result_only(part)
        {
            let mut result = result_message(block, name, entry_time);
            result.unknown.extend(kept(FORMAT, members));
            return Some(Canonical::Message(AgentMessage::FunctionResult(result).into()));
        }
        let content: Vec<_> = parts.into_iter().flat_map(blocks_of).collect();
        let message = match role.as_str() {
            "user" => user_message(FORMAT, content, entry_time, members),
            "assistant" => assistant(members, content, entry_time),
            "system" => system_message(content, entry_time, kept(FORMAT, members)),
            _ => return None,
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        lose_plain(mapping, message);
        let (role, reply) = match plain_role(message) {
            PlainRole::User => ("user", None),
            PlainRole::System => ("system", None),
            PlainRole::Assistant(reply) => ("assistant", Some(reply)),
            // A result without its call is a tool part of a message of the model.
            PlainRole::Result(result) => {
                mapping.note("/role".to_owned(), LossReason::Changed);
                let call = call_elsewhere(&result.function_call_id, &result.function_id);
                let result = result_as_block(result.clone());
                let part = write_tool("", &call, Some(("", &result)), mapping);
                let object = Object::with("role", "assistant").and("parts", [part]);
                return vec![object.into_raw()];
            }
        };
        let mut kept = mapping.kept("", message.unknown(), &[]);
        let mut object = Object::default();
        object.put_some("id", kept.remove("id"));
        object.put("role", role);
        if let Some(reply) = reply {
            let mut metadata = take_members(&mut kept, "metadata");
            if let Some(ours) = write_ours(reply) {
                metadata.set(OURS, ours);
            }
            object.put_some("metadata", Some(metadata).filter(|all| !all.is_empty()));
        }
        object.put("parts", write_parts(message.content(), mapping));
        vec![object.with_kept(kept)]
    }

    fn splits_results(&self) -> bool {
        false
    }

    fn merges_steps(&self) -> bool {
        true
    }
}

fn assistant(mut members: Members<'_>, content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    let mut reply = AssistantMessage::new(content, String::new(), String::new(), timestamp);
    let mut metadata = members.take_object("metadata");
    if let Some(mut ours) = metadata.as_mut().and_then(|all| all.take_object(OURS)) {
        reply.model = ours.take_text("model").unwrap_or_default();
        reply.provider = ours.take_text("provider").unwrap_or_default();
        reply.stop_reason = ours.take_as("stop_reason").unwrap_or(StopReason::End);
        reply.native_stop_reason = ours.take_text("native_stop_reason");
        reply.error_message = ours.take_text("error_message");
        reply.error_kind = ours.take_as("error_kind");
        reply.warnings = ours.take_as("warnings");
        reply.usage = ours.take_as("usage");
    }
    let mut rest = members.into_unknown();
    set_members(&mut rest, "metadata", &metadata.unwrap_or_default().into_unknown());
    reply.unknown = kept_members(FORMAT, rest);
    AgentMessage::Assistant(reply)
}

/// The values that a `UIMessage` has no member for; `None` if there are none.
fn write_ours(reply: &AssistantMessage) -> Option<RawJson> {
    let object = Object::default()
        .and_some("model", Some(&reply.model).filter(|model| !model.is_empty()))
        .and_some("provider", Some(&reply.provider).filter(|provider| !provider.is_empty()))
        .and_some("stop_reason", Some(reply.stop_reason).filter(|it| *it != StopReason::End))
        .and_some("native_stop_reason", reply.native_stop_reason.as_ref())
        .and_some("error_message", reply.error_message.as_ref())
        .and_some("error_kind", reply.error_kind)
        .and_some("warnings", reply.warnings.as_ref())
        .and_some("usage", reply.usage.as_ref());
    let members = object.into_members();
    (!members.is_empty()).then(|| to_json(&members))
}

fn blocks_of(raw: &RawValue) -> Vec<ContentBlock> {
    let Some(mut members) = Members::of(raw) else {
        return vec![whole_block(FORMAT, raw, raw.get().to_owned())];
    };
    let kind = members.text("type").unwrap_or_default();
    if kind.starts_with("tool-") || kind == "dynamic-tool" {
        return tool_blocks(raw, &kind, members);
    }
    members.take("type");
    vec![match kind.as_str() {
        "text" => {
            let text = members.take_text("text").unwrap_or_default();
            text_block(FORMAT, text, members)
        }
        "reasoning" => ContentBlock::Thinking(ThinkingBlock {
            text: members.take_text("text").unwrap_or_default(),
            signature: None,
            unknown: kept(FORMAT, members),
        }),
        "file" => file(raw, members),
        "step-start" => whole_block(FORMAT, raw, String::new()),
        _ => whole_block(FORMAT, raw, name_of(&kind, &members)),
    }]
}

fn file(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let mime = members.text("mediaType").unwrap_or_default();
    let Some(url) = members.text("url").filter(|_| mime.starts_with("image/")) else {
        return whole_block(FORMAT, raw, name_of("file", &members));
    };
    members.take("url");
    members.take("mediaType");
    let mut block = image_at(&url, &mime);
    block.unknown_mut().extend(kept(FORMAT, members));
    block
}

/// The call of a result that stands alone: it is in another message, and the part says so.
fn call_elsewhere(id: &str, name: &str) -> FunctionCallBlock {
    let mark = Object::with(OURS, Object::with(RESULT_ONLY, true).into_raw());
    let part = Object::with(PROVIDER_METADATA, mark.into_raw()).into_members();
    let mut unknown = UnknownMembers::NONE;
    set_members(&mut unknown, PART, &part);
    let call = FunctionCallBlock::new(id.to_owned(), name.to_owned(), RawJson::default());
    FunctionCallBlock { unknown: kept_members(FORMAT, unknown), ..call }
}

/// The result of a part with that mark, and the name of its tool.
fn result_only(raw: &RawValue) -> Option<(String, FunctionResultBlock)> {
    let mut members = Members::of(raw)?;
    let ours = Members::of(Members::of(members.get(PROVIDER_METADATA)?)?.get(OURS)?)?;
    ours.get(RESULT_ONLY).filter(|mark| mark.get() == "true")?;
    let kind = members.text("type")?;
    let name = kind.strip_prefix("tool-")?.to_owned();
    let id = members.text("toolCallId")?;
    Some((name, result_of(&id, &mut members)?))
}

fn tool_blocks(raw: &RawValue, kind: &str, mut members: Members<'_>) -> Vec<ContentBlock> {
    if let Some((_, result)) = result_only(raw) {
        return vec![ContentBlock::FunctionResult(result)];
    }
    let id = members.take_text("toolCallId").unwrap_or_default();
    let name = match kind.strip_prefix("tool-") {
        Some(name) => {
            members.take("type");
            name.to_owned()
        }
        None => members.take_text("toolName").unwrap_or_default(),
    };
    let arguments = members.take_some("input").unwrap_or_default();
    let result = result_of(&id, &mut members);
    let mut call = FunctionCallBlock::new(id, name, arguments);
    let mut part = UnknownMembers::NONE;
    set_members(&mut part, PART, &members.into_unknown());
    call.unknown = kept_members(FORMAT, part);
    let mut blocks = vec![ContentBlock::FunctionCall(call)];
    blocks.extend(result.map(ContentBlock::FunctionResult));
    blocks
}

fn result_of(id: &str, members: &mut Members<'_>) -> Option<FunctionResultBlock> {
    let (content, rest, is_error) = if members.take_word("state", "output-available") {
        let output = members.take("output").map(RawJson::from).unwrap_or_default();
        (output_content(&output), Object::with("output", output).into_members(), false)
    } else if members.take_word("state", "output-error") {
        let text = members.take_text("errorText").unwrap_or_default();
        (vec![ContentBlock::text(text)], UnknownMembers::NONE, true)
    } else {
        return None;
    };
    Some(FunctionResultBlock {
        function_call_id: id.to_owned(),
        content,
        is_error: Some(is_error),
        unknown: kept_members(FORMAT, rest),
    })
}

/// The output of a tool: a text, the SDK's list of contents, or any JSON, shown as JSON.
fn output_content(output: &RawJson) -> Vec<ContentBlock> {
    if let Some(text) = typed::<String>(output.raw()) {
        return vec![ContentBlock::text(text)];
    }
    let value = Members::of(output.raw())
        .filter(|members| members.text("type").as_deref() == Some("content"))
        .and_then(|members| list(members.get("value")?));
    match value {
        Some(items) => items.into_iter().map(output_item).collect(),
        None => vec![ContentBlock::text(output.get())],
    }
}

fn output_item(raw: &RawValue) -> ContentBlock {
    let members = Members::of(raw).unwrap_or_default();
    match (members.text("type").as_deref(), members.text("text"), members.text("data")) {
        (Some("text"), Some(text), _) => ContentBlock::text(text),
        (Some("media" | "image-data" | "file-data"), _, Some(data)) => {
            super::block::image(members.text("mediaType").unwrap_or_default(), data)
        }
        (Some("image-url"), _, _) => image_at(&members.text("url").unwrap_or_default(), ""),
        (kind, _, _) => whole_block(FORMAT, raw, name_of(kind.unwrap_or("output"), &members)),
    }
}

fn write_parts(content: &[ContentBlock], mapping: &mut Mapping) -> Vec<RawJson> {
    let mut parts = Vec::with_capacity(content.len());
    let blocks: Vec<_> = placed("", content).collect();
    let mut written = Vec::new();
    for (at, block) in &blocks {
        match block {
            ContentBlock::FunctionCall(call) => {
                let result = blocks.iter().find_map(|(at, block)| match block {
                    ContentBlock::FunctionResult(result)
                        if result.function_call_id == call.id && !written.contains(at) =>
                    {
                        Some((at.as_str(), result))
                    }
                    _ => None,
                });
                written.extend(result.map(|(at, _)| at.to_owned()));
                parts.push(write_tool(at, call, result, mapping));
            }
            ContentBlock::FunctionResult(_) if written.contains(at) => {}
            ContentBlock::FunctionResult(result) => {
                mapping.note(format!("{at}/type"), LossReason::Changed);
                let call = call_elsewhere(&result.function_call_id, "");
                parts.push(write_tool("", &call, Some((at, result)), mapping));
            }
            _ => parts.extend(mapping.block(at, block, write_part)),
        }
    }
    parts
}

fn write_part(
    mapping: &mut Mapping,
    at: &str,
    block: &ContentBlock,
    kept: UnknownMembers,
) -> Option<RawJson> {
    let object = match block {
        ContentBlock::Text(block) => Object::with("type", "text").and("text", &block.text),
        ContentBlock::Thinking(block) => {
            mapping.lose_some(at, "signature", block.signature.as_ref());
            Object::with("type", "reasoning").and("text", &block.text)
        }
        ContentBlock::Image(image) => Object::with("type", "file")
            .and("mediaType", some_mime(image))
            .and("url", picture_url(image)),
        ContentBlock::FunctionCall(_) | ContentBlock::FunctionResult(_) => return None,
    };
    Some(object.with_kept(kept))
}

fn write_tool(
    at: &str,
    call: &FunctionCallBlock,
    result: Option<(&str, &FunctionResultBlock)>,
    mapping: &mut Mapping,
) -> RawJson {
    let mut kept = mapping.kept(at, &call.unknown, &[]);
    let part = take_members(&mut kept, PART);
    let mut object = Object::with("type", format!("tool-{}", call.function_id));
    if part.get("type").is_some_and(|kind| kind.get() == "\"dynamic-tool\"") {
        object.put("toolName", &call.function_id);
    }
    object.put("toolCallId", &call.id);
    object.put("state", "input-available");
    object.put("input", &call.arguments);
    object.put_back(part);
    if let Some((at, result)) = result {
        let own = mapping.kept(at, &result.unknown, &[]);
        if result.is_error == Some(true) {
            object.put("state", "output-error");
            object.put("errorText", joined_text(&result.content));
            for (at, block) in placed(at, &result.content) {
                if block.as_text().is_none() {
                    mapping.lose(at);
                }
            }
        } else {
            object.put("state", "output-available");
            object.put("output", write_output(own.get("output"), &result.content));
        }
    }
    object.into_raw()
}

/// The output as it came, if it still equals what is shown; otherwise a text, or a list of contents.
fn write_output(own: Option<&RawJson>, content: &[ContentBlock]) -> RawJson {
    if let Some(own) = own.filter(|own| output_content(own) == content) {
        return own.clone();
    }
    if let [ContentBlock::Text(text)] = content {
        return to_json(&text.text);
    }
    let items = content.iter().filter_map(|block| {
        let item = match block {
            ContentBlock::Image(image) if !image.data.is_empty() => {
                Object::with("type", "media").and("data", &image.data).and("mediaType", &image.mime)
            }
            ContentBlock::Image(image) => {
                Object::with("type", "image-url").and("url", picture_url(image))
            }
            _ => Object::with("type", "text").and("text", block.stream_text()?),
        };
        Some(item.into_raw())
    });
    Object::with("type", "content").and("value", items.collect::<Vec<_>>()).into_raw()
}

/// The part that marks the start of a step of a reply.
pub(super) fn step_start() -> ContentBlock {
    let mut block = ContentBlock::text("");
    let part = Object::with("type", "step-start").into_raw();
    block.unknown_mut().set(super::write::ORIGINAL, Object::with(FORMAT.name(), part).into_raw());
    block
}
