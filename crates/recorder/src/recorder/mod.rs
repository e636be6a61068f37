//! The recorder: events in, sessions out.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::event::AgentEvent;
use crate::fact::Fact;
use crate::limits::{RETAINED_LOOPS_MAX, RETAINED_SESSIONS_MAX};
use crate::loops::Slot;
use crate::model::{
    LoadSessionFn, LoopRecord, LoopStatus, RecordedSession, SessionFormation, SessionScope,
    TaskStatus,
};
use crate::time::Timestamp;

mod agent;
mod facts;
mod linked_sessions;
mod live;
mod memory;
mod parallel;
mod repeat;
mod report;
mod sessions;
mod spawn;
mod turns;

pub use report::{Notice, Report};

use live::{Live, Stage};
use memory::RecentIds;
use repeat::Repeats;

/// Called when a session is first seen; `false` refuses it.
pub type BeforeTaskFn = Arc<dyn Fn(&RecordedSession) -> bool + Send + Sync>;
/// Called with the whole session when its task ends.
pub type AfterTaskFn = Arc<dyn Fn(&RecordedSession) + Send + Sync>;

/// How a recorder records.
#[derive(Clone, Default)]
pub struct SessionRecorderConfig {
    /// Whether the pieces of streamed messages are kept among the events.
    pub include_streaming_events: bool,
    /// Called when a session is first seen. `false` refuses it: nothing of it is recorded.
    pub before_task: Option<BeforeTaskFn>,
    /// Called with the whole session when its task ends: at `flush`, when its agent begins another session after
    /// [`Self::inactivity_timeout`], or when the recorder drops the session to stay within its bounds. A checkpoint
    /// ends no task. If the session continues after that, it is another task.
    pub after_task: Option<AfterTaskFn>,
    /// The scope of new sessions.
    pub scope: SessionScope,
    /// How long an agent may be idle before its next session counts as made by a timeout.
    pub inactivity_timeout: Option<Duration>,
    /// Looks up a session that is not in memory, so that it is continued.
    pub load_session: Option<LoadSessionFn>,
}

impl fmt::Debug for SessionRecorderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecorderConfig")
            .field("include_streaming_events", &self.include_streaming_events)
            .field("before_task", &self.before_task.is_some())
            .field("after_task", &self.after_task.is_some())
            .field("scope", &self.scope)
            .field("inactivity_timeout", &self.inactivity_timeout)
            .field("load_session", &self.load_session.is_some())
            .finish()
    }
}

/// Makes sessions of the events of any number of agents.
///
/// All times come from the events, and the same events in the same order give the same sessions.
#[derive(Debug, Default)]
pub struct SessionRecorder {
    config: SessionRecorderConfig,
    /// The sessions, in the order in which they were first seen.
    lives: BTreeMap<SessionKey, Live>,
    next_key: u64,
    by_session: HashMap<String, SessionKey>,
    /// Where the events of a loop go: the newest loop that arrived with that id.
    locations: HashMap<String, LoopLocation>,
    /// The last look-up: events of one loop come in runs.
    last_location: Option<(String, LoopLocation)>,
    /// Loops whose parent is not known yet, by the parent's id.
    waiting: HashMap<String, Vec<LoopLocation>>,
    /// Loops that ran a sub-agent which is not known yet, by the sub-agent's loop.
    spawned: HashMap<String, LoopLocation>,
    /// Why sessions are about to be made, if the caller gave a reason.
    formations: HashMap<String, SessionFormation>,
    /// When each agent was last active, and in which session.
    agents: HashMap<String, (String, Timestamp)>,
    /// Drained sessions that are kept, by the order in which they were drained.
    retained: VecDeque<SessionKey>,
    refused_sessions: RecentIds,
    refused_loops: RecentIds,
    forgotten: RecentIds,
    /// Loops whose start this recorder received.
    recent_starts: RecentIds,
    /// Ended loops and groups that are recorded again.
    repeats: Repeats,
    /// Whether repeated events are recorded again: everything in a log was meant to be kept.
    keeps_repeats: bool,
    /// The effects of events, for a caller that writes them elsewhere.
    trace: Option<Vec<Effect>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SessionKey(u64);

/// A record of a session in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoopLocation {
    session: SessionKey,
    slot: Slot,
}

