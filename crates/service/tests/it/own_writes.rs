//! What this process writes reaches its followers from memory, once, in order and only when it is durable; what others
//! write is read from the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::flaky_store::FlakyStore;
use crate::common::stores::DiskKind;
use crate::common::{Listener, TestService, assistant, text, user};
use crate::weaknesses::OnSimDisk;
use bough_recorder::{AgentEnd, AgentEvent, AgentStart, RecordedMessage, Timestamp};
use bough_service::limits::RECENT_WRITES_MAX;
use bough_service::{EventFilter, EventKind, FeedItem, StartAt};
use bough_session::{
    AgentMessage, ContentBlock, ContentChange, Delta, Entry, EntryBody, EntryId, Record, SessionId,
    TextAppend, UserMessage, codec,
};
use bough_store::StoreExt;
use bough_testkit::{Call, Fault, FaultPlan};
use serde_json::{Value, json};

/// A session that somebody follows from now on.
struct Followed {
    bed: TestService,
    store: Arc<FlakyStore>,
    id: String,
    listener: Listener,
}

fn in_session(id: &str) -> EventFilter {
    EventFilter::everything().in_session(SessionId::from_stored(id))
}

impl Followed {
    async fn by_its_own_feed() -> Self {
        Self::by(in_session).await
    }

    async fn by_the_feed_of_all() -> Self {
        Self::by(|_| EventFilter::everything()).await
    }

    async fn by(filter: impl FnOnce(&str) -> EventFilter) -> Self {
        let (bed, store) = FlakyStore::bed();
        let id = bed.create(json!({})).await;
        let listener = bed.subscribe(filter(&id), StartAt::Now).await;
        Self { bed, store, id, listener }
    }

    async fn both_ways() -> [Self; 2] {
        [Self::by_its_own_feed().await, Self::by_the_feed_of_all().await]
    }

    async fn stream(&self, entry: &str, more: &str) {
        let request = json!({"session_id": self.id, "entry_id": entry, "block": 0, "text": more});
        self.bed.ok("session::append-delta", request).await;
    }

    /// The texts of the messages that come next, each as its event shows it.
    async fn hears(&mut self, count: usize) -> Vec<String> {
        let mut heard = Vec::new();
        for _ in 0..count {
            heard.push(message_text(&self.listener.event().await.1));
        }
        heard
    }

    fn records_read(&self) -> usize {
        self.store.records_read.load(Ordering::SeqCst)
    }

    fn unfolded_batches(&self) -> usize {
        self.store.unfolded_batches.load(Ordering::SeqCst)
    }

    /// The session's head as a bridged instance reads it.
    async fn head(&self) -> Value {
        let request = json!({"op": "state", "session_id": self.id});
        self.bed.ok("session::store::read", request).await["ok"]["head"].clone()
    }

    /// Does what a bridged instance does to write; returns the answer, or the error of the store.
    async fn commit(&self, request: Value) -> Result<Value, Value> {
        let answer = self.bed.ok("session::store::commit", request).await;
        answer.get("ok").cloned().ok_or_else(|| answer["error"].clone())
    }

    async fn commit_append(&self, expected: &Value, id: &str, text: &str) -> Result<Value, Value> {
        let message = AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], 1));
        let request = json!({"session_id": self.id});
        let leaf = self.bed.ok("session::store::get-active-leaf", request).await;
        let parent = leaf["entry_id"].as_str().map(EntryId::from_stored);
        let body = EntryBody::Message(message.into());
        let entry = Entry::new(EntryId::from_stored(id), parent, 1, body);
        let records = [Record::Entry(entry).at(1)];
        let request = json!({
            "op": "append", "session_id": self.id, "expected": expected, "records": records,
        });
        self.commit(request).await
    }

    async fn commit_step(&self, entry: &str, revision: u64, more: &str) -> Result<Value, Value> {
        let change = ContentChange::Append(TextAppend { block: 0, text: more.to_owned() });
        let entry_id = EntryId::from_stored(entry);
        let delta = Delta { at_ms: 1, entry_id, revision, change, details: None, origin: None };
        let delta = codec::encode_delta(&delta);
        self.commit(json!({"op": "delta", "session_id": self.id, "delta": delta})).await
    }
}

fn message_text(event: &Value) -> String {
    text(&event["message"])
}

/// The events of a loop of one exchange.
fn exchange(session: &str, number: i64) -> Value {
    let (loop_id, at) = (format!("{session}.m.{number}"), Timestamp::from_unix_ms(number * 1000));
    let said = vec![RecordedMessage::assistant("p", "m", format!("answer {number}"), 2)];
    let start = AgentEvent::from(AgentStart::new("agent", session, &loop_id, at));
    json!([start, AgentEvent::from(AgentEnd::new(&loop_id, said, at))])
}

