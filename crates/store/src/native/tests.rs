//! The adapter passes the suite that every adapter passes.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_log::format::Checkpoint;
use bough_platform::{Platform, RelPath};
use bough_session::{
    ContentBlock, Entry, EntryBody, EntryId, MetaChange, NewRecord, Record, Revision, SessionId,
    SessionState,
};
use serde_json::value::RawValue;

use super::{NativeOptions, NativeStore};
use crate::conformance::{Factory, run_all};
use crate::{Batch, PathQuery, PathStart, Position, Store, StoreError, StoreExt};

#[derive(Default)]
struct Native {
    dirs: Mutex<Vec<tempfile::TempDir>>,
}

impl Native {
    async fn open(&self, root: PathBuf) -> Arc<dyn Store> {
        let platform = Platform::system(&root).unwrap();
        Arc::new(NativeStore::open(platform, root, NativeOptions::default()).await.unwrap())
    }
}

#[async_trait]
impl Factory for Native {
    async fn fresh(&self) -> Arc<dyn Store> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        self.dirs.lock().unwrap().push(dir);
        self.open(root).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.close().await.unwrap();
        drop(store);
        let root = self.dirs.lock().unwrap().last().unwrap().path().to_owned();
        self.open(root).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_native_adapter_conforms() {
    run_all(&Native::default()).await;
}

fn titled(title: &str) -> Vec<NewRecord> {
    let change = MetaChange { title: Some(title.to_owned()), ..MetaChange::default() };
    vec![Record::Meta(change).at(1)]
}

/// The state that a caller passes is taken over: the new log is not read back for its row.
#[tokio::test]
async fn the_row_of_a_new_session_is_made_of_the_state_that_its_writer_has() {
    let native = Native::default();
    let store = native.fresh().await;
    let session = SessionId::parse("s").unwrap();
    let mut state = SessionState::new(session.clone());
    state.apply(&titled("as the writer knows it").remove(0).record, 1, 1);
    let batch = Batch { records: titled("as it is stored"), state: Some(Arc::new(state)) };
    store.create(&session, batch).await.unwrap();
    let query = crate::ListQuery { limit: 10, ..Default::default() };
    let title = async || store.list(&query).await.unwrap().sessions.remove(0).meta.title;
    assert_eq!(title().await, "as the writer knows it");
    // The next row is made of what the log is then.
    let head = store.state(&session).await.unwrap().unwrap().head;
    store.append(&session, &head, titled("new").into()).await.unwrap().durable.await.unwrap();
    assert_eq!(title().await, "new");
}

/// Whoever opens a directory and reads it must hear of all that comes after, also of what another process writes in
/// the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_another_process_right_after_opening_is_heard() {
    let dir = tempfile::tempdir().unwrap();
    let native = Native::default();
    let session = SessionId::from_stored("s");
    let writer = native.open(dir.path().to_owned()).await;
    let created = writer.create(&session, titled("before").into()).await.unwrap();
    created.durable.await.unwrap();
    writer.list(&crate::ListQuery::default()).await.unwrap();

    let reader = native.open(dir.path().to_owned()).await;
    let mut watch = reader.watch_session(&session);
    let before = reader.state(&session).await.unwrap().unwrap();
    let appended = writer.append(&session, &created.head, titled("after").into()).await.unwrap();
    appended.durable.await.unwrap();
    writer.close().await.unwrap();

    let heard = tokio::time::timeout(Duration::from_secs(120), watch.changed()).await;
    let heard = heard.expect("the reader hears of it").unwrap();
    assert!(before.position < heard.end.unwrap().position);
    let after = reader.state(&session).await.unwrap().unwrap();
    assert_eq!(after.state.meta.title, "after");
}

/// A process that ends while the catalogue is still being filled leaves its mark, so that the next one compares the
/// catalogue with every log instead of taking it for whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_that_was_not_filled_is_not_taken_for_whole() {
    for filled in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::system(dir.path()).unwrap();
        let (disk, root) = (Arc::clone(&platform.disk), dir.path().to_owned());
        let store = NativeStore::open(platform, root, NativeOptions::default()).await.unwrap();
        store.filled().await;
        store.shared.filled.send_replace(filled);
        store.close().await.unwrap();
        let marks = disk.list(&RelPath::parse("processes").unwrap()).unwrap();
        assert_eq!(marks.is_empty(), filled);
        drop(store);
    }
}

