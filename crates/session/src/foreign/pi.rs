//! Lines of pi session files.

use serde_json::{Map, Value};

use super::Look;
use crate::bookkeeping::{
    BranchSummary, Compaction, Label, ModelChange, SessionInfo, ThinkingLevelChange,
};
use crate::{
    AgentMessage, AssistantMessage, Bookkeeping, Canonical, ContentBlock, CustomMessage,
    CustomPayload, EntryId, FunctionCallBlock, FunctionResultMessage, ImageBlock, StopReason,
    ThinkingBlock, Usage, UserMessage,
};

/// A whole line: an entry with its `type`.
pub(super) fn canonical(line: &Value, timestamp: i64) -> Option<Canonical> {
    let kind = line.text("type")?;
    match kind {
        "message" => {
            let message = message(line.get("message")?, timestamp)?;
            Some(Canonical::Message(message.into()))
        }
        "custom_message" => {
            let message = AgentMessage::Custom(custom_message(line, timestamp));
            Some(Canonical::Message(message.into()))
        }
        "custom" => Some(Canonical::Custom(CustomPayload {
            custom_type: line.text("customType")?.to_owned(),
            data: line.some("data").unwrap_or_default(),
        })),
        _ => bookkeeping(kind, line).map(|known| Canonical::Custom(with_pi_fields(known, line))),
    }
}

/// Bookkeeping with the members that only pi has: what making a summary cost, and the system prompt from there on.
fn with_pi_fields(known: Bookkeeping, line: &Value) -> CustomPayload {
    let mut payload = known.to_payload();
    if let Value::Object(data) = &mut payload.data {
        for (name, key) in [(USAGE, "usage"), (SYSTEM_MESSAGE, "systemMessage")] {
            data.extend(line.some(key).map(|value| (name.to_owned(), value)));
        }
    }
    payload
}

fn bookkeeping(kind: &str, line: &Value) -> Option<Bookkeeping> {
    let details = line.some("details");
    let from_hook = line.flag("fromHook");
    Some(match kind {
        "model_change" => Bookkeeping::ModelChange(ModelChange {
            provider: line.text("provider")?.to_owned(),
            model_id: line.text("modelId")?.to_owned(),
        }),
        "thinking_level_change" => Bookkeeping::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: line.text("thinkingLevel")?.to_owned(),
        }),
        "compaction" => Bookkeeping::Compaction(Compaction {
            summary: line.texts("summary"),
            first_kept_entry_id: EntryId::from_stored(line.texts("firstKeptEntryId")),
            tokens_before: line.number("tokensBefore").unwrap_or(0),
            details,
            from_hook,
        }),
        "branch_summary" => Bookkeeping::BranchSummary(BranchSummary {
            from_id: line.texts("fromId"),
            summary: line.texts("summary"),
            details,
            from_hook,
        }),
        "session_info" => Bookkeeping::SessionInfo(SessionInfo { name: line.texts("name") }),
        "label" => Bookkeeping::Label(Label {
            target_id: EntryId::from_stored(line.text("targetId")?),
            label: line.text("label").map(str::to_owned),
        }),
        _ => return None,
    })
}

/// Usage that belongs to no message of a model: a line of its own, such as that of keeping a cache warm, or a member
/// of a summary or of a tool's result.
pub(super) const USAGE: &str = "pi.usage";
/// The system prompt that a compaction says the model has from there on.
const SYSTEM_MESSAGE: &str = "pi.system_message";
/// What a model is sent in the place of an earlier entry from here on.
pub(super) const CONTEXT_EDIT: &str = "pi.context_edit";

/// The model of a [`USAGE`] line and what it used.
pub(super) fn usage_line(line: &Value) -> Option<(String, Usage)> {
    Some((line.texts("model"), usage(line.get("usage")?)))
}

/// What a tool's result or a summary used, beside the model's own messages; `data` is its details or its data.
pub(super) fn usage_beside(data: &Value) -> Option<Usage> {
    data.get(USAGE).map(usage)
}

/// The target of a [`CONTEXT_EDIT`] line, and its content from here on; `None` where it is to be left out.
pub(super) fn context_edit(line: &Value) -> Option<(EntryId, Option<Vec<ContentBlock>>)> {
    let target = EntryId::from_stored(line.text("targetId")?);
    match line.get("replacement")? {
        Value::Null => Some((target, None)),
        replacement => Some((target, Some(content_of(replacement)))),
    }
}

fn message(message: &Value, entry_time: i64) -> Option<AgentMessage> {
    let timestamp = message.time("timestamp").unwrap_or(entry_time);
    let content = content_of(message);
    Some(match message.text("role")? {
        "user" => AgentMessage::User(UserMessage { content, timestamp }),
        "assistant" => AgentMessage::Assistant(assistant(message, content, timestamp)),
        "toolResult" => AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: message.texts("toolCallId"),
            function_id: message.texts("toolName"),
            content,
            details: result_details(message),
            is_error: message.flag("isError").unwrap_or(false),
            timestamp,
        }),
        "bashExecution" => AgentMessage::Custom(bash_execution(message, timestamp)),
        "system" => AgentMessage::Custom(system_message(message, content, timestamp)),
        // `hookMessage` is what files before version 3 call it.
        "custom" | "hookMessage" => AgentMessage::Custom(custom_message(message, timestamp)),
        role => AgentMessage::Custom(CustomMessage {
            custom_type: format!("pi.{role}"),
            content,
            display: None,
            details: Some(message.clone()),
            timestamp,
        }),
    })
}

