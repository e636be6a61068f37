//! Compare-on-save: whether a session holds everything that is stored of it.

use std::collections::HashMap;

use crate::model::{LoopRecord, Session};

/// What `stored` has and `new` lacks, in words; `None` if nothing.
pub(crate) fn missing_from(new: &Session, stored: &Session) -> Option<String> {
    let mut by_id: HashMap<&str, Vec<&LoopRecord>> = HashMap::new();
    for record in &new.loops {
        by_id.entry(&record.loop_id).or_default().push(record);
    }
    for records in by_id.values_mut() {
        records.reverse();
    }
    stored.loops.iter().find_map(|old| {
        // A file may hold an id twice; each of the two needs one of its own.
        let new = by_id.get_mut(old.loop_id.as_str()).and_then(Vec::pop);
        match new {
            None => Some(format!("a loop {:?}", old.loop_id)),
            Some(new) => {
                missing_from_loop(new, old).map(|what| format!("{what} of loop {:?}", old.loop_id))
            }
        }
    })
}

fn missing_from_loop(new: &LoopRecord, old: &LoopRecord) -> Option<&'static str> {
    let checks = [
        (new.status.is_open() && !old.status.is_open(), "the end"),
        (new.events.len() < old.events.len(), "events"),
        (new.messages.len() < old.messages.len(), "messages"),
        (new.turns.len() < old.turns.len(), "turns"),
        (new.children_loop_ids.len() < old.children_loop_ids.len(), "children"),
        (new.child_loop_refs.len() < old.child_loop_refs.len(), "sub-agents"),
        (new.compaction_block.is_none() && old.compaction_block.is_some(), "a compaction"),
        (new.parallel_group.is_none() && old.parallel_group.is_some(), "a group"),
    ];
    checks.into_iter().find_map(|(is_missing, what)| is_missing.then_some(what))
}