/// What people do to a session is in the lists of other processes once it is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_listed_by_another_process_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let native = Native::default();
    let session = SessionId::from_stored("s");
    let writer = native.open(dir.path().to_owned()).await;
    let other = native.open(dir.path().to_owned()).await;
    let titles = async || {
        let page = other.list(&crate::ListQuery { limit: 10, ..Default::default() }).await.unwrap();
        page.sessions.into_iter().map(|listed| listed.meta.title).collect::<Vec<_>>()
    };
    let mut head = writer.create(&session, titled("0").into()).await.unwrap().head;
    assert_eq!(titles().await, ["0"]);
    for turn in 1..=20 {
        let title = turn.to_string();
        let appended = writer.append(&session, &head, titled(&title).into()).await.unwrap();
        head = appended.head;
        appended.durable.await.unwrap();
        assert_eq!(titles().await, [title]);
    }
    writer.delete(&session, 1).await.unwrap();
    assert!(titles().await.is_empty());
}

/// A fork of one answer, in the records that the service writes; long enough for a checkpoint of its own.
fn fork_of_an_answer() -> Vec<NewRecord> {
    let forked_from = Some(SessionId::from_stored("origin"));
    let first = Record::Meta(MetaChange { forked_from, ..MetaChange::default() });
    let answer = serde_json::json!({
        "role": "assistant", "content": [{"type": "text", "text": "x".repeat(1 << 20)}],
        "stop_reason": "end", "usage": {"output": 7}, "model": "m", "provider": "p", "timestamp": 1,
    });
    let copy = Entry::new(
        EntryId::from_stored("a"),
        None,
        1,
        EntryBody::Message(serde_json::from_value(answer).unwrap()),
    );
    let leaf = Record::Leaf(Some(copy.id.clone()));
    [first, Record::Entry(copy), leaf].map(|record| record.at(1)).into()
}

/// Takes a field out of the state that a session's checkpoints carry, as if they had been written before there was such a
/// field. Says how many it was taken out of.
fn take_out_of_checkpoints(platform: &Platform, field: &str) -> usize {
    let disk = &platform.disk;
    let names = |path: &RelPath| disk.list(path).unwrap_or_default().into_iter();
    let root = RelPath::parse("sessions").unwrap();
    let shards = names(&root).map(|shard| root.join(&shard.name).unwrap());
    let sessions = shards.flat_map(|shard| {
        names(&shard).map(|found| shard.join(&found.name).unwrap()).collect::<Vec<_>>()
    });
    let mut taken = 0;
    for folder in sessions.map(|session| session.join("checkpoints").unwrap()) {
        for file in names(&folder) {
            let path = folder.join(&file.name).unwrap();
            let bytes = disk.read_all(&path, 1 << 20).unwrap();
            let mut checkpoint = Checkpoint::decode(&bytes, &file.name).unwrap();
            let mut state: serde_json::Value =
                serde_json::from_str(checkpoint.fold.unwrap().get()).unwrap();
            taken += usize::from(state.as_object_mut().unwrap().remove(field).is_some());
            checkpoint.fold = Some(RawValue::from_string(state.to_string()).unwrap());
            let aside = folder.join("aside").unwrap();
            disk.replace(&path, &aside, &checkpoint.encode().unwrap()).unwrap();
        }
    }
    taken
}

/// A checkpoint is derived: one that was written before copies were counted is no reason to count them wrongly.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_with_a_checkpoint_from_before_copies_were_counted_is_folded_again() {
    let dir = tempfile::tempdir().unwrap();
    let native = Native::default();
    let session = SessionId::from_stored("fork");
    let store = native.open(dir.path().to_owned()).await;
    let head = store.create(&session, fork_of_an_answer().into()).await.unwrap().head;
    store.append(&session, &head, titled("own").into()).await.unwrap().durable.await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let platform = Platform::system(dir.path()).unwrap();
    assert_eq!(take_out_of_checkpoints(&platform, "copied_usage"), 1);

    let store = native.open(dir.path().to_owned()).await;
    let state = store.state(&session).await.unwrap().unwrap().state;
    assert_eq!(state.details().copied_usage.total.output, 7);
}

