//! What a model would be sent: the active path, with summaries in place of the messages that they
//! cover.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bookkeeping::{BranchSummary, Compaction};
use crate::formats::{compacted_system_message, context_edit_of};
use crate::{
    AgentMessage, Bookkeeping, Canonical, ContentBlock, Entry, EntryId, ModelName, RawJson, Role,
    UserMessage,
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
    /// The model that answers next, according to the path.
    pub model: Option<ModelName>,
    /// The thinking level, according to the path.
    pub thinking_level: Option<String>,
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
    let canonical: Vec<Canonical> = path.iter().map(Entry::canonical).collect();
    let settings = Settings::of(&canonical);
    let (compaction, kept) = kept_entries(path, &canonical);
    let edits = edits_of(&canonical);
    let mut items: Vec<ContextItem> =
        kept.filter_map(|(entry, canonical)| item_of(entry, canonical, &edits)).collect();
    let in_force = compaction.as_ref().map(|(entry, _)| entry.id.clone());
    let first = compaction
        .map_or(Vec::new(), |(entry, compaction)| items_of_compaction(entry, &compaction));
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
        model: settings.model,
        thinking_level: settings.thinking_level,
        compaction: in_force,
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

/// The model and thinking level that the whole path sets.
#[derive(Default)]
struct Settings {
    model: Option<ModelName>,
    thinking_level: Option<String>,
}

impl Settings {
    fn of(path: &[Canonical]) -> Self {
        let mut settings = Self::default();
        for canonical in path {
            match canonical {
                Canonical::Message(message) => {
                    if let AgentMessage::Assistant(message) = &**message {
                        settings.note(&message.provider, &message.model);
                    }
                }
                Canonical::Custom(custom) => match Bookkeeping::from_payload(custom) {
                    Some(Bookkeeping::ModelChange(to)) => settings.note(&to.provider, &to.model_id),
                    Some(Bookkeeping::ThinkingLevelChange(to)) => {
                        settings.thinking_level = Some(to.thinking_level);
                    }
                    _ => {}
                },
            }
        }
        settings
    }

    fn note(&mut self, provider: &str, model: &str) {
        self.model = Some(ModelName { provider: provider.to_owned(), model: model.to_owned() });
    }
}

type PathItem<'a> = (&'a Entry, &'a Canonical);

/// The compaction in force, and the entries that the model still gets unchanged.
fn kept_entries<'a>(
    path: &'a [Entry],
    canonical: &'a [Canonical],
) -> (Option<(&'a Entry, Compaction)>, impl Iterator<Item = PathItem<'a>>) {
    let found = path
        .iter()
        .zip(canonical)
        .enumerate()
        .rev()
        .find_map(|(at, (entry, canonical))| Some((at, entry, compaction_of(canonical)?)));
    // Without a compaction everything is kept: the gap is empty and at the front.
    let gap = found.as_ref().map_or(0..0, |(at, _, compaction)| {
        let before = path.get(..*at).unwrap_or_default();
        let first_kept = before.iter().position(|entry| entry.id == compaction.first_kept_entry_id);
        0..first_kept.unwrap_or(*at)
    });
    let kept = path
        .iter()
        .zip(canonical)
        .enumerate()
        .filter(move |(at, _)| !gap.contains(at))
        .map(|(_, item)| item);
    (found.map(|(_, entry, compaction)| (entry, compaction)), kept)
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

/// The edits of a path. The last edit of a message counts.
fn edits_of(path: &[Canonical]) -> Edits {
    let edit = |canonical: &Canonical| match canonical {
        Canonical::Custom(custom) => context_edit_of(custom),
        Canonical::Message(_) => None,
    };
    path.iter().filter_map(edit).collect()
}

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
