//! The context loader: what an agent that continues from a loop should read.

use bough_session::{AgentMessage, ContentBlock};
use serde_json::Value;

use crate::compaction::{BlockCompactionStrategy, TurnMap};
use crate::message::RecordedMessage;
use crate::message::content::unknown_block;
use crate::model::{CompactionBlock, LoopRecord, RecordedSession};
use crate::time::Timestamp;

/// How many loops before the current one belong to its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CompactionScope {
    /// As many as this.
    FixedCount(usize),
    /// As many as fit, walking back until the next one would not fit. Each is counted as large as it will be in the
    /// context, so a loop that is itself too large still fits once it is summarised.
    TokenBudget,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

/// How contexts are compacted and loaded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CompactionConfig {
    /// How many loops before the current one belong to its context.
    pub compaction_scope: CompactionScope,
    /// How many turns at the beginning of the current loop are kept word for word.
    pub keep_first_turns: usize,
    /// How many turns at its end are kept, with long tool output cut.
    pub keep_recent_turns: usize,
    /// How long the summary of a loop may be.
    pub max_summary_tokens: usize,
    /// How many lines of a tool's output are kept.
    pub tool_output_max_lines: usize,
    /// What the model should pay attention to in a summary.
    pub focus_message: Option<String>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            compaction_scope: CompactionScope::default(),
            keep_first_turns: 2,
            keep_recent_turns: 10,
            max_summary_tokens: 2_000,
            tool_output_max_lines: 50,
            focus_message: None,
        }
    }
}

/// Estimates how many tokens something takes.
pub trait TokenCounter: Send + Sync {
    /// For text.
    fn estimate_text(&self, text: &str) -> usize;

    /// For a message: its blocks, and a little for its frame.
    fn estimate_message(&self, message: &RecordedMessage) -> usize {
        const FRAME: usize = 4;
        const TOOL_FRAME: usize = 8;
        if let Some(value) = message.other() {
            let shown = value.get("kind").is_some_and(Value::is_string).then(|| value.get("data"));
            return self.estimate_text(&shown.flatten().unwrap_or(value).to_string()) + FRAME;
        }
        let blocks =
            message.content().iter().map(|block| self.estimate_block(block)).sum::<usize>();
        match message.known() {
            Some(AgentMessage::FunctionResult(result)) => {
                blocks + self.estimate_text(&result.function_id) + TOOL_FRAME
            }
            _ => blocks + FRAME,
        }
    }

    /// For a block of a message.
    fn estimate_block(&self, block: &ContentBlock) -> usize {
        const CALL_FRAME: usize = 8;
        if let Some(value) = unknown_block(block) {
            return self.estimate_text(&value.to_string());
        }
        match block {
            ContentBlock::Text(block) => self.estimate_text(&block.text),
            ContentBlock::Thinking(thought) => self.estimate_text(&thought.text),
            // A picture costs by its size, within bounds; base64 is a third larger than the bytes.
            ContentBlock::Image(image) => (image.data.len() * 3 / 4 / 750).clamp(85, 16_000),
            ContentBlock::FunctionCall(call) => {
                self.estimate_text(&call.function_id)
                    + self.estimate_text(&call.arguments.value().to_string())
                    + CALL_FRAME
            }
            ContentBlock::FunctionResult(result) => {
                result.content.iter().map(|block| self.estimate_block(block)).sum()
            }
        }
    }

    /// For several messages.
    fn estimate_messages(&self, messages: &[RecordedMessage]) -> usize {
        messages.iter().map(|message| self.estimate_message(message)).sum()
    }
}

/// A token for every four characters, rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeuristicTokenCounter;

impl TokenCounter for HeuristicTokenCounter {
    fn estimate_text(&self, text: &str) -> usize {
        text.chars().count().div_ceil(4)
    }
}

/// A context, and what it leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadedContext {
    /// The messages for the agent.
    pub messages: Vec<RecordedMessage>,
    /// The loops on the chain that are too old to be part of the context, from the root.
    pub loops_left_out: Vec<String>,
}

impl LoadedContext {
    /// What the agent should read. Messages of the application alone are left out.
    pub fn canonical_messages(&self) -> impl Iterator<Item = &AgentMessage> {
        self.messages.iter().filter_map(RecordedMessage::message)
    }
}