/// A recorder writes through the open session: its feeds and the next writer know the records already.
#[tokio::test]
async fn what_a_recorder_writes_is_neither_read_back_nor_folded_twice() {
    let (bed, store) = FlakyStore::bed();
    let record = async |number| {
        let request = json!({"recording_id": "r", "events": exchange("s", number)});
        bed.ok("session::record", request).await
    };
    record(1).await;
    let added = || EventFilter::of([EventKind::MessageAdded]);
    for (filter, first) in [(added().in_session(SessionId::from_stored("s")), 2), (added(), 4)] {
        let mut listener = bed.subscribe(filter, StartAt::Now).await;
        record(first).await;
        listener.event().await;
        let read = store.records_read.load(Ordering::SeqCst);
        bed.say("s", "between").await;
        record(first + 1).await;
        let mut heard = async || message_text(&listener.event().await.1);
        assert_eq!(heard().await, "between");
        assert_eq!(heard().await, format!("answer {}", first + 1));
        let read_now = store.records_read.load(Ordering::SeqCst);
        assert_eq!(read_now - read, 1, "the recorder reads what came in between, and nobody else");
    }
    assert_eq!(store.unfolded_batches.load(Ordering::SeqCst), 0);
}

/// What an instance behind a bridge writes goes through the open session too: the feeds and the next writer know it.
#[tokio::test]
async fn what_a_bridged_instance_writes_is_neither_read_back_nor_folded_twice() {
    for mut followed in Followed::both_ways().await {
        let bed = &followed.bed;
        bed.append(&followed.id, json!({"entry_id": "m", "message": assistant("")})).await;
        bed.say(&followed.id, "one").await;
        assert_eq!(followed.hears(2).await, ["", "one"]);
        let (read, unfolded) = (followed.records_read(), followed.unfolded_batches());
        let stale = followed.head().await;
        followed.commit_append(&stale, "bridged", "two").await.unwrap();
        followed.commit_step("m", 1, "a").await.unwrap();
        followed.bed.say(&followed.id, "three").await;
        assert_eq!(followed.hears(3).await, ["two", "a", "three"]);
        assert_eq!(followed.records_read(), read, "nothing was read back");
        assert_eq!(followed.unfolded_batches(), unfolded, "the store folds nothing again");
        let refused = followed.commit_append(&stale, "late", "late").await.unwrap_err();
        assert_eq!(refused["code"], "conflict");
        assert_eq!(refused["current"], followed.head().await);
        assert_eq!(
            followed.commit_step("m", 1, "b").await.unwrap_err()["code"],
            "revision_conflict"
        );
        assert_eq!(followed.commit_step("x", 1, "b").await.unwrap_err()["code"], "entry_not_found");
        assert_eq!(followed.bed.texts(&followed.id).await, ["a", "one", "two", "three"]);
    }
}

#[tokio::test]
async fn own_writes_are_not_read_back() {
    for mut followed in Followed::both_ways().await {
        let (bed, id) = (&followed.bed, &followed.id);
        bed.append(id, json!({"entry_id": "m", "message": assistant("")})).await;
        bed.say(id, "one").await;
        // Whoever hears of a session for the first time reads what it is.
        assert_eq!(followed.hears(2).await, ["", "one"]);
        let read = followed.records_read();
        followed.stream("m", "a").await;
        followed.stream("m", "b").await;
        assert_eq!(followed.hears(2).await, ["a", "ab"]);
        followed.bed.say(&followed.id, "two").await;
        assert_eq!(followed.hears(1).await, ["two"]);
        assert_eq!(followed.records_read(), read, "nothing was read back");
    }
}

#[tokio::test]
async fn a_foreign_write_between_two_own_ones_is_heard_in_its_place() {
    for mut followed in Followed::both_ways().await {
        let beside = followed.store.beside(&followed.bed);
        followed.bed.say(&followed.id, "own 1").await;
        beside.say(&followed.id, "foreign").await;
        followed.bed.say(&followed.id, "own 2").await;
        let read = followed.records_read();
        assert_eq!(followed.hears(3).await, ["own 1", "foreign", "own 2"]);
        assert!(followed.records_read() > read, "the foreign one was read");
        followed.bed.say(&followed.id, "own 3").await;
        let read = followed.records_read();
        assert_eq!(followed.hears(1).await, ["own 3"]);
        assert_eq!(followed.records_read(), read, "and it goes on from memory");
        assert!(followed.listener.deliveries().await.is_empty());
    }
}

