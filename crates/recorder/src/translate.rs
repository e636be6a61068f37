//! Events as records of a session's log, and back.
//!
//! Each event becomes records of the session that it belongs to:
//! - a message that arrives for the first time becomes an entry of the tree, as it came;
//! - the event itself becomes a loop record, with a reference in place of every message that an entry holds, so that a
//!   message which several events repeat is stored once;
//! - effects of the event that it does not state itself (links to other sessions, why the session was made) become loop
//!   records of facts, in the log of each session that they concern.
//!
//! A loop that continues another hangs below the last entry of that one, so branches of the conversation are branches
//! of the tree. A rerun hangs beside the loop that it tries again. When one of several parallel loops is chosen, its
//! last entry becomes the active leaf.

use std::collections::HashMap;

use bough_session::{
    LoopEvent, LoopId, LoopPhase, MetaChange, NewRecord, RawJson, Record, SessionStatus,
    StatusChange,
};

use crate::event::AgentEvent;
use crate::fact::{Fact, SessionFact};
use crate::model::{LoopStatus, RecordedSession};
use crate::recorder::{Effect, Report, SessionRecorder, SessionRecorderConfig};

mod fold;
mod grown;
mod linked_sessions;
mod refs;
mod splice;
mod tree;

pub use fold::{RecordFold, events_of_records, fold_records};

use tree::Tree;

/// The metadata member with the agent of a recorded session.
pub(crate) const AGENT_KEY: &str = "agent_id";

/// Turns events into records, session by session.
#[derive(Debug)]
pub struct Translator {
    recorder: SessionRecorder,
    trees: HashMap<String, Tree>,
}

/// What an event adds to the logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The notices about the event.
    pub report: Report,
    /// What to append, to which session, in order. The records of one batch belong together.
    pub batches: Vec<RecordBatch>,
}

/// Records for the log of one session.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordBatch {
    /// The session.
    pub session_id: String,
    /// Whether these are the first records of its log.
    pub is_new: bool,
    /// The records.
    pub records: Vec<NewRecord>,
}

impl Translator {
    /// A translator that knows no session.
    #[must_use]
    pub fn new(config: SessionRecorderConfig) -> Self {
        Self { recorder: SessionRecorder::traced(config), trees: HashMap::new() }
    }

    /// The sessions as they are in memory.
    #[must_use]
    pub const fn recorder(&self) -> &SessionRecorder {
        &self.recorder
    }

    /// Whether a session is in memory. A stored session that is not in memory must be given to [`Self::resume`] before
    /// any event of it.
    #[must_use]
    pub fn holds(&self, session_id: &str) -> bool {
        self.recorder.held(session_id).is_some()
    }

    /// Takes in an event.
    pub fn on_event(&mut self, event: AgentEvent) -> Translation {
        // The event is needed after it is recorded; its messages are shared, not copied.
        let report = self.recorder.on_event(event.clone());
        let effects = self.recorder.take_effects();
        Translation { report, batches: self.write(Some(&event), effects) }
    }

    /// Aborts every open loop.
    pub fn flush(&mut self) -> Vec<RecordBatch> {
        self.recorder.flush();
        let effects = self.recorder.take_effects();
        self.write(None, effects)
    }

    /// Loads a session from its log, to continue it. The returned records abort its open loops, and must be appended.
    /// Does nothing if the session is in memory.
    pub fn resume<'a>(
        &mut self,
        session_id: &str,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Vec<RecordBatch> {
        if self.holds(session_id) {
            return Vec::new();
        }
        let (fold, mut tree) = read_log(session_id, records);
        let Some(session) = fold.into_session() else {
            // A log without loops: recording continues below its leaf, whatever it holds.
            if tree.is_begun() {
                self.trees.insert(session_id.to_owned(), tree);
            }
            return Vec::new();
        };
        tree.forget_closed(&session);
        self.trees.insert(session_id.to_owned(), tree);
        self.recorder.resume(session);
        let effects = self.recorder.take_effects();
        self.write(None, effects)
    }

