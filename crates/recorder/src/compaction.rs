//! Compaction: a shorter text that replaces a loop's messages in a context that has grown too large.
//!
//! A [`CompactionBlock`] is an overlay over a loop. The loop stays unchanged, and removing the block restores the
//! conversation.

use bough_session::ContentBlock;

use crate::context::{CompactionConfig, HeuristicTokenCounter, TokenCounter};
use crate::limits::SUMMARY_LINE_CHARS;
use crate::message::RecordedMessage;
use crate::message::content::unknown_block;
use crate::model::{CompactedSection, CompactionBlock, LoopRecord, TurnRange};
use crate::time::Timestamp;

/// The groups of messages of a loop: one for each turn, and one for each message that belongs to no turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnMap {
    /// The index of each group's first message; the last group ends with the loop.
    starts: Vec<usize>,
    len: usize,
}

impl TurnMap {
    /// The groups of these messages.
    #[must_use]
    pub fn from_messages(messages: &[RecordedMessage]) -> Self {
        let mut starts = Vec::new();
        let mut current = None;
        for (at, message) in messages.iter().enumerate() {
            let turn = message.turn_id().map(|turn_id| turn_id.turn_index);
            if turn.is_none() || turn != current {
                starts.push(at);
            }
            current = turn;
        }
        Self { starts, len: messages.len() }
    }

    /// How many groups there are.
    #[must_use]
    pub fn turn_count(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// The messages of a range of groups; none where the range goes beyond the last group.
    #[must_use]
    pub fn messages_for_range<'a>(
        &self,
        range: TurnRange,
        messages: &'a [RecordedMessage],
    ) -> &'a [RecordedMessage] {
        let end = range.end_turn.saturating_add(1);
        let bounds = self.start_of(range.start_turn).zip(self.start_of(end));
        bounds.and_then(|(start, end)| messages.get(start..end)).unwrap_or_default()
    }

    /// Where a group begins; one past the last group begins where the loop ends.
    fn start_of(&self, turn: u32) -> Option<usize> {
        let turn = usize::try_from(turn).ok()?;
        let past_the_end = (turn == self.starts.len()).then_some(self.len);
        self.starts.get(turn).copied().or(past_the_end)
    }
}

/// Makes the parts of a [`CompactionBlock`].
///
/// The three parts of a block must share no turn and leave none out. `split` decides where they meet, so an implementation
/// that only wants another text for the summary overrides `keep_compacted` alone.
pub trait BlockCompactionStrategy: Send + Sync {
    /// Where the parts of a loop meet.
    fn split(&self, record: &LoopRecord, turn_map: &TurnMap, config: &CompactionConfig) -> Split {
        Split::of(&record.messages, turn_map, config)
    }

    /// The recent turns, with long tool output cut.
    fn keep_recent(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        range: TurnRange,
        config: &CompactionConfig,
    ) -> CompactedSection;

    /// The summary of some turns.
    fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        range: TurnRange,
        config: &CompactionConfig,
    ) -> CompactedSection;

    /// The block of a loop. The current loop of a conversation keeps its first and its recent turns; an older loop
    /// keeps only the summary.
    fn compact(
        &self,
        record: &LoopRecord,
        config: &CompactionConfig,
        is_most_recent: bool,
        now: Timestamp,
    ) -> CompactionBlock {
        let turn_map = TurnMap::from_messages(&record.messages);
        let split = if is_most_recent {
            self.split(record, &turn_map, config)
        } else {
            Split::all_middle(turn_map.turn_count())
        };
        CompactionBlock {
            keep_first: split.first,
            keep_recent: split
                .recent
                .map(|range| self.keep_recent(record, &turn_map, range, config)),
            keep_compacted: split
                .middle
                .map(|range| self.keep_compacted(record, &turn_map, range, config)),
            created_at: now,
        }
    }
}

impl CompactionBlock {
    /// The messages of the recent part. Blocks of other programs may hold turns twice in short loops: those that are kept
    /// word for word are left out.
    #[must_use]
    pub fn recent_messages(&self) -> &[RecordedMessage] {
        let Some(part) = &self.keep_recent else { return &[] };
        let kept = self.keep_first.map_or(0, |first| first.end_turn.saturating_add(1));
        let doubled = kept.saturating_sub(part.range.start_turn);
        let groups = TurnMap::from_messages(&part.messages);
        let rest = TurnRange {
            start_turn: doubled.min(groups.turn_count()),
            end_turn: groups.turn_count().saturating_sub(1),
        };
        if doubled == 0 { &part.messages } else { groups.messages_for_range(rest, &part.messages) }
    }
}

