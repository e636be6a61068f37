//! Another store takes the place of the old one while everybody goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common;
use crate::common::flaky_store::FlakyStore;
use crate::common::{Listener, TestService, assistant, stores, user};
use async_trait::async_trait;
use bough_service::{
    EventFilter, EventKind, FeedItem, GapReason, Reload, ReloadError, Service, StartAt,
};
use bough_session::SessionId;
use bough_store::{Store, StoreExt};
use serde_json::{Value, json};

on_every_store!(
    calls_see_one_store_or_the_other,
    subscribers_hear_the_difference_and_go_on,
    a_subscriber_of_one_session_hears_of_it_alone,
    a_cursor_from_before_the_swap_meets_the_gap_again,
);

/// A second store with sessions of its own.
async fn other_store(bed: &TestService) -> (TestService, Arc<dyn Store>) {
    let other = TestService::on(&stores::memory()).await;
    bed.tick(1000);
    let store = other.service.store();
    (other, store)
}

async fn calls_see_one_store_or_the_other(bed: TestService) {
    let id = bed.create(json!({})).await;
    let (other, store) = other_store(&bed).await;
    let there = other.create(json!({"title": "there"})).await;
    let old = bed.service.swap_store(store);
    assert_eq!(bed.ok("session::get", json!({"session_id": id})).await, Value::Null);
    bed.say(&there, "a").await;
    assert_eq!(other.texts(&there).await, ["a"]);
    // Nothing was moved: what was in the old store is still there.
    assert!(old.state(&SessionId::from_stored(id.as_str())).await.unwrap().is_some());
    bed.service.swap_store(old);
    assert_eq!(bed.meta(&id).await["session_id"], json!(id));
}

async fn expect_gap(listener: &mut Listener) {
    let item = listener.item().await;
    assert!(matches!(item, FeedItem::Gap(GapReason::StoreSwapped)), "{item:?}");
}

/// Everything up to the sign that it is live again.
async fn replayed(listener: &mut Listener) -> Vec<(EventKind, Value)> {
    let mut events = Vec::new();
    loop {
        match listener.item().await {
            FeedItem::Event(delivery) => {
                events.push((delivery.event.kind(), delivery.event.value()))
            }
            FeedItem::Live => return events,
            other => panic!("{other:?}"),
        }
    }
}

/// Where the store is elsewhere, each lookup is a round trip.
#[tokio::test]
async fn a_replay_looks_up_only_what_changed_long_after_it_was_added() {
    let bed = TestService::on(&stores::memory()).await;
    let (other, store) = FlakyStore::bed();
    let id = other.create(json!({})).await;
    let mut entries = Vec::new();
    for number in 0..600 {
        entries.push(other.say(&id, &number.to_string()).await);
    }
    let late = other.append(&id, json!({"message": assistant("late")})).await;
    let late = late["entry_id"].as_str().unwrap();
    other.update(&id, late, "late, and changed").await;
    other.update(&id, &entries[0], "first, and changed").await;
    other.update(&id, &entries[300], "middle, and changed").await;
    let mut listener = bed.listen().await;
    let before = store.lookups.load(Ordering::SeqCst);
    bed.service.swap_store(store.clone());
    expect_gap(&mut listener).await;
    let events = replayed(&mut listener).await;
    assert_eq!(events.len(), 602);
    let text = |index: usize| common::text(&events[index].1["message"]);
    let texts = [1, 2, 301, 601].map(text);
    let expected = ["first, and changed", "1", "middle, and changed", "late, and changed"];
    assert_eq!(texts, expected);
    assert_eq!(store.lookups.load(Ordering::SeqCst) - before, 2);
}

async fn subscribers_hear_the_difference_and_go_on(bed: TestService) {
    bed.ok("session::ensure", json!({"session_id": "old", "metadata": {"o": 1}})).await;
    bed.ok("session::ensure", json!({"session_id": "both"})).await;
    let (other, store) = other_store(&bed).await;
    other.ok("session::ensure", json!({"session_id": "both", "title": "now here"})).await;
    other.ok("session::set-status", json!({"session_id": "both", "status": "working"})).await;
    let entry = other.append("both", json!({"message": assistant("a"), "origin": {"t": 1}})).await
        ["entry_id"]
        .clone();
    other.update("both", entry.as_str().unwrap(), "ab").await;
    other.append("both", json!({"message": user("c")})).await;
    let mut listener = bed.listen().await;
    let mut scoped = bed
        .subscribe(
            EventFilter::everything().with_metadata(common::object(json!({"o": 1}))),
            StartAt::Now,
        )
        .await;
    bed.service.swap_store(store);
    expect_gap(&mut listener).await;
    let events = replayed(&mut listener).await;
    let kinds: Vec<_> = events.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::Deleted,
            EventKind::Created,
            EventKind::MessageUpdated,
            EventKind::MessageAdded
        ]
    );
    assert_eq!(events[0].1["session_id"], json!("old"));
    assert_eq!(
        (&events[1].1["title"], &events[1].1["status"]),
        (&json!("now here"), &json!("working"))
    );
    assert_eq!(
        (&events[2].1["revision"], common::text(&events[2].1["message"])),
        (&json!(1), "ab".to_owned())
    );
    bed.say("both", "live").await;
    assert_eq!(listener.event().await.0, EventKind::MessageAdded);
    // Filters hold here too: by the metadata that the session had.
    expect_gap(&mut scoped).await;
    let events = replayed(&mut scoped).await;
    assert_eq!(events.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [EventKind::Deleted]);
}

