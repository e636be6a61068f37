//! The store protocol: what a bridged instance of the original calls, in the order in which it does.

use crate::common;
use crate::common::{TestService, object, user};
use bough_service::{EventFilter, EventKind, StartAt};
use serde_json::{Value, json};

on_every_store!(
    a_bridge_creates_appends_and_updates,
    a_bridge_forks_with_the_meta_last,
    a_bridge_deletes_in_three_steps,
    what_a_bridge_writes_is_delivered_once,
    envelopes_are_counted_if_they_are_whole,
    what_is_not_there_is_null,
    a_late_bridge_does_not_undo_another,
);

fn meta(id: &str, more: Value) -> Value {
    let mut meta = object(json!({
        "session_id": id, "title": "t", "description": "", "status": "idle", "metadata": {"o": 1},
        "created_at": 10, "updated_at": 10, "message_count": 0,
    }));
    meta.extend(object(more));
    Value::Object(meta)
}

fn entry(id: &str, parent: Value, revision: u64, text: &str) -> Value {
    json!({
        "kind": "message", "id": id, "parent_id": parent, "timestamp": 20, "revision": revision,
        "message": user(text),
    })
}

async fn put_meta(bed: &TestService, meta: Value) {
    let done = bed.ok("session::store::put-meta", json!({"meta": meta})).await;
    assert_eq!(done, json!({"ok": true}));
}

async fn put_entry(bed: &TestService, session: &str, entry: Value) {
    bed.ok("session::store::put-entry", json!({"session_id": session, "entry": entry})).await;
}

async fn set_leaf(bed: &TestService, session: &str, entry: &str) {
    let request = json!({"session_id": session, "entry_id": entry});
    bed.ok("session::store::set-active-leaf", request).await;
}

async fn a_bridge_creates_appends_and_updates(mut bed: TestService) {
    put_meta(&bed, meta("s", json!({}))).await;
    assert_eq!(
        bed.ok("session::store::get-meta", json!({"session_id": "s"})).await,
        meta("s", json!({}))
    );
    put_entry(&bed, "s", entry("e1", Value::Null, 0, "a")).await;
    set_leaf(&bed, "s", "e1").await;
    put_meta(&bed, meta("s", json!({"updated_at": 20, "message_count": 1}))).await;
    put_entry(&bed, "s", entry("e1", Value::Null, 1, "ab")).await;
    put_meta(&bed, meta("s", json!({"updated_at": 30, "message_count": 1, "status": "working"})))
        .await;
    bed.reopen().await;
    let stored =
        bed.ok("session::store::get-entry", json!({"session_id": "s", "entry_id": "e1"})).await;
    assert_eq!(stored, entry("e1", Value::Null, 1, "ab"));
    let leaf = bed.ok("session::store::get-active-leaf", json!({"session_id": "s"})).await;
    assert_eq!(leaf, json!({"entry_id": "e1"}));
    let seen = bed.meta("s").await;
    assert_eq!((&seen["message_count"], &seen["status"]), (&json!(1), &json!("working")));
    assert_eq!(bed.texts("s").await, ["ab"]);
    let metas = bed.ok("session::store::list-metas", json!({})).await;
    assert_eq!(metas["metas"].as_array().unwrap().len(), 1);
    let entries = bed.ok("session::store::list-entries", json!({"session_id": "s"})).await;
    assert_eq!(entries["entries"], json!([entry("e1", Value::Null, 1, "ab")]));
}

async fn a_bridge_forks_with_the_meta_last(bed: TestService) {
    let mut listener = bed.listen().await;
    put_entry(&bed, "f", entry("c1", Value::Null, 0, "a")).await;
    put_entry(&bed, "f", entry("c2", json!("c1"), 0, "b")).await;
    set_leaf(&bed, "f", "c2").await;
    assert_eq!(bed.ok("session::get", json!({"session_id": "f"})).await, Value::Null);
    let staged = bed.ok("session::store::list-entries", json!({"session_id": "f"})).await;
    assert_eq!(staged["entries"].as_array().unwrap().len(), 2);
    let leaf = bed.ok("session::store::get-active-leaf", json!({"session_id": "f"})).await;
    assert_eq!(leaf, json!({"entry_id": "c2"}));
    assert_eq!(listener.kinds().await, Vec::<&str>::new());
    put_meta(&bed, meta("f", json!({"forked_from": "s", "message_count": 2}))).await;
    assert_eq!(bed.texts("f").await, ["a", "b"]);
    assert_eq!(bed.meta("f").await["message_count"], json!(2));
    assert_eq!(listener.kinds().await, ["created"], "copies are not told");
}

