//! Compaction blocks: what stands for the turns of recorded loops.
//!
//! A block belongs to a loop and changes nothing of it: it keeps some first turns, puts a summary in the place of the turns
//! that follow, and keeps the recent turns with long tool output cut. Taking it off restores the conversation.

use std::collections::HashMap;
use std::ops::Range;

use bough_recorder::{
    AgentEvent, CompactedSection, CompactionBlock, CompactionConfig, CompactionScope,
    DefaultBlockCompaction, Fact, HeuristicTokenCounter, RecordedMessage, RecordedSession,
    Timestamp, TokenCounter, TurnMap, TurnRange, build_context_from_session, compact_session_loops,
};
use bough_session::{
    Entry, EntryBody, FORMAT_PHI, ForeignBody, LoopEvent, LoopId, NewRecord, RawJson, Record,
};

/// The field of an entry's origin that names its loop.
const LOOP_KEY: &str = "loop_id";

/// The loop that an entry was recorded in.
pub(super) fn loop_of(origin: Option<&bough_session::JsonMap>) -> Option<&str> {
    origin?.get(LOOP_KEY)?.as_str()
}

/// A path with the blocks of its loops applied. The loop that a path which does not begin at its root begins in is left as
/// it is: its turns cannot be counted.
pub(super) fn with_blocks(
    path: Vec<Entry>,
    session: &RecordedSession,
    is_whole: bool,
) -> Vec<Entry> {
    let cut_loop =
        path.first().filter(|_| !is_whole).and_then(|first| loop_of(first.origin.as_ref()));
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, entry) in path.iter().enumerate() {
        if let Some(id) = loop_of(entry.origin.as_ref()).filter(|id| Some(*id) != cut_loop) {
            places.entry(id).or_default().push(at);
        }
    }
    let mut changes: HashMap<usize, Vec<Entry>> = HashMap::new();
    for (loop_id, places) in places {
        let found = session.get_loop(loop_id);
        if let Some((found, block)) = found.zip(found.and_then(|one| one.compaction_block.as_ref()))
        {
            changes.extend(changed_entries(&path, &places, &found.messages, block));
        }
    }
    let replaced = |(at, entry)| changes.remove(&at).unwrap_or_else(|| vec![entry]);
    path.into_iter().enumerate().flat_map(replaced).collect()
}

/// For the entries of a loop that a block stands for, what takes their places.
fn changed_entries(
    path: &[Entry],
    places: &[usize],
    said: &[RecordedMessage],
    block: &CompactionBlock,
) -> Vec<(usize, Vec<Entry>)> {
    let entries: Vec<(usize, &Entry)> =
        places.iter().filter_map(|at| Some((*at, path.get(*at)?))).collect();
    // The loop itself knows the turns of its messages. While it runs, its entries are all that there is.
    let messages = match said.len() == entries.len() {
        true => Some(said.to_vec()),
        false => entries.iter().map(|(_, entry)| recorded_message(entry)).collect(),
    };
    // An entry that another program put into the loop has no turn.
    let Some(messages) = messages else { return Vec::new() };
    let mut changes = Vec::new();
    for (section, words) in sections(block) {
        let range = messages_of_section(block, section, &messages);
        let Some(replaced) = entries.get(range).filter(|replaced| !replaced.is_empty()) else {
            continue;
        };
        changes.extend(stand_ins(replaced, &words));
    }
    changes
}

fn recorded_message(entry: &Entry) -> Option<RecordedMessage> {
    match &entry.body {
        EntryBody::Foreign(body) if body.format == FORMAT_PHI => {
            serde_json::from_str(body.json.get()).ok()
        }
        _ => None,
    }
}

/// Which messages of a loop the summary of its block stands for.
pub(crate) fn summarised_messages(
    block: &CompactionBlock,
    messages: &[RecordedMessage],
) -> Range<usize> {
    let summary = block.keep_compacted.as_ref();
    summary.map_or(0..0, |section| messages_of_section(block, section, messages))
}

/// Where the messages of a section are, without those that the block keeps as they are.
fn messages_of_section(
    block: &CompactionBlock,
    section: &CompactedSection,
    messages: &[RecordedMessage],
) -> Range<usize> {
    let turns = TurnMap::from_messages(messages);
    let first = block.keep_first.map_or(0..0, |range| messages_of(&turns, range, messages));
    let range = messages_of(&turns, section.range, messages);
    range.start.max(first.end).min(range.end)..range.end
}

