//! Lines of pi session files, and the messages in them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::block::{
    image, image_at, is_mark, joined_text, kept, name_of, picture, placed, whole_block,
};
use super::check::Check;
use super::pi_lines::{payload, result_details, system_content};
use super::read::{Members, typed};
use super::write::{Mapping, Object, members_of};
use super::{Codec, Format};
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, CustomMessage, CustomPayload,
    FormatError, FunctionCallBlock, FunctionResultMessage, LossReason, RawJson, StopReason,
    TextBlock, ThinkingBlock, Usage, UserMessage,
};

const FORMAT: Format = Format::Pi;
/// The role, and the custom type, of a command that the user ran.
const BASH_EXECUTION: &str = "bashExecution";
/// The prefix of custom types for roles that a canonical message does not have.
const OTHER_ROLES: &str = "pi.";

/// The words of pi's blocks, where phi has others.
pub(super) struct BlockNames {
    pub(super) format: Format,
    pub(super) signature: &'static str,
    pub(super) other_signature: &'static str,
}

pub(super) const PI_BLOCKS: BlockNames =
    BlockNames { format: FORMAT, signature: "thinkingSignature", other_signature: "signature" };

/// The codec.
pub(super) struct Pi;

impl Codec for Pi {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        if !check.has("type") {
            return check_message(check);
        }
        match check.text("type")?.as_str() {
            "message" => check_message(&check.object("message")?),
            "custom" | "custom_message" => check.text("customType").map(|_| ()),
            _ => Ok(()),
        }
    }

    /// A whole line, an entry with its `type`; or a message.
    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let mut line = Members::parse(text)?;
        let message = match line.text("type").as_deref() {
            None => message(text, entry_time)?,
            Some("message") => message(line.take("message")?.get(), entry_time)?,
            Some("custom_message") => AgentMessage::Custom(custom_line(line, entry_time)),
            Some("custom") => {
                let custom_type = line.text("customType")?;
                let data = line.take("data").and_then(typed::<Value>).unwrap_or_default();
                return Some(Canonical::Custom(CustomPayload { custom_type, data }));
            }
            Some(kind) => {
                let line = serde_json::from_str(text).ok()?;
                return payload(kind, &line).map(Canonical::Custom);
            }
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        if let AgentMessage::Custom(said) = message
            && let Some(whole) = own_role(said)
        {
            return vec![whole];
        }
        let content = write_content("", message.content(), &PI_BLOCKS, mapping);
        let mut object = Object::default();
        match message {
            AgentMessage::User(_) => object.put("role", "user"),
            AgentMessage::Assistant(said) => write_assistant(said, &mut object, mapping),
            AgentMessage::FunctionResult(said) => {
                object.put("role", "toolResult");
                object.put("toolCallId", &said.function_call_id);
                object.put("toolName", &said.function_id);
                object.put("isError", said.is_error);
                if !said.details.is_null() {
                    object.put("details", &said.details);
                }
            }
            AgentMessage::Custom(said) => {
                object.put("role", "custom");
                object.put("customType", &said.custom_type);
                object.put("display", said.display.as_deref() != Some("false"));
                object.put_some("details", said.details.as_ref());
            }
        }
        object.put("content", content);
        object.put("timestamp", message.timestamp());
        object.put_back(mapping.kept("", message.unknown(), &[]));
        vec![object.into_raw()]
    }

    fn input(&self, json: RawJson, _mapping: &mut Mapping) -> Vec<RawJson> {
        let message = Members::parse(json.get()).and_then(|mut line| line.take("message"));
        vec![message.map(RawJson::from).unwrap_or(json)]
    }
}

fn check_message(check: &Check<'_>) -> Result<(), FormatError> {
    match check.text("role")?.as_str() {
        "toolResult" => {
            check.text("toolCallId")?;
        }
        "user" | "assistant" => {}
        // Other roles have shapes of their own.
        _ => return Ok(()),
    }
    check.text_or_list("content", |block| block.text("type").map(|_| ()))
}

