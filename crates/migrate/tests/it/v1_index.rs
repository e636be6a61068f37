//! A served V1 file answers as the same records do in memory.

use std::sync::Arc;

use crate::common::pieces::{piece, text};
use crate::common::*;
use bough_migrate::V1Session;
use bough_session::{EntryId, NewRecord, Record, SessionId};
use bough_store::{
    EntryQuery, MemoryStore, PathQuery, PathStart, Position, ReadStore, RecordQuery, StoreError,
    StoreExt,
};
use bough_testkit::{SimDisk, SimEntropy};
use proptest::prelude::*;
use serde_json::json;

const FILE: &str = "v1/s.jsonl";

fn session() -> SessionId {
    SessionId::from_stored("s")
}

async fn serve(disk: &SimDisk, file: &str) -> V1Session {
    let live = migrator(disk, inline(), 1).open_file(file).unwrap();
    V1Session::open(live, Arc::new(SimEntropy::new(4))).await.unwrap()
}

/// The records of a file, by the mapping alone.
fn mapped(disk: &SimDisk, file: &str) -> Vec<NewRecord> {
    let mut records = Vec::new();
    let live = migrator(disk, inline(), 1).open_file(file).unwrap();
    live.records(&mut |new| records.push(new)).unwrap();
    records
}

async fn all_records(store: &dyn ReadStore, limit: usize) -> Vec<(u64, i64, Record)> {
    let mut found = Vec::new();
    let mut after = Position::default();
    loop {
        let page = store.records(&session(), after, limit).await.unwrap();
        after = page.position_after(after);
        found.extend(
            page.records.into_iter().map(|stored| (stored.seq, stored.at_ms, stored.record)),
        );
        if !page.more {
            return found;
        }
    }
}

/// An answer without what no two stores share.
fn shown<T: std::fmt::Debug>(answer: &Result<T, StoreError>) -> String {
    format!("{answer:?}")
}

async fn compare(served: &V1Session, memory: &MemoryStore) {
    let (of_file, of_memory) = (
        served.state(&session()).await.unwrap().unwrap(),
        memory.state(&session()).await.unwrap().unwrap(),
    );
    assert_eq!(of_file.state, of_memory.state);
    assert_eq!(of_file.position, of_memory.position);
    let expected = all_records(memory, 1_000).await;
    assert_eq!(all_records(served, 3).await, expected);
    let bare =
        RecordQuery::after(Position::default(), 4).without_entries(expected.len() as u64 - 1);
    assert_eq!(
        served.read_records(&session(), &bare).await.unwrap().records,
        memory.read_records(&session(), &bare).await.unwrap().records
    );
    let mut ids: Vec<EntryId> = expected
        .iter()
        .filter_map(|(_, _, record)| record.as_entry().map(|entry| entry.id.clone()))
        .collect();
    ids.push(EntryId::from_stored("not there"));
    for id in &ids {
        compare_entry(served, memory, id).await;
    }
    compare_paths(served, memory, &ids).await;
}

async fn compare_entry(served: &V1Session, memory: &MemoryStore, id: &EntryId) {
    for revision in [None, Some(0), Some(1)] {
        let query = EntryQuery { id: id.clone(), incarnation: None, revision };
        assert_eq!(
            served.read_entry(&session(), &query).await.unwrap(),
            memory.read_entry(&session(), &query).await.unwrap(),
            "{query:?}"
        );
    }
    for limit in [1, 100] {
        assert_eq!(
            shown(&served.branch_heads(&session(), Some(id), limit).await),
            shown(&memory.branch_heads(&session(), Some(id), limit).await)
        );
    }
}

async fn compare_paths(served: &V1Session, memory: &MemoryStore, ids: &[EntryId]) {
    let leaves = ids.iter().cloned().map(Some).chain([None]);
    for leaf in leaves {
        let starts = ids
            .iter()
            .rev()
            .take(4)
            .chain(ids.first())
            .flat_map(|id| [PathStart::After(id.clone()), PathStart::Before(id.clone())]);
        for start in starts.chain([PathStart::Root, PathStart::Leaf]) {
            let query = PathQuery { leaf: leaf.clone(), start, limit: 3 };
            assert_eq!(
                shown(&served.path(&session(), &query).await),
                shown(&memory.path(&session(), &query).await),
                "{query:?}"
            );
        }
    }
}

/// Whether the last line is still being written, for who serves the file: it has no end and is no JSON yet.
fn is_cut(bytes: &[u8]) -> bool {
    let last = bytes.rsplit(|byte| *byte == b'\n').next().unwrap().trim_ascii();
    !last.is_empty() && serde_json::from_slice::<serde_json::Value>(last).is_err()
}

