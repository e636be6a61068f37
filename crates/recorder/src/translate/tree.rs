//! A session's tree of entries, as far as recording needs to know it.

use std::collections::{HashMap, HashSet};

use bough_session::{
    Entry, EntryBody, EntryId, FORMAT_PHI, ForeignBody, JsonMap, RawJson, Record, SessionStatus,
};
use serde_json::Value;

use super::json_of;
use super::refs::{self, Index, KnownMessage};
use crate::event::{AgentEvent, ContinuationKind};
use crate::message::RecordedMessage;
use crate::model::{LoopRecord, LoopStatus, RecordedSession};

const LOOP_KEY: &str = "loop_id";

/// A session's tree of entries, as far as recording needs to know it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Whether anything was written yet.
    pub(super) begun: bool,
    /// The time of the last record.
    pub(super) at_ms: i64,
    pub(super) status: Option<SessionStatus>,
    /// The session's metadata. Others may have added to what the agent set.
    pub(super) metadata: JsonMap,
    pub(super) task_name: Option<String>,
    leaf: Option<EntryId>,
    /// The number of the last entry that got an id.
    named: u64,
    /// Names that others gave.
    taken: HashSet<EntryId>,
    branches: HashMap<String, Branch>,
    /// All messages of the session, computed at the first use.
    index: Option<Index>,
}

/// Where the messages of a loop hang.
#[derive(Debug, Default)]
pub(super) struct Branch {
    /// The entry before its first.
    base: Base,
    messages: Vec<KnownMessage>,
    /// The message that has begun and not ended.
    begun: Option<usize>,
    /// The message that is being streamed, as far as it arrived.
    stream: Option<RecordedMessage>,
    is_closed: bool,
}

/// The entry that a loop's first entry hangs below.
#[derive(Clone, Debug, Default)]
enum Base {
    /// Not known: below the active leaf.
    #[default]
    Leaf,
    /// Here; `None` is before the first entry.
    Entry(Option<EntryId>),
    /// It depends on how the loop begins, because the loop tries another one again.
    Rerun(String),
}

/// What an event adds to the log.
pub(super) struct WrittenEvent {
    pub(super) entries: Vec<Record>,
    pub(super) entry_id: Option<EntryId>,
    pub(super) event: RawJson,
}

impl Tree {
    pub(super) const fn is_begun(&self) -> bool {
        self.begun
    }

    /// Puts the agent into the metadata. Returns whether that changed them.
    pub(super) fn name_agent(&mut self, agent: Option<&str>) -> bool {
        if self.metadata.get(super::AGENT_KEY).and_then(Value::as_str) == agent {
            return false;
        }
        match agent {
            Some(agent) => self.metadata.insert(super::AGENT_KEY.to_owned(), agent.into()),
            None => self.metadata.remove(super::AGENT_KEY),
        };
        true
    }

    /// Notes the entry that parallel loops without a parent all continue.
    pub(super) fn announce(&mut self, loop_ids: &[String]) {
        for loop_id in loop_ids {
            let branch = self.branches.entry(loop_id.clone()).or_default();
            if branch.messages.is_empty() {
                branch.base = Base::Entry(self.leaf.clone());
            }
        }
    }

    /// Notes where a loop hangs when it starts. That depends on its parent.
    pub(super) fn start(&mut self, session: &RecordedSession, loop_id: &str) {
        let Some(record) = session.get_loop(loop_id) else {
            return;
        };
        let is_announced = self.branches.contains_key(loop_id);
        let is_rerun = matches!(record.continuation_kind, ContinuationKind::Rerun { .. });
        let parent = record.parent_loop_id.as_deref();
        let base = if is_rerun && parent.is_some_and(|id| self.branches.contains_key(id)) {
            Base::Rerun(parent.unwrap_or_default().to_owned())
        } else {
            let active = session.active_parent(record);
            let active = active.filter(|id| self.branches.contains_key(*id));
            match active {
                Some(parent) => Base::Entry(self.tip_of(parent)),
                None if is_announced => return,
                None => Base::Entry(self.leaf.clone()),
            }
        };
        self.branches.entry(loop_id.to_owned()).or_default().base = base;
    }