/// The context of an agent that continues from `loop_id`: the messages of the loops on its chain, or the compactions
/// that replace them. An unknown loop has none.
#[must_use]
pub fn build_context_from_session(
    session: &RecordedSession,
    loop_id: &str,
    config: &CompactionConfig,
    max_context_tokens: usize,
    counter: &dyn TokenCounter,
) -> LoadedContext {
    let chain = chain_of_records(session, loop_id);
    let parts: Vec<Vec<RecordedMessage>> = chain
        .iter()
        .map(|record| messages_of(session, record, record.loop_id == loop_id))
        .collect();
    let sizes: Vec<usize> = parts.iter().map(|part| counter.estimate_messages(part)).collect();
    let start = scope_start(&sizes, config.compaction_scope, max_context_tokens);
    let left_out = chain.iter().take(start);
    LoadedContext {
        loops_left_out: left_out.map(|record| record.loop_id.clone()).collect(),
        messages: parts.into_iter().skip(start).flatten().collect(),
    }
}

/// Adds compactions to a loop and to those before it that belong to its context. Returns how many it added.
///
/// The current loop gets a new one each time. An older loop keeps its own, unless that was made while the loop was the
/// current one: then the whole loop is summarised.
pub fn compact_session_loops(
    session: &mut RecordedSession,
    loop_id: &str,
    strategy: &dyn BlockCompactionStrategy,
    config: &CompactionConfig,
    max_context_tokens: usize,
    counter: &dyn TokenCounter,
    now: Timestamp,
) -> usize {
    let chain = chain_of_records(session, loop_id);
    let mut blocks: Vec<(String, CompactionBlock)> = Vec::new();
    let mut sizes = Vec::new();
    for record in &chain {
        let is_current = record.loop_id == loop_id;
        let is_summed_up = record.compaction_block.as_ref().is_some_and(covers_whole);
        let block = if is_summed_up && !is_current {
            None
        } else {
            Some(strategy.compact(record, config, is_current, now))
        };
        let laid = block.as_ref().or(record.compaction_block.as_ref());
        let part = laid.map_or_else(Vec::new, |block| sections(record, block));
        sizes.push(counter.estimate_messages(&part));
        blocks.extend(block.map(|block| (record.loop_id.clone(), block)));
    }
    let start = scope_start(&sizes, config.compaction_scope, max_context_tokens);
    let in_scope: Vec<String> =
        chain.iter().skip(start).map(|record| record.loop_id.clone()).collect();
    blocks.retain(|(loop_id, _)| in_scope.contains(loop_id));
    let count = blocks.len();
    for (loop_id, block) in blocks {
        session.set_compaction_block(&loop_id, Some(block));
    }
    count
}

fn chain_of_records<'a>(session: &'a RecordedSession, loop_id: &str) -> Vec<&'a LoopRecord> {
    let chain = session.active_chain_to(loop_id);
    chain.iter().filter_map(|id| session.get_loop(id)).collect()
}

/// Where the part of a chain begins that belongs to the context. The last loop always does.
fn scope_start(sizes: &[usize], scope: CompactionScope, max_context_tokens: usize) -> usize {
    let Some(earlier) = sizes.len().checked_sub(1) else {
        return 0;
    };
    match scope {
        CompactionScope::FixedCount(count) => earlier.saturating_sub(count),
        CompactionScope::TokenBudget => {
            let (mut left, mut start) = (max_context_tokens, sizes.len());
            for size in sizes.iter().rev() {
                let Some(rest) = left.checked_sub(*size) else {
                    break;
                };
                (left, start) = (rest, start - 1);
            }
            start.min(earlier)
        }
    }
}

/// The messages of a loop in a context.
fn messages_of(
    session: &RecordedSession,
    record: &LoopRecord,
    is_current: bool,
) -> Vec<RecordedMessage> {
    let mut messages = inherited(session, record);
    match &record.compaction_block {
        None => messages.extend_from_slice(&record.messages),
        Some(block) if !is_current && covers_whole(block) => {
            let summary = block.keep_compacted.iter();
            messages.extend(summary.flat_map(|section| section.messages.iter().cloned()));
        }
        Some(block) => messages.extend(sections(record, block)),
    }
    messages
}