/// An effect of an event on the sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A session got its header, or its header changed.
    Header { session_id: String },
    /// The event belongs to this loop.
    Placed { session_id: String, loop_id: String },
    /// Loops were announced, under these ids.
    Announced { session_id: String, loop_ids: Vec<String> },
    /// A session's link to the one that spawned it changed.
    SpawnRef { session_id: String },
    /// A loop's links to sub-agents changed.
    ChildRefs { session_id: String, loop_id: String },
    /// A compaction was added to a loop, or removed.
    Compaction { session_id: String, loop_id: String },
    /// A loop was aborted.
    Aborted { session_id: String, loop_id: String },
    /// An aborted loop continues.
    Resumed { session_id: String, loop_id: String },
}

impl SessionRecorder {
    /// A recorder that holds nothing.
    #[must_use]
    pub fn new(config: SessionRecorderConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// A recorder that replays a log and treats nothing as a repetition.
    pub(crate) fn of_log() -> Self {
        let config = SessionRecorderConfig {
            // Everything in the log was meant to be kept.
            include_streaming_events: true,
            ..SessionRecorderConfig::default()
        };
        Self { keeps_repeats: true, ..Self::new(config) }
    }

    /// A recorder that remembers the effects of each event, until [`Self::take_effects`].
    pub(crate) fn traced(config: SessionRecorderConfig) -> Self {
        Self { trace: Some(Vec::new()), ..Self::new(config) }
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records one event, and returns what was unexpected about it.
    pub fn on_event(&mut self, event: AgentEvent) -> Report {
        let mut report = Report::default();
        match event.with_recorded_usage() {
            AgentEvent::MessageUpdate(_) if !self.config.include_streaming_events => {}
            AgentEvent::AgentStart(event) => self.agent_start(event, &mut report),
            AgentEvent::ParallelLoopStart(event) => self.group_start(&event, &mut report),
            AgentEvent::ParallelLoopEnd(event) => self.group_end(&event, &mut report),
            event => match Fact::from_event(&event) {
                Some(fact) => self.on_fact(fact, &mut report),
                None => self.record_event(event, &mut report),
            },
        }
        report
    }

    /// Records an event of a loop that has started.
    fn record_event(&mut self, event: AgentEvent, report: &mut Report) {
        if self.is_repeated_event(&event, report) {
            return;
        }
        let Some(location) = event.loop_id().and_then(|loop_id| self.location_of(loop_id)) else {
            report.note(self.unplaced(&event));
            return;
        };
        let slot = location.slot;
        if self.is_of_earlier_recording(location, &event, report) {
            return;
        }
        let Some(live) = self.lives.get_mut(&location.session) else {
            return;
        };
        live.touch();
        self.trace_placed(location);
        let Some(live) = self.lives.get_mut(&location.session) else {
            return;
        };
        if !live.record(slot).status.is_open() {
            report.note(Notice::LateEvent {
                loop_id: live.record(slot).loop_id.clone(),
                event_type: event.type_name().to_owned(),
            });
            if let AgentEvent::ToolExecutionEnd(tool) = &event {
                self.tool_ended(location, tool);
            }
            self.append(location, event);
            return;
        }
        match &event {
            AgentEvent::TurnStart(turn) => live.begin_turn(slot, turn, report),
            AgentEvent::TurnEnd(turn) => {
                live.end_turn(slot, turn, report);
                let at = turn.timestamp;
                self.note_activity(location, at);
            }
            AgentEvent::MessageEnd(end) => live.add_message(slot, &end.message),
            AgentEvent::TurnRequest(request) => live.set_request(slot, &request.payload),
            AgentEvent::ToolExecutionEnd(tool) => self.tool_ended(location, tool),
            AgentEvent::AgentEnd(end) => self.agent_end(location, end, report),
            _ => {}
        }
        self.append(location, event);
    }

    fn append(&mut self, location: LoopLocation, event: AgentEvent) {
        if let Some(live) = self.lives.get_mut(&location.session) {
            live.append(location.slot, event);
        }
    }

    /// Aborts every open loop and completes every session. Returns how many loops it aborted.
    pub fn flush(&mut self) -> usize {
        let keys = self.keys_of(|live| live.has_task || !live.stage.is_aside());
        let mut aborted = 0;
        for key in keys {
            aborted += self.abort_open_loops(key);
            self.complete(key);
            self.end_task(key);
        }
        aborted
    }

    /// Completes every session without an open loop, and returns how many. Their tasks continue.
    pub fn checkpoint(&mut self) -> usize {
        let keys = self.keys_of(|live| live.stage == Stage::Open && live.open == 0);
        for key in &keys {
            self.complete(*key);
        }
        keys.len()
    }

    /// Returns the complete sessions, in the order in which they were first seen.
    ///
    /// The recorder keeps what it needs to continue a session: such a session is returned again, whole, when it is
    /// complete again.
    pub fn drain_completed(&mut self) -> Vec<RecordedSession> {
        let keys = self.keys_of(|live| live.stage == Stage::Completed);
        let mut drained = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(live) = self.lives.get_mut(&key) else {
                continue;
            };
            live.stage = Stage::Drained;
            drained.push(live.session.hand_out());
            self.retained.push_back(key);
        }
        self.forget_old();
        drained
    }

    /// The sessions that are not drained, in the order in which they were first seen, with their open loops.
    pub fn sessions(&self) -> impl Iterator<Item = &RecordedSession> {
        self.lives.values().filter(|live| !live.stage.is_aside()).map(|live| &live.session)
    }

    /// A session that is not drained.
    #[must_use]
    pub fn get_session(&self, session_id: &str) -> Option<&RecordedSession> {
        self.live_by_id(session_id).filter(|live| !live.stage.is_aside()).map(|live| &live.session)
    }

    /// A loop that is still to end.
    #[must_use]
    pub fn current_loop(&self, loop_id: &str) -> Option<&LoopRecord> {
        let location = self.locations.get(loop_id)?;
        let record = self.lives.get(&location.session)?.record(location.slot);
        record.status.is_open().then_some(record)
    }

    /// How many loops of a session are open.
    #[must_use]
    pub fn open_loops(&self, session_id: &str) -> usize {
        self.live_by_id(session_id).map_or(0, |live| live.open)
    }

    /// Whether events of that loop can be recorded.
    pub(crate) fn knows(&self, loop_id: &str) -> bool {
        self.locations.contains_key(loop_id)
    }

    /// A session whatever its stage.
    pub(crate) fn held(&self, session_id: &str) -> Option<&RecordedSession> {
        self.live_by_id(session_id).map(|live| &live.session)
    }

    /// Sets the name of a session's task. Returns whether the session is in memory.
    pub fn set_task_name(&mut self, session_id: &str, name: impl Into<String>) -> bool {
        self.change_header(session_id, |session| session.task_name = Some(name.into()))
    }

    /// Sets the status of a session's task, in place of the one that its loops imply. Returns
    /// whether the session is in memory.
    pub fn set_task_status(&mut self, session_id: &str, status: Option<TaskStatus>) -> bool {
        self.change_header(session_id, |session| session.stated_task_status = status)
    }

    fn change_header(
        &mut self,
        session_id: &str,
        change: impl FnOnce(&mut RecordedSession),
    ) -> bool {
        let Some(live) = self.by_session.get(session_id).and_then(|key| self.lives.get_mut(key))
        else {
            return false;
        };
        change(&mut live.session);
        live.touch();
        self.trace(|| Effect::Header { session_id: session_id.to_owned() });
        true
    }

    /// States why a session is about to be made, for instance by [`crate::AgentHandle::check_and_rotate`].
    pub fn announce_session(&mut self, session_id: impl Into<String>, formation: SessionFormation) {
        self.formations.insert(session_id.into(), formation);
    }

    fn abort_open_loops(&mut self, key: SessionKey) -> usize {
        let Some(live) = self.lives.get_mut(&key) else {
            return 0;
        };
        let open = live.open_slots();
        for slot in &open {
            live.abort(*slot);
        }
        let session_id = live.session.session_id.clone();
        let aborted = open.iter().map(|slot| Effect::Aborted {
            session_id: session_id.clone(),
            loop_id: live.record(*slot).loop_id.clone(),
        });
        if let Some(trace) = &mut self.trace {
            trace.extend(aborted);
        }
        open.len()
    }

    fn complete(&mut self, key: SessionKey) {
        let Some(live) = self.lives.get_mut(&key) else {
            return;
        };
        if !live.stage.is_aside() {
            live.stage = Stage::Completed;
        }
    }

    /// Calls `after_task` for a session, unless that was done and no event arrived since.
    fn end_task(&mut self, key: SessionKey) {
        let Some(live) = self.lives.get_mut(&key) else {
            return;
        };
        if std::mem::take(&mut live.has_task)
            && let Some(after_task) = &self.config.after_task
        {
            after_task(&live.session);
        }
    }

    fn keys_of(&self, wanted: impl Fn(&Live) -> bool) -> Vec<SessionKey> {
        let wanted = self.lives.iter().filter(|(_, live)| wanted(live));
        wanted.map(|(key, _)| *key).collect()
    }

    fn live_by_id(&self, session_id: &str) -> Option<&Live> {
        self.lives.get(self.by_session.get(session_id)?)
    }

    fn location_of(&mut self, loop_id: &str) -> Option<LoopLocation> {
        if let Some((last, location)) = &self.last_location
            && last == loop_id
        {
            return Some(*location);
        }
        let location = *self.locations.get(loop_id)?;
        match &mut self.last_location {
            Some((last, last_location)) => {
                last.clear();
                last.push_str(loop_id);
                *last_location = location;
            }
            None => self.last_location = Some((loop_id.to_owned(), location)),
        }
        Some(location)
    }

    fn set_location(&mut self, loop_id: &str, location: LoopLocation) {
        self.last_location = None;
        self.locations.insert(loop_id.to_owned(), location);
    }

    fn unplaced(&self, event: &AgentEvent) -> Notice {
        let event_type = event.type_name().to_owned();
        match event.loop_id() {
            None => Notice::NoLoop { event_type },
            Some(loop_id) if self.refused_loops.contains(loop_id) => {
                Notice::RefusedSession { event_type }
            }
            Some(loop_id) => Notice::UnknownLoop { loop_id: loop_id.to_owned(), event_type },
        }
    }

    /// Keeps the number of drained sessions in memory within bounds.
    fn forget_old(&mut self) {
        let lives = &self.lives;
        self.retained.retain(|key| lives.get(key).is_some_and(|live| live.stage == Stage::Drained));
        let mut loops: usize = self
            .retained
            .iter()
            .filter_map(|key| self.lives.get(key))
            .map(|live| live.session.loops.len())
            .sum();
        while self.retained.len() > RETAINED_SESSIONS_MAX
            || (loops > RETAINED_LOOPS_MAX && self.retained.len() > 1)
        {
            let Some(key) = self.retained.pop_front() else {
                break;
            };
            loops -= self.forget(key);
        }
    }

    fn forget(&mut self, key: SessionKey) -> usize {
        self.end_task(key);
        let Some(live) = self.lives.remove(&key) else {
            return 0;
        };
        self.forgotten.add(&live.session.session_id);
        self.forget_names(key, &live.session);
        live.session.loops.len()
    }

    fn trace(&mut self, effect: impl FnOnce() -> Effect) {
        if let Some(trace) = &mut self.trace {
            trace.push(effect());
        }
    }

    fn trace_placed(&mut self, location: LoopLocation) {
        self.trace_at(location, |session_id, loop_id| Effect::Placed { session_id, loop_id });
    }

    /// Notes an effect on a loop, by the ids of its session and its own.
    fn trace_at(&mut self, location: LoopLocation, effect: impl FnOnce(String, String) -> Effect) {
        if let Some(trace) = &mut self.trace
            && let Some(live) = self.lives.get(&location.session)
        {
            let loop_id = live.record(location.slot).loop_id.clone();
            trace.push(effect(live.session.session_id.clone(), loop_id));
        }
    }

    /// Whether a start was recorded before: the same loop, still open, with the very same event.
    fn is_repeated(&self, location: LoopLocation, event: &crate::event::AgentStart) -> bool {
        let Some(live) = self.lives.get(&location.session) else {
            return false;
        };
        let record = live.record(location.slot);
        record.status == LoopStatus::Running
            && record.events.first().is_some_and(
                |first| matches!(&first.event, AgentEvent::AgentStart(start) if **start == *event),
            )
    }
}
