//! What a model would be sent: the active path, with summaries in place of the messages that they
//! cover.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bookkeeping::{BranchSummary, Compaction};
use crate::formats::compacted_system_message;
use crate::{
    AgentMessage, Bookkeeping, Canonical, ContentBlock, ContextOutline, Entry, EntryId, RawJson,
    Role, UserMessage,
};

/// The estimated cost of a picture, in characters.
const IMAGE_CHARS: usize = 4800;
/// How many characters make a token, roughly.
const CHARS_PER_TOKEN: usize = 4;
/// The custom type of a command that the user ran. It may ask to stay out of the context.
const BASH_EXECUTION: &str = "bashExecution";

/// What a model would be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextView {
    /// The messages, the oldest first.
    pub items: Vec<ContextItem>,
    /// Their tokens, estimated.
    pub tokens: usize,
    /// How many items were left out at the front to fit the budget.
    pub left_out: usize,
    /// The compaction that is in force.
    pub compaction: Option<EntryId>,
}

/// One message of a context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextItem {
    /// The entry that it comes from.
    pub entry_id: EntryId,
    /// The kind of the item.
    pub kind: ContextKind,
    /// The message as it would be sent.
    pub message: Arc<AgentMessage>,
    /// Its tokens, estimated.
    pub tokens: usize,
}

/// The kind of an item of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// A message of the transcript.
    Message,
    /// The summary of a compaction, or the system prompt that it sets.
    Compaction,
    /// The summary of a branch.
    BranchSummary,
}

/// Builds the context from a path, root first.
///
/// The last compaction on the path puts its summary first, after the system prompt that a compaction of pi may set; then
/// come the entries from its first kept one up to itself, then all after it. An empty summary sends nothing in the place
/// of the messages that it covers. pi's `context_edit` entries are applied. Without a compaction, the context has every
/// message and every branch summary that is not empty.
///
/// Over budget, the oldest items are left out first, but never what the compaction puts first. The rest does not start
/// with the result of a call that was left out.
#[must_use]
pub fn context_view(path: &[Entry], budget_tokens: Option<usize>) -> ContextView {
    let mut outline = ContextOutline::default();
    let mut items = Vec::new();
    let mut after_compaction = None;
    for entry in path.iter().rev() {
        items.extend(outline.add(entry));
        if outline.is_complete() {
            break;
        }
        if after_compaction.is_none() && outline.compaction().is_some() {
            after_compaction = Some(items.len());
        }
    }
    if let Some(count) = after_compaction.filter(|_| !outline.is_complete()) {
        items.truncate(count);
    }
    items.reverse();
    let first = outline.first_items();
    let spent = first.iter().map(|item| item.tokens).sum();
    let left_out = budget_tokens.map_or(0, |budget| {
        let front = front_over_budget(&items, budget.saturating_sub(spent));
        items.drain(..front);
        front
    });
    let items: Vec<ContextItem> = first.into_iter().chain(items).collect();
    ContextView {
        tokens: items.iter().map(|item| item.tokens).sum(),
        items,
        left_out,
        compaction: outline.compaction().cloned(),
    }
}

/// The tokens of a message, estimated: a quarter of its characters, rounded up.
#[must_use]
pub fn estimate_tokens(message: &AgentMessage) -> usize {
    content_chars(message.content()).div_ceil(CHARS_PER_TOKEN)
}

/// The tokens of a text, estimated.
#[must_use]
pub fn estimate_text_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARS_PER_TOKEN)
}

fn content_chars(content: &[ContentBlock]) -> usize {
    content.iter().map(block_chars).sum()
}

fn block_chars(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.chars().count(),
        ContentBlock::Thinking(block) => block.text.chars().count(),
        ContentBlock::Image(_) => IMAGE_CHARS,
        ContentBlock::FunctionCall(call) => {
            call.function_id.chars().count() + call.arguments.get().chars().count()
        }
        ContentBlock::FunctionResult(result) => content_chars(&result.content),
    }
}

pub(crate) fn compaction_of(canonical: &Canonical) -> Option<Compaction> {
    let Canonical::Custom(custom) = canonical else {
        return None;
    };
    match Bookkeeping::from_payload(custom)? {
        Bookkeeping::Compaction(compaction) => Some(compaction),
        _ => None,
    }
}

