//! Appending to sessions whose logs were closed in between, so that another process could write them.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use bough_log as log;
use bough_platform::Platform;
use bough_session::{
    ContentBlock, ContentChange, Delta, Entry, EntryBody, EntryId, MetaChange, NewRecord, Record,
    SessionId, TextAppend,
};

use super::{WriteState, convert};
use crate::native::{NativeOptions, NativeStore};
use crate::{Head, StoreError, StoreExt};

async fn open(dir: &Path) -> NativeStore {
    let platform = Platform::system(dir).unwrap();
    NativeStore::open(platform, dir.to_owned(), NativeOptions::default()).await.unwrap()
}

fn session() -> SessionId {
    SessionId::from_stored("s")
}

fn says(id: &str, text: &str) -> NewRecord {
    let message = serde_json::json!({
        "role": "user", "content": [ContentBlock::text(text)], "timestamp": 1,
    });
    Record::Entry(Entry::new(
        EntryId::from_stored(id),
        None,
        1,
        EntryBody::Message(serde_json::from_value(message).unwrap()),
    ))
    .at(1)
}

/// A session with one message.
fn first(text: &str) -> Vec<NewRecord> {
    vec![Record::Meta(MetaChange::default()).at(1), says("a", text)]
}

fn step(revision: u64, text: &str) -> Delta {
    let append = TextAppend { block: 0, text: text.to_owned() };
    Delta {
        at_ms: 2,
        entry_id: EntryId::from_stored("a"),
        revision,
        change: ContentChange::Append(append),
        details: None,
        origin: None,
    }
}

/// Closes the log of the session, as happens to the one that is idle longest when many are open.
fn make_room(store: &NativeStore) {
    store.shared.log.close("s").unwrap();
}

async fn append(store: &NativeStore, id: &str) -> Head {
    let head = store.state(&session()).await.unwrap().unwrap().head;
    let appended = store.append(&session(), &head, vec![says(id, "")].into()).await.unwrap();
    appended.durable.await.unwrap();
    appended.head
}

async fn add(store: &NativeStore, step: Delta) {
    store.append_delta(&session(), step).await.unwrap().durable.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_writes_after_the_comparison_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (open(dir.path()).await, open(dir.path()).await);
    let expected = ours.create(&session(), first("").into()).await.unwrap().head;
    ours.shared.compare(&session(), &expected).unwrap();
    make_room(&ours);
    let current = append(&theirs, "b").await;
    make_room(&theirs);
    let unmoved = log::Expected::Head(expected);
    let says = [says("c", "")];
    let batch = convert::envelopes(&says);
    let refused = ours.shared.enqueue(
        &session(),
        &mut WriteState::default(),
        unmoved,
        &log::Batch::new(&batch),
    );
    match refused.map(|pending| pending.head()) {
        Err(StoreError::Conflict { current: found }) => assert_eq!(found, current),
        other => panic!("{other:?}"),
    }
}

/// Otherwise its next step is refused, or, put together, takes the place of what the other process wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_streams_is_read_again_after_its_log_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (open(dir.path()).await, open(dir.path()).await);
    ours.create(&session(), first("0").into()).await.unwrap();
    add(&ours, step(1, "1")).await;
    make_room(&ours);
    add(&theirs, step(2, "2")).await;
    make_room(&theirs);
    add(&ours, step(3, "3")).await;
    append(&ours, "b").await;
    let found = ours.entry(&session(), &EntryId::from_stored("a")).await.unwrap().unwrap();
    assert_eq!(found.entry.revision, 3);
    assert!(format!("{:?}", found.entry.body).contains("0123"), "{found:?}");
}

/// Otherwise the steps before it count as a record that was never written, and the next record makes them unreadable.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_refused_leaves_the_steps_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let head = store.create(&session(), first("0").into()).await.unwrap().head;
    add(&store, step(1, "1")).await;
    let head = store.state(&session()).await.unwrap().map_or(head, |now| now.head);
    let stale = Record::Revision(step(1, "x").into_revision()).at(3);
    let refused = store.append(&session(), &head, vec![stale].into()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid { .. }), "{refused:?}");
    let misplaced = TextAppend { block: 9, text: "x".repeat(log::limits::DELTA_BYTES_MAX) };
    let unfit = Delta { change: ContentChange::Append(misplaced), ..step(2, "") };
    let refused = store.append_delta(&session(), unfit).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid { .. }), "{refused:?}");
    add(&store, step(2, "2")).await;
    append(&store, "b").await;
    let found = store.entry(&session(), &EntryId::from_stored("a")).await.unwrap().unwrap();
    assert!(format!("{:?}", found.entry.body).contains("012"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_whose_logs_were_closed_are_forgotten_with_their_streams() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    store.create(&session(), first("0").into()).await.unwrap();
    add(&store, step(1, "1")).await;
    make_room(&store);
    store.shared.forget_closed();
    assert!(store.shared.write_slots.lock().unwrap().is_empty());
}
