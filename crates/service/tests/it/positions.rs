//! The feed from a position on: resuming, snapshots, lives, stalls.

use crate::common;
use crate::common::{TestService, assistant, user};
use bough_service::limits::FEED_RECORDS_PER_READ;
use bough_service::{EventFilter, EventKind, FeedCursor, FeedItem, GapReason, StartAt};
use bough_session::SessionId;
use serde_json::{Value, json};

on_every_store!(
    a_subscriber_goes_on_after_any_event,
    a_subscriber_of_all_sessions_goes_on_after_any_event,
    two_events_of_one_change_are_delivered_once_each,
    a_session_is_read_from_its_first_event,
    a_session_may_be_watched_before_it_exists,
    a_new_incarnation_is_delivered_after_the_end_of_the_old,
    a_cursor_of_an_old_life_is_a_gap,
    a_session_brought_back_is_delivered_as_created,
    a_snapshot_comes_before_what_follows,
    a_snapshot_of_all_sessions_comes_before_what_follows,
    a_slow_subscriber_reads_the_log_and_misses_nothing,
    a_stalled_subscriber_holds_nobody_up,
    giving_up_waiting_loses_nothing,
    watching_by_asking,
    a_cursor_that_is_not_ours_is_refused,
    a_message_that_streams_again_is_delivered_to_a_reader_of_its_first_stream,
    a_cursor_that_the_log_does_not_reach_is_a_gap,
    a_gap_is_not_lost_with_the_page,
    a_reader_in_the_middle_of_a_session_hears_the_rest_after_its_deletion,
);