/// The details of a tool's result, with what the tool itself used.
fn result_details(message: &Value) -> Value {
    let details = message.some("details");
    let Some(usage) = message.some("usage") else { return details.unwrap_or_default() };
    let mut members = match details {
        Some(Value::Object(members)) => members,
        Some(other) => Map::from_iter([("details".to_owned(), other)]),
        None => Map::new(),
    };
    members.insert(USAGE.to_owned(), usage);
    Value::Object(members)
}

/// A change of the system prompt: its text, the sections that it sets or takes away, and the tools.
fn system_message(message: &Value, content: Vec<ContentBlock>, timestamp: i64) -> CustomMessage {
    let own = content.into_iter().filter(|block| block.as_text() != Some(""));
    let sections = message.get("sections").and_then(Value::as_object).into_iter().flatten();
    let sections = sections.map(|(name, section)| match section {
        Value::String(text) => text.clone(),
        _ => format!("(section {name} removed)"),
    });
    let tools = [("toolsAdded", "Tools added"), ("toolsRemoved", "Tools removed")];
    let tools = tools.into_iter().filter_map(|(key, words)| {
        let names: Vec<&str> =
            message.list(key).iter().filter_map(|tool| tool.text("name")).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    });
    CustomMessage {
        custom_type: "pi.system".to_owned(),
        content: own.chain(sections.chain(tools).map(ContentBlock::text)).collect(),
        display: None,
        details: Some(message.clone()),
        timestamp,
    }
}

fn assistant(message: &Value, content: Vec<ContentBlock>, timestamp: i64) -> AssistantMessage {
    let native = message.text("stopReason");
    AssistantMessage {
        content,
        stop_reason: stop_reason(native.unwrap_or("stop")),
        native_stop_reason: native.map(str::to_owned),
        error_message: message.text("errorMessage").map(str::to_owned),
        error_kind: None,
        warnings: None,
        usage: message.get("usage").map(usage),
        model: message.texts("model"),
        provider: message.texts("provider"),
        timestamp,
    }
}

fn stop_reason(native: &str) -> StopReason {
    match native {
        "length" => StopReason::Length,
        "toolUse" => StopReason::FunctionCall,
        "error" => StopReason::Error,
        "aborted" => StopReason::Aborted,
        _ => StopReason::End,
    }
}

fn usage(usage: &Value) -> Usage {
    let cost = usage.get("cost").and_then(|cost| cost.get("total"));
    Usage {
        input: usage.number("input"),
        output: usage.number("output"),
        cache_read: usage.number("cacheRead"),
        cache_write: usage.number("cacheWrite"),
        reasoning: usage.number("reasoning"),
        cost_usd: cost.and_then(Value::as_f64),
    }
}

fn custom_message(message: &Value, timestamp: i64) -> CustomMessage {
    CustomMessage {
        custom_type: message.texts("customType"),
        content: content_of(message),
        display: message.flag("display").map(|shown| shown.to_string()),
        details: message.some("details"),
        timestamp: message.time("timestamp").unwrap_or(timestamp),
    }
}

/// A command that the person ran: shown as the model would be told of it, with the facts beside.
fn bash_execution(message: &Value, timestamp: i64) -> CustomMessage {
    let output = message.texts("output");
    let mut text = format!("Ran `{}`", message.texts("command"));
    if output.is_empty() {
        text.push_str("\n(no output)");
    } else {
        text.push_str(&format!("\n```\n{output}\n```"));
    }
    if message.flag("cancelled") == Some(true) {
        text.push_str("\n(cancelled)");
    } else if let Some(code) = message.time("exitCode").filter(|code| *code != 0) {
        text.push_str(&format!("\n(exit code {code})"));
    }
    match (message.flag("truncated"), message.text("fullOutputPath")) {
        (_, Some(path)) => text.push_str(&format!("\n(output truncated; all of it: {path})")),
        (Some(true), None) => text.push_str("\n(output truncated)"),
        _ => {}
    }
    CustomMessage {
        custom_type: "bashExecution".to_owned(),
        content: vec![ContentBlock::text(text)],
        display: None,
        details: Some(message.clone()),
        timestamp,
    }
}

/// Content is one text or a list of blocks.
pub(super) fn content_of(message: &Value) -> Vec<ContentBlock> {
    if let Some(text) = message.text("content") {
        return vec![ContentBlock::text(text)];
    }
    message.list("content").iter().map(block).collect()
}

fn block(block: &Value) -> ContentBlock {
    match block.text("type").unwrap_or_default() {
        "text" => ContentBlock::text(block.texts("text")),
        "image" => ContentBlock::Image(ImageBlock {
            mime: block.texts("mimeType"),
            data: block.texts("data"),
        }),
        "thinking" => ContentBlock::Thinking(ThinkingBlock {
            text: block.texts("thinking"),
            signature: ["thinkingSignature", "signature"]
                .iter()
                .find_map(|key| block.text(key))
                .map(str::to_owned),
        }),
        "toolCall" => ContentBlock::FunctionCall(FunctionCallBlock {
            id: block.texts("id"),
            function_id: block.texts("name"),
            arguments: block.some("arguments").unwrap_or_default(),
        }),
        // A block of a later version: shown as it is rather than left out.
        _ => ContentBlock::text(block.to_string()),
    }
}