/// A page is bounded by what is read for it, and that includes what its messages became since they were added.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_counts_what_its_messages_became() {
    let dir = tempfile::tempdir().unwrap();
    let store = Native::default().open(dir.path().to_owned()).await;
    let session = SessionId::from_stored("s");
    let mut head = store.create(&session, titled("t").into()).await.unwrap().head;
    let large = "x".repeat(4 << 20);
    for number in 0..6_u32 {
        let message = serde_json::json!({"role": "user", "content": [], "timestamp": 1});
        let entry = Entry::new(
            EntryId::from_stored(number.to_string()),
            number.checked_sub(1).map(|before| EntryId::from_stored(before.to_string())),
            1,
            EntryBody::Message(serde_json::from_value(message).unwrap()),
        );
        let grown = Revision::replace(&entry, &[ContentBlock::text(&large)], None);
        let batch = [Record::Entry(entry), Record::Revision(grown)].map(|record| record.at(1));
        let appended = store.append(&session, &head, batch.to_vec().into()).await.unwrap();
        appended.durable.await.unwrap();
        head = appended.head;
    }
    let query = PathQuery { leaf: None, start: PathStart::Root, limit: 100 };
    let page = store.path(&session, &query).await.unwrap();
    assert_eq!((page.entries.len(), page.more), (3, true), "four would be more than 16 MB");
}

/// A state and a head of two moments would let a writer go on from an entry that is no longer the last: two writers that
/// compare would interleave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let store = Native::default().open(dir.path().to_owned()).await;
    let session = SessionId::from_stored("s");
    let mut head = store.create(&session, titled("0").into()).await.unwrap().head;
    let (beside, id) = (Arc::clone(&store), session.clone());
    let reading = tokio::spawn(async move {
        let mut looks = 0_u32;
        loop {
            let now = beside.state(&id).await.unwrap().unwrap();
            assert_eq!(now.state.seq, now.head.seq, "after {looks} looks");
            let page = beside.records(&id, Position::default(), 1).await.unwrap();
            assert!(page.end.seq >= now.head.seq);
            looks += 1;
            if now.state.meta.title == "last" {
                return looks;
            }
        }
    });
    for turn in 1..=1_000 {
        let title = if turn == 1_000 { "last".to_owned() } else { turn.to_string() };
        let records =
            vec![Record::Meta(MetaChange { title: Some(title), ..Default::default() }).at(1)];
        let appended = store.append(&session, &head, records.into()).await.unwrap();
        head = appended.head;
        appended.durable.await.unwrap();
    }
    assert!(reading.await.unwrap() > 1);
}

/// One bit of the record of a title in the middle of a log is flipped.
fn flip_a_bit_of(platform: &Platform, title: &str) {
    let mut folders = vec![RelPath::parse("sessions").unwrap()];
    while let Some(folder) = folders.pop() {
        for found in platform.disk.list(&folder).unwrap() {
            let path = folder.join(&found.name).unwrap();
            if found.is_dir {
                folders.push(path);
            } else if found.name.ends_with(".seg") {
                let file = platform.disk.open(&path, bough_platform::Access::ReadWrite).unwrap();
                let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
                file.read_at(0, &mut bytes).unwrap();
                let at = bytes.windows(title.len()).position(|it| it == title.as_bytes()).unwrap();
                let flipped = title.as_bytes().first().unwrap() ^ 1;
                file.write_at(at as u64, &[flipped]).unwrap();
            }
        }
    }
}

/// What is missing from a damaged log is not taken for what is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_not_read_as_a_shorter_one() {
    let dir = tempfile::tempdir().unwrap();
    let native = Native::default();
    let session = SessionId::from_stored("s");
    let store = native.open(dir.path().to_owned()).await;
    let mut head = store.create(&session, titled("first").into()).await.unwrap().head;
    for title in ["second", "third", "fourth"] {
        let appended = store.append(&session, &head, titled(title).into()).await.unwrap();
        appended.durable.await.unwrap();
        head = appended.head;
    }
    store.close().await.unwrap();
    flip_a_bit_of(&Platform::system(dir.path()).unwrap(), "third");

    // With the catalogue that knows it, and with one that is made anew.
    for is_made_anew in [false, true] {
        if is_made_anew {
            let disk = Platform::system(dir.path()).unwrap().disk;
            disk.remove_file(&RelPath::parse("catalogue.sqlite").unwrap()).unwrap();
        }
        let store = native.open(dir.path().to_owned()).await;
        let damaged = |result: Result<(), StoreError>| {
            assert!(matches!(result, Err(StoreError::Corrupt { .. })), "{result:?}");
        };
        damaged(store.state(&session).await.map(drop));
        damaged(store.branch_heads(&session, None, 9).await.map(drop));
        damaged(store.entry(&session, &EntryId::from_stored("e")).await.map(drop));
        let path = PathQuery { leaf: None, start: PathStart::Root, limit: 9 };
        damaged(store.path(&session, &path).await.map(drop));
        damaged(store.records(&session, Position::default(), 9).await.map(drop));
        let before = store.records(&session, Position::default(), 1).await.unwrap();
        assert_eq!(before.records.len(), 1, "what comes before it can be read");
        let listed = store.list(&crate::ListQuery::default()).await.unwrap().sessions;
        assert_eq!(listed.len(), 1, "it is still in the lists");
        store.close().await.unwrap();
    }
}