    /// Drops complete sessions to free memory; they can be resumed from their logs.
    pub fn release_completed(&mut self) -> Vec<RecordedSession> {
        self.recorder.checkpoint();
        let released = self.recorder.drain_completed();
        let recorder = &self.recorder;
        self.trees.retain(|session_id, _| recorder.held(session_id).is_some());
        released
    }

    /// Drops a session that another recorder wrote into; it can be resumed from its log.
    pub(crate) fn forget(&mut self, session_id: &str) {
        self.recorder.drop_session(session_id);
        self.trees.remove(session_id);
    }

    fn write(&mut self, event: Option<&AgentEvent>, effects: Vec<Effect>) -> Vec<RecordBatch> {
        let mut writer = RecordWriter {
            recorder: &self.recorder,
            trees: &mut self.trees,
            batches: Vec::new(),
            at_ms: event.and_then(AgentEvent::timestamp).map(|at| at.unix_ms()),
        };
        for effect in &effects {
            writer.announce(effect);
            writer.resume(effect, &effects);
        }
        if let Some(event) = event {
            writer.write_event(event, &effects);
        }
        for effect in &effects {
            writer.write_fact(effect);
        }
        writer.write_statuses();
        writer.batches.retain(|batch| !batch.records.is_empty());
        writer.batches
    }
}

/// The records of one event, while they are written.
struct RecordWriter<'a> {
    recorder: &'a SessionRecorder,
    trees: &'a mut HashMap<String, Tree>,
    batches: Vec<RecordBatch>,
    at_ms: Option<i64>,
}

