//! Compare-on-save: whether a session holds everything that is already stored of it.

use std::collections::HashMap;

use crate::model::{
    ChildLoopRef, LoopRecord, LoopStatus, ParallelGroupRecord, RecordedSession, SessionFormation,
    SessionScope, SpawnRef,
};

/// What `stored` has and `new` lacks, in words; `None` if nothing. It does not matter what `new` has beyond that.
pub(crate) fn missing_from(new: &RecordedSession, stored: &RecordedSession) -> Option<String> {
    if let Some(what) = missing_from_header(new, stored) {
        return Some(what.to_owned());
    }
    let mut by_id: HashMap<&str, Vec<&LoopRecord>> = HashMap::new();
    for record in &new.loops {
        by_id.entry(&record.loop_id).or_default().push(record);
    }
    for records in by_id.values_mut() {
        records.reverse();
    }
    stored.loops.iter().find_map(|old| {
        // A file may hold an id twice; each of the two needs a record of its own.
        let new = by_id.get_mut(old.loop_id.as_str()).and_then(Vec::pop);
        match new {
            None => Some(format!("a loop {:?}", old.loop_id)),
            Some(new) => {
                missing_from_loop(new, old).map(|what| format!("{what} of loop {:?}", old.loop_id))
            }
        }
    })
}

fn missing_from_header(new: &RecordedSession, old: &RecordedSession) -> Option<&'static str> {
    let is_plain = matches!(old.formation, SessionFormation::FirstLoop { .. });
    let links = |old: &SpawnRef| new.parent_spawn_ref.as_ref().is_some_and(|new| goes_on(new, old));
    let checks = [
        (!old.agent_id.is_empty() && new.agent_id != old.agent_id, "another agent"),
        (!is_plain && new.formation != old.formation, "another formation"),
        (lacks(&new.task_name, &old.task_name), "another task name"),
        (lacks(&new.stated_task_status, &old.stated_task_status), "another task status"),
        (old.scope == SessionScope::Persistent && new.scope != old.scope, "another scope"),
        (!old.parent_spawn_ref.as_ref().is_none_or(links), "another parent"),
    ];
    checks.into_iter().find_map(|(is_missing, what)| is_missing.then_some(what))
}

fn missing_from_loop(new: &LoopRecord, old: &LoopRecord) -> Option<&'static str> {
    // A record that both share is equal.
    if std::ptr::eq(new, old) {
        return None;
    }
    let spawns = |old: &ChildLoopRef| new.child_loop_refs.iter().any(|new| names(new, old));
    let grouped = |old: &ParallelGroupRecord| {
        new.parallel_group.as_ref().is_some_and(|new| is_decision(new, old))
    };
    let was_settled = !matches!(old.status, LoopStatus::Pending | LoopStatus::Aborted);
    let checks = [
        (new.status.is_open() && !old.status.is_open(), "the end"),
        (!old.status.is_open() && was_settled && new.status != old.status, "another status"),
        (old.status != LoopStatus::Pending && new.started_at != old.started_at, "another start"),
        (lacks(&new.ended_at, &old.ended_at), "another end"),
        (lacks(&new.rejection, &old.rejection), "another rejection"),
        (lacks(&new.parent_loop_id, &old.parent_loop_id), "another parent"),
        (lacks(&new.config, &old.config), "other settings"),
        (lacks(&new.metadata, &old.metadata), "other metadata"),
        (old.usage != crate::usage::none() && new.usage != old.usage, "another usage"),
        (!new.events.starts_with(&old.events), "events"),
        (!new.messages.starts_with(&old.messages), "messages"),
        (!new.turns.starts_with(&old.turns), "turns"),
        (!old.children_loop_ids.iter().all(|id| new.children_loop_ids.contains(id)), "children"),
        (!old.child_loop_refs.iter().all(spawns), "sub-agents"),
        (lacks(&new.compaction_block, &old.compaction_block), "a compaction"),
        (!old.parallel_group.as_ref().is_none_or(grouped), "a group"),
    ];
    checks.into_iter().find_map(|(is_missing, what)| is_missing.then_some(what))
}

/// Whether a value was present and is missing now.
fn lacks<T: PartialEq>(new: &Option<T>, old: &Option<T>) -> bool {
    old.is_some() && new != old
}

/// Whether a text equals the earlier one, or the earlier one was empty.
fn says(new: &str, old: &str) -> bool {
    old.is_empty() || new == old
}

fn goes_on(new: &SpawnRef, old: &SpawnRef) -> bool {
    says(&new.parent_session_id, &old.parent_session_id)
        && says(&new.parent_loop_id, &old.parent_loop_id)
        && says(&new.tool_call_id, &old.tool_call_id)
        && says(&new.tool_name, &old.tool_name)
}

fn names(new: &ChildLoopRef, old: &ChildLoopRef) -> bool {
    says(&new.tool_call_id, &old.tool_call_id)
        && says(&new.tool_name, &old.tool_name)
        && says(&new.child_loop_id, &old.child_loop_id)
        && says(&new.child_session_id, &old.child_session_id)
}

fn is_decision(new: &ParallelGroupRecord, old: &ParallelGroupRecord) -> bool {
    new == old || (old.selected_loop_id.is_empty() && new.all_loop_ids == old.all_loop_ids)
}
