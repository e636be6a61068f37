//! Messages of phi sessions.

use super::block::{StopWords, kept, lose_custom_as_user, user_message};
use super::check::Check;
use super::pi::{
    BlockNames, PI_BLOCKS, USUAL_STOP_WORDS, content_of, figures_and_sum, stop_reason,
    usage_figures, usage_or_none, write_message,
};
use super::read::Members;
use super::write::{Mapping, Object};
use super::{Codec, Format};
use crate::{
    AgentMessage, AssistantMessage, Canonical, CustomPayload, FormatError, FunctionResultMessage,
    RawJson, StopReason, Usage,
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
            "user" => user_message(FORMAT, content, timestamp, members),
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
        vec![write_message(message, &BLOCKS, mapping, |mapping| match message {
            AgentMessage::Assistant(reply) => write_assistant(reply, mapping),
            // phi gives a model no system message of its own and has no custom ones.
            AgentMessage::Custom(custom) => {
                lose_custom_as_user(mapping, custom);
                Object::with("role", "user")
            }
            AgentMessage::User(_) | AgentMessage::FunctionResult(_) => Object::default(),
        })]
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
        stop_reason: stop_reason(native.as_deref(), &STOP_WORDS),
        native_stop_reason: native,
        error_message: members.take_text("error_message"),
        error_kind: members.take_as("error_kind"),
        warnings: members.take_as("warnings"),
        usage,
        unknown: kept(FORMAT, members),
        ..AssistantMessage::new(content, provider, model, timestamp)
    })
}

const STOP_WORDS: StopWords = StopWords {
    provider: None,
    usual: USUAL_STOP_WORDS,
    others: &[
        ("handoff", StopReason::End),
        ("contextCompacted", StopReason::End),
        ("paused", StopReason::End),
        ("maxTurns", StopReason::Length),
        ("guardRail", StopReason::Error),
        ("userStop", StopReason::Aborted),
    ],
};

/// Why a model stopped, by phi's word for it. A word that is not known is the end of a reply.
#[must_use]
pub fn phi_stop_reason(word: &str) -> StopReason {
    stop_reason(Some(word), &STOP_WORDS)
}

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

fn write_assistant(reply: &AssistantMessage, mapping: &mut Mapping) -> Object {
    let stop_word = STOP_WORDS.word(reply, mapping);
    let none = Usage::default();
    let usage = usage_or_none(reply.usage.as_ref(), &none, mapping);
    let ([input, output, cache_read, cache_write], sum) = figures_and_sum(usage);
    let report = Object::with("input", input)
        .and("output", output)
        .and("reasoning", usage.reasoning.unwrap_or(0))
        .and("cache_read", cache_read)
        .and("cache_write", cache_write)
        .and("total_tokens", sum)
        .with_kept(mapping.kept("/usage", &usage.unknown, &[]));
    Object::with("role", "assistant")
        .and_some("stopReason", stop_word)
        .and("model", &reply.model)
        .and("provider", &reply.provider)
        .and_some("error_message", reply.error_message.as_ref())
        .and("usage", report)
        // phi does not know these members. Beside the usage they survive its recorder.
        .and_some("cost_usd", usage.cost_usd.as_ref())
        .and_some("error_kind", reply.error_kind.as_ref())
        .and_some("warnings", reply.warnings.as_ref())
}