/// Where the parts of a loop meet: together they hold each turn once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Turns that are kept word for word.
    pub first: Option<TurnRange>,
    /// Turns that are summed up.
    pub middle: Option<TurnRange>,
    /// Turns whose long tool output is cut.
    pub recent: Option<TurnRange>,
}

impl Split {
    /// The split that the settings ask for. If the loop is too short for both, its first turns are kept first. A tool's
    /// answer is never separated from its call.
    #[must_use]
    pub fn of(messages: &[RecordedMessage], turn_map: &TurnMap, config: &CompactionConfig) -> Self {
        let total = turn_map.turn_count();
        let first_end = to_turns(config.keep_first_turns).min(total);
        let mut recent_start =
            total.saturating_sub(to_turns(config.keep_recent_turns)).max(first_end);
        while recent_start > first_end && begins_with_answer(messages, turn_map, recent_start) {
            recent_start -= 1;
        }
        Self {
            first: range(0, first_end),
            middle: range(first_end, recent_start),
            recent: range(recent_start, total),
        }
    }

    fn all_middle(total: u32) -> Self {
        Self { middle: range(0, total), ..Self::default() }
    }
}

fn to_turns(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn range(start: u32, end: u32) -> Option<TurnRange> {
    (start < end).then(|| TurnRange { start_turn: start, end_turn: end - 1 })
}

fn begins_with_answer(messages: &[RecordedMessage], turn_map: &TurnMap, turn: u32) -> bool {
    let first = turn_map.start_of(turn).and_then(|at| messages.get(at));
    first.is_some_and(|message| message.answered_call().is_some())
}

/// The usual strategy: a line for each turn, until the summary is as long as it may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultBlockCompaction;

impl BlockCompactionStrategy for DefaultBlockCompaction {
    fn keep_recent(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        range: TurnRange,
        config: &CompactionConfig,
    ) -> CompactedSection {
        let messages = turn_map.messages_for_range(range, &record.messages);
        let cut =
            messages.iter().map(|message| with_cut_output(message, config.tool_output_max_lines));
        CompactedSection { range, messages: cut.collect() }
    }

    fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        range: TurnRange,
        config: &CompactionConfig,
    ) -> CompactedSection {
        let lines = (range.start_turn..=range.end_turn).map(|turn| {
            let one = TurnRange { start_turn: turn, end_turn: turn };
            summary_line(turn_map.messages_for_range(one, &record.messages))
        });
        let mut kept = within_budget(lines.collect(), config.max_summary_tokens);
        if let Some(focus) = &config.focus_message {
            kept.insert(0, focus.clone());
        }
        let timestamp = record.messages.last().map_or(0, RecordedMessage::timestamp);
        CompactedSection {
            range,
            messages: kept.into_iter().map(|line| RecordedMessage::user(line, timestamp)).collect(),
        }
    }
}

/// As many lines as the budget allows, and a line with the number of turns that were left out.
fn within_budget(lines: Vec<String>, budget: usize) -> Vec<String> {
    let tokens = |line: &str| HeuristicTokenCounter.estimate_text(line);
    if lines.iter().map(|line| tokens(line)).sum::<usize>() <= budget {
        return lines;
    }
    let total = lines.len();
    let left_out = |count: usize| format!("[Summary] [{count} more turns]");
    let mut left = budget.saturating_sub(tokens(&left_out(total)));
    let mut kept = Vec::new();
    for line in lines {
        let Some(rest) = left.checked_sub(tokens(&line)) else {
            break;
        };
        left = rest;
        kept.push(line);
    }
    kept.push(left_out(total - kept.len()));
    kept
}

/// One line for a turn: the model's text, else the tools that it used, else the input.
fn summary_line(messages: &[RecordedMessage]) -> String {
    let assistant = messages.iter().find(|message| message.is_assistant());
    let words = match assistant {
        None => messages
            .first()
            .map_or_else(String::new, |message| format!("[{}] {}", message.role(), message.text())),
        Some(message) => match (message.text(), tool_calls(message)) {
            (text, _) if !text.trim().is_empty() => text,
            (_, 0) => "[Assistant response]".to_owned(),
            (_, count) => format!("[Assistant used {count} tool(s)]"),
        },
    };
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(SUMMARY_LINE_CHARS).collect();
    if short.len() < line.len() {
        short.push('\u{2026}');
    }
    format!("[Summary] {short}")
}

