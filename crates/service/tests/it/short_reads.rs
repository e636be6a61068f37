//! A log that shows less than it did, for a moment: what happens while a writer takes it over from another process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::flaky_store::FlakyStore;
use crate::common::{Listener, TestService};
use bough_service::limits::FEED_SHORT_READS_MAX;
use bough_service::{EventFilter, FeedItem, GapReason, StartAt};
use bough_session::SessionId;
use serde_json::json;

/// A session on a store with moods, and a subscriber that is about to read it from the beginning.
struct Reading {
    bed: TestService,
    id: String,
    store: Arc<FlakyStore>,
    listener: Listener,
}

/// What the session tells from its beginning.
const TOLD: [&str; 3] = ["created", "message-added", "message-added"];

impl Reading {
    async fn one_session() -> Self {
        Self::of(|id| EventFilter::everything().in_session(SessionId::from_stored(id))).await
    }

    async fn all_sessions() -> Self {
        Self::of(|_| EventFilter::everything()).await
    }

    async fn of(filter: impl FnOnce(&str) -> EventFilter) -> Self {
        let (bed, store) = FlakyStore::bed();
        let id = bed.create(json!({})).await;
        bed.say(&id, "one").await;
        bed.say(&id, "two").await;
        let listener = bed.subscribe(filter(&id), StartAt::Start).await;
        Self { bed, id, store, listener }
    }

    /// From now on, so many reads find nothing.
    fn hide(&self, short_reads: u32) {
        self.store.short_reads.store(short_reads, Ordering::SeqCst);
    }

    fn short_reads_left(&self) -> u32 {
        self.store.short_reads.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_log_does_not_show_for_a_moment_is_read_again() {
    for mut reading in [Reading::one_session().await, Reading::all_sessions().await] {
        reading.hide(FEED_SHORT_READS_MAX - 1);
        assert_eq!(reading.listener.kinds().await, TOLD);
        assert_eq!(reading.short_reads_left(), 0, "each was tried");
        reading.bed.say(&reading.id, "three").await;
        assert_eq!(reading.listener.kinds().await, ["message-added"], "and it goes on from there");
    }
}

/// The place of the reader is kept: it tells everything once the log shows it.
#[tokio::test(start_paused = true)]
async fn a_session_that_stays_short_is_delivered_later_and_without_a_gap() {
    let mut reading = Reading::one_session().await;
    // It looks twice before it says that there is nothing.
    reading.hide(2 * FEED_SHORT_READS_MAX);
    let item = reading.listener.subscription.next_ready().await.unwrap();
    assert!(item.is_none(), "{item:?}");
    assert_eq!(reading.short_reads_left(), 0);
    assert_eq!(reading.listener.kinds().await, TOLD);
}

/// The feed of all sessions does not wait for one of them for ever: it says that something is missing, and goes on.
#[tokio::test(start_paused = true)]
async fn a_session_that_stays_short_is_a_gap_among_all_sessions() {
    let mut reading = Reading::all_sessions().await;
    reading.hide(FEED_SHORT_READS_MAX);
    let item = reading.listener.item().await;
    assert!(matches!(item, FeedItem::Gap(GapReason::TooOld)), "{item:?}");
    assert_eq!(reading.short_reads_left(), 0);
    reading.listener.kinds().await;
    reading.bed.say(&reading.id, "three").await;
    assert_eq!(reading.listener.kinds().await, ["message-added"]);
}

/// A session that cannot be read is a gap; the events of the others are delivered.
#[tokio::test(start_paused = true)]
async fn a_damaged_session_keeps_no_other_back() {
    let mut reading = Reading::all_sessions().await;
    *reading.store.damaged.lock().unwrap() = Some(reading.id.clone());
    let other = reading.bed.create(json!({})).await;
    reading.bed.say(&other, "hello").await;
    let mut gaps = 0;
    while let FeedItem::Gap(_) = reading.listener.item().await {
        gaps += 1;
    }
    assert!(gaps > 0, "it is said that something is missing");
    assert_eq!(reading.listener.kinds().await, ["message-added"], "after its creation");
}
