use std::borrow::Borrow;

use bough_session::{
    AgentMessage, Bookkeeping, Canonical, ContextOutline, Entry, EntryBody, StopReason, Usage,
    estimate_text_tokens, estimate_tokens,
};

use super::path::PathItem;

/// How many tokens the context of a path has: the report of the newest answer, and estimates for everything after it. A
/// report from before the newest compaction does not count. Without a report, it is the estimate of what a model would
/// be sent.
pub(super) fn context_tokens(path: &[PathItem]) -> u64 {
    ContextTokens::read(path.iter().map(entry_of), 0).tokens()
}

/// An item as the entry that a context is built from; contents are shared, not copied.
pub(super) fn entry_of(item: &PathItem) -> Entry {
    let body = match &item.said {
        Canonical::Message(message) => EntryBody::Message(message.clone()),
        Canonical::Custom(custom) => EntryBody::Custom(custom.clone()),
    };
    let id = item.id.clone();
    Entry::new(id, None, 0, body)
}

/// The same from the end of a path alone, if an answer in it reported the context and no compaction came after that.
pub(super) fn reported_tokens(end: &[PathItem]) -> Option<u64> {
    ContextTokens::read(end.iter().map(entry_of), 0).reported()
}

/// What an entry adds to a context, estimated.
pub(super) fn item_tokens(item: &PathItem) -> u64 {
    if let Some(message) = item.message() {
        return estimate_tokens(message) as u64;
    }
    match item.bookkeeping() {
        Some(Bookkeeping::BranchSummary(summary)) => text_tokens(&summary.summary),
        _ => 0,
    }
}

fn text_tokens(text: &str) -> u64 {
    estimate_text_tokens(text) as u64
}

/// The tokens of a context, from the entries of its path, which are added from the newest to the oldest.
#[derive(Default)]
pub(super) struct ContextTokens {
    pub(super) outline: ContextOutline,
    /// Estimates of what came after the report.
    after: u64,
    report: Option<u64>,
    /// Whether no older message is to be asked.
    is_done: bool,
}

impl ContextTokens {
    /// Reads a path, root first. Reports from before the entry with this number do not count.
    pub(super) fn read<E: Borrow<Entry>>(
        path: impl DoubleEndedIterator<Item = E> + ExactSizeIterator,
        since: usize,
    ) -> Self {
        let mut tokens = Self::default();
        for (at, entry) in path.enumerate().rev() {
            tokens.is_done |= at < since;
            tokens.add(entry.borrow());
            if tokens.report.is_some() || tokens.outline.is_complete() {
                break;
            }
        }
        tokens
    }

    /// Adds the next older entry.
    pub(super) fn add(&mut self, entry: &Entry) {
        let item = self.outline.add(entry);
        if self.is_done {
            return;
        }
        match entry.canonical() {
            Canonical::Message(message) => {
                self.report = reported_by(&message);
                self.is_done = self.report.is_some();
            }
            // Reports from before the newest compaction do not count.
            Canonical::Custom(_) => self.is_done = self.outline.begin().is_some(),
        }
        if !self.is_done {
            self.after = self.after.saturating_add(item.map_or(0, |item| item.tokens as u64));
        }
    }

    /// The tokens, if an answer reported them.
    pub(super) fn reported(&self) -> Option<u64> {
        Some(self.report?.saturating_add(self.after))
    }

    /// The tokens as an answer reported them, or else estimated.
    pub(super) fn tokens(&self) -> u64 {
        self.reported().unwrap_or(self.outline.tokens() as u64)
    }
}

/// The whole context as an answer reported it. An aborted answer does not report it.
fn reported_by(message: &AgentMessage) -> Option<u64> {
    let AgentMessage::Assistant(message) = message else {
        return None;
    };
    if matches!(message.stop_reason, StopReason::Aborted | StopReason::Error) {
        return None;
    }
    message.usage.as_ref().map(total).filter(|tokens| *tokens > 0)
}

fn total(usage: &Usage) -> u64 {
    [usage.input, usage.output, usage.cache_read, usage.cache_write]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
}
