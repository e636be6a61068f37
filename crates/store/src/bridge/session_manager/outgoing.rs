//! From records to the calls that session-manager understands.

use bough_session::{
    Entry, EntryBody, EntryId, FORMAT_SESSION_MANAGER, MetaChange, NewRecord, Record,
};
use serde_json::{Value, json};

use crate::StoreError;
use crate::fs::line::{entry_line, record_line};
use crate::memory_session::MemorySession;

type Call = (&'static str, Value);

/// The calls that bring the main's session to `after`: entries, leaf, metadata, in session-manager's order.
pub(super) fn calls(
    before: &MemorySession,
    after: &MemorySession,
    records: &[NewRecord],
    is_new: bool,
    process: &str,
) -> Result<Vec<Call>, StoreError> {
    let session = &after.state.meta.session_id;
    let mut calls = Vec::new();
    for (place, new) in records.iter().enumerate() {
        if !is_shown(&new.record) {
            calls.push(put_entry(session, carried(new, after, place, process)?));
        }
    }
    let mut shown: Vec<&EntryId> = Vec::new();
    for id in records.iter().filter_map(|new| new.record.changed_entry()) {
        // If a batch changes a message several times, only the final form is written.
        if let Some(entry) = after.entry_ref(id).filter(|_| !shown.contains(&id)) {
            shown.push(id);
            calls.push(put_entry(session, inner(&entry_line(entry))?));
        }
    }
    let leaf = after.state.leaf.as_ref();
    // A main may make every written entry the new leaf, so the leaf is always written after one.
    let is_leaf_in_doubt = records.iter().any(|new| adds_entry(&new.record));
    if leaf != before.state.leaf.as_ref() || (leaf.is_some() && is_leaf_in_doubt) {
        calls.push(match leaf {
            Some(leaf) => ("set-active-leaf", json!({"session_id": session, "entry_id": leaf})),
            None => ("delete-active-leaf", json!({"session_id": session})),
        });
    }
    if is_new || is_leaf_in_doubt || after.state.meta != before.state.meta {
        calls.push(("put-meta", json!({"meta": after.state.meta})));
    }
    Ok(calls)
}

fn put_entry(session: &bough_session::SessionId, entry: Value) -> Call {
    ("put-entry", json!({"session_id": session, "entry": entry}))
}

/// Whether entries, leaf and metadata express a record completely.
fn is_shown(record: &Record) -> bool {
    match record {
        Record::Entry(entry) => is_plain(entry),
        Record::Revision(_) | Record::Leaf(_) => true,
        Record::Meta(MetaChange { archived, task_name, .. }) => {
            archived.is_none() && task_name.is_none()
        }
        _ => false,
    }
}

/// Whether a new entry is written: one of the tree, or one that carries a record.
fn adds_entry(record: &Record) -> bool {
    matches!(record.known(), Record::Entry(_)) || !is_shown(record)
}

fn is_plain(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Foreign(body) => body.format == FORMAT_SESSION_MANAGER,
        _ => true,
    }
}

/// The record as a reserved entry, with an id that no other process uses.
fn carried(
    new: &NewRecord,
    after: &MemorySession,
    place: usize,
    process: &str,
) -> Result<Value, StoreError> {
    let line = record_line(&new.record, new.at_ms, (after.seq(), None));
    let line = line.ok_or_else(|| StoreError::invalid("a record's payload must be JSON"))?;
    let mut entry = inner(&line)?;
    if let Some(fields) = entry.as_object_mut() {
        let id = format!("bough.record.{process}.{}.{place}", after.seq());
        fields.insert("id".to_owned(), Value::String(id));
    }
    Ok(entry)
}

/// The entry inside a line.
fn inner(line: &str) -> Result<Value, StoreError> {
    let mut line: Value =
        serde_json::from_str(line).map_err(|error| StoreError::invalid(error.to_string()))?;
    Ok(line.get_mut("entry").map(Value::take).unwrap_or_default())
}
