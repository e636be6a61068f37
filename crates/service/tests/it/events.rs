//! The feed: which events reach whom, in which order, and from which cursor.

use crate::common;
use crate::common::{Listener, TestService, assistant, object, user};
use bough_service::{EventFilter, EventKind, StartAt};
use bough_session::SessionId;
use serde_json::{Value, json};

on_every_store!(
    each_change_is_delivered_with_the_payload_of_session_manager,
    what_changes_nothing_is_not_delivered,
    a_fork_is_delivered_as_one_new_session,
    a_large_fork_is_delivered_as_one_new_session,
    filters_by_session_role_and_metadata,
    metadata_filters_look_at_the_session_after_the_change,
    further_kinds_are_delivered_to_those_who_ask,
    every_step_of_a_stream_is_delivered_whole,
    a_large_step_of_a_stream_is_delivered_like_the_others,
);

async fn each_change_is_delivered_with_the_payload_of_session_manager(bed: TestService) {
    let mut listener = bed.listen().await;
    let now = 1_700_000_000_000_i64;
    let id = bed.create(json!({"title": "t", "description": "d", "metadata": {"o": 1}})).await;
    let created = json!({
        "session_id": id, "title": "t", "description": "d", "status": "idle", "created_at": now,
    });
    assert_eq!(listener.event().await, (EventKind::Created, created));
    bed.tick(1);
    let entry = bed
        .append(&id, json!({"message": assistant("h"), "origin": {"turn": 1}}))
        .await["entry_id"]
        .clone();
    let added = json!({
        "session_id": id, "entry_id": entry, "parent_id": null, "message": assistant("h"),
        "origin": {"turn": 1}, "timestamp": now + 1,
    });
    assert_eq!(listener.event().await, (EventKind::MessageAdded, added));
    let custom =
        bed.append(&id, json!({"custom": {"custom_type": "m", "data": [1]}})).await["entry_id"]
            .clone();
    let added = json!({
        "session_id": id, "entry_id": custom, "parent_id": entry,
        "custom": {"custom_type": "m", "data": [1]}, "timestamp": now + 1,
    });
    assert_eq!(listener.event().await, (EventKind::MessageAdded, added));
    bed.tick(1);
    let content = json!([{"type": "text", "text": "hey"}]);
    let request =
        json!({"session_id": id, "entry_id": entry, "content": content, "origin": {"turn": 2}});
    bed.ok("session::update-message", request).await;
    let updated = json!({
        "session_id": id, "entry_id": entry, "message": assistant("hey"), "revision": 1,
        "origin": {"turn": 2}, "timestamp": now + 2,
    });
    assert_eq!(listener.event().await, (EventKind::MessageUpdated, updated));
    bed.ok("session::set-status", json!({"session_id": id, "status": "error", "reason": "r"}))
        .await;
    let status = json!({
        "session_id": id, "status": "error", "previous_status": "idle", "status_reason": "r",
        "timestamp": now + 2,
    });
    assert_eq!(listener.event().await, (EventKind::StatusChanged, status));
    bed.ok("session::set-status", json!({"session_id": id, "status": "done", "reason": "r"})).await;
    let status = json!({
        "session_id": id, "status": "done", "previous_status": "error", "timestamp": now + 2,
    });
    assert_eq!(listener.event().await, (EventKind::StatusChanged, status));
    bed.ok("session::set-meta", json!({"session_id": id, "title": "u"})).await;
    let meta = json!({
        "session_id": id, "title": "u", "description": "d", "metadata": {"o": 1}, "timestamp": now + 2,
    });
    assert_eq!(listener.event().await, (EventKind::MetaUpdated, meta));
    bed.tick(1);
    bed.ok("session::delete", json!({"session_id": id})).await;
    let deleted = json!({"session_id": id, "timestamp": now + 3});
    assert_eq!(listener.event().await, (EventKind::Deleted, deleted));
}

