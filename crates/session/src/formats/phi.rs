//! Messages of phi sessions.

use super::block::{kept, lose_custom_as_user};
use super::check::Check;
use super::pi::{
    BlockNames, PI_BLOCKS, content_of, stop_reason, stop_word, usage_figures, write_content,
};
use super::read::Members;
use super::write::{Mapping, Object};
use super::{Codec, Format};
use crate::{
    AgentMessage, AssistantMessage, Canonical, CustomPayload, FormatError, FunctionResultMessage,
    RawJson, StopReason, Usage, UserMessage,
};

const FORMAT: Format = Format::Phi;
const BLOCKS: BlockNames = BlockNames { format: FORMAT, signature: "signature", ..PI_BLOCKS };

/// The codec.
pub(super) struct Phi;

impl Codec for Phi {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        let role = check.text("role")?;
        match role.as_str() {
            "user" | "assistant" => {}
            "toolResult" => {
                check.text("toolCallId")?;
            }
            _ if check.has("kind") => return check.text("kind").map(|_| ()),
            _ => return Err(check.wrong("role", "one of user, assistant, toolResult")),
        }
        check.text_or_list("content", |block| block.text("type").map(|_| ()))
    }

    /// A message; an extension message (`kind` and `data`) is bookkeeping.
    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let mut members = Members::parse(text)?;
        let role = members.text("role")?;
        if !matches!(role.as_str(), "user" | "assistant" | "toolResult") {
            let kind = members.text("kind")?;
            let data = members.take("data").and_then(|raw| serde_json::from_str(raw.get()).ok());
            let data = data.unwrap_or_default();
            return Some(Canonical::Custom(CustomPayload { custom_type: kind, data }));
        }
        members.take("role");
        let timestamp = members.take_as("timestamp").unwrap_or(entry_time);
        let content = content_of(&mut members, &BLOCKS);
        let message = match role.as_str() {
            "user" => AgentMessage::User(UserMessage {
                content,
                timestamp,
                unknown: kept(FORMAT, members),
            }),
            "assistant" => assistant(members, content, timestamp),
            _ => AgentMessage::FunctionResult(FunctionResultMessage {
                function_call_id: members.take_text("toolCallId").unwrap_or_default(),
                function_id: members.take_text("toolName").unwrap_or_default(),
                content,
                details: members.take_some("details").unwrap_or_default(),
                is_error: members.take_as("isError").unwrap_or(false),
                timestamp,
                unknown: kept(FORMAT, members),
            }),
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        let content = write_content("", message.content(), &BLOCKS, mapping);
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
            // phi gives a model no system message of its own and has no custom ones.
            AgentMessage::Custom(said) => {
                lose_custom_as_user(mapping, said);
                object.put("role", "user");
            }
        }
        object.put("content", content);
        object.put("timestamp", message.timestamp());
        object.put_back(mapping.kept("", message.unknown(), &[]));
        vec![object.into_raw()]
    }
}

fn assistant(
    mut members: Members<'_>,
    content: Vec<crate::ContentBlock>,
    timestamp: i64,
) -> AgentMessage {
    let native = members.take_text("stopReason");
    let provider = members.take_text("provider").unwrap_or_default();
    let model = members.take_text("model").unwrap_or_default();
    let (figures, cost_usd) = (members.take_object("usage"), members.take_as("cost_usd"));
    let usage = (figures.is_some() || cost_usd.is_some())
        .then(|| Usage { cost_usd, ..figures.map(usage).unwrap_or_default() });
    AgentMessage::Assistant(AssistantMessage {
        stop_reason: stop_reason(native.as_deref().unwrap_or_default(), STOP_WORDS),
        native_stop_reason: native,
        error_message: members.take_text("error_message"),
        error_kind: members.take_as("error_kind"),
        warnings: members.take_as("warnings"),
        usage,
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, provider, model, timestamp)
    })
}

/// The words for why a model stopped; of several for one reason the first is the usual one.
const STOP_WORDS: &[(&str, StopReason)] = &[
    ("stop", StopReason::End),
    ("handoff", StopReason::End),
    ("contextCompacted", StopReason::End),
    ("paused", StopReason::End),
    ("length", StopReason::Length),
    ("maxTurns", StopReason::Length),
    ("toolUse", StopReason::FunctionCall),
    ("error", StopReason::Error),
    ("guardRail", StopReason::Error),
    ("aborted", StopReason::Aborted),
    ("userStop", StopReason::Aborted),
];

fn usage(mut members: Members<'_>) -> Usage {
    let figures = [
        members.take_as("input"),
        members.take_as("output"),
        members.take_as("cache_read"),
        members.take_as("cache_write"),
    ];
    let reasoning = members.take_as("reasoning");
    usage_figures(figures, reasoning, "total_tokens", None, members, FORMAT)
}

fn write_assistant(said: &AssistantMessage, object: &mut Object, mapping: &mut Mapping) {
    object.put("role", "assistant");
    object.put_some("stopReason", stop_word(said, STOP_WORDS, mapping));
    object.put("model", &said.model);
    object.put("provider", &said.provider);
    object.put_some("error_message", said.error_message.as_ref());
    let none = Usage::default();
    let usage = said.usage.as_ref().unwrap_or(&none);
    let figures = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let [input, output, cache_read, cache_write] = figures.map(Option::unwrap_or_default);
    let mut report = Object::with("input", input);
    report.put("output", output);
    report.put("reasoning", usage.reasoning.unwrap_or(0));
    report.put("cache_read", cache_read);
    report.put("cache_write", cache_write);
    let sum = [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
    report.put("total_tokens", sum);
    report.put_back(mapping.kept("/usage", &usage.unknown, &[]));
    object.put("usage", report.into_raw());
    // phi has no word for these and ignores members that it does not know; beside the figures they survive its recorder.
    object.put_some("cost_usd", usage.cost_usd.as_ref());
    object.put_some("error_kind", said.error_kind.as_ref());
    object.put_some("warnings", said.warnings.as_ref());
}
