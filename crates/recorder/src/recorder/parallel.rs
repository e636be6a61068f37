//! Loops that run side by side.

use std::collections::HashSet;

use super::live::{Group, Live};
use super::report::{Notice, Report};
use super::{Effect, LoopLocation, SessionKey, SessionRecorder};
use crate::event::{ParallelLoopEnd, ParallelLoopStart};
use crate::loops::Slot;
use crate::model::{LoopRecord, LoopStatus, ParallelGroupRecord};
use crate::time::Timestamp;

impl SessionRecorder {
    pub(super) fn group_start(&mut self, event: &ParallelLoopStart, report: &mut Report) {
        if self.refused_sessions.contains(&event.session_id) {
            for loop_id in &event.loop_ids {
                self.refused_loops.add(loop_id);
            }
            report.note(Notice::RefusedSession { event_type: "ParallelLoopStart".to_owned() });
            return;
        }
        if event.loop_ids.is_empty() {
            report.note(Notice::NoLoop { event_type: "ParallelLoopStart".to_owned() });
            return;
        }
        let key = self.announced_session(&event.session_id, event.timestamp, report);
        if self.is_repeated_group(key, event, report) {
            return;
        }
        self.repeats.groups.retain(|loop_id, _| !event.loop_ids.contains(loop_id));
        self.reopen(key);
        let slots: Vec<Slot> = event
            .loop_ids
            .iter()
            .map(|loop_id| self.announce_loop(key, loop_id, event.timestamp, report))
            .collect();
        self.form_group(key, event, slots);
    }

    /// The record of a loop that its group announces: the one that started already, or a new one.
    fn announce_loop(
        &mut self,
        key: SessionKey,
        loop_id: &str,
        at: Timestamp,
        report: &mut Report,
    ) -> Slot {
        let known = self.locations.get(loop_id).copied();
        let Some(live) = self.lives.get_mut(&key) else {
            unreachable!("the session was just looked up");
        };
        let known = known.filter(|location| location.session == key).map(|location| location.slot);
        // A loop that started after the time of the announcement arrived before it; an older one had the same id.
        let overtook = known.filter(|slot| {
            let record = live.record(*slot);
            record.parallel_group.is_none() && record.started_at >= at
        });
        if let Some(slot) = overtook {
            return slot;
        }
        let recorded_as = if known.is_some() { live.free_id(loop_id) } else { loop_id.to_owned() };
        let record = LoopRecord::new(
            recorded_as.as_str(),
            live.session.session_id.as_str(),
            live.session.agent_id.as_str(),
            LoopStatus::Pending,
            at,
        );
        let slot = live.session.loops.insert(record);
        live.open += 1;
        let location = LoopLocation { session: key, slot };
        self.set_location(loop_id, location);
        self.resolve_references(&recorded_as, location);
        if recorded_as != loop_id {
            self.set_location(&recorded_as, location);
            report.note(Notice::LoopRenamed { loop_id: loop_id.to_owned(), recorded_as });
        }
        slot
    }

    fn form_group(&mut self, key: SessionKey, event: &ParallelLoopStart, slots: Vec<Slot>) {
        let Some(live) = self.lives.get_mut(&key) else {
            return;
        };
        let ids = slots.iter().map(|slot| live.record(*slot).loop_id.clone());
        let all_loop_ids: Vec<String> = ids.collect();
        for slot in &slots {
            live.change(*slot).parallel_group = Some(ParallelGroupRecord {
                all_loop_ids: all_loop_ids.clone(),
                selected_loop_id: String::new(),
                selected_config_index: 0,
                evaluation_usage: crate::usage::none(),
                is_selected: false,
            });
        }
        if let Some(first) = all_loop_ids.first() {
            live.session.announced.set(first, event.timestamp);
        }
        live.groups.push(Group { announced: event.loop_ids.clone(), slots });
        let session_id = live.session.session_id.clone();
        self.trace(|| Effect::Announced { session_id, loop_ids: all_loop_ids });
    }

