//! The feed of all sessions of a store where much happens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::moody::Moody;
use crate::common::{Bed, assistant, stores, text};
use bough_service::{EventKind, FeedItem};
use serde_json::json;

struct Busy {
    bed: Bed,
    store: Arc<Moody>,
    id: String,
}

impl Busy {
    async fn new() -> Self {
        let (bed, store) = Moody::bed();
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
async fn gathering_what_is_at_hand_begins_no_reading() {
    let busy = Busy::new().await;
    let mut listener = busy.bed.listen().await;
    for text in ["one", "two", "three"] {
        busy.bed.say(&busy.id, text).await;
    }
    let before = busy.asked();
    assert!(listener.subscription.next_at_hand().is_none());
    assert_eq!(busy.asked(), before);
    assert_eq!(said(&listener.item().await), "one");
    assert_eq!(busy.asked(), before + 1);
    busy.bed.say(&busy.id, "four").await;
    let mut gathered = Vec::new();
    while let Some(item) = listener.subscription.next_at_hand() {
        gathered.push(said(&item));
    }
    assert_eq!(gathered, ["two", "three"]);
    assert_eq!(busy.asked(), before + 1);
    assert_eq!(said(&listener.item().await), "four", "and nothing was passed over");
}

/// The steps of a reply are put together by what follows it. Who follows all sessions and comes late hears each of them.
#[tokio::test]
async fn each_step_of_a_reply_is_told_although_it_is_settled_at_once() {
    for factory in [stores::native(), stores::fs(), stores::memory()] {
        let bed = Bed::on(&factory).await;
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