/// What is sent instead of messages, by entry; `None` where a message is left out.
pub(crate) type Edits = HashMap<EntryId, Option<Vec<ContentBlock>>>;

/// The message as the model gets it: an edit changes its content, and the stored message stays.
fn edited(entry: &Entry, message: &Arc<AgentMessage>, edits: &Edits) -> Option<Arc<AgentMessage>> {
    let mut message = message.clone();
    match edits.get(&entry.id) {
        Some(None) => return None,
        Some(Some(content)) => Arc::make_mut(&mut message).content_mut().clone_from(content),
        None => {}
    }
    Some(message)
}

pub(crate) fn item_of(entry: &Entry, canonical: &Canonical, edits: &Edits) -> Option<ContextItem> {
    let (kind, message) = match canonical {
        Canonical::Message(message) if stays_out(message) => return None,
        Canonical::Message(message) => (ContextKind::Message, edited(entry, message, edits)?),
        Canonical::Custom(custom) => match Bookkeeping::from_payload(custom)? {
            Bookkeeping::BranchSummary(summary) if !summary.summary.trim().is_empty() => {
                (ContextKind::BranchSummary, branch_message(entry, &summary).into())
            }
            _ => return None,
        },
    };
    Some(ContextItem {
        entry_id: entry.id.clone(),
        kind,
        tokens: estimate_tokens(&message),
        message,
    })
}

/// Whether this is a command that the user ran and asked to keep out of the context.
fn stays_out(message: &AgentMessage) -> bool {
    let AgentMessage::Custom(custom) = message else {
        return false;
    };
    if custom.custom_type != BASH_EXECUTION {
        return false;
    }
    let details = custom.details.as_ref().map(RawJson::value).unwrap_or_default();
    details.get("excludeFromContext").and_then(serde_json::Value::as_bool) == Some(true)
}

/// What a compaction puts first.
pub(crate) fn items_of_compaction(entry: &Entry, compaction: &Compaction) -> Vec<ContextItem> {
    let system = system_message_item(entry);
    let has_summary = !compaction.summary.trim().is_empty();
    system.into_iter().chain(has_summary.then(|| summary_item(entry, compaction))).collect()
}

/// The system prompt that a compaction of pi sets from there on.
fn system_message_item(entry: &Entry) -> Option<ContextItem> {
    let Canonical::Custom(custom) = entry.canonical() else { return None };
    let message = compacted_system_message(&custom, entry.timestamp)?;
    Some(compaction_item(entry, message))
}

fn summary_item(entry: &Entry, compaction: &Compaction) -> ContextItem {
    let text = format!(
        "The conversation before this point was compacted into the following summary:\n\n\
         <summary>\n{}\n</summary>",
        compaction.summary
    );
    compaction_item(entry, user_message(text, entry.timestamp))
}

fn compaction_item(entry: &Entry, message: AgentMessage) -> ContextItem {
    ContextItem {
        entry_id: entry.id.clone(),
        kind: ContextKind::Compaction,
        tokens: estimate_tokens(&message),
        message: message.into(),
    }
}

fn branch_message(entry: &Entry, summary: &BranchSummary) -> AgentMessage {
    let text = format!(
        "The following is a summary of a branch that this conversation came back from:\n\n\
         <summary>\n{}\n</summary>",
        summary.summary
    );
    user_message(text, entry.timestamp)
}

fn user_message(text: String, timestamp: i64) -> AgentMessage {
    AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], timestamp))
}

/// How many items at the front do not fit.
fn front_over_budget(items: &[ContextItem], budget: usize) -> usize {
    let mut left = budget;
    let fitting = items
        .iter()
        .rev()
        .take_while(|item| {
            let fits = item.tokens <= left;
            left = left.saturating_sub(item.tokens);
            fits
        })
        .count();
    let front = items.len() - fitting;
    if front == 0 {
        return 0;
    }
    let orphans = items
        .iter()
        .skip(front)
        .take_while(|item| item.message.role() == Role::FunctionResult)
        .count();
    front + orphans
}
