//! The feed: what is told, to whom, in which order, and from where on.

use crate::common;
use crate::common::{Bed, Listener, assistant, object, user};
use bough_service::{EventFilter, EventKind, FeedCursor, FeedItem, GapReason, StartAt};
use bough_session::SessionId;
use serde_json::{Value, json};

on_every_store!(
    each_change_is_told_with_the_payload_of_the_original,
    what_changes_nothing_is_not_told,
    a_fork_is_told_as_one_new_session,
    a_large_fork_is_told_as_one_new_session,
    filters_by_session_role_and_metadata,
    metadata_filters_look_at_the_session_after_the_change,
    further_kinds_are_told_to_those_who_ask,
    every_step_of_a_stream_is_told_whole,
    a_subscriber_goes_on_after_any_event,
    a_subscriber_of_all_sessions_goes_on_after_any_event,
    two_events_of_one_change_are_told_once_each,
    a_session_is_read_from_its_first_event,
    a_session_may_be_watched_before_it_exists,
    a_new_life_is_told_after_the_end_of_the_old,
    a_cursor_of_an_old_life_is_a_gap,
    a_session_brought_back_is_told_as_created,
    a_snapshot_comes_before_what_follows,
    a_snapshot_of_all_sessions_comes_before_what_follows,
    a_slow_subscriber_reads_the_log_and_misses_nothing,
    a_stalled_subscriber_holds_nobody_up,
    giving_up_waiting_loses_nothing,
    watching_by_asking,
    a_cursor_that_is_not_ours_is_refused,
);