#[tokio::test]
async fn nothing_is_heard_before_it_is_durable() {
    for mut followed in Followed::both_ways().await {
        followed.store.hold();
        let (service, id) = (followed.bed.service.clone(), followed.id.clone());
        let scope = followed.bed.scope.clone();
        let request = json!({"session_id": id, "message": user("one")});
        let write = tokio::spawn(async move {
            service.call(&scope, "session::append", request).await.unwrap();
        });
        while !write.is_finished() && !is_accepted(&followed).await {
            tokio::task::yield_now().await;
        }
        assert!(followed.listener.deliveries().await.is_empty());
        followed.store.release();
        assert_eq!(followed.hears(1).await, ["one"]);
        write.await.unwrap();
    }
}

/// Whether the store has accepted what is not durable yet: then a foreign writer meets it.
async fn is_accepted(followed: &Followed) -> bool {
    let session = SessionId::from_stored(followed.id.as_str());
    let durable = followed.store.state(&session).await.unwrap().unwrap();
    !followed.store.is_newest(&session, &durable.head).await.unwrap()
}

#[tokio::test]
async fn a_follower_that_joins_while_a_batch_is_in_flight_hears_it_once() {
    let (bed, store) = FlakyStore::bed();
    let id = bed.create(json!({})).await;
    store.hold();
    let (service, scope) = (bed.service.clone(), bed.scope.clone());
    let request = json!({"session_id": id, "message": user("in flight")});
    let write = tokio::spawn(async move {
        service.call(&scope, "session::append", request).await.unwrap();
    });
    let mut followed =
        Followed { listener: bed.subscribe(in_session(&id), StartAt::Now).await, bed, store, id };
    while !is_accepted(&followed).await {
        tokio::task::yield_now().await;
    }
    followed.store.release();
    write.await.unwrap();
    followed.bed.say(&followed.id, "next").await;
    assert_eq!(followed.hears(2).await, ["in flight", "next"]);
    assert!(followed.listener.deliveries().await.is_empty());
}

#[tokio::test]
async fn a_deletion_comes_after_what_was_written_before_it() {
    for mut followed in Followed::both_ways().await {
        let (bed, id) = (&followed.bed, &followed.id);
        bed.append(id, json!({"entry_id": "m", "message": assistant("")})).await;
        followed.stream("m", "a").await;
        bed.say(id, "one").await;
        bed.ok("session::delete", json!({"session_id": id})).await;
        assert_eq!(followed.hears(3).await, ["", "a", "one"]);
        assert_eq!(followed.listener.event().await.0, EventKind::Deleted);
        // The id begins another incarnation, in which the same numbers are given out again.
        followed.bed.ok("session::ensure", json!({"session_id": followed.id})).await;
        followed.bed.say(&followed.id, "again").await;
        assert_eq!(followed.listener.event().await.0, EventKind::Created);
        assert_eq!(followed.hears(1).await, ["again"]);
        assert!(followed.listener.deliveries().await.is_empty());
    }
}

/// More is written than is kept in memory, and nobody reads meanwhile.
#[tokio::test]
async fn a_follower_that_is_far_behind_hears_everything_once() {
    for mut followed in Followed::both_ways().await {
        let count = RECENT_WRITES_MAX * 2;
        for number in 0..count {
            followed.bed.say(&followed.id, &number.to_string()).await;
        }
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        assert_eq!(followed.hears(count).await, numbers);
        assert!(followed.listener.deliveries().await.is_empty());
    }
}

#[tokio::test]
async fn a_write_that_failed_is_not_heard_under_the_numbers_of_the_next() {
    let sim = OnSimDisk::new(DiskKind::Native);
    let bed = sim.service().await;
    let id = bed.create(json!({})).await;
    let mut listener = bed.subscribe(in_session(&id), StartAt::Now).await;
    let mut all = bed.listen().await;
    bed.say(&id, "one").await;
    sim.disk.inject(FaultPlan::from(Fault::Broken, 1).only(Call::Sync));
    let request = json!({"session_id": id, "message": user("failed")});
    assert_eq!(bed.err("session::append", request).await.0, "session/storage");
    sim.disk.heal();
    bed.say(&id, "two").await;
    let shown = bed.texts(&id).await;
    for listener in [&mut listener, &mut all] {
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last| last != "two") {
            match listener.item().await {
                FeedItem::Event(told) => heard.push(message_text(&told.event.value())),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(heard, shown, "the feed says what the log has");
    }
}