/// A history with every kind of change, two of them streams.
pub(crate) async fn make_history(bed: &TestService, id: &str) {
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

async fn a_subscriber_goes_on_after_any_event(bed: TestService) {
    let id = bed.create(json!({})).await;
    let filter = EventFilter::of(EventKind::ALL).in_session(SessionId::from_stored(id.as_str()));
    check_resuming(bed, id, filter).await;
}

async fn a_subscriber_of_all_sessions_goes_on_after_any_event(bed: TestService) {
    let id = bed.create(json!({})).await;
    check_resuming(bed, id, EventFilter::of(EventKind::ALL)).await;
}

/// What a subscriber gets that stops after each event in turn, and goes on from its cursor, is what one gets that never
/// stops.
async fn check_resuming(bed: TestService, id: String, filter: EventFilter) {
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

async fn two_events_of_one_change_are_delivered_once_each(bed: TestService) {
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

async fn a_session_is_read_from_its_first_event(mut bed: TestService) {
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

async fn a_session_may_be_watched_before_it_exists(bed: TestService) {
    let filter = EventFilter::everything().in_session(SessionId::from_stored("later"));
    let mut listener = bed.subscribe(filter, StartAt::Now).await;
    assert!(listener.subscription.cursor().is_none());
    bed.create(json!({})).await;
    bed.ok("session::ensure", json!({"session_id": "later"})).await;
    bed.say("later", "a").await;
    assert_eq!(listener.kinds().await, ["created", "message-added"]);
}

async fn a_new_incarnation_is_delivered_after_the_end_of_the_old(bed: TestService) {
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

async fn a_cursor_of_an_old_life_is_a_gap(bed: TestService) {
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let filter = EventFilter::everything().in_session(SessionId::from_stored("s"));
    let listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    let cursor = listener.subscription.cursor().unwrap();
    drop(listener);
    bed.say("s", "never seen").await;
    bed.ok("session::delete", json!({"session_id": "s"})).await;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let mut late = bed.subscribe(filter, StartAt::After(cursor)).await;
    assert!(matches!(late.item().await, FeedItem::Gap(GapReason::OtherIncarnation)));
    assert_eq!(late.kinds().await, ["deleted", "created"]);
}

async fn a_session_brought_back_is_delivered_as_created(bed: TestService) {
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

async fn a_snapshot_comes_before_what_follows(bed: TestService) {
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
            let last = snapshot.messages.last().unwrap();
            let message: Value =
                serde_json::from_str(last.message.as_ref().unwrap().get()).unwrap();
            assert_eq!(common::text(&message), "59");
            assert_eq!(last.parent_id.as_ref(), Some(&snapshot.messages[48].entry_id));
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

async fn a_snapshot_of_all_sessions_comes_before_what_follows(bed: TestService) {
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

async fn a_slow_subscriber_reads_the_log_and_misses_nothing(bed: TestService) {
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

async fn a_stalled_subscriber_holds_nobody_up(bed: TestService) {
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

async fn giving_up_waiting_loses_nothing(bed: TestService) {
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
                        // Delivered at once: put it into the count below by saying it again.
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

async fn watching_by_asking(bed: TestService) {
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

async fn a_cursor_that_is_not_ours_is_refused(bed: TestService) {
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

/// The steps of a stream are counted anew after the session was closed. A reader that heard many steps of a first stream
/// must not take the few of a second for ones that it knows.
async fn a_message_that_streams_again_is_delivered_to_a_reader_of_its_first_stream(
    mut bed: TestService,
) {
    let id = bed.create(json!({})).await;
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    let entry = entry.as_str().unwrap();
    let filter = EventFilter::of([EventKind::MessageUpdated])
        .in_session(SessionId::from_stored(id.as_str()));
    let mut listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    let mut stopped_at = None;
    for text in ["1", "12", "123", "1234", "12345"] {
        bed.update(&id, entry, text).await;
        stopped_at = Some(listener.delivery().await.cursor);
    }
    bed.reopen().await;
    for text in ["new 1", "new 2"] {
        bed.update(&id, entry, text).await;
    }
    bed.reopen().await;
    let mut listener = bed.subscribe(filter, StartAt::After(stopped_at.unwrap())).await;
    let mut last = Value::Null;
    while last["revision"] != json!(7) {
        last = listener.event().await.1;
    }
    assert_eq!(common::text(&last["message"]), "new 2");
}

/// A power cut in the weaker durability, or an older copy of the data, leaves a log that is shorter than what a subscriber received.
async fn a_cursor_that_the_log_does_not_reach_is_a_gap(bed: TestService) {
    let id = bed.create(json!({})).await;
    let now = bed.ok("session::watch", json!({"session_id": id})).await["next"].clone();
    let incarnation = now.as_str().unwrap().split('.').next().unwrap();
    let filter = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    for ahead in [format!("{incarnation}.4.0"), format!("{incarnation}.1.7")] {
        let start = StartAt::After(ahead.parse().unwrap());
        let mut listener = bed.subscribe(filter.clone(), start).await;
        let item = listener.item().await;
        assert!(matches!(item, FeedItem::Gap(GapReason::Ahead)), "{item:?}");
        assert_eq!(listener.subscription.cursor().unwrap().to_string(), now);
        assert!(listener.ready().await.is_empty());
    }
    let start = StartAt::After(format!("{incarnation}.4.0").parse().unwrap());
    let mut listener = bed.subscribe(filter, start).await;
    assert!(matches!(listener.item().await, FeedItem::Gap(GapReason::Ahead)));
    for text in ["2", "3", "4", "5"] {
        bed.say(&id, text).await;
        assert_eq!(common::text(&listener.event().await.1["message"]), text);
    }
}

/// A gap that a cursor leads to is delivered also if the page with it was dropped.
async fn a_gap_is_not_lost_with_the_page(bed: TestService) {
    let elsewhere = format!("all.{}", "0123456789abcdef".repeat(4));
    let start = StartAt::After(elsewhere.parse().unwrap());
    let mut listener = bed.subscribe(EventFilter::everything(), start).await;
    assert!(listener.subscription.drop_page().await.unwrap());
    let item = listener.item().await;
    assert!(matches!(item, FeedItem::Gap(GapReason::TooOld)), "{item:?}");
}

/// More records than one read returns: the reader has some of them when the session is deleted.
async fn a_reader_in_the_middle_of_a_session_hears_the_rest_after_its_deletion(bed: TestService) {
    const MESSAGES: usize = 2 * FEED_RECORDS_PER_READ + 10;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let messages: Vec<_> = (0..MESSAGES).map(|number| user(&number.to_string())).collect();
    bed.ok("session::append-many", json!({"session_id": "s", "messages": messages})).await;
    let filter = EventFilter::everything().in_session(SessionId::from_stored("s"));
    let mut listener = bed.subscribe(filter, StartAt::Start).await;
    assert_eq!(listener.event().await.0, EventKind::Created);
    bed.ok("session::delete", json!({"session_id": "s"})).await;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    for number in 0..MESSAGES {
        let (_, event) = listener.event().await;
        assert_eq!(common::text(&event["message"]), number.to_string());
    }
    assert_eq!(listener.kinds().await, ["deleted", "created"]);
}