/// Where the messages of some turns are among the messages of their loop.
fn messages_of(turns: &TurnMap, range: TurnRange, messages: &[RecordedMessage]) -> Range<usize> {
    let start = match range.start_turn.checked_sub(1) {
        Some(end_turn) => {
            turns.messages_for_range(TurnRange { start_turn: 0, end_turn }, messages).len()
        }
        None => 0,
    };
    start..start + turns.messages_for_range(range, messages).len()
}

/// The parts of a block that have words of their own.
fn sections(block: &CompactionBlock) -> Vec<(&CompactedSection, Vec<RecordedMessage>)> {
    let middle = block.keep_compacted.iter().map(|part| (part, part.messages.clone()));
    let recent = block.keep_recent.iter().map(|part| (part, block.recent_messages().to_vec()));
    middle.chain(recent).collect()
}

/// The words of a block in the places of the entries that they stand for: each in the place of one where there are as many,
/// and all in the place of the first otherwise.
fn stand_ins(replaced: &[(usize, &Entry)], words: &[RecordedMessage]) -> Vec<(usize, Vec<Entry>)> {
    let stand_in = |entry: &Entry, message: &RecordedMessage| {
        let json = RawJson::of(message).ok()?;
        let body =
            EntryBody::Foreign(ForeignBody { format: FORMAT_PHI.to_owned(), json, replaced: None });
        Some(Entry { body, ..entry.clone() })
    };
    if replaced.len() == words.len() {
        let pairs = replaced.iter().zip(words);
        return pairs
            .map(|((at, entry), word)| (*at, stand_in(entry, word).into_iter().collect()))
            .collect();
    }
    let all = |entry: &Entry| words.iter().filter_map(|word| stand_in(entry, word)).collect();
    let mut changes: Vec<(usize, Vec<Entry>)> =
        replaced.iter().map(|(at, _)| (*at, Vec::new())).collect();
    if let (Some((_, first)), Some((_, entry))) = (changes.first_mut(), replaced.first()) {
        *first = all(entry);
    }
    changes
}

/// What compacting a recorded session would do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BlockPlan {
    /// The session.
    pub(super) session_id: String,
    /// The blocks, by loop, the oldest loop first.
    pub(super) blocks: Vec<(String, CompactionBlock)>,
    /// How many turns are summed up.
    pub(super) summarised_turns: u64,
    /// Tokens of the context now, estimated.
    pub(super) tokens_before: u64,
}

/// Decides which blocks to lay over the loops that lead to `loop_id`; `None` when they would make the context no smaller. Of
/// the loop itself, as many newest turns stay as have `keep_recent_tokens`.
pub(super) fn plan_blocks(
    session: &RecordedSession,
    loop_id: &str,
    keep_recent_tokens: u64,
    now_ms: i64,
) -> Option<BlockPlan> {
    let config = CompactionConfig {
        compaction_scope: CompactionScope::FixedCount(usize::MAX),
        keep_recent_turns: recent_turns(&session.get_loop(loop_id)?.messages, keep_recent_tokens),
        ..CompactionConfig::default()
    };
    let counter = HeuristicTokenCounter;
    let tokens = |session: &RecordedSession| {
        let loaded = build_context_from_session(session, loop_id, &config, usize::MAX, &counter);
        counter.estimate_messages(&loaded.messages) as u64
    };
    let mut compacted = session.clone();
    let now = Timestamp::from_unix_ms(now_ms);
    let strategy = &DefaultBlockCompaction;
    compact_session_loops(&mut compacted, loop_id, strategy, &config, usize::MAX, &counter, now);
    let laid = compacted.loops.iter().filter_map(|after| {
        let before = session.get_loop(&after.loop_id)?.compaction_block.as_ref();
        let block = after.compaction_block.clone().filter(|block| Some(block) != before)?;
        Some((after.loop_id.clone(), block))
    });
    let blocks: Vec<(String, CompactionBlock)> = laid.collect();
    let turns = |block: &CompactionBlock| block.keep_compacted.as_ref().map(|part| part.range);
    let summarised_turns = blocks.iter().filter_map(|(_, block)| turns(block));
    let summarised_turns =
        summarised_turns.map(|range| u64::from(range.end_turn - range.start_turn) + 1).sum();
    let (tokens_before, tokens_after) = (tokens(session), tokens(&compacted));
    let session_id = session.session_id.clone();
    (tokens_after < tokens_before).then_some(BlockPlan {
        session_id,
        blocks,
        summarised_turns,
        tokens_before,
    })
}