impl RecordWriter<'_> {
    fn push(&mut self, session_id: &str, record: Record) {
        let tree = self.trees.entry(session_id.to_owned()).or_default();
        let at_ms = self.at_ms.unwrap_or(tree.at_ms).max(tree.at_ms);
        tree.at_ms = at_ms;
        let is_new = !std::mem::replace(&mut tree.begun, true);
        let record = record.at(at_ms);
        match self.batches.iter_mut().find(|batch| batch.session_id == session_id) {
            Some(batch) => batch.records.push(record),
            None => self.batches.push(RecordBatch {
                session_id: session_id.to_owned(),
                is_new,
                records: vec![record],
            }),
        }
    }

    fn push_loop(
        &mut self,
        session_id: &str,
        loop_id: &str,
        phase: Option<LoopPhase>,
        event: RawJson,
    ) {
        let record = Record::Loop(LoopEvent {
            loop_id: LoopId::from_stored(loop_id),
            phase,
            entry_id: None,
            event,
        });
        self.push(session_id, record);
    }

    /// The first record of a log says what the session is.
    fn announce(&mut self, effect: &Effect) {
        let Effect::Header { session_id } = effect else {
            return;
        };
        let Some(session) = self.recorder.held(session_id) else {
            return;
        };
        let is_new = self.trees.get(session_id).is_none_or(|tree| !tree.begun);
        let agent = Some(session.agent_id.clone()).filter(|agent| !agent.is_empty());
        let tree = self.trees.entry(session_id.clone()).or_default();
        let mut change = MetaChange::default();
        if is_new {
            change.created_at = Some(session.created_at.unix_ms());
        }
        if tree.name_agent(agent.as_deref()) {
            change.metadata = Some(tree.metadata.clone());
        }
        if session.task_name != tree.task_name {
            change.task_name.clone_from(&session.task_name);
            tree.task_name.clone_from(&session.task_name);
        }
        if !change.is_empty() {
            self.push(session_id, Record::Meta(change));
        }
    }

    /// Notes that a loop continues, before its event is written.
    fn resume(&mut self, effect: &Effect, effects: &[Effect]) {
        let Effect::Resumed { session_id, loop_id } = effect else {
            return;
        };
        let Some(session) = self.recorder.held(session_id) else {
            return;
        };
        let placed = effects.iter().filter(|effect| matches!(effect, Effect::Placed { .. }));
        let tree = self.trees.entry(session_id.clone()).or_default();
        tree.go_on(session, loop_id, placed.count());
        let record = session.get_loop(loop_id);
        let is_pending = record.is_some_and(|record| record.status == LoopStatus::Pending);
        let phase = if is_pending { LoopPhase::Pending } else { LoopPhase::Running };
        let fact = Fact::Resumed { session_id: session_id.clone(), loop_id: loop_id.clone() };
        self.push_loop(session_id, loop_id, Some(phase), json_of(&AgentEvent::from(fact)));
    }

    fn write_event(&mut self, event: &AgentEvent, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Announced { session_id, loop_ids } => {
                    self.write_announcement(session_id, loop_ids, event);
                }
                Effect::Placed { session_id, loop_id } => {
                    self.write_placed(session_id, loop_id, event);
                }
                _ => {}
            }
        }
    }

    /// The announcement of a group goes to its first loop; each loop is pending.
    fn write_announcement(&mut self, session_id: &str, loop_ids: &[String], event: &AgentEvent) {
        let Some(session) = self.recorder.held(session_id) else {
            return;
        };
        self.trees.entry(session_id.to_owned()).or_default().announce(loop_ids);
        let mut carries = Some(event);
        for loop_id in loop_ids {
            let is_pending = session
                .get_loop(loop_id)
                .is_some_and(|record| record.status == LoopStatus::Pending);
            let phase = is_pending.then_some(LoopPhase::Pending);
            match carries.take() {
                Some(event) => self.push_loop(session_id, loop_id, phase, json_of(event)),
                None => {
                    let quiet = serde_json::json!({"type": "bough:announced"});
                    self.push_loop(session_id, loop_id, phase, json_of(&quiet));
                }
            }
        }
    }

    fn write_placed(&mut self, session_id: &str, loop_id: &str, event: &AgentEvent) {
        let Some(session) = self.recorder.held(session_id) else {
            return;
        };
        let at_ms = self.at_ms;
        let tree = self.trees.entry(session_id.to_owned()).or_default();
        if matches!(event, AgentEvent::AgentStart(_)) {
            tree.start(session, loop_id);
        }
        let written = tree.write_event(session, loop_id, event, at_ms);
        for record in written.entries {
            self.push(session_id, record);
        }
        let record = Record::Loop(LoopEvent {
            loop_id: LoopId::from_stored(loop_id),
            phase: phase_of(session, loop_id, event),
            entry_id: written.entry_id,
            event: written.event,
        });
        self.push(session_id, record);
        let tree = self.trees.entry(session_id.to_owned()).or_default();
        if let AgentEvent::ParallelLoopEnd(_) = event {
            let chosen = tree.choose(loop_id);
            if let Some(leaf) = chosen {
                self.push(session_id, Record::Leaf(Some(leaf)));
            }
        } else if matches!(event, AgentEvent::AgentEnd(_)) {
            tree.end(loop_id);
        }
    }

    fn write_fact(&mut self, effect: &Effect) {
        let Some(fact) = self.fact_of(effect) else {
            return;
        };
        let session_id = fact.session_id().to_owned();
        let Some(session) = self.recorder.held(&session_id) else {
            return;
        };
        let last = session.loops.last().map(|record| record.loop_id.as_str());
        let loop_id = fact.loop_id().or(last).unwrap_or_default().to_owned();
        let aborted = matches!(fact, Fact::Aborted { .. });
        let phase = aborted.then_some(LoopPhase::Aborted);
        if aborted && let Some(tree) = self.trees.get_mut(&session_id) {
            tree.break_off(&loop_id);
        }
        self.push_loop(&session_id, &loop_id, phase, json_of(&AgentEvent::from(fact)));
    }

    fn fact_of(&self, effect: &Effect) -> Option<Fact> {
        match effect {
            Effect::Header { session_id } | Effect::SpawnRef { session_id } => {
                let session = self.recorder.held(session_id)?;
                Some(Fact::Session(SessionFact::of(session)))
            }
            Effect::ChildRefs { session_id, loop_id } => Some(Fact::SubAgents {
                session_id: session_id.clone(),
                loop_id: loop_id.clone(),
                child_loop_refs: self
                    .recorder
                    .held(session_id)?
                    .get_loop(loop_id)?
                    .child_loop_refs
                    .clone(),
            }),
            Effect::Compaction { session_id, loop_id } => Some(Fact::Compaction {
                session_id: session_id.clone(),
                loop_id: loop_id.clone(),
                block: self.recorder.held(session_id)?.get_loop(loop_id)?.compaction_block.clone(),
            }),
            Effect::Aborted { session_id, loop_id } => {
                Some(Fact::Aborted { session_id: session_id.clone(), loop_id: loop_id.clone() })
            }
            Effect::Placed { .. } | Effect::Announced { .. } | Effect::Resumed { .. } => None,
        }
    }

    /// Writes statuses: a session is working while a loop of it is open; afterwards it has the
    /// status of its last loop.
    fn write_statuses(&mut self) {
        let ids: Vec<String> = self.batches.iter().map(|batch| batch.session_id.clone()).collect();
        for session_id in ids {
            // The status is set by the recorder that records the session.
            let recorded =
                self.recorder.held(&session_id).filter(|_| !self.recorder.is_linked(&session_id));
            let Some(session) = recorded else {
                continue;
            };
            let status = status_of(session, self.recorder.open_loops(&session_id));
            let tree = self.trees.entry(session_id.clone()).or_default();
            if tree.status != Some(status.status) {
                tree.status = Some(status.status);
                let change = MetaChange { status: Some(status), ..MetaChange::default() };
                self.push(&session_id, Record::Meta(change));
            }
        }
    }
}

