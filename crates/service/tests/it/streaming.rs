//! Messages that stream: how they begin, what they take, how they end.

use std::sync::Arc;

use crate::common::{TestService, assistant, user};
use bough_service::{ChangeKind, EventFilter, EventKind, FeedItem, StartAt};
use bough_session::{EntryId, SessionId};
use bough_store::shared_state::{MemorySharedState, SharedState};
use serde_json::{Value, json};

on_every_store!(
    a_stream_ends_once,
    a_stream_says_why_it_stopped_once_it_has,
    only_a_streaming_call_opens_a_stream,
    arguments_of_a_call_arrive_in_parts,
    a_delta_says_what_it_adds,
    streams_of_a_session_are_bounded,
    a_stream_that_nobody_finishes_is_aborted,
);

async fn begin(bed: &TestService, session: &str, entry: &str) {
    let request = json!({"entry_id": entry, "message": assistant(""), "stream": true});
    bed.append(session, request).await;
}

async fn delta(bed: &TestService, session: &str, entry: &str, more: Value) -> Value {
    let mut request = crate::common::object(more);
    request.insert("session_id".to_owned(), json!(session));
    request.insert("entry_id".to_owned(), json!(entry));
    bed.ok("session::append-delta", Value::Object(request)).await
}

fn named(session: &str, entry: &str) -> Value {
    json!({"session_id": session, "entry_id": entry})
}

async fn a_stream_ends_once(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    begin(&bed, &id, "a").await;
    delta(&bed, &id, "a", json!({"block": 0, "text": "hello"})).await;
    let finish = json!({"session_id": id, "entry_id": "a", "stop_reason": "length",
        "usage": {"output": 7, "cost_usd": 0.5}, "model": "m-2"});
    let usage = bed.ok("session::usage", json!({"session_id": id})).await;
    let done = bed.ok("session::finish-message", finish.clone()).await;
    assert_eq!(done, json!({"revision": 2, "stop_reason": "length"}));
    assert_ne!(bed.ok("session::usage", json!({"session_id": id})).await, usage);
    let message = bed.entry(&id, "a").await["message"].clone();
    assert_eq!(message["stop_reason"], "length");
    assert_eq!((&message["model"], &message["provider"]), (&json!("m-2"), &json!("p")));
    assert_eq!(message["usage"], finish["usage"]);
    if bed.service.store().capabilities().keeps_change_cursor {
        bed.reopen().await;
    }
    assert_eq!(bed.err("session::finish-message", finish).await.0, "session/not_streaming");
    let more = json!({"session_id": id, "entry_id": "a", "block": 0, "text": "x"});
    let refused = bed.call("session::append-delta", more).await.unwrap_err();
    assert_eq!(refused.code(), "session/not_streaming");
    assert_eq!(refused.data(), Some(json!({"revision": 2})));
    assert_eq!(refused.http_status(), 409);
    bed.update(&id, "a", "an edit is no delta").await;
}

/// HTTP reads leave the reason out until there is one; the bus has the member always, as session-manager has.
async fn a_stream_says_why_it_stopped_once_it_has(bed: TestService) {
    let id = bed.create(json!({})).await;
    begin(&bed, &id, "a").await;
    delta(&bed, &id, "a", json!({"block": 0, "text": "hel"})).await;
    let reads = [
        ("session::entry", named(&id, "a"), "/entry/message"),
        ("session::path", json!({"session_id": id}), "/messages/0/message"),
        ("session::path-tail", json!({"session_id": id}), "/messages/0/message"),
        ("session::entries", json!({"session_id": id, "ids": ["a"]}), "/entries/0/message"),
        ("session::context", json!({"session_id": id}), "/messages/0/message"),
    ];
    for (function, request, place) in &reads {
        let answer = bed.ok(function, request.clone()).await;
        let message = answer.pointer(place).unwrap();
        assert_eq!(message.get("stop_reason"), None, "{function}: {answer}");
    }
    let mut anthropic = named(&id, "a");
    anthropic["format"] = json!("anthropic");
    let shown = bed.ok("session::entry", anthropic).await["entry"]["message"].clone();
    assert_eq!(shown.get("stop_reason"), Some(&Value::Null), "{shown}");
    let on_bus = bed.ok("session::messages", json!({"session_id": id})).await;
    assert_eq!(on_bus["messages"][0]["message"]["stop_reason"], "end");
    let shown = message_in_snapshot(&bed, &id).await;
    assert_eq!((&shown["revision"], shown["message"].get("stop_reason")), (&json!(1), None));
    bed.ok("session::finish-message", named(&id, "a")).await;
    assert_eq!(message_in_snapshot(&bed, &id).await["message"]["stop_reason"], "end");
    for (function, request, place) in &reads {
        let answer = bed.ok(function, request.clone()).await;
        assert_eq!(answer.pointer(place).unwrap()["stop_reason"], "end", "{function}");
    }
}

/// The one message of a session, as the snapshot at the start of a subscription shows it.
async fn message_in_snapshot(bed: &TestService, session: &str) -> Value {
    let filter = EventFilter::everything().in_session(SessionId::from_stored(session));
    match bed.subscribe(filter, StartAt::Snapshot).await.item().await {
        FeedItem::Session(snapshot) => json!(snapshot.messages[0]),
        other => panic!("{other:?}"),
    }
}

async fn only_a_streaming_call_opens_a_stream(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.append(&id, json!({"entry_id": "a", "message": assistant("x")})).await;
    bed.update(&id, "a", "y").await;
    delta(&bed, &id, "a", json!({"block": 0, "text": "z"})).await;
    let refused = bed.err("session::finish-message", named(&id, "a")).await;
    assert_eq!(refused.0, "session/not_streaming");
    let missing = bed.err("session::finish-message", named(&id, "none")).await;
    assert_eq!(missing.0, "session/entry_not_found");
    let of_user = json!({"session_id": id, "message": user("x"), "stream": true});
    assert_eq!(bed.err("session::append", of_user).await.0, "session/invalid_request");
}