async fn compare_file(bytes: &[u8]) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), bytes).unwrap();
    let mut records = mapped(&disk, FILE);
    if is_cut(bytes) {
        records.pop();
    }
    let memory = memory("s", records).await;
    compare(&serve(&disk, FILE).await, &memory).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_file_answers_as_its_records_in_memory_do(
        pieces in proptest::collection::vec(piece(), 0..30),
        crlf in any::<bool>(),
        ended in any::<bool>(),
        version in 1..=3_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare_file(&text(&pieces, version, crlf, ended)));
    }
}

#[tokio::test]
async fn an_id_that_comes_twice_is_two_entries() {
    compare_file(
        file(&[
            header("s"),
            message("a", None, "first"),
            message("b", Some("a"), "under the first"),
            message("a", Some("b"), "second"),
            message("c", Some("a"), "under the second"),
            message("a~2", Some("a"), "a name that is taken"),
            message("a", None, "third"),
        ])
        .as_bytes(),
    )
    .await;
}

#[tokio::test]
async fn lines_before_the_header_and_after_a_mark_are_kept() {
    let mut bytes = b"\xef\xbb\xbfnot json\n\n".to_vec();
    bytes.extend(file(&[header("s"), message("a", None, "first")]).into_bytes());
    compare_file(&bytes).await;
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(sample("s").into_bytes());
    compare_file(&bytes).await;
}

#[tokio::test]
async fn a_database_answers_as_its_records_in_memory_do() {
    let disk = SimDisk::new();
    disk.plant(&path("v1/s.sqlite"), &database(&values(sample("s").as_bytes()))).unwrap();
    let live = migrator(&disk, inline(), 1).open_file("v1/s.sqlite").unwrap();
    let mut records = Vec::new();
    live.records(&mut |new| records.push(new)).unwrap();
    // Only a migration reads the side table, not to a reader.
    records.retain(|new| !format!("{:?}", new.record).contains("sqlite_meta"));
    compare(&serve(&disk, "v1/s.sqlite").await, &memory("s", records).await).await;
}

#[tokio::test]
async fn what_is_appended_is_read_back_beside_the_lines_of_others() {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    let served = serve(&disk, FILE).await;
    let memory = memory("s", mapped(&disk, FILE)).await;
    let own = native_entry("n", Some("c"), "ours", 1_800_000_000_000);
    let batch = vec![Record::Entry(own).at(1_800_000_000_000)];
    let head = served.state(&session()).await.unwrap().unwrap().head;
    let appended = served.append(&head, batch.clone()).await.unwrap();
    appended.durable.await.unwrap();
    // Once more is refused, and nothing is written.
    let again = served.append(&appended.head, batch.clone()).await;
    assert!(again.unwrap_err().to_string().contains("exists already"));
    let head = memory.state(&session()).await.unwrap().unwrap().head;
    memory.append(&session(), &head, batch.into()).await.unwrap().durable.await.unwrap();
    let line = format!("{}\n", message("p", Some("n"), "by pi"));
    let mut grown = bytes(&disk, FILE);
    grown.extend_from_slice(line.as_bytes());
    disk.plant(&path(FILE), &grown).unwrap();
    let new = mapped(&disk, FILE).pop().unwrap();
    let head = memory.state(&session()).await.unwrap().unwrap().head;
    memory.append(&session(), &head, vec![new].into()).await.unwrap().durable.await.unwrap();
    compare(&served, &memory).await;
}

#[tokio::test]
async fn a_version_1_entry_keeps_the_id_that_its_writer_gave_it() {
    let disk = SimDisk::new();
    let mut first = header("s");
    first["version"] = json!(1);
    let line = json!({"type":"message","timestamp":"2024-12-03T14:00:01.000Z",
        "message":{"role":"user","content":"first","timestamp":1}});
    disk.plant(&path(FILE), file(&[first, line.clone()]).as_bytes()).unwrap();
    let served = serve(&disk, FILE).await;
    let before = served.state(&session()).await.unwrap().unwrap();
    let leaf = before.state.leaf.clone().unwrap();
    let own = native_entry("n", Some(leaf.as_str()), "ours", 1_800_000_000_000);
    let batch = vec![Record::Entry(own).at(1_800_000_000_000)];
    served.append(&before.head, batch).await.unwrap().durable.await.unwrap();
    let mut grown = bytes(&disk, FILE);
    grown.extend_from_slice(format!("{line}\n").as_bytes());
    disk.plant(&path(FILE), &grown).unwrap();
    let query = PathQuery { leaf: None, start: PathStart::Root, limit: 10 };
    let page = served.path(&session(), &query).await.unwrap();
    let ids: Vec<&str> = page.entries.iter().map(|stored| stored.entry.id.as_str()).collect();
    assert_eq!((ids.len(), ids[1]), (3, "n"), "{ids:?}");
    assert_eq!(page.entries[2].entry.parent_id.as_ref().unwrap().as_str(), "n");
    assert!(served.entry(&session(), &EntryId::from_stored("n")).await.unwrap().is_some());
}