async fn what_changes_nothing_is_not_delivered(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry =
        bed.append(&id, json!({"entry_id": "e", "message": user("a")})).await["entry_id"].clone();
    let mut listener = bed.listen().await;
    bed.ok("session::ensure", json!({"session_id": id, "title": "x"})).await;
    bed.append(&id, json!({"entry_id": "e", "message": user("b")})).await;
    bed.ok("session::set-meta", json!({"session_id": id})).await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "idle"})).await;
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": entry})).await;
    bed.ok("session::delete", json!({"session_id": "no"})).await;
    let stale = json!({"session_id": id, "entry_id": "e", "content": [], "expected_revision": 9});
    bed.ok("session::update-message", stale).await;
    bed.err("session::update-message", json!({"session_id": id, "entry_id": "x", "content": []}))
        .await;
    assert_eq!(listener.kinds().await, Vec::<&str>::new());
}

async fn a_fork_is_delivered_as_one_new_session(bed: TestService) {
    let id = bed.create(json!({"title": "t", "metadata": {"o": 1}})).await;
    bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    let mut listener = bed.listen().await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": b})).await;
    let (kind, event) = listener.event().await;
    assert_eq!(kind, EventKind::Created);
    assert_eq!((&event["forked_from"], &event["session_id"]), (&json!(id), &fork["session_id"]));
    let copy = fork["session_id"].as_str().unwrap();
    bed.say(copy, "c").await;
    let (kind, event) = listener.event().await;
    assert_eq!((kind, common::text(&event["message"])), (EventKind::MessageAdded, "c".to_owned()));
    // The same when it is read later, from the beginning of the fork.
    let filter = EventFilter::everything().in_session(SessionId::from_stored(copy));
    let mut late = bed.subscribe(filter, StartAt::Start).await;
    assert_eq!(late.kinds().await, ["created", "message-added"]);
}

async fn a_large_fork_is_delivered_as_one_new_session(bed: TestService) {
    let id = bed.create(json!({})).await;
    let messages: Vec<_> = (0..700).map(|number| user(&number.to_string())).collect();
    let many =
        bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    let fork =
        bed.ok("session::fork", json!({"session_id": id, "entry_id": many["last_entry_id"]})).await;
    let copy = SessionId::from_stored(fork["session_id"].as_str().unwrap());
    bed.say(copy.as_str(), "new").await;
    let mut late = bed.subscribe(EventFilter::everything().in_session(copy), StartAt::Start).await;
    assert_eq!(late.kinds().await, ["created", "message-added"]);
}

async fn filters_by_session_role_and_metadata(bed: TestService) {
    let mine = bed.create(json!({"metadata": {"owner": "u_1", "x": 1}})).await;
    let theirs = bed.create(json!({"metadata": {"owner": "u_2"}})).await;
    let listen = async |config: Value| {
        let filter = EventFilter::parse(EventKind::MessageAdded, &config).unwrap();
        bed.subscribe(filter, StartAt::Now).await
    };
    let mut by_session = listen(json!({"session_id": mine})).await;
    let mut by_owner = listen(json!({"metadata": {"owner": "u_2"}})).await;
    let mut by_role = listen(json!({"roles": ["assistant"]})).await;
    let mut by_all =
        listen(json!({"session_id": mine, "roles": ["user"], "metadata": {"x": 1}})).await;
    let mut by_none = listen(json!({"roles": []})).await;
    for session in [&mine, &theirs] {
        bed.say(session, "q").await;
        bed.append(session, json!({"message": assistant("a")})).await;
        bed.append(session, json!({"custom": {"custom_type": "c"}})).await;
        bed.ok("session::set-status", json!({"session_id": session, "status": "done"})).await;
    }
    let count = async |listener: &mut Listener| listener.ready().await.len();
    assert_eq!(count(&mut by_session).await, 3);
    assert_eq!(count(&mut by_owner).await, 3);
    assert_eq!(count(&mut by_role).await, 2);
    assert_eq!(count(&mut by_all).await, 1);
    assert_eq!(count(&mut by_none).await, 0);
}

