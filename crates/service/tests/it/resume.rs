//! A subscriber of all sessions who kept a cursor goes on after the process was started anew.

use std::collections::BTreeMap;

use crate::common::{TestService, assistant, stores, user};
use crate::positions::{make_history, newest_steps};
use bough_service::{Delivery, EventFilter, EventKind, FeedItem, StartAt};
use serde_json::{Value, json};

async fn native() -> TestService {
    TestService::on(&stores::native()).await
}

type Events = Vec<(EventKind, Value)>;

/// The events of each session, in order, with only the last of several steps of a stream.
fn by_session(events: &[(EventKind, Value)]) -> BTreeMap<String, Events> {
    let mut sessions: BTreeMap<String, Events> = BTreeMap::new();
    for (kind, event) in events {
        let session = event["session_id"].as_str().unwrap().to_owned();
        sessions.entry(session).or_default().push((*kind, event.clone()));
    }
    sessions.into_iter().map(|(session, events)| (session, newest_steps(&events))).collect()
}

/// Everything that can happen to sessions, in several at once.
async fn make_long_history(bed: &TestService) {
    for session in ["a", "b"] {
        bed.ok("session::ensure", json!({"session_id": session})).await;
    }
    make_history(bed, "a").await;
    let last = bed.say("b", "one").await;
    let fork = bed.ok("session::fork", json!({"session_id": "b", "entry_id": last})).await;
    bed.say(fork["session_id"].as_str().unwrap(), "in the fork").await;
    bed.ok("session::archive", json!({"session_id": "b"})).await;
    bed.ok("session::delete", json!({"session_id": "b"})).await;
    bed.ok("session::undelete", json!({"session_id": "b"})).await;
    make_history(bed, "b").await;
    bed.ok("session::delete", json!({"session_id": "a"})).await;
    bed.ok("session::ensure", json!({"session_id": "a", "title": "another life"})).await;
    bed.say("a", "anew").await;
    bed.ok("session::delete", json!({"session_id": "b"})).await;
}

fn shown(told: &[Delivery]) -> Events {
    told.iter().map(|told| (told.event.kind(), told.event.value())).collect()
}

#[tokio::test]
async fn every_event_is_delivered_once_and_in_order_after_a_restart_whatever_was_heard_before_it() {
    check_restart(native().await).await;
}

/// Somebody who listens all the time makes changes small: one a write.
#[tokio::test]
async fn the_same_when_each_write_is_a_change_of_its_own() {
    let bed = native().await;
    let mut eager = bed.listen().await;
    let listening = tokio::spawn(async move {
        loop {
            eager.item().await;
        }
    });
    check_restart(bed).await;
    listening.abort();
}

/// A reader that resumes from the store may be ahead of the events in memory. They are not delivered to it again.
#[tokio::test]
async fn who_is_ahead_of_the_others_hears_nothing_twice() {
    let bed = native().await;
    bed.ok("session::ensure", json!({"session_id": "a"})).await;
    let mut listener = bed.listen().await;
    bed.say("a", "before").await;
    let heard = listener.delivery().await.cursor;
    drop(listener);
    let mut resumed =
        bed.subscribe(EventFilter::of(EventKind::PUBLIC), StartAt::After(heard)).await;
    // Only after the subscription began, and before anybody read the events in memory.
    for text in ["1", "2", "3"] {
        bed.say("a", text).await;
        let (_, event) = resumed.event().await;
        assert_eq!(crate::common::text(&event["message"]), text);
    }
    assert!(resumed.ready().await.is_empty());
}

async fn check_restart(mut bed: TestService) {
    let filter = EventFilter::of(EventKind::ALL);
    let mut listener = bed.subscribe(filter.clone(), StartAt::Now).await;
    let start = listener.subscription.cursor().unwrap().to_string();
    make_long_history(&bed).await;
    let told = listener.deliveries().await;
    assert!(told.len() >= 30, "{}", told.len());
    let mut cursors = vec![start];
    cursors.extend(told.iter().map(|delivery| delivery.cursor.to_string()));
    drop(listener);
    bed.reopen().await;
    let told = shown(&told);
    for (heard, cursor) in cursors.into_iter().enumerate() {
        let start = StartAt::After(cursor.parse().unwrap());
        let mut late = bed.subscribe(filter.clone(), start).await;
        let mut rest = Vec::new();
        while let Some(item) = late.subscription.next_ready().await.unwrap() {
            match item {
                FeedItem::Event(delivery) => rest.push(delivery),
                other => panic!("after {heard}: {other:?}"),
            }
        }
        let rest = shown(&rest);
        assert!(rest.len() <= told.len() - heard, "nothing is told twice");
        assert_eq!(by_session(&rest), by_session(&told[heard..]), "after {heard}");
    }
}

#[tokio::test]
async fn what_happened_without_a_listener_is_delivered_after_the_restart() {
    let mut bed = native().await;
    let id = bed.create(json!({})).await;
    let cursor = bed.listen().await.subscription.cursor().unwrap().to_string();
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    bed.update(&id, entry.as_str().unwrap(), "grown").await;
    bed.reopen().await;
    bed.say(&id, "after the first restart").await;
    bed.reopen().await;
    let mut late =
        bed.subscribe(EventFilter::everything(), StartAt::After(cursor.parse().unwrap())).await;
    assert_eq!(late.kinds().await, ["message-added", "message-updated", "message-added"]);
    bed.say(&id, "live").await;
    assert_eq!(late.kinds().await, ["message-added"]);
}

/// A subscriber that stops inside a change with many events goes on inside it.
#[tokio::test]
async fn a_large_change_is_delivered_in_parts() {
    let mut bed = native().await;
    let id = bed.create(json!({})).await;
    let cursor = bed.listen().await.subscription.cursor().unwrap();
    let messages: Vec<_> = (0..300).map(|number| user(&number.to_string())).collect();
    bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    bed.reopen().await;
    let mut cursor = cursor.to_string();
    let mut told = Vec::new();
    for _ in 0..10 {
        let start = StartAt::After(cursor.parse().unwrap());
        let mut late = bed.subscribe(EventFilter::everything(), start).await;
        for _ in 0..30 {
            let delivery = late.delivery().await;
            told.push(crate::common::text(&delivery.event.value()["message"]));
            cursor = delivery.cursor.to_string();
        }
    }
    let expected: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_incarnation_that_was_purged_before_it_was_delivered_is_a_gap() {
    let mut bed = native().await;
    let id = bed.create(json!({})).await;
    let cursor = bed.listen().await.subscription.cursor().unwrap().to_string();
    bed.say(&id, "never heard").await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    bed.ok("session::purge", json!({"session_id": id})).await;
    bed.reopen().await;
    let mut late =
        bed.subscribe(EventFilter::everything(), StartAt::After(cursor.parse().unwrap())).await;
    assert!(matches!(late.item().await, FeedItem::Gap(_)));
    assert_eq!(late.kinds().await, ["deleted"]);
}