/// What a rerun that only answers again took over from the loop before it: everything up to the last message that was
/// not the model's.
fn inherited(session: &RecordedSession, record: &LoopRecord) -> Vec<RecordedMessage> {
    let mut tries = Vec::new();
    let mut current = record;
    while let Some(before) = session.superseded_by(current) {
        let asks_anew = current.messages.first().is_some_and(|m| m.role() == "user");
        if asks_anew || tries.len() >= session.loops.len() {
            break;
        }
        tries.push(before);
        current = before;
    }
    let mut messages = Vec::new();
    for attempt in tries.into_iter().rev() {
        match &attempt.compaction_block {
            None => messages.extend_from_slice(&attempt.messages),
            Some(block) => messages.extend(sections(attempt, block)),
        }
        while messages.last().is_some_and(RecordedMessage::is_assistant) {
            messages.pop();
        }
    }
    messages
}

/// The parts of a block in the order of the turns that they replace.
fn sections(record: &LoopRecord, block: &CompactionBlock) -> Vec<RecordedMessage> {
    let turn_map = TurnMap::from_messages(&record.messages);
    let first = block.keep_first.iter();
    let first = first.flat_map(|range| turn_map.messages_for_range(*range, &record.messages));
    let middle = block.keep_compacted.iter().flat_map(|part| &part.messages);
    let recent = block.recent_messages();
    first.chain(middle).chain(recent).cloned().collect()
}

