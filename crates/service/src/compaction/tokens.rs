use bough_session::{
    AgentMessage, Bookkeeping, Canonical, Entry, EntryBody, StopReason, Usage, context_view,
    estimate_text_tokens, estimate_tokens,
};

use super::path::{PathItem, newest_compaction};

/// How many tokens the context of a path has: the report of the newest answer, and estimates for everything after it. A
/// report from before the newest compaction does not count. Without a report, it is the estimate of what a model would
/// be sent.
pub(super) fn context_tokens(path: &[PathItem]) -> u64 {
    context_tokens_since(path, 0)
}

/// The same where a report does not count either that is before a place on the path.
pub(super) fn context_tokens_since(path: &[PathItem], since: usize) -> u64 {
    let after = newest_compaction(path).map_or(0, |found| found.at + 1).max(since);
    let reported = path.iter().enumerate().skip(after).rev().find_map(|(at, item)| {
        let reported = reported(item)?;
        Some((at, reported))
    });
    let (start, base) = reported.map_or((0, 0), |(at, tokens)| (at + 1, tokens));
    let rest: Vec<Entry> = path.iter().skip(start).map(entry_of).collect();
    base.saturating_add(context_view(&rest, None).tokens as u64)
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
    let after = newest_compaction(end).map_or(0, |found| found.at + 1);
    end.iter().skip(after).any(|item| reported(item).is_some()).then(|| context_tokens(end))
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

/// The tokens of a context, from its messages read from the newest to the oldest; what [`context_tokens`] finds in a whole path.
#[derive(Default)]
pub(super) struct ReportedTokens {
    /// Estimates of what came after the report.
    after: u64,
    report: Option<u64>,
    /// Whether no older message is to be asked.
    is_done: bool,
}

impl ReportedTokens {
    /// Adds the next older message, with its estimated tokens.
    pub(super) fn add(&mut self, message: &AgentMessage, tokens: u64) {
        if self.is_done {
            return;
        }
        self.report = reported_by(message);
        self.is_done = self.report.is_some();
        if !self.is_done {
            self.add_estimated(tokens);
        }
    }

    /// Adds what is no message of the transcript, such as the summary of a branch.
    pub(super) const fn add_estimated(&mut self, tokens: u64) {
        if !self.is_done {
            self.after = self.after.saturating_add(tokens);
        }
    }

    /// Notes that the newest compaction was reached: older reports do not count.
    pub(super) const fn end(&mut self) {
        self.is_done = true;
    }

    /// The tokens, if an answer reported them.
    pub(super) fn tokens(&self) -> Option<u64> {
        Some(self.report?.saturating_add(self.after))
    }
}

fn reported(item: &PathItem) -> Option<u64> {
    reported_by(item.message()?)
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