    /// The last entry of a loop; if it has none, the entry before it.
    fn tip_of(&self, loop_id: &str) -> Option<EntryId> {
        let Some(branch) = self.branches.get(loop_id) else {
            return self.leaf.clone();
        };
        match (branch.messages.last(), &branch.base) {
            (Some(last), _) => Some(last.entry_id.clone()),
            (None, Base::Entry(base)) => base.clone(),
            (None, Base::Leaf) => self.leaf.clone(),
            (None, Base::Rerun(of)) => self.before(of),
        }
    }

    /// The entry before the first of a loop.
    fn before(&self, loop_id: &str) -> Option<EntryId> {
        match self.branches.get(loop_id).map(|branch| &branch.base) {
            Some(Base::Entry(base)) => base.clone(),
            _ => self.leaf.clone(),
        }
    }

    /// Decides where a loop hangs, now that its first message is known.
    fn settle(
        &mut self,
        session: &RecordedSession,
        loop_id: &str,
        first: &RecordedMessage,
    ) -> Option<EntryId> {
        let base = self.branches.get(loop_id).map(|branch| branch.base.clone());
        let settled = match base.unwrap_or_default() {
            Base::Leaf => self.leaf.clone(),
            Base::Entry(base) => base,
            Base::Rerun(of) => self.beside(session, &of, first),
        };
        let branch = self.branches.entry(loop_id.to_owned()).or_default();
        branch.base = Base::Entry(settled.clone());
        settled
    }

    /// A rerun that asks again hangs beside the first try; one that only answers again hangs below the question; one
    /// that asks something else hangs below the loop that it names.
    fn beside(
        &self,
        session: &RecordedSession,
        of: &str,
        first: &RecordedMessage,
    ) -> Option<EntryId> {
        let tried = self.branches.get(of);
        let content =
            |message: &RecordedMessage| message.known().map(|known| known.content().to_vec());
        if first.role() == "user" {
            let record = session.get_loop(of);
            let asked = record.and_then(|record| record.messages.first());
            let asked = asked.filter(|asked| asked.role() == "user");
            return match asked {
                Some(asked) if content(asked) != content(first) => self.tip_of(of),
                _ => self.before(of),
            };
        }
        let messages = tried.map_or(&[][..], |tried| &tried.messages);
        let asked = messages.iter().rev().find(|message| !message.is_assistant);
        asked.map_or_else(|| self.before(of), |asked| Some(asked.entry_id.clone()))
    }

    /// Writes an event: entries for the messages that are new, and references to all of them.
    pub(super) fn write_event(
        &mut self,
        session: &RecordedSession,
        loop_id: &str,
        event: &AgentEvent,
        at_ms: Option<i64>,
    ) -> WrittenEvent {
        let mut writer = EventWriter {
            at_ms: at_ms.unwrap_or(self.at_ms),
            tree: self,
            session,
            loop_id,
            entries: Vec::new(),
        };
        let (entry_id, event) = writer.event(event);
        WrittenEvent { entries: writer.entries, entry_id, event }
    }

    /// Notes that a loop ended. From now on only its place in the tree matters.
    pub(super) fn end(&mut self, loop_id: &str) {
        if let Some(branch) = self.branches.get_mut(loop_id) {
            branch.close();
        }
    }

    /// Notes that a loop was aborted. It has no more events, unless it is recorded again and
    /// continues.
    pub(super) fn break_off(&mut self, loop_id: &str) {
        if let Some(branch) = self.branches.get_mut(loop_id) {
            branch.is_closed = true;
        }
    }

    /// Continues an aborted loop; `news` of its events are about to be written.
    pub(super) fn go_on(&mut self, session: &RecordedSession, loop_id: &str, news: usize) {
        let Some(record) = session.get_loop(loop_id) else {
            return;
        };
        let is_empty = self.branches.get(loop_id).is_none_or(|branch| branch.messages.is_empty());
        if is_empty {
            self.start(session, loop_id);
        }
        let group = record.parallel_group.as_ref().map_or(&[][..], |group| &group.all_loop_ids);
        let spoke =
            |id: &&String| self.branches.get(*id).is_some_and(|one| !one.messages.is_empty());
        // Parallel loops without a parent all continue the same entry.
        let beside = group.iter().find(spoke).filter(|_| record.parent_loop_id.is_none());
        let beside = beside.map(|id| self.before(id)).filter(|_| is_empty);
        let branch = self.branches.entry(loop_id.to_owned()).or_default();
        branch.is_closed = false;
        if let Some(base) = beside {
            branch.base = Base::Entry(base);
        }
        let last = record.events.iter().rev().skip(news).find_map(|event| match &event.event {
            AgentEvent::MessageStart(start) => Some(Some(start)),
            AgentEvent::MessageEnd(_) => Some(None),
            _ => None,
        });
        if let Some(start) = last.flatten() {
            branch.begun = branch.messages.iter().rposition(|known| known.is(&start.message));
        }
    }

