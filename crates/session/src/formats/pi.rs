//! Lines of pi session files, and the messages in them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::block::{
    Picture, StopWords, image, image_at, joined_text, kept, name_of, picture, take_content,
    text_block, user_message, whole_block,
};
use super::check::Check;
use super::pi_lines::{payload, result_details, system_content};
use super::read::{Members, typed};
use super::write::{Mapping, Object, take_members};
use super::{Codec, Format};
use crate::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, CustomMessage, CustomPayload,
    FormatError, FunctionCallBlock, FunctionResultMessage, LossReason, RawJson, StopReason,
    ThinkingBlock, Usage,
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
        if let AgentMessage::Custom(custom) = message
            && let Some(whole) = own_role(custom)
        {
            return vec![whole];
        }
        vec![write_message(message, &PI_BLOCKS, mapping, |mapping| match message {
            AgentMessage::Assistant(reply) => write_assistant(reply, mapping),
            AgentMessage::Custom(custom) => Object::with("role", "custom")
                .and("customType", &custom.custom_type)
                .and("display", custom.display.as_deref() != Some("false"))
                .and_some("details", custom.details.as_ref()),
            AgentMessage::User(_) | AgentMessage::FunctionResult(_) => Object::default(),
        })]
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

pub(super) fn message(text: &str, entry_time: i64) -> Option<AgentMessage> {
    let mut members = Members::parse(text)?;
    let role = members.text("role")?;
    members.take("role");
    let timestamp = members.take_as("timestamp").unwrap_or(entry_time);
    if role == BASH_EXECUTION {
        return Some(AgentMessage::Custom(bash_execution(text, &members, timestamp)));
    }
    let content = content_of(&mut members, &PI_BLOCKS);
    Some(match role.as_str() {
        "user" => user_message(FORMAT, content, timestamp, members),
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
fn own_role(custom: &CustomMessage) -> Option<RawJson> {
    let whole = custom.details.as_ref()?;
    let role = Members::parse(whole.get())?.text("role")?;
    let is_own = custom.custom_type == BASH_EXECUTION && role == BASH_EXECUTION
        || custom.custom_type.strip_prefix(OTHER_ROLES) == Some(&role);
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
        stop_reason: stop_reason(native.as_deref(), &STOP_WORDS),
        native_stop_reason: native,
        error_message: members.take_text("errorMessage"),
        usage: members.take_object("usage").map(usage),
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, provider, model, timestamp)
    }
}

const STOP_WORDS: StopWords = StopWords { provider: None, usual: USUAL_STOP_WORDS, others: &[] };

/// The words that pi and phi share.
pub(super) const USUAL_STOP_WORDS: &[(&str, StopReason)] = &[
    ("stop", StopReason::End),
    ("length", StopReason::Length),
    ("toolUse", StopReason::FunctionCall),
    ("error", StopReason::Error),
    ("aborted", StopReason::Aborted),
];

/// Why a model stopped. A word that is not known is the end of a reply.
pub(super) fn stop_reason(native: Option<&str>, words: &StopWords) -> StopReason {
    native.and_then(|word| words.reason(word)).unwrap_or(StopReason::End)
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

/// Reads content, which is one text or a list of blocks.
pub(super) fn content_of(members: &mut Members<'_>, names: &BlockNames) -> Vec<ContentBlock> {
    take_content(names.format, members, "content", |raw, members| block(raw, members, names))
}

fn block(raw: &RawValue, mut members: Members<'_>, names: &BlockNames) -> ContentBlock {
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => {
            let text = members.take_text("text").unwrap_or_default();
            text_block(names.format, text, members)
        }
        "image" => {
            let mime = members.take_text("mimeType").unwrap_or_default();
            let data = members.take_text("data").unwrap_or_default();
            let mut block = match members.take_text("url").filter(|_| data.is_empty()) {
                Some(url) => image_at(&url, &mime),
                None => image(mime, data),
            };
            block.unknown_mut().extend(kept(names.format, members));
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

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> Object {
    let object = Object::with("role", "assistant")
        .and("api", "unknown")
        .and("provider", &reply.provider)
        .and("model", &reply.model)
        .and("usage", write_usage(reply.usage.as_ref(), mapping))
        .and_some("stopReason", STOP_WORDS.word(reply, mapping))
        .and_some("errorMessage", reply.error_message.as_ref());
    mapping.lose_some("", "error_kind", reply.error_kind.as_ref());
    mapping.lose_some("", "warnings", reply.warnings.as_ref());
    object
}

/// The four figures of a report, zero if not known, and their sum.
pub(super) fn figures_and_sum(usage: &Usage) -> ([u64; 4], u64) {
    let figures = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let figures = figures.map(Option::unwrap_or_default);
    (figures, figures.into_iter().fold(0, u64::saturating_add))
}

/// The usage of a reply. One that reports none gets figures of 0, because the programs need them.
pub(super) fn usage_or_none<'a>(
    usage: Option<&'a Usage>,
    none: &'a Usage,
    mapping: &mut Mapping,
) -> &'a Usage {
    if usage.is_none() {
        mapping.note("/usage".to_owned(), LossReason::Changed);
    }
    usage.unwrap_or(none)
}

/// pi's programs add these figures up without checking that they exist.
fn write_usage(usage: Option<&Usage>, mapping: &mut Mapping) -> RawJson {
    let none = Usage::default();
    let usage = usage_or_none(usage, &none, mapping);
    let ([input, output, cache_read, cache_write], sum) = figures_and_sum(usage);
    let mut kept = mapping.kept("/usage", &usage.unknown, &[]);
    let keys = ["input", "output", "cacheRead", "cacheWrite"];
    let cost = keys.into_iter().fold(Object::default(), |cost, key| cost.and(key, 0));
    let cost = cost.and("total", usage.cost_usd.unwrap_or(0.0));
    let cost = cost.with_kept(take_members(&mut kept, "cost"));
    Object::with("input", input)
        .and("output", output)
        .and("cacheRead", cache_read)
        .and("cacheWrite", cache_write)
        .and_some("reasoning", usage.reasoning)
        .and("totalTokens", sum)
        .and("cost", cost)
        .with_kept(kept)
}

/// Writes a message of pi or phi. The two have the same messages of the user and the same results; `write_other` begins
/// those of the other roles.
pub(super) fn write_message(
    message: &AgentMessage,
    names: &BlockNames,
    mapping: &mut Mapping,
    write_other: impl FnOnce(&mut Mapping) -> Object,
) -> RawJson {
    let content = mapping.blocks("", message.content(), |mapping, at, block, kept| {
        Some(write_block(at.to_owned(), block, names, mapping).with_kept(kept))
    });
    let object = match message {
        AgentMessage::User(_) => Object::with("role", "user"),
        AgentMessage::FunctionResult(result) => Object::with("role", "toolResult")
            .and("toolCallId", &result.function_call_id)
            .and("toolName", &result.function_id)
            .and("isError", result.is_error)
            .and_some("details", Some(&result.details).filter(|details| !details.is_null())),
        AgentMessage::Assistant(_) | AgentMessage::Custom(_) => write_other(mapping),
    };
    object.and("content", content).and("timestamp", message.timestamp()).with_kept(mapping.kept(
        "",
        message.unknown(),
        &[],
    ))
}

fn write_block(
    at: String,
    block: &ContentBlock,
    names: &BlockNames,
    mapping: &mut Mapping,
) -> Object {
    match block {
        ContentBlock::Text(text) => Object::with("type", "text").and("text", &text.text),
        ContentBlock::Image(image) => {
            let object =
                Object::with("type", "image").and("data", &image.data).and("mimeType", &image.mime);
            // Neither system has pictures by address; the address is kept anyway.
            let Picture::At(url) = picture(image).0 else { return object };
            mapping.note(at, LossReason::Changed);
            object.and("url", url)
        }
        ContentBlock::Thinking(thought) => Object::with("type", "thinking")
            .and("thinking", &thought.text)
            .and_some(names.signature, thought.signature.as_ref()),
        ContentBlock::FunctionCall(call) => Object::with("type", "toolCall")
            .and("id", &call.id)
            .and("name", &call.function_id)
            .and("arguments", &call.arguments),
        // There is no such block: a result is a message.
        ContentBlock::FunctionResult(result) => {
            mapping.note(at, LossReason::Changed);
            Object::with("type", "text").and("text", joined_text(&result.content))
        }
    }
}
