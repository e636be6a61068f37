use bough_session::{AgentMessage, Bookkeeping, ContentBlock};

use super::cut::Plan;
use super::path::PathItem;

/// Longest tool result that a summariser is given, in characters.
const RESULT_CHARS_MAX: usize = 2_000;

/// A conversation as text, for a program that summarises it.
#[must_use]
pub fn conversation_text(items: &[PathItem]) -> String {
    let paragraphs: Vec<String> = items.iter().flat_map(paragraphs).collect();
    paragraphs.join("\n\n")
}

/// What a program that writes the summary of a plan reads: the summary before, then the conversation, with the turn that is
/// split apart.
pub(super) fn summariser_input(path: &[PathItem], plan: &Plan) -> String {
    let part = |from: usize, to: usize| conversation_text(path.get(from..to).unwrap_or_default());
    let mut input = String::new();
    if let Some(previous) = &plan.previous
        && !previous.compaction.summary.is_empty()
    {
        let summary = &previous.compaction.summary;
        input.push_str(&format!("<previous-summary>\n{summary}\n</previous-summary>\n\n"));
    }
    let range = &plan.range;
    match plan.split_turn {
        Some(turn) => {
            input.push_str(&part(range.start, turn));
            input.push_str("\n\n**Turn Context (split turn):**\n\n");
            input.push_str(&part(turn, range.end));
        }
        None => input.push_str(&part(range.start, range.end)),
    }
    input
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