/// The session and the tree of entries that a log makes.
fn read_log<'a>(session_id: &str, log: impl IntoIterator<Item = &'a Record>) -> (RecordFold, Tree) {
    let (mut fold, mut tree) = (RecordFold::new(session_id), Tree::default());
    for record in log {
        tree.read(record);
        fold.read(record);
    }
    (fold, tree)
}

fn status_of(session: &RecordedSession, open: usize) -> StatusChange {
    let last = session.loops.last();
    let (status, reason) = match last.map(|record| record.status) {
        _ if open > 0 => (SessionStatus::Working, None),
        Some(LoopStatus::Rejected) => {
            (SessionStatus::Error, last.and_then(|record| record.rejection.clone()))
        }
        Some(LoopStatus::Aborted) => (SessionStatus::Error, Some("broken off".to_owned())),
        _ => (SessionStatus::Done, None),
    };
    StatusChange { status, reason }
}

fn phase_of(session: &RecordedSession, loop_id: &str, event: &AgentEvent) -> Option<LoopPhase> {
    match event {
        AgentEvent::AgentStart(_) => Some(LoopPhase::Running),
        AgentEvent::AgentEnd(end) => {
            let record = session.get_loop(loop_id)?;
            let ends =
                record.events.iter().filter(|event| matches!(event.event, AgentEvent::AgentEnd(_)));
            // A second end changes nothing any more.
            (record.ended_at == Some(end.timestamp) && ends.count() == 1).then_some(
                match record.status {
                    LoopStatus::Rejected => LoopPhase::Rejected,
                    _ => LoopPhase::Completed,
                },
            )
        }
        _ => None,
    }
}

/// The JSON of something that can always be written.
fn json_of<T: serde::Serialize>(value: &T) -> RawJson {
    match RawJson::of(value) {
        Ok(json) => json,
        Err(_) => unreachable!("all keys are text"),
    }
}
