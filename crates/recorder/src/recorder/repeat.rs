//! Streams that are recorded a second time, because a caller records the same file again.
//!
//! A loop that starts again with the very same event (its time included) is the same loop, and its repeated events are
//! skipped. If it had been aborted, it continues where it was aborted. Other events of an ended loop count as events
//! after its end, once the stream has its start.

use std::collections::{HashMap, HashSet};

use super::live::{Group, Live};
use super::report::{Notice, Report};
use super::{Effect, LoopLocation, SessionKey, SessionRecorder};
use crate::event::{AgentEvent, AgentStart, ParallelLoopEnd, ParallelLoopStart};
use crate::loops::Slot;
use crate::model::{LoopEvent, LoopRecord, LoopStatus};

/// What distinguishes a group from another one with the same ids.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// It was announced at the same time. This holds even if a clock was put back in between.
    Announcement,
    /// Its loops started since. Nothing else is known of a group from a file.
    Starts,
}

/// Ended loops and groups that are recorded again, by the ids that they arrived with. They do not change where other
/// events of these ids go.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Loops.
    pub(super) loops: HashMap<String, RepeatedLoop>,
    /// Loops of groups.
    pub(super) groups: HashMap<String, LoopLocation>,
}

/// A loop that is recorded again.
#[derive(Debug)]
pub(super) struct RepeatedLoop {
    location: LoopLocation,
    /// How many of its events were repeated, and how many are stored.
    count: usize,
    stored: usize,
    /// Which of the events after its end were repeated out of order, and the first of them that was not.
    late: HashSet<usize>,
    next_late: usize,
}

impl RepeatedLoop {
    fn take_late(&mut self, at: usize) {
        self.late.insert(at);
        while self.late.contains(&self.next_late) {
            self.next_late += 1;
        }
    }
}

impl Repeats {
    pub(super) fn forget(&mut self, key: SessionKey) {
        self.loops.retain(|_, repeated| repeated.location.session != key);
        self.groups.retain(|_, location| location.session != key);
    }
}

impl SessionRecorder {
    /// The ended loop of a session that began with this very event.
    pub(super) fn recorded_loop(
        &self,
        key: SessionKey,
        start: &AgentStart,
    ) -> Option<LoopLocation> {
        let live = self.lives.get(&key).filter(|_| !self.keeps_repeats)?;
        let began_with = |slot: &Slot| began_with(live.record(*slot), start);
        let found: Vec<Slot> = live.slots_like(&start.loop_id).filter(began_with).collect();
        let has_ended = |slot: &&Slot| live.record(**slot).status != LoopStatus::Aborted;
        let slot = *found.iter().find(has_ended).or(found.last())?;
        Some(LoopLocation { session: key, slot })
    }

    pub(super) fn repeat_loop(
        &mut self,
        location: LoopLocation,
        start: &AgentStart,
        report: &mut Report,
    ) {
        let record = self.lives.get(&location.session).map(|live| live.record(location.slot));
        let stored = record.map_or(0, |record| record.events.len());
        let is_end = |event: &LoopEvent| matches!(event.event, AgentEvent::AgentEnd(_));
        let end = record.and_then(|record| record.events.iter().position(is_end));
        let next_late = end.map_or(stored, |end| end + 1);
        let repeated = RepeatedLoop { location, count: 1, stored, late: HashSet::new(), next_late };
        self.repeats.loops.insert(start.loop_id.clone(), repeated);
        let session_id = start.session_id.clone();
        report.note(Notice::AlreadyRecorded { session_id, event_type: "AgentStart".to_owned() });
    }