fn message(text: &str, entry_time: i64) -> Option<AgentMessage> {
    let mut members = Members::parse(text)?;
    let role = members.text("role")?;
    members.take("role");
    let timestamp = members.take_as("timestamp").unwrap_or(entry_time);
    if role == BASH_EXECUTION {
        return Some(AgentMessage::Custom(bash_execution(text, &members, timestamp)));
    }
    let content = content_of(&mut members, &PI_BLOCKS);
    Some(match role.as_str() {
        "user" => {
            AgentMessage::User(UserMessage { content, timestamp, unknown: kept(FORMAT, members) })
        }
        "assistant" => AgentMessage::Assistant(assistant(members, content, timestamp)),
        "toolResult" => AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: members.take_text("toolCallId").unwrap_or_default(),
            function_id: members.take_text("toolName").unwrap_or_default(),
            content,
            details: result_details(members.take_some("details"), members.take_some("usage")),
            is_error: members.take_as("isError").unwrap_or(false),
            timestamp,
            unknown: kept(FORMAT, members),
        }),
        // `hookMessage` is what files before version 3 call it.
        "custom" | "hookMessage" => {
            AgentMessage::Custom(custom_message(members, content, timestamp))
        }
        role => AgentMessage::Custom(CustomMessage {
            custom_type: format!("{OTHER_ROLES}{role}"),
            content: match role {
                "system" => system_content(&serde_json::from_str(text).ok()?, content),
                _ => content,
            },
            display: None,
            details: RawJson::parse(text).ok(),
            timestamp,
            unknown: crate::UnknownMembers::NONE,
        }),
    })
}

/// The message of a role that only pi has; the details hold it as it came.
fn own_role(said: &CustomMessage) -> Option<RawJson> {
    let whole = said.details.as_ref()?;
    let role = Members::parse(whole.get())?.text("role")?;
    let is_own = said.custom_type == BASH_EXECUTION && role == BASH_EXECUTION
        || said.custom_type.strip_prefix(OTHER_ROLES) == Some(&role);
    is_own.then(|| whole.clone())
}

fn assistant(
    mut members: Members<'_>,
    content: Vec<ContentBlock>,
    timestamp: i64,
) -> AssistantMessage {
    let native = members.take_text("stopReason");
    let provider = members.take_text("provider").unwrap_or_default();
    let model = members.take_text("model").unwrap_or_default();
    AssistantMessage {
        stop_reason: stop_reason(native.as_deref().unwrap_or_default(), STOP_WORDS),
        native_stop_reason: native,
        error_message: members.take_text("errorMessage"),
        usage: members.take_object("usage").map(usage),
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, provider, model, timestamp)
    }
}

/// The words for why a model stopped; of several for one reason the first is the usual one.
const STOP_WORDS: &[(&str, StopReason)] = &[
    ("stop", StopReason::End),
    ("length", StopReason::Length),
    ("toolUse", StopReason::FunctionCall),
    ("error", StopReason::Error),
    ("aborted", StopReason::Aborted),
];