fn tool_calls(message: &RecordedMessage) -> usize {
    let is_call = |block: &&ContentBlock| matches!(block, ContentBlock::FunctionCall(_));
    message.content().iter().filter(is_call).count()
}

fn with_cut_output(message: &RecordedMessage, lines_max: usize) -> RecordedMessage {
    let is_long = |block: &ContentBlock| {
        is_text(block) && block.as_text().is_some_and(|text| text.lines().count() > lines_max)
    };
    let mut cut = message.clone();
    if message.answered_call().is_none() || !message.content().iter().any(is_long) {
        return cut;
    }
    cut.change(|said| {
        let blocks = said.message.content_mut().iter_mut().filter(|block| is_text(block));
        for text in blocks.filter_map(ContentBlock::stream_text_mut) {
            *text = cut_lines(text, lines_max);
        }
    });
    cut
}

/// Whether a block is of words, and not a text that is shown for a block of an unknown kind.
fn is_text(block: &ContentBlock) -> bool {
    block.as_text().is_some() && unknown_block(block).is_none()
}

/// The beginning and the end of a long text.
fn cut_lines(text: &str, lines_max: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= lines_max {
        return text.to_owned();
    }
    let head = lines_max.div_ceil(2);
    let tail = lines_max - head;
    let left_out = format!("[... {} lines left out ...]", lines.len() - lines_max);
    let head = lines.iter().take(head).copied();
    let tail = lines.iter().skip(lines.len() - tail).copied();
    head.chain([left_out.as_str()]).chain(tail).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::TurnId;

    fn talk(turns: &[Option<u32>]) -> Vec<RecordedMessage> {
        let turn_id = |turn: &Option<u32>| {
            turn.map(|turn_index| TurnId { loop_id: "l".to_owned(), turn_index })
        };
        let say =
            |(at, turn)| RecordedMessage::user(format!("m{at}"), 1).with_turn_id(turn_id(turn));
        turns.iter().enumerate().map(say).collect()
    }

    #[test]
    fn messages_are_grouped_by_turn() {
        let messages = talk(&[None, None, Some(0), Some(0), Some(1), None, Some(1)]);
        let turn_map = TurnMap::from_messages(&messages);
        assert_eq!(turn_map.turn_count(), 6);
        let check = |start_turn, end_turn, expected: &[&str]| {
            let range = TurnRange { start_turn, end_turn };
            let found = turn_map.messages_for_range(range, &messages);
            let found: Vec<String> = found.iter().map(RecordedMessage::text).collect();
            assert_eq!(found, expected);
        };
        check(2, 2, &["m2", "m3"]);
        check(0, 2, &["m0", "m1", "m2", "m3"]);
        check(3, 5, &["m4", "m5", "m6"]);
        check(5, 6, &[]);
        check(9, 9, &[]);
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        assert_eq!(cut_lines("a\nb", 2), "a\nb");
        assert_eq!(cut_lines("a\nb\nc\nd\ne", 3), "a\nb\n[... 2 lines left out ...]\ne");
        assert_eq!(cut_lines("a\nb", 0), "[... 2 lines left out ...]");
    }

    #[test]
    fn a_summary_says_how_much_it_leaves_out() {
        let lines: Vec<String> = (0..50).map(|at| format!("[Summary] line {at}")).collect();
        assert_eq!(within_budget(lines.clone(), 1000), lines);
        let kept = within_budget(lines, 40);
        assert!(kept.len() < 50);
        let left_out = 50 - (kept.len() - 1);
        assert_eq!(kept.last().unwrap(), &format!("[Summary] [{left_out} more turns]"));
    }

    proptest! {
        /// The parts of a block hold each turn exactly once, whatever the settings.
        #[test]
        fn no_turn_is_doubled_or_lost(
            turns in proptest::collection::vec(proptest::option::of(0_u32..4), 0..12),
            keep_first_turns in 0_usize..6,
            keep_recent_turns in 0_usize..6,
        ) {
            let messages = talk(&turns);
            let turn_map = TurnMap::from_messages(&messages);
            let config = CompactionConfig { keep_first_turns, keep_recent_turns, ..CompactionConfig::default() };
            let split = Split::of(&messages, &turn_map, &config);
            let parts = [split.first, split.middle, split.recent];
            let covered: Vec<u32> = parts.into_iter().flatten()
                .flat_map(|range| range.start_turn..=range.end_turn)
                .collect();
            prop_assert_eq!(covered, (0..turn_map.turn_count()).collect::<Vec<_>>());
        }
    }
}