/// A row is derived: one that cannot be read is made again from its log, and never keeps the others from being listed.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_made_again_and_fails_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = Native::default().open(dir.path().to_owned()).await;
    for name in ["a", "b"] {
        let created =
            store.create(&SessionId::from_stored(name), titled(name).into()).await.unwrap();
        created.durable.await.unwrap();
    }
    let query = crate::ListQuery { limit: 10, ..Default::default() };
    let whole = store.list(&query).await.unwrap().sessions;
    assert_eq!(whole.len(), 2);
    let beside = rusqlite::Connection::open(dir.path().join("catalogue.sqlite")).unwrap();
    let spoil = "UPDATE sessions SET listed = '{\"meta\":null}' WHERE session_id = ?";
    let readable = "SELECT json_extract(listed, '$.meta.title') FROM sessions WHERE session_id = ?";
    assert_eq!(beside.execute(spoil, ["a"]).unwrap(), 1);
    assert_eq!(store.list(&query).await.unwrap().sessions, whole);
    let title: String = beside.query_row(readable, ["a"], |row| row.get(0)).unwrap();
    assert_eq!(title, "a");

    // A row of a session whose log cannot be read: the page says what it can.
    let lost = "UPDATE sessions SET session_id = 'lost', listed = '' WHERE session_id = ?";
    assert_eq!(beside.execute(lost, ["a"]).unwrap(), 1);
    let page = store.list(&query).await.unwrap().sessions;
    assert_eq!(page.len(), 2);
    let lost = page.iter().find(|listed| listed.meta.session_id.as_str() == "lost").unwrap();
    assert_eq!(lost.meta.created_at, whole[0].meta.created_at);
}

/// The mark that another stream begins is durable a moment before its first step is. A position at it must say which steps lie
/// before it, or a reader that stopped there receives them again as a record.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_at_the_beginning_of_a_stream_knows_the_steps_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::system(dir.path()).unwrap();
    let root = dir.path().to_owned();
    let store = NativeStore::open(platform, root, NativeOptions::default()).await.unwrap();
    let session = SessionId::from_stored("s");
    let mut records = titled("t");
    for name in ["a", "b"] {
        let message = serde_json::json!({
            "role": "user", "content": [{"type": "text", "text": ""}], "timestamp": 1,
        });
        let body = EntryBody::Message(serde_json::from_value(message).unwrap());
        let entry = Entry::new(EntryId::from_stored(name), None, 1, body);
        records.push(Record::Entry(entry).at(1));
    }
    store.create(&session, records.into()).await.unwrap().durable.await.unwrap();
    let text = bough_session::TextAppend { block: 0, text: "x".to_owned() };
    let step = bough_session::Delta {
        at_ms: 2,
        entry_id: EntryId::from_stored("a"),
        revision: 1,
        change: bough_session::ContentChange::Append(text),
        details: None,
        origin: None,
    };
    store.append_delta(&session, step).await.unwrap().durable.await.unwrap();
    let position = store.state(&session).await.unwrap().unwrap().position;
    let mark = bough_log::Envelope {
        target: Some("b".into()),
        revision: Some(0),
        ..bough_log::Envelope::plain(bough_log::kind::STREAM, 3, "null")
    };
    let log = &store.shared.log;
    log.enqueue("s", bough_log::Expected::Any, &bough_log::Batch::new(&[mark]))
        .unwrap()
        .wait()
        .unwrap();
    let now = store.state(&session).await.unwrap().unwrap();
    assert_eq!(now.position, Position { seq: position.seq + 1, step: position.step });
    let page = store.records(&session, position, 9).await.unwrap();
    assert_eq!(page.end, now.position);
    store.append(&session, &now.head, titled("u").into()).await.unwrap().durable.await.unwrap();
    let after = store.records(&session, now.position, 9).await.unwrap().records;
    assert_eq!(after.first().unwrap().steps, crate::Steps::UpTo(now.position.step));
}
