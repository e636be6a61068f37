//! Compare-on-save: whether a session holds everything that is already stored of it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

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
    let has_started = old.loops.iter().any(|record| record.status != LoopStatus::Pending);
    let is_plain = matches!(old.formation, SessionFormation::FirstLoop { .. }) && !has_started;
    // A recorder notes the start of each loop.
    let was_active = |at| new.loops.iter().any(|record| record.started_at == at);
    let is_active = new.last_active_at == old.last_active_at || was_active(old.last_active_at);
    let links = |old: &SpawnRef| new.parent_spawn_ref.as_ref().is_some_and(|new| goes_on(new, old));
    let checks = [
        (!old.agent_id.is_empty() && new.agent_id != old.agent_id, "another agent"),
        (!is_plain && new.formation != old.formation, "another formation"),
        (has_started && new.created_at != old.created_at, "another time of creation"),
        (has_started && !is_active, "another time of activity"),
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
    let has_started = old.status != LoopStatus::Pending;
    // A loop that a recorder aborted has no end: its events may go on.
    let has_ended = !old.status.is_open() && old.ended_at.is_some();
    let checks = [
        (new.status.is_open() && !old.status.is_open(), "the end"),
        (has_ended && new.status != old.status, "another status"),
        (new.session_id != old.session_id, "another session"),
        (has_started && new.agent_id != old.agent_id, "another agent"),
        (has_started && new.continuation_kind != old.continuation_kind, "another kind"),
        (has_started && new.started_at != old.started_at, "another start"),
        (lacks(&new.ended_at, &old.ended_at), "another end"),
        (lacks(&new.rejection, &old.rejection), "another rejection"),
        (lacks(&new.parent_loop_id, &old.parent_loop_id), "another parent"),
        (lacks(&new.config, &old.config), "other settings"),
        (lacks(&new.metadata, &old.metadata), "other metadata"),
        (old.usage != crate::usage::none() && new.usage != old.usage, "another usage"),
        (!begins_with(&new.events, &old.events, false), "events"),
        (!begins_with(&new.messages, &old.messages, has_ended), "messages"),
        (!begins_with(&new.turns, &old.turns, has_ended), "turns"),
        (!old.children_loop_ids.iter().all(|id| new.children_loop_ids.contains(id)), "children"),
        (!old.child_loop_refs.iter().all(spawns), "sub-agents"),
        (lacks(&new.compaction_block, &old.compaction_block), "a compaction"),
        (!old.parallel_group.as_ref().is_none_or(grouped), "a group"),
    ];
    checks.into_iter().find_map(|(is_missing, what)| is_missing.then_some(what))
}

/// Whether a list goes on from an older one; nothing comes after one that `is_whole`. The texts that messages came as count:
/// they hold members that this version does not know.
fn begins_with<T: PartialEq + Serialize>(new: &[T], old: &[T], is_whole: bool) -> bool {
    let holds = |(new, old): (&T, &T)| match (serde_json::to_value(new), serde_json::to_value(old))
    {
        (Ok(new), Ok(old)) => has_members_of(&new, &old, &|new, old| new == old),
        _ => true,
    };
    (!is_whole || new.len() == old.len()) && new.starts_with(old) && new.iter().zip(old).all(holds)
}

/// What a file has and the session that was read from it lacks: members that this version does not know, which somebody
/// may have added.
pub(crate) fn unread_in(file: &[u8], read: &RecordedSession) -> Option<String> {
    let mut file: Value = serde_json::from_slice(file).ok()?;
    let mut read = serde_json::to_value(read).ok()?;
    let (file_loops, read_loops) = (take_loops(&mut file), take_loops(&mut read));
    let is_read = |new: &Value, old: &Value| has_members_of(new, old, &|_, _| true);
    let unknown = "members that this version does not know";
    if !is_read(&read, &file) {
        return Some(unknown.to_owned());
    }
    let mut by_id: HashMap<&str, Vec<&Value>> = HashMap::new();
    for record in &read_loops {
        by_id.entry(id_of(record)).or_default().push(record);
    }
    let unread = file_loops.iter().find(|record| {
        let read = by_id.get(id_of(record)).into_iter().flatten();
        !read.copied().any(|read| is_read(read, record))
    });
    unread.map(|record| format!("{unknown} in loop {:?}", id_of(record)))
}

fn take_loops(session: &mut Value) -> Vec<Value> {
    match session.get_mut("loops").map(Value::take) {
        Some(Value::Array(loops)) => loops,
        _ => Vec::new(),
    }
}

fn id_of(record: &Value) -> &str {
    record.get("loop_id").and_then(Value::as_str).unwrap_or_default()
}

/// Whether JSON has all members of an older one, and lists of the same length. `is_equal` compares what has no members.
fn has_members_of(new: &Value, old: &Value, is_equal: &dyn Fn(&Value, &Value) -> bool) -> bool {
    match (new, old) {
        (_, Value::Null) => true,
        (Value::Object(new), Value::Object(old)) => old.iter().all(|(name, old)| {
            let new = new.get(name).unwrap_or(&Value::Null);
            has_members_of(new, old, is_equal)
        }),
        (Value::Array(new), Value::Array(old)) => {
            let mut both = new.iter().zip(old);
            new.len() == old.len() && both.all(|(new, old)| has_members_of(new, old, is_equal))
        }
        (Value::Null, _) => false,
        _ => is_equal(new, old),
    }
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