async fn arguments_of_a_call_arrive_in_parts(bed: TestService) {
    let id = bed.create(json!({})).await;
    begin(&bed, &id, "a").await;
    let begins = json!({"block": 1, "text": "{\"x\":", "kind": "tool_arguments"});
    let mut unnamed = crate::common::object(begins.clone());
    unnamed.extend(crate::common::object(named(&id, "a")));
    let refused = bed.err("session::append-delta", Value::Object(unnamed)).await;
    assert_eq!(refused.0, "session/invalid_request");
    let mut begins = crate::common::object(begins);
    begins.insert("function_call_id".to_owned(), json!("c"));
    begins.insert("function_id".to_owned(), json!("f"));
    delta(&bed, &id, "a", Value::Object(begins)).await;
    delta(&bed, &id, "a", json!({"block": 1, "text": " [1]}"})).await;
    let block = |entry: &Value| entry["message"]["content"][1].clone();
    assert_eq!(block(&bed.entry(&id, "a").await)["arguments"], "{\"x\": [1]}");
    bed.ok("session::finish-message", named(&id, "a")).await;
    let done = block(&bed.entry(&id, "a").await);
    assert_eq!(done["arguments"], json!({"x": [1]}));
    assert_eq!((&done["id"], &done["function_id"]), (&json!("c"), &json!("f")));
}

async fn a_delta_says_what_it_adds(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mut listener = bed.listen().await;
    begin(&bed, &id, "a").await;
    delta(&bed, &id, "a", json!({"block": 0, "text": "one"})).await;
    delta(&bed, &id, "a", json!({"block": 1, "text": "two", "kind": "thinking"})).await;
    bed.update(&id, "a", "other").await;
    bed.ok("session::finish-message", named(&id, "a")).await;
    let told = listener.deliveries().await;
    let kinds: Vec<EventKind> = told.iter().map(|told| told.event.kind()).collect();
    let updated = EventKind::MessageUpdated;
    assert_eq!(kinds, [EventKind::MessageAdded, updated, updated, updated, updated]);
    let changes: Vec<_> = told.iter().map(|told| told.event.change.clone().unwrap()).collect();
    assert!(changes.iter().all(|change| change.is_streaming));
    let texts: Vec<_> = changes
        .iter()
        .map(|change| match &change.kind {
            ChangeKind::Added => "added".to_owned(),
            ChangeKind::Text(more) => format!("{} {} {}", more.block, more.kind.name(), more.text),
            ChangeKind::Replaced => "replaced".to_owned(),
            ChangeKind::Finished { .. } => "finished".to_owned(),
        })
        .collect();
    assert_eq!(texts, ["added", "0 text one", "1 thinking two", "replaced", "finished"]);
    let whole = told[2].event.value();
    assert_eq!(whole["message"]["content"][0]["text"], "one", "the bus gets whole messages");
}

async fn streams_of_a_session_are_bounded(bed: TestService) {
    let id = bed.create(json!({})).await;
    for number in 0..bough_session::limits::STATE_OPEN_STREAMS_MAX {
        begin(&bed, &id, &number.to_string()).await;
    }
    let one_more = json!({"session_id": id, "message": assistant(""), "stream": true});
    assert_eq!(bed.err("session::append", one_more.clone()).await.0, "session/too_large");
    bed.ok("session::finish-message", named(&id, "7")).await;
    bed.ok("session::append", one_more).await;
}

async fn a_stream_that_nobody_finishes_is_aborted(mut bed: TestService) {
    const REST_MS: i64 = 300_000;
    let noted: Arc<dyn SharedState> = Arc::new(MemorySharedState::new());
    assert!(bed.service.set_open_streams(noted.clone()));
    let id = bed.create(json!({})).await;
    bed.append(&id, json!({"entry_id": "plain", "message": assistant("x")})).await;
    for entry in ["a", "b", "held"] {
        begin(&bed, &id, entry).await;
    }
    let held = bed
        .service
        .hold_stream(&SessionId::from_stored(id.as_str()), &EntryId::from_stored("held"));
    let sweep = async |bed: &TestService| bed.service.abort_abandoned_streams().await.unwrap();
    assert_eq!(sweep(&bed).await, 0, "it is seen for the first time");
    bed.tick(REST_MS - 1);
    delta(&bed, &id, "a", json!({"block": 0, "text": "more"})).await;
    delta(&bed, &id, "plain", json!({"block": 0, "text": "more"})).await;
    assert_eq!(sweep(&bed).await, 0);
    bed.tick(1);
    assert_eq!(sweep(&bed).await, 1, "the one that did not grow");
    assert_eq!(bed.entry(&id, "b").await["message"]["stop_reason"], "aborted");
    assert_eq!(bed.entry(&id, "plain").await["message"]["stop_reason"], "end");
    let more = json!({"session_id": id, "entry_id": "b", "block": 0, "text": "x"});
    assert_eq!(bed.err("session::append-delta", more).await.0, "session/not_streaming");
    if bed.service.store().capabilities().keeps_change_cursor {
        // Another server finds it, and gives it the whole time.
        bed.reopen().await;
        bed.service.set_open_streams(noted);
        assert_eq!(sweep(&bed).await, 0);
    }
    drop(held);
    bed.tick(REST_MS);
    assert_eq!(sweep(&bed).await, 2);
    assert_eq!(bed.entry(&id, "a").await["message"]["stop_reason"], "aborted");
    bed.tick(REST_MS);
    assert_eq!(sweep(&bed).await, 0, "none is left");
}