async fn a_subscriber_of_one_session_hears_of_it_alone(bed: TestService) {
    bed.ok("session::ensure", json!({"session_id": "a"})).await;
    bed.ok("session::ensure", json!({"session_id": "b"})).await;
    let (other, store) = other_store(&bed).await;
    other.ok("session::ensure", json!({"session_id": "b"})).await;
    let listen = async |session: &str| {
        let filter = EventFilter::everything().in_session(SessionId::from_stored(session));
        bed.subscribe(filter, StartAt::Now).await
    };
    let (mut a, mut b) = (listen("a").await, listen("b").await);
    bed.service.swap_store(store);
    for (listener, expected) in [(&mut a, EventKind::Deleted), (&mut b, EventKind::Created)] {
        expect_gap(listener).await;
        let events = replayed(listener).await;
        assert_eq!(events.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [expected]);
    }
    bed.say("b", "x").await;
    assert_eq!(b.event().await.0, EventKind::MessageAdded);
}

async fn a_cursor_from_before_the_swap_meets_the_gap_again(bed: TestService) {
    bed.ok("session::ensure", json!({"session_id": "a"})).await;
    let (other, store) = other_store(&bed).await;
    other.ok("session::ensure", json!({"session_id": "b"})).await;
    let mut listener = bed.listen().await;
    bed.service.swap_store(store);
    expect_gap(&mut listener).await;
    // Stopped in the middle of the replay.
    let first = listener.delivery().await;
    assert_eq!(first.event.kind(), EventKind::Deleted);
    drop(listener);
    let mut late = bed.subscribe(EventFilter::everything(), StartAt::After(first.cursor)).await;
    assert!(matches!(late.item().await, FeedItem::Gap(_)));
}

struct Counting(AtomicU64);

#[async_trait]
impl Reload for Counting {
    async fn reload(&self, service: &Service) -> Result<(), ReloadError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => service.note_reload(Ok(())),
            1 => service.note_reload(Err("the folder cannot be read".to_owned())),
            _ => {
                return Err(ReloadError { reason: "nobody answers".to_owned() });
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_refused_configuration_shows_and_the_old_one_stays() {
    let bed = TestService::on(&stores::memory()).await;
    let status = async || bed.ok("session::config-status", json!({})).await;
    let applied = json!({"last_outcome": "applied", "last_error": null, "rejected_reloads": 0});
    assert_eq!(status().await, applied);
    assert_eq!(bed.ok("session::on-config-change", json!({"id": "x"})).await, json!({"ok": true}));
    assert!(bed.service.set_reload(Arc::new(Counting(AtomicU64::new(0)))));
    bed.ok("session::on-config-change", json!({})).await;
    assert_eq!(status().await, applied);
    bed.ok("session::on-config-change", json!({})).await;
    let rejected = json!({
        "last_outcome": "rejected", "last_error": "the folder cannot be read", "rejected_reloads": 1,
    });
    assert_eq!(status().await, rejected);
    assert_eq!(bed.err("session::on-config-change", json!({})).await.0, "session/storage");
    assert_eq!(status().await, rejected);
    bed.service.note_reload(Ok(()));
    assert_eq!(status().await["last_outcome"], json!("applied"));
    assert_eq!(status().await["rejected_reloads"], json!(1), "never reset");
}

/// Another store on the same directory: a session has one writer, and the store before lets go of it a moment later.
#[tokio::test]
async fn a_write_waits_for_the_store_before_to_let_go() {
    let bed = TestService::on(&stores::native()).await;
    let id = bed.create(json!({})).await;
    bed.say(&id, "before").await;
    let again = bed.factory.open(bed.entropy.clone(), bed.clock.clone()).await;
    let beside = Service::new(again.clone(), bed.clock.clone(), bed.entropy.clone());
    let request = json!({"session_id": id, "message": user("beside")});
    let refused = beside.call(&bed.scope, "session::append", request).await.unwrap_err();
    assert_eq!(
        refused.code(),
        "session/locked",
        "a store that nobody made room for is refused at once"
    );
    let old = bed.service.swap_store(again);
    let (heard, ()) = tokio::join!(bed.say(&id, "after"), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        old.close().await.unwrap();
    });
    drop(heard);
    assert_eq!(bed.texts(&id).await, ["before", "after"]);
}
