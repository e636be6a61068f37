//! Messages of phi sessions.

use serde_json::Value;

use super::{Look, pi};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, Canonical, CustomPayload, FunctionResultMessage, StopReason,
    Usage, UserMessage,
};

/// A message; an extension message (`kind` and `data`) is bookkeeping.
pub(super) fn canonical(message: &Value, entry_time: i64) -> Option<Canonical> {
    let timestamp = message.time("timestamp").unwrap_or(entry_time);
    let content = pi::content_of(message);
    let message = match message.text("role")? {
        "user" => AgentMessage::User(UserMessage::new(content, timestamp)),
        "assistant" => AgentMessage::Assistant(AssistantMessage {
            content,
            stop_reason: stop_reason(message.text("stopReason").unwrap_or("stop")),
            native_stop_reason: message.text("stopReason").map(str::to_owned),
            error_message: message.text("error_message").map(str::to_owned),
            error_kind: None,
            warnings: None,
            usage: message.get("usage").map(usage),
            model: message.texts("model"),
            provider: message.texts("provider"),
            timestamp,
            unknown: UnknownMembers::NONE,
        }),
        "toolResult" => AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: message.texts("toolCallId"),
            function_id: message.texts("toolName"),
            content,
            details: message.some("details").unwrap_or_default().into(),
            is_error: message.flag("isError").unwrap_or(false),
            timestamp,
            unknown: UnknownMembers::NONE,
        }),
        _ => return extension(message),
    };
    Some(Canonical::Message(message.into()))
}

fn extension(message: &Value) -> Option<Canonical> {
    Some(Canonical::Custom(CustomPayload {
        custom_type: message.text("kind")?.to_owned(),
        data: message.some("data").unwrap_or_default(),
    }))
}

fn stop_reason(native: &str) -> StopReason {
    match native {
        "length" | "maxTurns" => StopReason::Length,
        "toolUse" => StopReason::FunctionCall,
        "error" | "guardRail" => StopReason::Error,
        "aborted" | "userStop" => StopReason::Aborted,
        _ => StopReason::End,
    }
}

fn usage(usage: &Value) -> Usage {
    Usage {
        input: usage.number("input"),
        output: usage.number("output"),
        cache_read: usage.number("cache_read"),
        cache_write: usage.number("cache_write"),
        reasoning: usage.number("reasoning"),
        cost_usd: None,
        unknown: UnknownMembers::NONE,
    }
}