    pub(super) fn group_end(&mut self, event: &ParallelLoopEnd, report: &mut Report) {
        let event_type = "ParallelLoopEnd".to_owned();
        if self.refused_sessions.contains(&event.session_id) {
            report.note(Notice::RefusedSession { event_type });
            return;
        }
        if self.is_chosen_again(event) {
            let session_id = event.session_id.clone();
            report.note(Notice::AlreadyRecorded { session_id, event_type });
            return;
        }
        let key = self.by_session.get(&event.session_id).copied();
        let location = self.repeated_loop(&event.selected_loop_id);
        let location = location.or_else(|| self.locations.get(&event.selected_loop_id).copied());
        let Some((key, live)) = key.and_then(|key| Some((key, self.lives.get_mut(&key)?))) else {
            report
                .note(Notice::UnknownSession { session_id: event.session_id.clone(), event_type });
            return;
        };
        let alone =
            location.filter(|location| location.session == key).map(|location| location.slot);
        let member = live.announced_as(&event.selected_loop_id);
        let Some(selected) = member.or(alone) else {
            report
                .note(Notice::UnknownLoop { loop_id: event.selected_loop_id.clone(), event_type });
            return;
        };
        let Some(group) = live.take_group(selected) else {
            self.choose_alone(LoopLocation { session: key, slot: selected }, event, report);
            return;
        };
        live.touch();
        live.choose(&group.slots, selected, event);
        let mut aborted = Vec::new();
        for slot in group.slots {
            if live.record(slot).status == LoopStatus::Pending {
                live.abort(slot);
                aborted.push(live.record(slot).loop_id.clone());
            }
        }
        self.trace_placed(LoopLocation { session: key, slot: selected });
        for loop_id in aborted {
            let session_id = event.session_id.clone();
            self.trace(|| Effect::Aborted { session_id, loop_id });
        }
    }

    /// Handles the choice of a loop that is in no undecided group: either the choice was made before, or the group was
    /// never announced and has this loop only.
    fn choose_alone(
        &mut self,
        location: LoopLocation,
        event: &ParallelLoopEnd,
        report: &mut Report,
    ) {
        let Some(live) = self.lives.get_mut(&location.session) else {
            return;
        };
        let selected_loop_id = event.selected_loop_id.clone();
        if live.record(location.slot).parallel_group.is_some() {
            report.note(Notice::GroupDecided { selected_loop_id });
            return;
        }
        report.note(Notice::GroupNotAnnounced { selected_loop_id });
        live.touch();
        live.choose(&[location.slot], location.slot, event);
        self.trace_placed(location);
    }
}

impl Live {
    /// Restores the undecided groups of a stored session.
    pub(super) fn find_groups(&mut self) {
        let loops = &self.session.loops;
        let mut groups: Vec<Group> = Vec::new();
        let mut seen = HashSet::new();
        for record in loops {
            let undecided = record.parallel_group.as_ref();
            let Some(group) = undecided.filter(|group| group.selected_loop_id.is_empty()) else {
                continue;
            };
            if seen.insert(&group.all_loop_ids) {
                let ids = group.all_loop_ids.iter();
                let slots: Vec<Slot> = ids.filter_map(|id| loops.slot_of(id)).collect();
                let given = slots.iter().map(|slot| self.session.given_id(loops.at(*slot)));
                groups.push(Group { announced: given.map(str::to_owned).collect(), slots });
            }
        }
        self.groups = groups;
    }

    /// The loop that an undecided group announced under an id. A later loop with the same id is not of the group.
    fn announced_as(&self, loop_id: &str) -> Option<Slot> {
        let named = |group: &Group| group.announced.iter().position(|id| id == loop_id);
        self.groups.iter().rev().find_map(|group| group.slots.get(named(group)?).copied())
    }

    /// The undecided group of a loop.
    fn take_group(&mut self, slot: Slot) -> Option<Group> {
        let at = self.groups.iter().position(|group| group.slots.contains(&slot))?;
        Some(self.groups.remove(at))
    }

    fn choose(&mut self, slots: &[Slot], selected: Slot, event: &ParallelLoopEnd) {
        let ids = slots.iter().map(|slot| self.record(*slot).loop_id.clone());
        let all_loop_ids: Vec<String> = ids.collect();
        let selected_loop_id = self.record(selected).loop_id.clone();
        for slot in slots {
            self.change(*slot).parallel_group = Some(ParallelGroupRecord {
                all_loop_ids: all_loop_ids.clone(),
                selected_loop_id: selected_loop_id.clone(),
                selected_config_index: event.selected_config_index,
                evaluation_usage: event.evaluation_usage.clone(),
                is_selected: *slot == selected,
            });
        }
    }

    /// All loops of a group continue the same loop, so one that never started takes the parent that the others name.
    pub(super) fn adopt_parent(&mut self, slot: Slot) {
        let loops = &self.session.loops;
        let group = self.record(slot).parallel_group.as_ref();
        let group = group.map_or(&[][..], |group| &group.all_loop_ids);
        let mut parents: Vec<Option<String>> = group
            .iter()
            .filter_map(|id| loops.get(id))
            .filter(|sibling| !sibling.events.is_empty())
            .map(|sibling| sibling.parent_loop_id.clone())
            .collect();
        parents.dedup();
        if let [Some(parent)] = parents.as_slice()
            && !group.contains(parent)
            && loops.slot_of(parent).is_some()
        {
            let parent = parent.clone();
            self.change(slot).parent_loop_id = Some(parent);
        }
    }
}