async fn metadata_filters_look_at_the_session_after_the_change(bed: TestService) {
    let id = bed.create(json!({"metadata": {"owner": "u_1"}})).await;
    let listen = async |owner: &str| {
        let filter = EventFilter::everything().with_metadata(object(json!({"owner": owner})));
        bed.subscribe(filter, StartAt::Now).await
    };
    let mut first = listen("u_1").await;
    let mut second = listen("u_2").await;
    bed.say(&id, "before").await;
    bed.ok("session::set-meta", json!({"session_id": id, "metadata": {"owner": "u_2"}})).await;
    bed.say(&id, "after").await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    assert_eq!(first.kinds().await, ["message-added"]);
    assert_eq!(second.kinds().await, ["meta-updated", "message-added", "deleted"]);
}

async fn further_kinds_are_delivered_to_those_who_ask(bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    bed.say(&id, "b").await;
    let mut public = bed.listen().await;
    let mut all = bed.subscribe(EventFilter::of(EventKind::ALL), StartAt::Now).await;
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": a})).await;
    bed.ok("session::archive", json!({"session_id": id})).await;
    bed.ok("session::set-task", json!({"session_id": id, "task": "n"})).await;
    bed.ok("session::set-label", json!({"session_id": id, "entry_id": a, "label": "l"})).await;
    assert_eq!(public.kinds().await, ["message-added"]);
    let events = all.ready().await;
    let kinds: Vec<_> = events.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::LeafMoved,
            EventKind::Archived,
            EventKind::TaskChanged,
            EventKind::MessageAdded,
            EventKind::LabelChanged,
        ]
    );
    assert_eq!(events[0].1["entry_id"], json!(a));
    assert_eq!(events[1].1["archived"], json!(true));
    assert_eq!(events[2].1["task"], json!("n"));
    assert_eq!((&events[4].1["entry_id"], &events[4].1["label"]), (&json!(a), &json!("l")));
}

async fn every_step_of_a_stream_is_delivered_whole(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mut one = bed
        .subscribe(
            EventFilter::everything().in_session(SessionId::from_stored(id.as_str())),
            StartAt::Now,
        )
        .await;
    let mut all = bed.listen().await;
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    let mut whole = String::new();
    for step in 0..20 {
        whole.push_str(&step.to_string());
        bed.update(&id, entry.as_str().unwrap(), &whole).await;
    }
    for listener in [&mut one, &mut all] {
        assert_eq!(listener.event().await.0, EventKind::MessageAdded);
        let mut expected = String::new();
        for step in 0..20 {
            expected.push_str(&step.to_string());
            let (kind, event) = listener.event().await;
            assert_eq!(kind, EventKind::MessageUpdated);
            assert_eq!(event["revision"], json!(step + 1));
            assert_eq!(common::text(&event["message"]), expected);
        }
    }
}

/// A step that is too large for the file of the stream is a record of its own.
async fn a_large_step_of_a_stream_is_delivered_like_the_others(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "").await;
    let mut live = bed.listen().await;
    let session = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let large = "y".repeat(2 << 20);
    let mut lengths = Vec::new();
    for text in ["x", &large, "x and y", "done"] {
        bed.update(&id, &entry, text).await;
        let (kind, event) = live.event().await;
        assert_eq!(
            (kind, &event["revision"]),
            (EventKind::MessageUpdated, &json!(lengths.len() + 1))
        );
        assert_eq!(common::text(&event["message"]), text);
        lengths.push(text.len());
    }
    // Whoever comes later is led to the same end.
    let mut late = bed.subscribe(session, StartAt::Start).await;
    let (_, last) = late.ready().await.pop().unwrap();
    assert_eq!((common::text(&last["message"]).as_str(), &last["revision"]), ("done", &json!(4)));
}