async fn a_bridge_deletes_in_three_steps(bed: TestService) {
    let id = bed.create(json!({"metadata": {"o": 1}})).await;
    bed.say(&id, "a").await;
    let mut listener = bed.listen().await;
    let step = async |name: &str| {
        bed.ok(&format!("session::store::{name}"), json!({"session_id": id})).await
    };
    step("delete-entries").await;
    assert_eq!(step("list-entries").await, json!({"entries": []}));
    step("delete-active-leaf").await;
    assert_eq!(step("get-active-leaf").await, json!({"entry_id": null}));
    // Broken off here, the session is still whole.
    assert_eq!(bed.texts(&id).await, ["a"]);
    step("delete-meta").await;
    assert_eq!(step("get-meta").await, Value::Null);
    assert_eq!(listener.kinds().await, ["deleted"]);
    bed.ok("session::undelete", json!({"session_id": id})).await;
    assert_eq!(bed.texts(&id).await, ["a"], "and it comes back whole");
}

async fn what_a_bridge_writes_is_delivered_once(bed: TestService) {
    let mut listener = bed.subscribe(EventFilter::of(EventKind::ALL), StartAt::Now).await;
    put_meta(&bed, meta("s", json!({}))).await;
    put_entry(&bed, "s", entry("e1", Value::Null, 0, "a")).await;
    set_leaf(&bed, "s", "e1").await;
    put_meta(&bed, meta("s", json!({"updated_at": 20, "message_count": 1}))).await;
    put_entry(&bed, "s", entry("e1", Value::Null, 1, "ab")).await;
    put_meta(&bed, meta("s", json!({"title": "u", "status": "done"}))).await;
    let envelope = json!({"trigger_type": "session::created", "payload": {"session_id": "s"}});
    bed.ok("session::store::publish-events", json!({"events": [envelope]})).await;
    let expected =
        ["created", "message-added", "message-updated", "meta-updated", "status-changed"];
    assert_eq!(listener.kinds().await, expected);
}

async fn envelopes_are_counted_if_they_are_whole(bed: TestService) {
    let events = json!([
        {"trigger_type": "session::created", "payload": {"session_id": "s"}},
        {"trigger_type": "session::deleted", "payload": {"session_id": "s"}, "session_metadata": {"o": 1}},
        {"trigger_type": "session::nope", "payload": {"session_id": "s"}},
        {"trigger_type": "session::created", "payload": "words"},
    ]);
    let done = bed.ok("session::store::publish-events", json!({"events": events})).await;
    assert_eq!(done, json!({"published": 2}));
}

async fn what_is_not_there_is_null(bed: TestService) {
    let nothing = json!({"session_id": "no", "entry_id": "no"});
    let read = async |name: &str| bed.ok(&format!("session::store::{name}"), nothing.clone()).await;
    assert_eq!(read("get-meta").await, Value::Null);
    assert_eq!(read("get-entry").await, Value::Null);
    assert_eq!(read("list-entries").await, json!({"entries": []}));
    assert_eq!(read("get-active-leaf").await, json!({"entry_id": null}));
    assert_eq!(read("delete-entries").await, json!({"ok": true}));
    assert_eq!(read("delete-active-leaf").await, json!({"ok": true}));
    assert_eq!(read("delete-meta").await, json!({"ok": true}));
}

async fn a_late_bridge_does_not_undo_another(bed: TestService) {
    put_meta(&bed, meta("s", json!({}))).await;
    put_entry(&bed, "s", entry("e1", Value::Null, 0, "a")).await;
    put_entry(&bed, "s", entry("e1", Value::Null, 3, "skipped ahead")).await;
    assert_eq!(bed.entry("s", "e1").await["revision"], json!(3));
    // Another that had only seen revision 0: its content is the newest, under a revision of its own.
    put_entry(&bed, "s", entry("e1", Value::Null, 1, "late")).await;
    let now = bed.entry("s", "e1").await;
    assert_eq!((&now["revision"], common::text(&now["message"])), (&json!(4), "late".to_owned()));
    put_entry(&bed, "s", entry("e1", Value::Null, 4, "late")).await;
    assert_eq!(bed.entry("s", "e1").await["revision"], json!(4));
}
