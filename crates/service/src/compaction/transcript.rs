use bough_session::{AgentMessage, Bookkeeping, ContentBlock};

use super::path::PathItem;

/// Longest tool result that a summariser is given, in characters.
const RESULT_CHARS_MAX: usize = 2_000;

/// A conversation as text, for a program that summarises it.
#[must_use]
pub fn conversation_text(items: &[PathItem]) -> String {
    let paragraphs: Vec<String> = items.iter().flat_map(paragraphs).collect();
    paragraphs.join("\n\n")
}

/// At most `limit` characters of a text; an ellipsis and a count say what was left out.
pub(super) fn cut_chars(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit).collect();
    format!("{kept}\u{2026} ({} more characters)", total - limit)
}

fn paragraphs(item: &PathItem) -> Vec<String> {
    if let Some(message) = item.message() {
        return message_paragraphs(message);
    }
    match item.bookkeeping() {
        Some(Bookkeeping::BranchSummary(summary)) if !summary.summary.is_empty() => {
            vec![format!("[Summary of a branch]: {}", summary.summary)]
        }
        _ => Vec::new(),
    }
}

fn message_paragraphs(message: &AgentMessage) -> Vec<String> {
    let text = message.text();
    let said = |who: &str, text: &str| {
        (!text.trim().is_empty()).then(|| format!("[{who}]: {text}")).into_iter().collect()
    };
    match message {
        AgentMessage::User(_) => said("User", &text),
        AgentMessage::Assistant(_) => answer_paragraphs(message, &text),
        AgentMessage::FunctionResult(_) => said("Tool result", &cut_chars(&text, RESULT_CHARS_MAX)),
        AgentMessage::Custom(custom) => said(&custom.custom_type, &text),
    }
}

fn answer_paragraphs(message: &AgentMessage, text: &str) -> Vec<String> {
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    for block in message.content() {
        match block {
            ContentBlock::Thinking(thinking) => thoughts.push(thinking.text.as_str()),
            ContentBlock::FunctionCall(call) => {
                calls.push(format!("{}({})", call.function_id, call.arguments));
            }
            _ => {}
        }
    }
    let mut paragraphs = Vec::new();
    let mut add = |who: &str, text: &str| {
        if !text.trim().is_empty() {
            paragraphs.push(format!("[{who}]: {text}"));
        }
    };
    add("Assistant thinking", &thoughts.join("\n"));
    add("Assistant", text);
    add("Assistant tool calls", &calls.join("; "));
    paragraphs
}