/// Whether a block was made for a whole loop, rather than for one that was still the current one.
fn covers_whole(block: &CompactionBlock) -> bool {
    block.keep_first.is_none() && block.keep_recent.is_none() && block.keep_compacted.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::DefaultBlockCompaction;
    use crate::event::ContinuationKind;
    use crate::model::LoopStatus;

    fn answer(text: &str) -> RecordedMessage {
        RecordedMessage::assistant("p", "m", text, 1)
    }

    /// A chain of loops, each of a question and `turns` answers.
    fn chain(loops: usize, turns: usize) -> RecordedSession {
        let mut session = RecordedSession::explicit("s", "a", Timestamp::default());
        for at in 0..loops {
            let started = Timestamp::from_unix_ms(i64::try_from(at).unwrap());
            let mut record =
                LoopRecord::new(format!("l{at}"), "s", "a", LoopStatus::Completed, started);
            if at > 0 {
                record.parent_loop_id = Some(format!("l{}", at - 1));
                record.continuation_kind = ContinuationKind::Default;
            }
            record.messages.push(RecordedMessage::user(format!("q{at}"), 1));
            let answers = (0..turns).map(|turn| answer(&format!("a{at}.{turn}")));
            record.messages.extend(answers);
            session.loops.add(record).unwrap();
        }
        session
    }

    fn texts(context: &LoadedContext) -> String {
        let texts: Vec<String> = context.messages.iter().map(RecordedMessage::text).collect();
        texts.join(" | ")
    }

    fn load(session: &RecordedSession, loop_id: &str, config: &CompactionConfig) -> LoadedContext {
        build_context_from_session(session, loop_id, config, 1_000, &HeuristicTokenCounter)
    }

    fn compact(session: &mut RecordedSession, loop_id: &str, config: &CompactionConfig) -> usize {
        compact_session_loops(
            session,
            loop_id,
            &DefaultBlockCompaction,
            config,
            1_000,
            &HeuristicTokenCounter,
            Timestamp::default(),
        )
    }

    #[test]
    fn without_compaction_the_scope_is_loaded_word_for_word() {
        let session = chain(5, 1);
        let config = CompactionConfig {
            compaction_scope: CompactionScope::FixedCount(1),
            ..CompactionConfig::default()
        };
        let context = load(&session, "l4", &config);
        assert_eq!(texts(&context), "q3 | a3.0 | q4 | a4.0");
        assert_eq!(context.loops_left_out, ["l0", "l1", "l2"]);
        assert_eq!(load(&session, "none", &config), LoadedContext::default());
    }

    #[test]
    fn a_short_loop_is_not_doubled() {
        let mut session = chain(1, 2);
        let config = CompactionConfig::default();
        let before = load(&session, "l0", &config);
        assert_eq!(compact(&mut session, "l0", &config), 1);
        assert_eq!(load(&session, "l0", &config), before);
    }

    #[test]
    fn a_loop_does_not_vanish_when_it_is_no_longer_the_current_one() {
        let mut session = chain(2, 1);
        let config = CompactionConfig::default();
        compact(&mut session, "l0", &config);
        assert_eq!(texts(&load(&session, "l1", &config)), "q0 | a0.0 | q1 | a1.0");
        compact(&mut session, "l1", &config);
        let context = texts(&load(&session, "l1", &config));
        assert_eq!(context, "[Summary] [user] q0 | [Summary] a0.0 | q1 | a1.0");
    }

    #[test]
    fn no_first_turns_means_none() {
        let mut session = chain(1, 6);
        let config = CompactionConfig {
            keep_first_turns: 0,
            keep_recent_turns: 1,
            ..CompactionConfig::default()
        };
        compact(&mut session, "l0", &config);
        let context = texts(&load(&session, "l0", &config));
        assert!(context.starts_with("[Summary] [user] q0 | [Summary] a0.0 | "), "{context}");
        assert!(context.ends_with("[Summary] a0.4 | a0.5"), "{context}");
    }

    #[test]
    fn taking_the_compaction_off_restores_the_conversation() {
        let mut session = chain(3, 6);
        let config = CompactionConfig {
            keep_first_turns: 1,
            keep_recent_turns: 1,
            ..CompactionConfig::default()
        };
        let before = session.clone();
        let context = load(&session, "l2", &config);
        assert_eq!(compact(&mut session, "l2", &config), 3);
        assert_ne!(load(&session, "l2", &config), context);
        for record in &before.loops {
            assert_eq!(session.get_loop(&record.loop_id).unwrap().messages, record.messages);
            assert!(session.set_compaction_block(&record.loop_id, None));
        }
        assert_eq!(session, before);
        assert_eq!(load(&session, "l2", &config), context);
    }

    #[test]
    fn a_budget_takes_in_what_fits() {
        let mut session = chain(6, 1);
        let config = CompactionConfig {
            compaction_scope: CompactionScope::TokenBudget,
            ..CompactionConfig::default()
        };
        let one =
            HeuristicTokenCounter.estimate_messages(&session.get_loop("l0").unwrap().messages);
        let check = |session: &RecordedSession, budget: usize, left_out: usize| {
            let counter = HeuristicTokenCounter;
            let context = build_context_from_session(session, "l5", &config, budget, &counter);
            assert_eq!(context.loops_left_out.len(), left_out, "{budget}");
        };
        check(&session, 0, 5);
        check(&session, one, 5);
        check(&session, 3 * one, 3);
        check(&session, 6 * one, 0);
        // A loop that is too large for the budget fits once it is summarised.
        let slot = session.loops.slot_of("l4").unwrap();
        session.loops.change(slot).messages.push(answer(&"long ".repeat(2_000)));
        check(&session, 1_000, 5);
        assert_eq!(compact(&mut session, "l5", &config), 6);
        check(&session, 1_000, 0);
    }

    #[test]
    fn blocks_that_hold_a_turn_twice_are_loaded_once() {
        let mut session = chain(1, 1);
        let record = session.get_loop("l0").unwrap();
        let whole = crate::model::TurnRange { start_turn: 0, end_turn: 1 };
        let block = CompactionBlock {
            keep_first: Some(whole),
            keep_recent: Some(crate::model::CompactedSection {
                range: whole,
                messages: record.messages.clone(),
            }),
            keep_compacted: None,
            created_at: Timestamp::default(),
        };
        session.set_compaction_block("l0", Some(block));
        assert_eq!(texts(&load(&session, "l0", &CompactionConfig::default())), "q0 | a0.0");
    }

    #[test]
    fn a_rerun_keeps_the_question_and_loses_the_failed_answer() {
        let mut session = chain(2, 1);
        let rerun = |id: &str, parent: &str, messages: Vec<RecordedMessage>| {
            let started = Timestamp::from_unix_ms(10);
            let mut record = LoopRecord::new(id, "s", "a", LoopStatus::Completed, started);
            record.parent_loop_id = Some(parent.to_owned());
            record.continuation_kind = ContinuationKind::Rerun { tag: "t".to_owned() };
            record.messages = messages;
            record
        };
        let goes_on = rerun("again", "l1", vec![answer("better")]);
        let asks_anew = rerun("anew", "l1", vec![RecordedMessage::user("q1", 1), answer("best")]);
        session.loops.add(goes_on).unwrap();
        session.loops.add(asks_anew).unwrap();
        let config = CompactionConfig::default();
        assert_eq!(texts(&load(&session, "again", &config)), "q0 | a0.0 | q1 | better");
        assert_eq!(texts(&load(&session, "anew", &config)), "q0 | a0.0 | q1 | best");
    }
}