    /// One loop of a group was chosen: its last entry becomes the leaf. Returns that entry, if it is not the leaf
    /// already.
    pub(super) fn choose(&mut self, loop_id: &str) -> Option<EntryId> {
        let tip = self.tip_of(loop_id)?;
        if self.leaf.as_ref() == Some(&tip) {
            return None;
        }
        self.leaf = Some(tip.clone());
        Some(tip)
    }

    fn name(&mut self) -> EntryId {
        loop {
            self.named += 1;
            let id = EntryId::from_stored(format!("m_{}", self.named));
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }

    /// Takes in a record of the log.
    pub(super) fn read(&mut self, record: &Record) {
        self.begun = true;
        match record.known() {
            Record::Meta(change) => {
                if let Some(metadata) = &change.metadata {
                    self.metadata.clone_from(metadata);
                }
                self.status = change.status.as_ref().map(|s| s.status).or(self.status);
                self.task_name = change.task_name.clone().or(self.task_name.take());
            }
            Record::Entry(entry) => self.read_entry(entry),
            Record::Leaf(leaf) => self.leaf.clone_from(leaf),
            Record::Loop(event) => {
                self.branches.entry(event.loop_id.to_string()).or_default();
            }
            _ => {}
        }
    }

    fn read_entry(&mut self, entry: &Entry) {
        self.leaf = Some(entry.id.clone());
        self.taken.insert(entry.id.clone());
        let loop_id = entry.origin.as_ref().and_then(|origin| origin.get(LOOP_KEY));
        let (Some(loop_id), EntryBody::Foreign(body)) =
            (loop_id.and_then(Value::as_str), &entry.body)
        else {
            return;
        };
        let Ok(message) = serde_json::from_str::<RecordedMessage>(body.json.get()) else {
            return;
        };
        let branch = self.branches.entry(loop_id.to_owned()).or_default();
        if branch.messages.is_empty() {
            branch.base = Base::Entry(entry.parent_id.clone());
        }
        branch.messages.push(KnownMessage::new(entry.id.clone(), message));
    }

    /// Drops the messages of loops that have ended.
    pub(super) fn forget_closed(&mut self, session: &RecordedSession) {
        let may_go_on =
            |record: &LoopRecord| record.status.is_open() || record.status == LoopStatus::Aborted;
        for record in session.loops.iter().filter(|record| !may_go_on(record)) {
            if let Some(branch) = self.branches.get_mut(&record.loop_id) {
                branch.close();
            }
        }
    }
}

impl Branch {
    fn close(&mut self) {
        self.is_closed = true;
        self.begun = None;
        self.stream = None;
        for known in &mut self.messages {
            known.message = None;
        }
    }
}

/// Writes one event.
struct EventWriter<'a> {
    tree: &'a mut Tree,
    session: &'a RecordedSession,
    loop_id: &'a str,
    at_ms: i64,
    entries: Vec<Record>,
}

