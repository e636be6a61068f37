//! How many compactions a session's log has. If there are none, a context need not be searched for one.
#![allow(clippy::unwrap_used, reason = "a test may")]

use bough_session::{
    Bookkeeping, Compaction, Entry, EntryBody, EntryId, LoopEvent, LoopId, RawJson, Record,
    SessionId, SessionState,
};

fn compaction() -> Record {
    let id = EntryId::from_stored("c");
    let note = Bookkeeping::Compaction(Compaction {
        summary: "s".into(),
        first_kept_entry_id: id.clone(),
        tokens_before: 0,
        details: None,
        from_hook: None,
    });
    let body = EntryBody::Custom(note.to_payload());
    Record::Entry(Entry::new(id, None, 1, body))
}

fn event(json: &str) -> Record {
    let loop_id = LoopId::from_stored("l");
    let event = RawJson::parse(json).unwrap();
    Record::Loop(LoopEvent { loop_id, phase: None, entry_id: None, event })
}

#[test]
fn entries_and_blocks_are_counted() {
    let mut state = SessionState::new(SessionId::from_stored("s"));
    state.apply(&event(r#"{"type":"TurnStart","loop_id":"l"}"#), 1, 1);
    assert_eq!(state.compactions, Some(0));
    state.apply(&compaction(), 2, 2);
    state.apply(&event(r#"{"type":"bough:compaction","loop_id":"l","block":null}"#), 3, 3);
    assert_eq!(state.compactions, Some(2));
}

#[test]
fn a_snapshot_from_before_they_were_counted_says_that_it_does_not_know() {
    let mut old = serde_json::to_value(SessionState::new(SessionId::from_stored("s"))).unwrap();
    old.as_object_mut().unwrap().remove("compactions");
    let mut state: SessionState = serde_json::from_value(old).unwrap();
    state.apply(&compaction(), 1, 1);
    assert_eq!(state.compactions, None);
}
