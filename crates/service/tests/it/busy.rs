//! The feed of all sessions of a store where much happens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::flaky_store::FlakyStore;
use crate::common::{TestService, assistant, stores, text};
use bough_service::limits::GLOBAL_PAUSE_MAX;
use bough_service::{EventKind, FeedItem};
use serde_json::json;
use tokio::time::Instant;

struct Busy {
    bed: TestService,
    store: Arc<FlakyStore>,
    id: String,
}

impl Busy {
    async fn new() -> Self {
        let (bed, store) = FlakyStore::bed();
        let id = bed.create(json!({})).await;
        Self { bed, store, id }
    }

    fn asked(&self) -> u32 {
        self.store.asked_for_changes.load(Ordering::SeqCst)
    }
}

fn said(item: &FeedItem) -> String {
    match item {
        FeedItem::Event(delivery) => text(&delivery.event.value()["message"]).to_owned(),
        other => panic!("not an event: {other:?}"),
    }
}

/// Who reads to the end of a store that is never still would read for ever.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_never_still_is_heard_all_the_same() {
    let Busy { bed, store, id } = Busy::new().await;
    let mut listener = bed.listen().await;
    store.never_be_still(&bed, &id);
    bed.say(&id, "one").await;
    assert_eq!(said(&listener.item().await), "one");
    for _ in 0..100 {
        assert_eq!(said(&listener.item().await), "and another thing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wake_up_is_followed_once_for_all() {
    let busy = Busy::new().await;
    let mut listeners = Vec::new();
    for _ in 0..100 {
        listeners.push(busy.bed.listen().await);
    }
    let before = busy.asked();
    busy.bed.say(&busy.id, "one").await;
    for listener in &mut listeners {
        assert_eq!(said(&listener.item().await), "one");
    }
    assert_eq!(busy.asked(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn taking_available_items_begins_no_reading() {
    let busy = Busy::new().await;
    let mut listener = busy.bed.listen().await;
    for text in ["one", "two", "three"] {
        busy.bed.say(&busy.id, text).await;
    }
    let before = busy.asked();
    assert!(listener.subscription.next_available().is_none());
    assert_eq!(busy.asked(), before);
    assert_eq!(said(&listener.item().await), "one");
    assert_eq!(busy.asked(), before + 1);
    busy.bed.say(&busy.id, "four").await;
    let mut gathered = Vec::new();
    while let Some(item) = listener.subscription.next_available() {
        gathered.push(said(&item));
    }
    assert_eq!(gathered, ["two", "three"]);
    assert_eq!(busy.asked(), before + 1);
    assert_eq!(said(&listener.item().await), "four", "and nothing was passed over");
}

/// The steps of a reply are put together by what follows it. Who follows all sessions and comes late hears each of them.
#[tokio::test]
async fn each_step_of_a_reply_is_delivered_although_it_is_settled_at_once() {
    for factory in [stores::native(), stores::fs(), stores::memory()] {
        let bed = TestService::on(&factory).await;
        let id = bed.create(json!({})).await;
        let mut listener = bed.listen().await;
        let appended = bed.append(&id, json!({"message": assistant("a")})).await;
        let entry = appended["entry_id"].as_str().unwrap();
        for step in 1..=20 {
            bed.update(&id, entry, &"a".repeat(step + 1)).await;
        }
        bed.say(&id, "and on").await;
        let told = listener.ready().await;
        let updates = told.iter().filter(|(kind, _)| *kind == EventKind::MessageUpdated);
        let revisions = updates.filter_map(|(_, event)| event["revision"].as_u64());
        let name = bed.service.store().capabilities().name;
        assert_eq!(revisions.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>(), "{name}");
        assert_eq!(text(&told.last().unwrap().1["message"]), "and on");
    }
}

/// Many events in a row are read in pages a moment apart; a single event is delivered at once.
#[tokio::test(start_paused = true)]
async fn a_round_that_found_much_is_followed_by_a_rest() {
    let busy = Busy::new().await;
    let mut listener = busy.bed.listen().await;
    let began = Instant::now();
    for _ in 0..1_000 {
        busy.bed.say(&busy.id, "many").await;
    }
    for _ in 0..1_000 {
        assert_eq!(said(&listener.item().await), "many");
    }
    assert_eq!(began.elapsed().as_millis(), 0, "the first round waits for nothing");
    busy.bed.say(&busy.id, "after the rest").await;
    assert_eq!(said(&listener.item().await), "after the rest");
    // The paused clock ticks in milliseconds.
    let rested = began.elapsed();
    assert!(
        rested >= GLOBAL_PAUSE_MAX && rested.as_millis() <= GLOBAL_PAUSE_MAX.as_millis() + 1,
        "{rested:?}"
    );
    tokio::time::sleep(GLOBAL_PAUSE_MAX).await;
    let began = Instant::now();
    busy.bed.say(&busy.id, "alone").await;
    assert_eq!(said(&listener.item().await), "alone");
    assert_eq!(began.elapsed().as_millis(), 0);
}

/// Who begins to follow does not read what was said before, unless it is needed to tell what changed.
#[tokio::test(start_paused = true)]
async fn what_is_said_in_a_long_session_is_delivered_without_reading_all_of_it() {
    const LONG: usize = 500;
    let busy = Busy::new().await;
    for _ in 0..LONG {
        busy.bed.say(&busy.id, "long ago").await;
    }
    let mut listener = busy.bed.listen().await;
    let read = || busy.store.records_read.load(Ordering::SeqCst);
    let before = read();
    busy.bed.say(&busy.id, "now").await;
    assert_eq!(said(&listener.item().await), "now");
    assert!(read() - before <= 2, "{} records", read() - before);

    let mut other = busy.bed.listen().await;
    let status = |status: &str| json!({"session_id": busy.id, "status": status});
    busy.bed.call("session::set-status", status("working")).await.unwrap();
    busy.bed.call("session::set-status", status("done")).await.unwrap();
    for listener in [&mut listener, &mut other] {
        for (previous, now) in [("idle", "working"), ("working", "done")] {
            let FeedItem::Event(delivery) = listener.item().await else { panic!("not an event") };
            let told = delivery.event.value();
            assert_eq!(
                (&told["previous_status"], &told["status"]),
                (&json!(previous), &json!(now))
            );
        }
    }
}