/// How many turns at the end of a loop have so many tokens.
fn recent_turns(messages: &[RecordedMessage], keep_recent_tokens: u64) -> usize {
    let turns = TurnMap::from_messages(messages);
    let mut tokens = 0_u64;
    for (count, turn) in (0..turns.turn_count()).rev().enumerate() {
        if tokens >= keep_recent_tokens {
            return count;
        }
        let range = TurnRange { start_turn: turn, end_turn: turn };
        let said = turns.messages_for_range(range, messages);
        tokens = tokens.saturating_add(HeuristicTokenCounter.estimate_messages(said) as u64);
    }
    usize::MAX
}

impl BlockPlan {
    /// The summary as text, one line for each turn that is summed up.
    pub(super) fn summary(&self) -> String {
        let words =
            self.summaries().flat_map(|part| part.messages.iter().map(RecordedMessage::text));
        words.collect::<Vec<_>>().join("\n")
    }

    /// The conversation that is summed up, for a program that summarises it.
    pub(super) fn summarised_text(&self, session: &RecordedSession) -> String {
        let mut paragraphs = Vec::new();
        for (loop_id, block) in &self.blocks {
            let found = session.get_loop(loop_id).zip(block.keep_compacted.as_ref());
            let Some((record, part)) = found else { continue };
            let turns = TurnMap::from_messages(&record.messages);
            let messages = turns.messages_for_range(part.range, &record.messages);
            paragraphs
                .extend(messages.iter().map(|one| format!("[{}]: {}", one.role(), one.text())));
        }
        paragraphs.join("\n\n")
    }

    /// The same plan with a summary of somebody else's in the place of the lines.
    pub(super) fn with_summary(mut self, text: &str) -> Self {
        let mut text = Some(text);
        for part in self.blocks.iter_mut().filter_map(|(_, block)| block.keep_compacted.as_mut()) {
            let said_at = part.messages.first().map_or(0, RecordedMessage::timestamp);
            let summary = text.take().map(|text| RecordedMessage::user(text, said_at));
            part.messages = summary.into_iter().collect();
        }
        self
    }

    /// The session with the blocks over its loops.
    pub(super) fn laid_over(&self, session: &RecordedSession) -> RecordedSession {
        let mut laid = session.clone();
        for (loop_id, block) in &self.blocks {
            laid.set_compaction_block(loop_id, Some(block.clone()));
        }
        laid
    }

    /// The records that lay the blocks over their loops.
    pub(super) fn records(&self, now_ms: i64) -> Vec<NewRecord> {
        let blocks = self.blocks.iter();
        let laid =
            blocks.map(|(id, block)| block_record(&self.session_id, id, Some(block.clone())));
        laid.flatten().map(|record| record.at(now_ms)).collect()
    }

    fn summaries(&self) -> impl Iterator<Item = &CompactedSection> {
        self.blocks.iter().filter_map(|(_, block)| block.keep_compacted.as_ref())
    }
}

/// The records that take the blocks off the loops that lead to `loop_id`, each with its loop.
pub(super) fn undo_blocks(
    session: &RecordedSession,
    loop_id: &str,
    now_ms: i64,
) -> Vec<(String, NewRecord)> {
    let chain = session.loop_chain_to(loop_id);
    let compacted = chain.iter().filter_map(|id| session.get_loop(id));
    let compacted = compacted.filter(|found| found.compaction_block.is_some());
    let taken_off = compacted.filter_map(|found| {
        let record = block_record(&session.session_id, &found.loop_id, None)?;
        Some((found.loop_id.clone(), record.at(now_ms)))
    });
    taken_off.collect()
}

fn block_record(session_id: &str, loop_id: &str, block: Option<CompactionBlock>) -> Option<Record> {
    let (session_id, fact_loop) = (session_id.to_owned(), loop_id.to_owned());
    let fact = Fact::Compaction { session_id, loop_id: fact_loop, block };
    let event = RawJson::of(&AgentEvent::from(fact)).ok()?;
    let loop_id = LoopId::from_stored(loop_id);
    Some(Record::Loop(LoopEvent { loop_id, phase: None, entry_id: None, event }))
}
