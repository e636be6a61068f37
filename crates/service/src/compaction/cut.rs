use std::collections::HashMap;
use std::ops::Range;

use bough_session::{
    AgentMessage, Bookkeeping, Compaction, ContentBlock, Entry, EntryBody, EntryId,
    FunctionCallBlock, context_view,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Files;
use super::path::{PathItem, Previous, newest_compaction};
use super::tokens::{context_tokens, entry_of, item_tokens};
use super::undo::is_undo;

/// What a compaction would do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The entries that the summary replaces, by their places on the path.
    pub(super) range: Range<usize>,
    /// The beginning of the turn that the cut splits; `None` if the cut is between turns.
    pub(super) split_turn: Option<usize>,
    /// The first entry that stays as it is.
    pub(super) first_kept: EntryId,
    /// How many entries stay, the first one included.
    pub(super) kept_entries: usize,
    /// Tokens of what stays, estimated.
    pub(super) kept_tokens: u64,
    /// Tokens of the context now.
    pub(super) tokens_before: u64,
    /// The compaction that this one replaces.
    pub(super) previous: Option<Previous>,
    /// The files that were read and changed up to the cut.
    pub(super) files: Files,
}

/// Why there is nothing to compact.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum NothingToCompact {
    /// The path has no messages.
    #[error("the session has no messages")]
    Empty,
    /// The last entry is a compaction.
    #[error("the session was just compacted")]
    JustCompacted,
    /// All of it fits into what would be kept.
    #[error("everything fits into the part that is kept")]
    AllIsRecent,
    /// It was asked for only if it is due, and the configuration disables that.
    #[error("compaction is switched off (`compaction.enabled` in the configuration)")]
    SwitchedOff,
    /// It was asked for only if it is due, and there is no window to compare with.
    #[error(
        "the window of its model is not known (`compaction.windows` in the configuration can name it)"
    )]
    NoWindow,
    /// It was asked for only if it is due, and the context still fits.
    #[error("it fits into its model's window")]
    Fits,
}

/// Decides where to cut a path, root first.
pub(super) fn plan(path: &[PathItem], keep_recent_tokens: u64) -> Result<Plan, NothingToCompact> {
    if !path.iter().any(|item| item.message().is_some()) {
        return Err(NothingToCompact::Empty);
    }
    let previous = newest_compaction(path);
    let just_now = |found: &Previous| found.at + 1 == path.len() && !is_undo(&found.compaction);
    if previous.as_ref().is_some_and(just_now) {
        return Err(NothingToCompact::JustCompacted);
    }
    let start = previous.as_ref().map_or(0, |found| found.kept_from);
    let cut = cut_point(path, start, keep_recent_tokens);
    let summarised = path.get(start..cut).unwrap_or_default();
    if !summarised.iter().any(|item| item_tokens(item) > 0) {
        return Err(NothingToCompact::AllIsRecent);
    }
    let Some(first) = path.get(cut) else {
        return Err(NothingToCompact::AllIsRecent);
    };
    let kept = path.get(cut..).unwrap_or_default();
    Ok(Plan {
        range: start..cut,
        split_turn: split_turn(path, start, cut),
        first_kept: first.id.clone(),
        kept_entries: kept.len(),
        kept_tokens: kept.iter().map(item_tokens).fold(0, u64::saturating_add),
        tokens_before: context_tokens(path),
        files: Files::of(path.get(start..cut).unwrap_or_default(), previous.as_ref()),
        previous,
    })
}

impl Plan {
    /// Tokens of the context with a summary. It is an estimate, as the context will be until the next answer reports it:
    /// what was reported before a compaction does not count after it.
    pub(super) fn tokens_after(&self, path: &[PathItem], summary: &str) -> u64 {
        let mut entries: Vec<Entry> = path.iter().map(entry_of).collect();
        let body = EntryBody::Custom(self.entry(summary.to_owned()).to_payload());
        entries.push(Entry::new(EntryId::from_stored(""), None, 0, body));
        context_view(&entries, None).tokens as u64
    }