    /// Whether an event is the next one of a loop that is recorded again. The first new event of an aborted loop makes
    /// it continue.
    pub(super) fn is_repeated_event(&mut self, event: &AgentEvent, report: &mut Report) -> bool {
        if self.repeats.loops.is_empty() {
            return false;
        }
        let repeated = event.loop_id().and_then(|loop_id| self.repeats.loops.get_mut(loop_id));
        let Some(repeated) = repeated else {
            return false;
        };
        let location = repeated.location;
        let Some(live) = self.lives.get(&location.session) else {
            return false;
        };
        // A recorder that keeps no streamed pieces skips those that were kept before.
        let keeps_pieces = self.config.include_streaming_events;
        let is_kept = |stored: &LoopEvent| {
            keeps_pieces || !matches!(stored.event, AgentEvent::MessageUpdate(_))
        };
        let events = &live.record(location.slot).events;
        let from = |from: usize| {
            let rest = events.iter().enumerate().take(repeated.stored).skip(from);
            rest.filter(|(at, stored)| is_kept(stored) && !repeated.late.contains(at))
        };
        let Some((at, expected)) = from(repeated.count).next() else {
            self.go_on(location);
            return false;
        };
        if expected.event == *event {
            repeated.count = at + 1;
        } else {
            // Events that an earlier repetition added are after the loop's end.
            let added = from(repeated.next_late).find(|(_, added)| added.event == *event);
            let Some((at, _)) = added else {
                return false;
            };
            repeated.take_late(at);
        }
        report.note(Notice::AlreadyRecorded {
            session_id: live.session.session_id.clone(),
            event_type: event.type_name().to_owned(),
        });
        true
    }

    /// Whether an event of a loop that ended in an earlier recording is not to be recorded: because it was, or because the
    /// stream has not repeated the loop's start. A stream with events before the start of their loop loses them, however
    /// often it is recorded.
    pub(super) fn is_of_earlier_recording(
        &mut self,
        location: LoopLocation,
        event: &AgentEvent,
        report: &mut Report,
    ) -> bool {
        let given_id = event.loop_id().unwrap_or_default();
        let Some(live) = self.lives.get_mut(&location.session) else {
            return false;
        };
        let event_type = event.type_name().to_owned();
        // For a loop that is recorded again from its start, `repeats` knows the late events.
        if !self.repeats.loops.contains_key(given_id) && live.was_late_before(location.slot, event)
        {
            let session_id = live.session.session_id.clone();
            report.note(Notice::AlreadyRecorded { session_id, event_type });
            return true;
        }
        if !live.ended_before(location.slot) || self.recent_starts.contains(given_id) {
            return false;
        }
        let loop_id = live.record(location.slot).loop_id.clone();
        report.note(Notice::StartNotHeard { loop_id, event_type });
        true
    }

    /// Continues an aborted loop as if it had not been aborted.
    pub(super) fn go_on(&mut self, location: LoopLocation) {
        let broken_off = self.lives.get_mut(&location.session);
        let broken_off =
            broken_off.filter(|live| live.record(location.slot).status == LoopStatus::Aborted);
        let Some(live) = broken_off else {
            return;
        };
        live.go_on(location.slot);
        let record = live.record(location.slot);
        let (session_id, loop_id) = (live.session.session_id.clone(), record.loop_id.clone());
        let given_id = live.session.given_id(record).to_owned();
        self.repeats.loops.remove(&given_id);
        self.set_location(&given_id, location);
        self.reopen(location.session);
        self.trace(|| Effect::Resumed { session_id, loop_id });
    }

    /// Whether a group was announced before by this very event.
    pub(super) fn is_repeated_group(
        &mut self,
        key: SessionKey,
        event: &ParallelLoopStart,
        report: &mut Report,
    ) -> bool {
        for sign in [Sign::Announcement, Sign::Starts] {
            let live = self.lives.get(&key);
            if let Some(slots) = live.and_then(|live| live.open_group(event, sign)) {
                self.repeat_open_group(key, &slots, event, report);
                return true;
            }
            if let Some(slots) = self.recorded_group(key, event, sign) {
                self.repeat_group(key, &slots, event, report);
                return true;
            }
        }
        false
    }