/// The word for why a model stopped: its own where it is one of these words, otherwise the one that pi and phi share.
pub(super) fn stop_word(
    said: &AssistantMessage,
    words: &[(&'static str, StopReason)],
    mapping: &mut Mapping,
) -> Option<&'static str> {
    if mapping.is_unfinished {
        return None;
    }
    let own = said.native_stop_reason.as_deref();
    let same = words.iter().find(|(word, _)| Some(*word) == own);
    if let Some((word, _)) = same.filter(|(_, reason)| *reason == said.stop_reason) {
        return Some(word);
    }
    if own.is_some() {
        mapping.note("/native_stop_reason".to_owned(), LossReason::Changed);
    }
    let usual = words.iter().find(|(_, reason)| *reason == said.stop_reason);
    Some(usual.map_or("stop", |(word, _)| word))
}

/// Why a model stopped, by the word for it. A word that is not known is the end of a reply.
pub(super) fn stop_reason(native: &str, words: &[(&'static str, StopReason)]) -> StopReason {
    let known = words.iter().find(|(word, _)| *word == native);
    known.map_or(StopReason::End, |(_, reason)| *reason)
}

/// A report of usage with its four figures, reasoning and price. A total that is their sum is written anew.
pub(super) fn usage_figures(
    figures: [Option<u64>; 4],
    reasoning: Option<u64>,
    total: &str,
    cost_usd: Option<f64>,
    mut members: Members<'_>,
    format: Format,
) -> Usage {
    let sum = figures.into_iter().flatten().fold(0, u64::saturating_add);
    if members.get(total).is_some_and(|given| given.get() == sum.to_string()) {
        members.take(total);
    }
    let [input, output, cache_read, cache_write] = figures;
    let unknown = kept(format, members);
    Usage { input, output, cache_read, cache_write, reasoning, cost_usd, unknown }
}

pub(super) fn usage(mut members: Members<'_>) -> Usage {
    let figures = [
        members.take_as("input"),
        members.take_as("output"),
        members.take_as("cacheRead"),
        members.take_as("cacheWrite"),
    ];
    let reasoning = members.take_as("reasoning");
    let cost = members.get("cost").and_then(Members::of);
    let cost_usd = cost.and_then(|cost| typed(cost.get("total")?));
    usage_figures(figures, reasoning, "totalTokens", cost_usd, members, FORMAT)
}

fn custom_line(mut line: Members<'_>, entry_time: i64) -> CustomMessage {
    for envelope in ["type", "id", "parentId", "timestamp"] {
        line.take(envelope);
    }
    let content = content_of(&mut line, &PI_BLOCKS);
    custom_message(line, content, entry_time)
}

fn custom_message(
    mut members: Members<'_>,
    content: Vec<ContentBlock>,
    timestamp: i64,
) -> CustomMessage {
    CustomMessage {
        custom_type: members.take_text("customType").unwrap_or_default(),
        content,
        display: members.take_as::<bool>("display").map(|shown| shown.to_string()),
        details: members.take_some("details"),
        timestamp,
        unknown: kept(FORMAT, members),
    }
}

/// A command that the user ran, shown as pi sends it to the model, with its facts as details.
fn bash_execution(whole: &str, members: &Members<'_>, timestamp: i64) -> CustomMessage {
    let text = |key: &str| members.text(key).unwrap_or_default();
    let flag = |key: &str| members.get(key).and_then(typed::<bool>) == Some(true);
    let mut shown = format!("Ran `{}`", text("command"));
    match text("output").as_str() {
        "" => shown.push_str("\n(no output)"),
        output => shown.push_str(&format!("\n```\n{output}\n```")),
    }
    let code: Option<i64> = members.get("exitCode").and_then(typed);
    if flag("cancelled") {
        shown.push_str("\n(cancelled)");
    } else if let Some(code) = code.filter(|code| *code != 0) {
        shown.push_str(&format!("\n(exit code {code})"));
    }
    match members.text("fullOutputPath") {
        Some(path) => shown.push_str(&format!("\n(output truncated; all of it: {path})")),
        None if flag("truncated") => shown.push_str("\n(output truncated)"),
        None => {}
    }
    CustomMessage {
        custom_type: BASH_EXECUTION.to_owned(),
        content: vec![ContentBlock::text(shown)],
        display: None,
        details: RawJson::parse(whole).ok(),
        timestamp,
        unknown: crate::UnknownMembers::NONE,
    }
}

/// Reads content, which is one text or a list of blocks. Anything else is left in place.
pub(super) fn content_of(members: &mut Members<'_>, names: &BlockNames) -> Vec<ContentBlock> {
    if let Some(text) = members.take_text("content") {
        return vec![ContentBlock::text(text)];
    }
    let blocks = members.take_list("content").unwrap_or_default();
    blocks.into_iter().map(|raw| block(raw, names)).collect()
}

fn block(raw: &RawValue, names: &BlockNames) -> ContentBlock {
    let Some(mut members) = Members::of(raw) else {
        return whole_block(names.format, raw, raw.get().to_owned());
    };
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => ContentBlock::Text(TextBlock {
            text: members.take_text("text").unwrap_or_default(),
            unknown: kept(names.format, members),
        }),
        "image" => {
            let mime = members.take_text("mimeType").unwrap_or_default();
            let data = members.take_text("data").unwrap_or_default();
            let mut block = match members.take_text("url").filter(|_| data.is_empty()) {
                Some(url) => image_at(&url, &mime),
                None => image(mime, data),
            };
            for (key, value) in kept(names.format, members) {
                block.unknown_mut().set(key, value);
            }
            block
        }
        "thinking" => ContentBlock::Thinking(ThinkingBlock {
            text: members.take_text("thinking").unwrap_or_default(),
            signature: members
                .take_text(names.signature)
                .or_else(|| members.take_text(names.other_signature)),
            unknown: kept(names.format, members),
        }),
        "toolCall" => ContentBlock::FunctionCall(FunctionCallBlock {
            id: members.take_text("id").unwrap_or_default(),
            function_id: members.take_text("name").unwrap_or_default(),
            arguments: members.take_some("arguments").unwrap_or_default(),
            unknown: kept(names.format, members),
        }),
        // A block of a later version: named rather than left out.
        _ => whole_block(names.format, raw, name_of(&kind, &members)),
    }
}

fn write_assistant(said: &AssistantMessage, object: &mut Object, mapping: &mut Mapping) {
    object.put("role", "assistant");
    object.put("api", "unknown");
    object.put("provider", &said.provider);
    object.put("model", &said.model);
    object.put("usage", write_usage(said.usage.as_ref(), mapping));
    object.put_some("stopReason", stop_word(said, STOP_WORDS, mapping));
    object.put_some("errorMessage", said.error_message.as_ref());
    mapping.lose_some("", "error_kind", said.error_kind.as_ref());
    mapping.lose_some("", "warnings", said.warnings.as_ref());
}

/// pi's programs add these figures up without checking that they exist.
fn write_usage(usage: Option<&Usage>, mapping: &mut Mapping) -> RawJson {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    let figures = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let [input, output, cache_read, cache_write] = figures.map(Option::unwrap_or_default);
    let mut kept = mapping.kept("/usage", &usage.unknown, &[]);
    let mut cost = Object::default();
    for key in ["input", "output", "cacheRead", "cacheWrite"] {
        cost.put(key, 0);
    }
    cost.put("total", usage.cost_usd.unwrap_or(0.0));
    cost.put_back(kept.remove("cost").as_ref().map(members_of).unwrap_or_default());
    let mut object = Object::with("input", input);
    object.put("output", output);
    object.put("cacheRead", cache_read);
    object.put("cacheWrite", cache_write);
    object.put_some("reasoning", usage.reasoning);
    let sum = [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
    object.put("totalTokens", sum);
    object.put("cost", cost.into_raw());
    object.put_back(kept);
    object.into_raw()
}

pub(super) fn write_content(
    at: &str,
    content: &[ContentBlock],
    names: &BlockNames,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    let mut blocks = Vec::with_capacity(content.len());
    for (at, block) in placed(at, content) {
        if let Some(whole) = mapping.original(block.unknown()) {
            blocks.push(whole);
            continue;
        }
        let kept = mapping.kept(&at, block.unknown(), &["url"]);
        if is_mark(block) {
            continue;
        }
        let mut object = write_block(at, block, names, mapping);
        object.put_back(kept);
        blocks.push(object.into_raw());
    }
    blocks
}

fn write_block(
    at: String,
    block: &ContentBlock,
    names: &BlockNames,
    mapping: &mut Mapping,
) -> Object {
    let mut object = Object::default();
    match block {
        ContentBlock::Text(text) => {
            object.put("type", "text");
            object.put("text", &text.text);
        }
        ContentBlock::Image(image) => {
            object.put("type", "image");
            object.put("data", &image.data);
            object.put("mimeType", &image.mime);
            // Neither system has pictures by address; the address is kept anyway.
            if let super::block::Picture::At(url) = picture(image).0 {
                object.put("url", url);
                mapping.note(at, LossReason::Changed);
            }
        }
        ContentBlock::Thinking(thought) => {
            object.put("type", "thinking");
            object.put("thinking", &thought.text);
            object.put_some(names.signature, thought.signature.as_ref());
        }
        ContentBlock::FunctionCall(call) => {
            object.put("type", "toolCall");
            object.put("id", &call.id);
            object.put("name", &call.function_id);
            object.put("arguments", &call.arguments);
        }
        // There is no such block: a result is a message.
        ContentBlock::FunctionResult(result) => {
            mapping.note(at, LossReason::Changed);
            object.put("type", "text");
            object.put("text", joined_text(&result.content));
        }
    }
    object
}
