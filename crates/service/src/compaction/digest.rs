//! A summary that needs no model.
//!
//! The rules are fixed, so that the same path always gives the same text:
//!
//! 1. *Goal*: the first user message of the path that was meant for the model, at most [`GOAL_CHARS_MAX`] characters. A
//!    command to the agent's program (`/model`) is not, and neither is a message whose answer was broken off before it
//!    said anything, unless there is no other.
//! 2. *Earlier summary*: the summary of the compaction before, unless that was a digest (a digest is made
//!    from the whole path, so it repeats nothing), at most [`EARLIER_CHARS_MAX`] characters.
//! 3. *So far*: how many user messages, answers and calls there were up to the cut, the calls by name (most
//!    frequent first, then by name), and how many failed.
//! 4. *Last user message* and *Last answer* before the cut, at most [`LAST_CHARS_MAX`] characters each; the first is left
//!    out when it is the goal. When the cut goes through a turn, a line says so.
//! 5. The files that were read and changed, as lists.
//! 6. A last line, [`DIGEST_MARK`], by which a later digest knows this one.
//!
//! A worked example is the test `the_worked_example` in `tests.rs`.

use std::collections::BTreeMap;

use bough_session::{AgentMessage, AssistantMessage, Role, StopReason};

use super::cut::{Plan, calls};
use super::path::PathItem;
use super::transcript::cut_chars;

/// The last line of every digest.
pub(super) const DIGEST_MARK: &str = "(Digest by fixed rules; no model wrote this.)";

const GOAL_CHARS_MAX: usize = 2_000;
const EARLIER_CHARS_MAX: usize = 4_000;
const LAST_CHARS_MAX: usize = 1_000;
/// Calls that are named one by one; the rest are counted together.
const CALL_NAMES_MAX: usize = 8;

/// The summary of a path up to a plan's cut.
pub(super) fn digest(path: &[PathItem], plan: &Plan) -> String {
    let before = path.get(..plan.range.end).unwrap_or_default();
    let facts = Facts::of(before);
    let mut text = facts.goal_section();
    if let Some(earlier) = earlier_summary(plan) {
        text.push_str(&format!("## Earlier summary\n{earlier}\n\n"));
    }
    text.push_str(&facts.counts_section());
    text.push_str(&facts.last_sections());
    if plan.split_turn.is_some() {
        text.push_str("\n\n(The turn that this belongs to goes on in what follows.)");
    }
    text.push_str(&plan.files.to_text());
    text.push_str(&format!("\n\n{DIGEST_MARK}"));
    text
}

/// What the digest of some entries is made of.
pub(super) struct Facts<'a> {
    users: usize,
    answers: usize,
    failed: usize,
    calls: BTreeMap<&'a str, usize>,
    goal: Option<Goal<'a>>,
    last_user: Option<(usize, &'a AgentMessage)>,
    last_answer: Option<&'a AgentMessage>,
}

/// A user message that may be what the conversation is about.
#[derive(Clone, Copy)]
struct Goal<'a> {
    at: usize,
    message: &'a AgentMessage,
    doubt: Doubt,
}

/// Why a message may not be the goal, the least doubtful first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    None,
    /// Its answer was broken off before it said anything.
    BrokenOff,
    /// It is a command to the agent's program.
    Command,
}

impl<'a> Facts<'a> {
    pub(super) fn of(items: &'a [PathItem]) -> Self {
        let mut facts = Self {
            users: 0,
            answers: 0,
            failed: 0,
            calls: BTreeMap::new(),
            goal: None,
            last_user: None,
            last_answer: None,
        };
        for (at, item) in items.iter().enumerate() {
            if let Some(message) = item.message() {
                facts.note(at, message);
            }
        }
        facts
    }