    /// Handles a repeated announcement of an undecided group: if all of its loops were aborted or have ended, those
    /// that never started may start now.
    fn repeat_open_group(
        &mut self,
        key: SessionKey,
        slots: &[Slot],
        event: &ParallelLoopStart,
        report: &mut Report,
    ) {
        let Some(live) = self.lives.get(&key) else {
            return;
        };
        if self.keeps_repeats || slots.iter().any(|slot| live.record(*slot).status.is_open()) {
            report.note(Notice::RepeatedStart { loop_id: event.loop_ids.join(", ") });
            return;
        }
        self.repeats.groups.retain(|loop_id, _| !event.loop_ids.contains(loop_id));
        let never_started = |slot: &&Slot| live.record(**slot).events.is_empty();
        let waiting: Vec<Slot> = slots.iter().filter(never_started).copied().collect();
        for slot in waiting {
            self.go_on(LoopLocation { session: key, slot });
        }
        report.note(Notice::AlreadyRecorded {
            session_id: event.session_id.clone(),
            event_type: "ParallelLoopStart".to_owned(),
        });
    }

    /// The loops of the first group that was announced by this very event, if all of them have ended.
    fn recorded_group(
        &self,
        key: SessionKey,
        event: &ParallelLoopStart,
        sign: Sign,
    ) -> Option<Vec<Slot>> {
        let live = self.lives.get(&key).filter(|_| !self.keeps_repeats)?;
        live.slots_like(event.loop_ids.first()?).find_map(|first| {
            let group = live.record(first).parallel_group.as_ref()?;
            let ids = group.all_loop_ids.iter();
            let slots: Vec<Slot> = ids.filter_map(|id| live.session.loops.slot_of(id)).collect();
            let members = || slots.iter().map(|slot| live.record(*slot));
            let given = members().map(|record| live.session.given_id(record));
            let is_it = given.eq(event.loop_ids.iter().map(String::as_str))
                && members().all(|record| !record.status.is_open())
                && live.is_announced_by(event, &slots, sign);
            is_it.then_some(slots)
        })
    }

    fn repeat_group(
        &mut self,
        key: SessionKey,
        slots: &[Slot],
        event: &ParallelLoopStart,
        report: &mut Report,
    ) {
        for (loop_id, slot) in event.loop_ids.iter().zip(slots) {
            self.repeats.groups.insert(loop_id.clone(), LoopLocation { session: key, slot: *slot });
        }
        report.note(Notice::AlreadyRecorded {
            session_id: event.session_id.clone(),
            event_type: "ParallelLoopStart".to_owned(),
        });
    }

    /// The loop that is being recorded again under an id, whatever arrived with the same id after it.
    pub(super) fn repeated_loop(&self, loop_id: &str) -> Option<LoopLocation> {
        self.repeats.loops.get(loop_id).map(|repeated| repeated.location)
    }

    /// Whether a choice from a group that is recorded again is the earlier one.
    pub(super) fn is_chosen_again(&self, event: &ParallelLoopEnd) -> bool {
        let location = self.repeats.groups.get(&event.selected_loop_id).copied();
        let location = location.or_else(|| self.repeated_loop(&event.selected_loop_id));
        let live =
            location.and_then(|location| Some((self.lives.get(&location.session)?, location.slot)));
        let group = live.and_then(|(live, slot)| live.record(slot).parallel_group.as_ref());
        group.is_some_and(|group| {
            group.is_selected
                && group.selected_config_index == event.selected_config_index
                && group.evaluation_usage == event.evaluation_usage
        })
    }
}

impl Live {
    /// The loops of an undecided group that was announced by this very event.
    fn open_group(&self, event: &ParallelLoopStart, sign: Sign) -> Option<Vec<Slot>> {
        let is_it = |group: &&Group| {
            group.announced == event.loop_ids && self.is_announced_by(event, &group.slots, sign)
        };
        self.groups.iter().find(is_it).map(|group| group.slots.clone())
    }

    fn is_announced_by(&self, event: &ParallelLoopStart, slots: &[Slot], sign: Sign) -> bool {
        let announced = || {
            let first = self.record(*slots.first()?);
            self.session.announced.of(&first.loop_id)
        };
        match sign {
            Sign::Announcement => announced() == Some(event.timestamp),
            Sign::Starts => {
                slots.iter().all(|slot| self.record(*slot).started_at >= event.timestamp)
            }
        }
    }
}

fn began_with(record: &LoopRecord, start: &AgentStart) -> bool {
    let first = record.events.first().map(|first| &first.event);
    !record.status.is_open()
        && record.started_at == start.timestamp
        && matches!(first, Some(AgentEvent::AgentStart(first)) if **first == *start)
}