    /// The entry that carries the compaction out.
    pub(super) fn entry(&self, summary: String) -> Bookkeeping {
        Bookkeeping::Compaction(Compaction {
            summary,
            first_kept_entry_id: self.first_kept.clone(),
            tokens_before: self.tokens_before,
            details: Some(self.files.to_details()),
            from_hook: None,
        })
    }
}

/// Where the kept part begins, between `start` and the end of the path.
fn cut_point(path: &[PathItem], start: usize, keep_recent: u64) -> usize {
    let barred = calls_in_flight(path);
    let valid = |at: &usize| {
        path.get(*at).is_some_and(can_come_first) && !barred.get(*at).copied().unwrap_or(false)
    };
    let wanted = far_enough_back(path, start, keep_recent);
    let after = (wanted..path.len()).find(valid);
    let found = after.or_else(|| (start..wanted).rev().find(valid)).unwrap_or(start);
    (start..found)
        .rev()
        .take_while(|at| path.get(*at).is_some_and(is_quiet))
        .last()
        .unwrap_or(found)
}

/// The last place from which the rest has at least `keep_recent` tokens; `start` when all has less.
fn far_enough_back(path: &[PathItem], start: usize, keep_recent: u64) -> usize {
    let mut kept = 0_u64;
    for (at, item) in path.iter().enumerate().skip(start).rev() {
        kept = kept.saturating_add(item_tokens(item));
        if kept >= keep_recent {
            return at;
        }
    }
    start
}

/// Whether a model may be shown this entry first.
fn can_come_first(item: &PathItem) -> bool {
    match item.message() {
        Some(message) => !matches!(message, AgentMessage::FunctionResult(_)),
        None => matches!(item.bookkeeping(), Some(Bookkeeping::BranchSummary(_))),
    }
}

/// Whether an entry belongs to what follows it: bookkeeping that no model is shown, but not a
/// compaction, which ends what came before.
fn is_quiet(item: &PathItem) -> bool {
    item.message().is_none()
        && !matches!(
            item.bookkeeping(),
            Some(Bookkeeping::BranchSummary(_) | Bookkeeping::Compaction(_))
        )
}

/// For each place, whether a cut there would separate a call from its result.
fn calls_in_flight(path: &[PathItem]) -> Vec<bool> {
    // How many calls are under way changes after a call, and after the result that answers it.
    let mut change = vec![0_i64; path.len() + 1];
    let mut add = |at: usize, by: i64| {
        if let Some(slot) = change.get_mut(at) {
            *slot += by;
        }
    };
    let mut called: HashMap<&str, usize> = HashMap::new();
    for (at, item) in path.iter().enumerate() {
        match item.message() {
            Some(AgentMessage::FunctionResult(result)) => {
                if let Some(from) = called.remove(result.function_call_id.as_str()) {
                    add(from + 1, 1);
                    add(at + 1, -1);
                }
            }
            Some(message) => called.extend(calls(message).map(|call| (call.id.as_str(), at))),
            None => {}
        }
    }
    let running = change.iter().scan(0, |under_way, by| {
        *under_way += by;
        Some(*under_way > 0)
    });
    running.take(path.len()).collect()
}

/// The calls that a message asks for.
pub(super) fn calls(message: &AgentMessage) -> impl Iterator<Item = &FunctionCallBlock> {
    message.content().iter().filter_map(|block| match block {
        ContentBlock::FunctionCall(call) => Some(call),
        _ => None,
    })
}

/// The beginning of the turn that a cut splits.
fn split_turn(path: &[PathItem], start: usize, cut: usize) -> Option<usize> {
    let first_shown = path.iter().skip(cut).find(|item| !is_quiet(item))?;
    if begins_turn(first_shown) {
        return None;
    }
    (start..cut).rev().find(|at| path.get(*at).is_some_and(begins_turn))
}

/// Whether a turn begins here: the entry is not the model's.
fn begins_turn(item: &PathItem) -> bool {
    match item.message() {
        Some(message) => matches!(message, AgentMessage::User(_) | AgentMessage::Custom(_)),
        None => matches!(item.bookkeeping(), Some(Bookkeeping::BranchSummary(_))),
    }
}
