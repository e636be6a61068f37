//! The envelopes of changes for a session-manager main, which passes them on to its own subscribers and to other
//! instances.

use bough_session::{EntryBody, MetaChange, NewRecord, Record, SessionState};
use serde_json::{Value, json};

use crate::memory_session::MemorySession;

/// The events of some records.
pub(super) fn envelopes(
    before: &MemorySession,
    after: &MemorySession,
    records: &[NewRecord],
    is_new: bool,
) -> Vec<Value> {
    let state = &after.state;
    if is_new {
        // A fork's copied entries are part of its creation.
        return vec![envelope("session::created", &created(state), state)];
    }
    let mut events = Vec::new();
    for new in records {
        match new.record.known() {
            Record::Entry(entry) => events.extend(added(after, &entry.id, new.at_ms)),
            Record::Revision(revision) => {
                events.extend(updated(after, &revision.entry_id, new.at_ms))
            }
            Record::Meta(change) => {
                events.extend(meta_events(&before.state, state, change, new.at_ms))
            }
            _ => {}
        }
    }
    events
}

/// The event of a deletion.
pub(super) fn deleted(image: &MemorySession, at_ms: i64) -> Value {
    let state = &image.state;
    let payload = json!({"session_id": state.meta.session_id, "timestamp": at_ms});
    envelope("session::deleted", &payload, state)
}

fn envelope(trigger_type: &str, payload: &Value, state: &SessionState) -> Value {
    let mut envelope = json!({"trigger_type": trigger_type, "payload": payload});
    if let (Some(metadata), Some(fields)) = (&state.meta.metadata, envelope.as_object_mut()) {
        fields.insert("session_metadata".to_owned(), json!(metadata));
    }
    envelope
}

fn created(state: &SessionState) -> Value {
    let mut payload = json!({
        "session_id": state.meta.session_id, "title": state.meta.title, "description": state.meta.description,
        "status": state.meta.status, "created_at": state.meta.created_at,
    });
    put(&mut payload, "forked_from", state.meta.forked_from.as_ref().map(|id| json!(id)));
    payload
}

fn added(image: &MemorySession, id: &bough_session::EntryId, at_ms: i64) -> Option<Value> {
    let entry = image.entry_ref(id)?;
    let mut payload = json!({
        "session_id": image.state.meta.session_id, "entry_id": entry.id,
        "parent_id": entry.parent_id, "timestamp": at_ms,
    });
    put(&mut payload, "message", entry.message().map(|message| json!(message)));
    if let EntryBody::Custom(custom) = &entry.body {
        put(&mut payload, "custom", Some(json!(custom)));
    }
    put(&mut payload, "origin", entry.origin.as_ref().map(|origin| json!(origin)));
    Some(envelope("session::message-added", &payload, &image.state))
}

fn updated(image: &MemorySession, id: &bough_session::EntryId, at_ms: i64) -> Option<Value> {
    let entry = image.entry_ref(id)?;
    let mut payload = json!({
        "session_id": image.state.meta.session_id, "entry_id": entry.id, "message": entry.message()?,
        "revision": entry.revision, "timestamp": at_ms,
    });
    put(&mut payload, "origin", entry.origin.as_ref().map(|origin| json!(origin)));
    Some(envelope("session::message-updated", &payload, &image.state))
}

fn meta_events(
    before: &SessionState,
    after: &SessionState,
    change: &MetaChange,
    at_ms: i64,
) -> Vec<Value> {
    let mut events = Vec::new();
    if change.status.is_some() && before.meta.status != after.meta.status {
        let mut payload = json!({
            "session_id": after.meta.session_id, "status": after.meta.status,
            "previous_status": before.meta.status, "timestamp": at_ms,
        });
        put(
            &mut payload,
            "status_reason",
            after.meta.status_reason.as_ref().map(|text| json!(text)),
        );
        events.push(envelope("session::status-changed", &payload, after));
    }
    if change.title.is_some() || change.description.is_some() || change.metadata.is_some() {
        let mut payload = json!({
            "session_id": after.meta.session_id, "title": after.meta.title,
            "description": after.meta.description, "timestamp": at_ms,
        });
        put(&mut payload, "metadata", after.meta.metadata.as_ref().map(|map| json!(map)));
        events.push(envelope("session::meta-updated", &payload, after));
    }
    events
}

fn put(payload: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(fields), Some(value)) = (payload.as_object_mut(), value) {
        fields.insert(name.to_owned(), value);
    }
}
