//! The start and the end of a loop.

use std::sync::Arc;

use serde_json::Value;

use super::report::{Notice, Report};
use super::turns::{config_of, renamed};
use super::{LoopLocation, SessionKey, SessionRecorder};
use crate::event::{AgentEnd, AgentEvent, AgentStart};
use crate::loops::Slot;
use crate::model::{LoopRecord, LoopStatus};

impl SessionRecorder {
    pub(super) fn agent_start(&mut self, event: Arc<AgentStart>, report: &mut Report) {
        self.recent_starts.add(&event.loop_id);
        let known = self.locations.get(&event.loop_id).copied();
        if known.is_some_and(|location| self.is_repeated(location, &event)) {
            let loop_id = event.loop_id.clone();
            report.note(Notice::RepeatedStart { loop_id });
            return;
        }
        let Some(key) = self.session_for(&event, report) else {
            return;
        };
        if let Some(location) = self.recorded_loop(key, &event) {
            self.repeat_loop(location, &event, report);
            return;
        }
        self.repeats.loops.remove(&event.loop_id);
        self.reopen(key);
        let known = known.filter(|location| location.session == key);
        self.may_start_after_all(known);
        let location = match known.filter(|location| self.is_pending(*location)) {
            Some(location) => self.start_announced(location, &event),
            None => self.start_new(key, known, &event, report),
        };
        self.name_task(key, &event);
        self.trace_placed(location);
        self.link_on_start(location, &event);
        self.note_activity(location, event.timestamp);
        self.append(location, AgentEvent::AgentStart(event));
    }

    fn is_pending(&self, location: LoopLocation) -> bool {
        self.lives
            .get(&location.session)
            .is_some_and(|live| live.record(location.slot).status == LoopStatus::Pending)
    }

    /// Starts a loop that was announced and then aborted before its start, if none of its group was chosen yet.
    fn may_start_after_all(&mut self, known: Option<LoopLocation>) {
        let waits = |location: &LoopLocation| {
            let record = self.lives.get(&location.session).map(|live| live.record(location.slot));
            record.is_some_and(|record| {
                let group = record.parallel_group.as_ref();
                record.status == LoopStatus::Aborted
                    && record.events.is_empty()
                    && group.is_some_and(|group| group.selected_loop_id.is_empty())
            })
        };
        // A log states by itself that a loop continues.
        if let Some(location) = known.filter(|location| !self.keeps_repeats && waits(location)) {
            self.go_on(location);
        }
    }

    /// The loop that a loop continues, by its recorded id: as for every reference to an id, the newest loop that
    /// arrived with it. `None` if the session does not know it, or if it is the loop itself.
    fn parent_in_session(
        &self,
        key: SessionKey,
        this: Option<Slot>,
        event: &AgentStart,
    ) -> Option<&str> {
        let parent_id = event.parent_loop_id.as_ref()?;
        let live = self.lives.get(&key)?;
        let newest = self.locations.get(parent_id).filter(|location| location.session == key);
        let newest = newest.map(|location| location.slot).filter(|slot| Some(*slot) != this);
        let before_this = || live.slots_like(parent_id).filter(|slot| Some(*slot) != this).last();
        let parent = newest.or_else(before_this)?;
        Some(&live.record(parent).loop_id)
    }

    /// A loop that its group announced has started.
    fn start_announced(&mut self, location: LoopLocation, event: &AgentStart) -> LoopLocation {
        let parent = self.parent_in_session(location.session, Some(location.slot), event);
        let parent = parent.map(str::to_owned);
        if let Some(live) = self.lives.get_mut(&location.session) {
            live.session.loops.restart(location.slot, event.timestamp);
            fill_in(live.change(location.slot), event, parent);
            live.session.last_active_at = event.timestamp;
        }
        location
    }

    /// Starts an unknown loop. If its id is taken, it is another loop that arrived with the same id, and is recorded
    /// under a new one.
    fn start_new(
        &mut self,
        key: SessionKey,
        known: Option<LoopLocation>,
        event: &AgentStart,
        report: &mut Report,
    ) -> LoopLocation {
        let parent = self.parent_in_session(key, None, event).map(str::to_owned);
        let Some(live) = self.lives.get_mut(&key) else {
            unreachable!("the session was just looked up");
        };
        let is_taken = known.is_some() || live.session.loops.slot_of(&event.loop_id).is_some();
        let loop_id = if is_taken { live.free_id(&event.loop_id) } else { event.loop_id.clone() };
        let mut record = LoopRecord::new(
            loop_id.as_str(),
            event.session_id.as_str(),
            event.agent_id.as_str(),
            LoopStatus::Running,
            event.timestamp,
        );
        fill_in(&mut record, event, parent);
        let slot = live.session.loops.insert(record);
        live.open += 1;
        live.session.last_active_at = event.timestamp;
        let location = LoopLocation { session: key, slot };
        self.set_location(&event.loop_id, location);
        if is_taken {
            self.set_location(&loop_id, location);
            report
                .note(Notice::LoopRenamed { loop_id: event.loop_id.clone(), recorded_as: loop_id });
        }
        location
    }

    /// Sets the task name of a session from the metadata of its loop.
    fn name_task(&mut self, key: SessionKey, event: &AgentStart) {
        let name = event.metadata.as_ref().and_then(|data| data.get("task_name"));
        if let Some(name) = name.and_then(Value::as_str)
            && let Some(live) = self.lives.get_mut(&key)
        {
            live.session.task_name.get_or_insert_with(|| name.to_owned());
        }
    }

    pub(super) fn agent_end(
        &mut self,
        location: LoopLocation,
        event: &AgentEnd,
        report: &mut Report,
    ) {
        let Some(live) = self.lives.get_mut(&location.session) else {
            return;
        };
        live.end_open_turn(location.slot, event, report);
        let session_id = live.session.session_id.clone();
        let record = live.change(location.slot);
        record.ended_at = Some(event.timestamp);
        record.rejection.clone_from(&event.rejection);
        let recorded_as = &record.loop_id;
        let messages = event.messages.iter().cloned();
        record.messages =
            messages.map(|message| renamed(message, &event.loop_id, recorded_as)).collect();
        record.usage = event.usage.clone();
        if record.config.is_none() {
            let mut messages = event.messages.iter();
            record.config =
                messages.find_map(|message| config_of(message, &event.loop_id, &session_id));
        }
        let status =
            if event.rejection.is_some() { LoopStatus::Rejected } else { LoopStatus::Completed };
        live.close(location.slot, status);
        self.note_activity(location, event.timestamp);
    }
}

fn fill_in(record: &mut LoopRecord, event: &AgentStart, parent: Option<String>) {
    record.agent_id.clone_from(&event.agent_id);
    // A loop is never its own parent.
    let parent = parent.or_else(|| event.parent_loop_id.clone());
    record.parent_loop_id = parent.filter(|parent| *parent != record.loop_id);
    record.continuation_kind.clone_from(&event.continuation_kind);
    record.status = LoopStatus::Running;
    record.config.clone_from(&event.config_snapshot);
    record.metadata.clone_from(&event.metadata);
}