async fn each_change_is_told_with_the_payload_of_the_original(bed: Bed) {
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

async fn what_changes_nothing_is_not_told(bed: Bed) {
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

async fn a_fork_is_told_as_one_new_session(bed: Bed) {
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

async fn a_large_fork_is_told_as_one_new_session(bed: Bed) {
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

async fn filters_by_session_role_and_metadata(bed: Bed) {
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

async fn metadata_filters_look_at_the_session_after_the_change(bed: Bed) {
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

async fn further_kinds_are_told_to_those_who_ask(bed: Bed) {
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

async fn every_step_of_a_stream_is_told_whole(bed: Bed) {
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

/// A history with every kind of change, two of them streams.
pub(crate) async fn make_history(bed: &Bed, id: &str) {
    bed.say(id, "one").await;
    let entry = bed.append(id, json!({"message": assistant("")})).await["entry_id"].clone();
    for text in ["a", "ab", "abc"] {
        bed.update(id, entry.as_str().unwrap(), text).await;
    }
    bed.ok("session::set-status", json!({"session_id": id, "status": "working"})).await;
    bed.ok("session::set-label", json!({"session_id": id, "entry_id": entry, "label": "l"})).await;
    bed.ok("session::append-many", json!({"session_id": id, "messages": [user("x"), user("y")]}))
        .await;
    bed.ok("session::set-meta", json!({"session_id": id, "title": "t"})).await;
}

async fn a_subscriber_goes_on_after_any_event(bed: Bed) {
    let id = bed.create(json!({})).await;
    let filter = EventFilter::of(EventKind::ALL).in_session(SessionId::from_stored(id.as_str()));
    check_resuming(bed, id, filter).await;
}

async fn a_subscriber_of_all_sessions_goes_on_after_any_event(bed: Bed) {
    let id = bed.create(json!({})).await;
    check_resuming(bed, id, EventFilter::of(EventKind::ALL)).await;
}

/// What a subscriber gets that stops after each event in turn, and goes on from its cursor, is what one gets that never
/// stops.
async fn check_resuming(bed: Bed, id: String, filter: EventFilter) {
    let mut listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    let start = listener.subscription.cursor().unwrap();
    make_history(&bed, &id).await;
    let told = listener.deliveries().await;
    assert!(told.len() >= 9, "{told:?}");
    let mut cursors: Vec<FeedCursor> = vec![start];
    cursors.extend(told.iter().map(|delivery| delivery.cursor.clone()));
    let told: Vec<_> = told.iter().map(|told| (told.event.kind(), told.event.value())).collect();
    for (read, cursor) in cursors.into_iter().enumerate() {
        let cursor = cursor.to_string().parse().unwrap();
        let mut late = bed.subscribe(filter.clone(), StartAt::After(cursor)).await;
        let rest = late.ready().await;
        assert!(rest.len() <= told.len() - read, "nothing is told twice: {rest:?}");
        assert_eq!(newest_steps(&rest), newest_steps(&told[read..]), "after {read}");
    }
}

/// The events, with only the last of several steps of one message: a stream that is over may be told as its end.
pub(crate) fn newest_steps(events: &[(EventKind, Value)]) -> Vec<(EventKind, Value)> {
    let mut newest: Vec<(EventKind, Value)> = Vec::new();
    for (kind, event) in events {
        let follows = newest.last().is_some_and(|(last, of)| {
            (*last, *kind) == (EventKind::MessageUpdated, EventKind::MessageUpdated)
                && of["entry_id"] == event["entry_id"]
        });
        if follows {
            newest.pop();
        }
        newest.push((*kind, event.clone()));
    }
    newest
}

async fn two_events_of_one_change_are_told_once_each(bed: Bed) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let filter = EventFilter::of(EventKind::ALL).in_session(SessionId::from_stored(id.as_str()));
    let mut listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    bed.ok("session::set-label", json!({"session_id": id, "entry_id": a, "label": "l"})).await;
    let first = listener.delivery().await;
    assert_eq!(first.event.kind(), EventKind::MessageAdded);
    drop(listener);
    let mut late = bed.subscribe(filter, StartAt::After(first.cursor)).await;
    assert_eq!(late.kinds().await, ["label-changed"]);
}

async fn a_session_is_read_from_its_first_event(mut bed: Bed) {
    let id = bed.create(json!({"title": "first"})).await;
    make_history(&bed, &id).await;
    bed.ok("session::set-meta", json!({"session_id": id, "title": "last"})).await;
    bed.reopen().await;
    let filter = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let mut listener = bed.subscribe(filter, StartAt::Start).await;
    let events = listener.ready().await;
    assert_eq!(events[0].0, EventKind::Created);
    assert_eq!(events[0].1["title"], json!("first"), "as it was then");
    let statuses: Vec<_> =
        events.iter().filter(|(kind, _)| *kind == EventKind::StatusChanged).collect();
    assert_eq!(statuses[0].1["previous_status"], json!("idle"));
    // A stream that is over may be told as its end.
    let updates: Vec<_> =
        events.iter().filter(|(kind, _)| *kind == EventKind::MessageUpdated).collect();
    assert_eq!(updates.last().unwrap().1["revision"], json!(3));
    assert_eq!(events.last().unwrap().1["title"], json!("last"));
}

async fn a_session_may_be_watched_before_it_exists(bed: Bed) {
    let filter = EventFilter::everything().in_session(SessionId::from_stored("later"));
    let mut listener = bed.subscribe(filter, StartAt::Now).await;
    assert!(listener.subscription.cursor().is_none());
    bed.create(json!({})).await;
    bed.ok("session::ensure", json!({"session_id": "later"})).await;
    bed.say("later", "a").await;
    assert_eq!(listener.kinds().await, ["created", "message-added"]);
}

async fn a_new_life_is_told_after_the_end_of_the_old(bed: Bed) {
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let one = EventFilter::everything().in_session(SessionId::from_stored("s"));
    let mut one = bed.subscribe(one, StartAt::Now).await;
    let mut all = bed.listen().await;
    bed.say("s", "a").await;
    bed.ok("session::delete", json!({"session_id": "s"})).await;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    bed.say("s", "b").await;
    let expected = ["message-added", "deleted", "created", "message-added"];
    assert_eq!(one.kinds().await, expected);
    assert_eq!(all.kinds().await, expected);
}

async fn a_cursor_of_an_old_life_is_a_gap(bed: Bed) {
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let filter = EventFilter::everything().in_session(SessionId::from_stored("s"));
    let listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    let cursor = listener.subscription.cursor().unwrap();
    drop(listener);
    bed.say("s", "never seen").await;
    bed.ok("session::delete", json!({"session_id": "s"})).await;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let mut late = bed.subscribe(filter, StartAt::After(cursor)).await;
    assert!(matches!(late.item().await, FeedItem::Gap(GapReason::OtherLife)));
    assert_eq!(late.kinds().await, ["deleted", "created"]);
}

async fn a_session_brought_back_is_told_as_created(bed: Bed) {
    let id = bed.create(json!({"title": "t"})).await;
    bed.say(&id, "a").await;
    let one = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let mut one = bed.subscribe(one, StartAt::Now).await;
    let mut all = bed.listen().await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    bed.ok("session::undelete", json!({"session_id": id})).await;
    bed.say(&id, "b").await;
    for listener in [&mut one, &mut all] {
        assert_eq!(listener.event().await.0, EventKind::Deleted);
        let (kind, event) = listener.event().await;
        assert_eq!((kind, &event["title"]), (EventKind::Created, &json!("t")));
        assert_eq!(listener.kinds().await, ["message-added"]);
    }
}

async fn a_snapshot_comes_before_what_follows(bed: Bed) {
    let id = bed.create(json!({"title": "t"})).await;
    for number in 0..60 {
        bed.say(&id, &number.to_string()).await;
    }
    let filter = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let mut listener = bed.subscribe(filter.clone(), StartAt::Snapshot).await;
    bed.say(&id, "60").await;
    match listener.item().await {
        FeedItem::Session(snapshot) => {
            assert_eq!(snapshot.meta.title, "t");
            assert_eq!(snapshot.messages.len(), 50);
            assert!(snapshot.more_messages);
            let last = snapshot.messages.last().unwrap().message.as_ref().unwrap();
            assert_eq!(last.text(), "59");
            assert_eq!(snapshot.active_leaf.as_ref(), Some(&snapshot.messages[49].entry_id));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(listener.item().await, FeedItem::Live));
    let (kind, event) = listener.event().await;
    assert_eq!((kind, common::text(&event["message"])), (EventKind::MessageAdded, "60".to_owned()));
    let absent = EventFilter::everything().in_session(SessionId::from_stored("absent"));
    let mut listener = bed.subscribe(absent, StartAt::Snapshot).await;
    assert!(matches!(listener.item().await, FeedItem::Live));
}

async fn a_snapshot_of_all_sessions_comes_before_what_follows(bed: Bed) {
    for number in 0..205 {
        bed.ok("session::ensure", json!({"session_id": format!("s{number}")})).await;
    }
    let mut listener = bed.subscribe(EventFilter::everything(), StartAt::Snapshot).await;
    bed.say("s7", "a").await;
    let mut shown = 0;
    loop {
        match listener.item().await {
            FeedItem::Sessions(metas) => shown += metas.len(),
            FeedItem::Live => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(shown, 205);
    assert_eq!(listener.kinds().await, ["message-added"]);
}

async fn a_slow_subscriber_reads_the_log_and_misses_nothing(bed: Bed) {
    let id = bed.create(json!({})).await;
    let one = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let mut one = bed.subscribe(one, StartAt::Now).await;
    let mut all = bed.listen().await;
    let mut expected = Vec::new();
    for batch in 0..60 {
        let messages: Vec<_> = (0..20).map(|number| user(&format!("{batch}.{number}"))).collect();
        let many =
            bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
        expected.extend(many["entry_ids"].as_array().unwrap().clone());
    }
    for listener in [&mut one, &mut all] {
        let told: Vec<_> = listener
            .ready()
            .await
            .into_iter()
            .map(|(_, event)| event["entry_id"].clone())
            .collect();
        assert_eq!(told.len(), expected.len());
        assert_eq!(told, expected);
    }
}

async fn a_stalled_subscriber_holds_nobody_up(bed: Bed) {
    let id = bed.create(json!({})).await;
    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(bed.listen().await);
        let one = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
        stalled.push(bed.subscribe(one, StartAt::Now).await);
    }
    let mut live = bed.listen().await;
    for number in 0..30 {
        bed.say(&id, &number.to_string()).await;
        assert_eq!(common::text(&live.event().await.1["message"]), number.to_string());
    }
    for listener in &mut stalled {
        assert_eq!(listener.ready().await.len(), 30);
    }
}

async fn giving_up_waiting_loses_nothing(bed: Bed) {
    let id = bed.create(json!({})).await;
    let one = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    let mut listeners = [bed.subscribe(one, StartAt::Now).await, bed.listen().await];
    for number in 0..100 {
        bed.say(&id, &number.to_string()).await;
        for listener in &mut listeners {
            // Polled once, then dropped, wherever it was.
            for _ in 0..3 {
                tokio::select! {
                    biased;
                    item = listener.subscription.next() => {
                        // Told at once: put it into the count below by saying it again.
                        let FeedItem::Event(delivery) = item.unwrap() else { panic!() };
                        assert_eq!(common::text(&delivery.event.value()["message"]), number.to_string());
                        break;
                    }
                    () = std::future::ready(()) => {}
                }
            }
        }
        for listener in &mut listeners {
            let rest = listener.ready().await;
            assert!(rest.len() <= 1);
        }
    }
    bed.say(&id, "last").await;
    for listener in &mut listeners {
        let (_, event) = listener.event().await;
        assert_eq!(common::text(&event["message"]), "last");
    }
}

async fn watching_by_asking(bed: Bed) {
    let id = bed.create(json!({})).await;
    let begin = bed.ok("session::watch", json!({"session_id": id})).await;
    assert_eq!((&begin["events"], &begin["gap"]), (&json!([]), &json!(false)));
    bed.say(&id, "a").await;
    bed.say(&id, "b").await;
    let first = bed
        .ok("session::watch", json!({"session_id": id, "after": begin["next"], "limit": 1}))
        .await;
    assert_eq!(first["events"][0]["type"], json!("session::message-added"));
    assert_eq!(common::text(&first["events"][0]["payload"]["message"]), "a");
    assert_eq!(first["next"], first["events"][0]["cursor"]);
    let second = bed.ok("session::watch", json!({"session_id": id, "after": first["next"]})).await;
    assert_eq!(second["events"].as_array().unwrap().len(), 1);
    assert!(second["events"][0]["seq"].as_u64() > first["events"][0]["seq"].as_u64());
    let whole = bed
        .ok(
            "session::watch",
            json!({"session_id": id, "after": "start", "types": ["session::created"]}),
        )
        .await;
    assert_eq!(whole["events"].as_array().unwrap().len(), 1);
    assert_eq!(whole["next"], second["next"], "what was not wanted is behind the cursor too");
    let (code, _) = bed.err("session::watch", json!({"types": ["session::nope"]})).await;
    assert_eq!(code, "session/malformed_request");
    // Waiting: the answer comes when something happens.
    let waiting = bed.ok(
        "session::watch",
        json!({"session_id": id, "after": second["next"], "wait_ms": 20_000}),
    );
    let speaking = async {
        tokio::task::yield_now().await;
        bed.say(&id, "c").await
    };
    let (answer, _) = tokio::join!(waiting, speaking);
    assert_eq!(common::text(&answer["events"][0]["payload"]["message"]), "c");
}

async fn a_cursor_that_is_not_ours_is_refused(bed: Bed) {
    let id = bed.create(json!({})).await;
    for bad in ["nonsense", "", "1.2.3", "all.1"] {
        let (code, _) = bed.err("session::watch", json!({"session_id": id, "after": bad})).await;
        assert_eq!(code, "session/invalid_cursor", "{bad:?}");
    }
    let all = bed.ok("session::watch", json!({})).await;
    let (code, _) =
        bed.err("session::watch", json!({"session_id": id, "after": all["next"]})).await;
    assert_eq!(code, "session/invalid_cursor", "of the feed of all sessions");
    // Of another store: nothing of it is known here.
    let elsewhere = format!("all.{}", "0123456789abcdef".repeat(4));
    let gap = bed.ok("session::watch", json!({"after": elsewhere})).await;
    assert_eq!(gap["gap"], json!(true));
}
