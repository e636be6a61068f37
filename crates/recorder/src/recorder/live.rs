//! A session while a recorder holds it.

use std::collections::{HashMap, HashSet};

use super::turns::PartialTurn;
use crate::event::AgentEvent;
use crate::loops::Slot;
use crate::model::{LoopEvent, LoopRecord, LoopStatus, RecordedSession};

/// A session while a recorder holds it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: RecordedSession,
    pub(super) stage: Stage,
    /// How many loops are open.
    pub(super) open: usize,
    pub(super) turns: HashMap<Slot, PartialTurn>,
    /// Groups of which none was chosen yet.
    pub(super) groups: Vec<Group>,
    /// Whether `after_task` is still to be called.
    pub(super) has_task: bool,
    /// The loops that had ended when the session was resumed and that received a late event since.
    pub(super) late: HashMap<Slot, LateEvents>,
    /// Whether the session was recorded before this recorder got it.
    pub(super) is_resumed: bool,
}

/// The late events of a loop that ended in an earlier recording.
#[derive(Debug)]
pub(super) struct LateEvents {
    /// How many events the loop had then.
    stored: usize,
    /// Which of the events after its end were received again.
    again: HashSet<usize>,
}

/// The state of a session in its recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Only a group of its loops was announced.
    Announced,
    /// Loops come and go.
    Open,
    /// It waits to be drained.
    Completed,
    /// It was drained in its present state, and is kept so that it can continue.
    Drained,
    /// It is in memory only so that others can be linked with it; another recorder may be recording it.
    Linked,
}

impl Stage {
    /// Whether there is nothing to complete and return.
    pub(super) const fn is_aside(self) -> bool {
        matches!(self, Self::Drained | Self::Linked)
    }
}

/// A parallel group without a chosen loop.
#[derive(Debug)]
pub(super) struct Group {
    /// The ids that it was announced with.
    pub(super) announced: Vec<String>,
    pub(super) slots: Vec<Slot>,
}

impl Live {
    pub(super) fn new(session: RecordedSession, stage: Stage) -> Self {
        Self {
            session,
            stage,
            open: 0,
            turns: HashMap::new(),
            groups: Vec::new(),
            has_task: false,
            late: HashMap::new(),
            is_resumed: false,
        }
    }

    pub(super) fn record(&self, slot: Slot) -> &LoopRecord {
        self.session.loops.at(slot)
    }

    pub(super) fn change(&mut self, slot: Slot) -> &mut LoopRecord {
        self.session.loops.change(slot)
    }

    pub(super) fn append(&mut self, slot: Slot, event: AgentEvent) {
        self.change(slot).events.push(event);
    }

    /// Whether a late event of a loop is one of those that an earlier recording stored. A file that has an event before
    /// the start of its loop, or after its end, is recorded again and again with the same late events.
    pub(super) fn was_late_before(&mut self, slot: Slot, event: &AgentEvent) -> bool {
        let record = self.session.loops.at(slot);
        if !self.is_resumed || record.status.is_open() {
            return false;
        }
        let stored = self.late.get(&slot).map_or(record.events.len(), |late| late.stored);
        let is_end = |event: &LoopEvent| matches!(event.event, AgentEvent::AgentEnd(_));
        let Some(end) = record.events.iter().position(is_end) else {
            return false;
        };
        let again = self.late.get(&slot).map(|late| &late.again);
        let is_new = |at: &usize| again.is_none_or(|again| !again.contains(at));
        let mut behind = record.events.iter().enumerate().take(stored).skip(end + 1);
        let found =
            behind.find(|(at, known)| is_new(at) && known.event == *event).map(|(at, _)| at);
        let late = self.late.entry(slot).or_insert(LateEvents { stored, again: HashSet::new() });
        found.is_some_and(|at| late.again.insert(at))
    }

    /// Whether a loop had ended when the session was resumed, or has ended since.
    pub(super) fn ended_before(&self, slot: Slot) -> bool {
        let status = self.record(slot).status;
        self.is_resumed && matches!(status, LoopStatus::Completed | LoopStatus::Rejected)
    }

    /// Ends a loop and adds it to its parent's children, if the parent is in this session.
    pub(super) fn close(&mut self, slot: Slot, status: LoopStatus) {
        self.turns.remove(&slot);
        let record = self.change(slot);
        let was_open = record.status.is_open();
        record.status = status;
        if was_open {
            self.open = self.open.saturating_sub(1);
            self.tell_parent(slot);
        }
    }

    /// Opens an aborted loop again, and undoes the effects of the abort.
    pub(super) fn go_on(&mut self, slot: Slot) {
        let record = self.record(slot);
        let loop_id = record.loop_id.clone();
        let parent = record.parent_loop_id.as_deref();
        if let Some(parent) = parent.and_then(|id| self.session.loops.slot_of(id)) {
            self.change(parent).children_loop_ids.retain(|child| *child != loop_id);
        }
        let record = self.change(slot);
        if record.events.is_empty() {
            // The parent that it took from its group when it was aborted may differ next time.
            record.parent_loop_id = None;
            record.status = LoopStatus::Pending;
        } else {
            record.status = LoopStatus::Running;
        }
        self.open += 1;
        self.find_turn(slot);
    }

    /// Adds a loop to the children of its parent, if that is in this session.
    pub(super) fn tell_parent(&mut self, slot: Slot) {
        let record = self.record(slot);
        let loop_id = record.loop_id.clone();
        let parent = record.parent_loop_id.as_deref();
        let parent = parent.and_then(|id| self.session.loops.slot_of(id));
        if let Some(parent) = parent.filter(|parent| *parent != slot) {
            self.change(parent).children_loop_ids.push(loop_id);
        }
    }

    /// Notes a change: if the session was drained, it is drained again.
    pub(super) fn touch(&mut self) {
        if self.stage == Stage::Drained {
            self.stage = Stage::Completed;
        }
    }

    /// The open loops, by start.
    pub(super) fn open_slots(&self) -> Vec<Slot> {
        let loops = &self.session.loops;
        loops.slots().filter(|slot| loops.at(*slot).status.is_open()).collect()
    }

    /// A variant of `loop_id` that no loop of the session has.
    pub(super) fn free_id(&self, loop_id: &str) -> String {
        ids_like(loop_id).find(|id| self.session.loops.slot_of(id).is_none()).unwrap_or_default()
    }

    /// The loops that arrived with an id, in order.
    pub(super) fn slots_like(&self, loop_id: &str) -> impl Iterator<Item = Slot> {
        let loops = &self.session.loops;
        let first = loops.slot_of(loop_id);
        first.into_iter().chain(ids_like(loop_id).map_while(|id| loops.slot_of(&id)))
    }
}

/// The ids for loops that arrive with an id that is taken.
fn ids_like(loop_id: &str) -> impl Iterator<Item = String> {
    (2_u64..).map(move |number| format!("{loop_id}-{number}"))
}