impl EventWriter<'_> {
    fn branch(&mut self) -> &mut Branch {
        self.tree.branches.entry(self.loop_id.to_owned()).or_default()
    }

    fn event(&mut self, event: &AgentEvent) -> (Option<EntryId>, RawJson) {
        match event {
            AgentEvent::MessageStart(start) if start.message.is_assistant() => {
                self.branch().stream = Some(start.message.clone());
                (None, json_of(event))
            }
            AgentEvent::MessageStart(start) => {
                let at = self.add_entry(&start.message);
                self.branch().begun = at;
                self.with_reference(event, &start.message, at)
            }
            AgentEvent::MessageUpdate(update) => {
                let before = self.branch().stream.replace(update.message.clone());
                (None, refs::streamed(event, update, before.as_ref()))
            }
            AgentEvent::MessageEnd(end) => {
                let begun = self.branch().begun.take();
                let begun = begun.filter(|at| self.is_at(*at, &end.message));
                let at = begun.or_else(|| self.add_entry(&end.message));
                self.with_reference(event, &end.message, at)
            }
            AgentEvent::TurnEnd(turn) => {
                let at = self.find_or_add(&turn.message);
                let message = self.reference(&turn.message, at);
                let results = turn.tool_results.iter().map(|result| {
                    let at = self.find_or_add(&result.for_turn());
                    let known = at.and_then(|at| self.branch().messages.get(at));
                    refs::result_reference(result, known)
                });
                let results: Vec<RawJson> = results.collect();
                (self.entry_id(at), refs::turn_end(turn, &message, &results))
            }
            AgentEvent::AgentEnd(end) => {
                let messages = self.all(&end.messages);
                (None, refs::agent_end(end, messages))
            }
            AgentEvent::TurnRequest(request) => {
                let index = self.tree.index.get_or_insert_with(|| {
                    let branches = self.tree.branches.values();
                    Index::of(branches.flat_map(|branch| &branch.messages))
                });
                (None, refs::turn_request(request, index))
            }
            _ => (None, json_of(event)),
        }
    }

    /// Adds an entry for a message. A loop that has ended adds none.
    fn add_entry(&mut self, message: &RecordedMessage) -> Option<usize> {
        if self.branch().is_closed {
            return None;
        }
        let last = self.branch().messages.last().map(|known| known.entry_id.clone());
        let parent_id = match last {
            Some(last) => Some(last),
            None => self.tree.settle(self.session, self.loop_id, message),
        };
        let id = self.tree.name();
        let sent_at = Some(message.timestamp()).filter(|at| *at > 0);
        let mut origin = JsonMap::new();
        origin.insert(LOOP_KEY.to_owned(), Value::from(self.loop_id));
        let before = self.tree.leaf.replace(id.clone());
        self.entries.push(Record::Entry(Entry {
            origin: Some(origin),
            ..Entry::new(
                id.clone(),
                parent_id,
                sent_at.unwrap_or(self.at_ms),
                EntryBody::Foreign(ForeignBody::new(FORMAT_PHI, json_of(message))),
            )
        }));
        let record = self.session.get_loop(self.loop_id);
        let passed_over = record.is_some_and(crate::model::LoopRecord::is_passed_over);
        if passed_over && self.tree.leaf != before {
            // The leaf stays at the chosen loop, whatever the others still send.
            self.entries.push(Record::Leaf(before.clone()));
            self.tree.leaf = before;
        }
        let known = KnownMessage::new(id, message.clone());
        if let Some(index) = &mut self.tree.index {
            index.add(&known);
        }
        let branch = self.branch();
        branch.messages.push(known);
        Some(branch.messages.len() - 1)
    }

    fn is_at(&mut self, at: usize, message: &RecordedMessage) -> bool {
        self.branch().messages.get(at).is_some_and(|known| known.is(message))
    }

    fn find_or_add(&mut self, message: &RecordedMessage) -> Option<usize> {
        let found = self.branch().messages.iter().rposition(|known| known.is(message));
        found.or_else(|| self.add_entry(message))
    }

    /// All messages of a loop, each matched with the first entry like it that no other was matched with.
    fn all(&mut self, messages: &[RecordedMessage]) -> Vec<RecordedMessage> {
        let mut next = 0;
        let mut used = HashSet::new();
        let mut references = Vec::with_capacity(messages.len());
        for message in messages {
            let known = &self.branch().messages;
            let fits = |at: &usize| {
                !used.contains(at) && known.get(*at).is_some_and(|known| known.is(message))
            };
            let found =
                (next..known.len()).find(fits).or_else(|| (0..next.min(known.len())).find(fits));
            let at = found.or_else(|| self.add_entry(message));
            if let Some(at) = at {
                used.insert(at);
                next = at + 1;
            }
            references.push(self.reference(message, at));
        }
        references
    }

    fn entry_id(&mut self, at: Option<usize>) -> Option<EntryId> {
        Some(self.branch().messages.get(at?)?.entry_id.clone())
    }

    fn reference(&mut self, message: &RecordedMessage, at: Option<usize>) -> RecordedMessage {
        refs::reference(message, at.and_then(|at| self.branch().messages.get(at)))
    }

    fn with_reference(
        &mut self,
        event: &AgentEvent,
        message: &RecordedMessage,
        at: Option<usize>,
    ) -> (Option<EntryId>, RawJson) {
        let reference = self.reference(message, at);
        (self.entry_id(at), refs::with_message(event, reference))
    }
}