    fn note(&mut self, at: usize, message: &'a AgentMessage) {
        let says_something = !message.text().trim().is_empty();
        match message {
            AgentMessage::User(_) => {
                self.users += 1;
                if says_something {
                    self.note_user(at, message);
                }
            }
            AgentMessage::Assistant(answer) => {
                self.answers += 1;
                if says_something {
                    self.last_answer = Some(message);
                }
                self.note_broken_off(answer, says_something);
                for call in calls(message) {
                    *self.calls.entry(&call.function_id).or_default() += 1;
                }
            }
            AgentMessage::FunctionResult(result) => self.failed += usize::from(result.is_error),
            AgentMessage::Custom(_) => {}
        }
    }

    fn note_user(&mut self, at: usize, message: &'a AgentMessage) {
        let doubt = if is_command(&message.text()) { Doubt::Command } else { Doubt::None };
        if self.goal.is_none_or(|goal| doubt < goal.doubt) {
            self.goal = Some(Goal { at, message, doubt });
        }
        if doubt == Doubt::None || self.last_user.is_none() {
            self.last_user = Some((at, message));
        }
    }

    /// An answer that was stopped before it said anything puts the message before it in doubt.
    fn note_broken_off(&mut self, answer: &AssistantMessage, says_something: bool) {
        let broken_off = matches!(answer.stop_reason, StopReason::Aborted | StopReason::Error);
        let is_first_sign = self.last_answer.is_none() && self.calls.is_empty();
        let asked = self.last_user.map(|(at, _)| at);
        if let Some(goal) = &mut self.goal
            && (broken_off && !says_something && is_first_sign)
            && asked == Some(goal.at)
        {
            goal.doubt = goal.doubt.max(Doubt::BrokenOff);
        }
    }

    pub(super) fn goal_section(&self) -> String {
        let goal = self.goal.map(|goal| cut_text(goal.message, GOAL_CHARS_MAX));
        goal.map_or_else(String::new, |goal| format!("## Goal\n{goal}\n\n"))
    }

    pub(super) fn counts_section(&self) -> String {
        let users = counted(self.users, "user message", "user messages");
        let answers = counted(self.answers, "answer", "answers");
        format!("## So far\n{users}, {answers}, {}.", self.calls_text())
    }

    fn calls_text(&self) -> String {
        let total: usize = self.calls.values().sum();
        let mut text = counted(total, "call", "calls");
        let mut by_count: Vec<(&&str, &usize)> = self.calls.iter().collect();
        by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
        if total > 0 {
            let named = by_count.iter().take(CALL_NAMES_MAX);
            let mut names: Vec<String> = named.map(|(name, n)| format!("{name} {n}")).collect();
            let others: usize = by_count.iter().skip(CALL_NAMES_MAX).map(|(_, n)| **n).sum();
            if others > 0 {
                names.push(format!("others {others}"));
            }
            text.push_str(&format!(" ({})", names.join(", ")));
        }
        if self.failed > 0 {
            text.push_str(&format!(", {} failed", self.failed));
        }
        text
    }

    pub(super) fn last_sections(&self) -> String {
        let is_goal = |at: usize| self.goal.is_some_and(|goal| goal.at == at);
        let user = self.last_user.filter(|(at, _)| !is_goal(*at)).map(|(_, message)| message);
        let section = |title: &str, message: Option<&AgentMessage>| {
            let text = message.map(|message| cut_text(message, LAST_CHARS_MAX));
            text.map_or_else(String::new, |text| format!("\n\n## {title}\n{text}"))
        };
        section("Last user message", user) + &section("Last answer", self.last_answer)
    }
}

fn earlier_summary(plan: &Plan) -> Option<String> {
    let summary = &plan.previous.as_ref()?.compaction.summary;
    let own = summary.trim_end().ends_with(DIGEST_MARK);
    (!own && !summary.trim().is_empty()).then(|| cut_chars(summary.trim(), EARLIER_CHARS_MAX))
}

/// Whether a text is a command to the agent's program, such as `/model` or `/compact the parser`, and not a path.
fn is_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    word.strip_prefix('/').is_some_and(is_name)
}

fn cut_text(message: &AgentMessage, limit: usize) -> String {
    debug_assert!(matches!(message.role(), Role::User | Role::Assistant));
    cut_chars(message.text().trim(), limit)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
