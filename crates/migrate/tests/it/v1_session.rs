//! A session that is served from its V1 file.

use std::sync::Arc;

use crate::common::*;
use bough_migrate::{ExportFormat, ExportOptions, V1Session, export};
use bough_session::{EntryId, MetaChange, NewRecord, Record, SessionId};
use bough_store::{PathQuery, PathStart, Position, ReadStore, StoreError, StoreExt, Write};
use bough_testkit::{SimDisk, SimEntropy};

const FILE: &str = "v1/s.jsonl";

async fn served(text: &str) -> (SimDisk, V1Session) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), text.as_bytes()).unwrap();
    let store = open(&disk).await;
    (disk, store)
}

async fn open(disk: &SimDisk) -> V1Session {
    let live = migrator(disk, inline(), 1).open_file(FILE).unwrap();
    V1Session::open(live, Arc::new(SimEntropy::new(4))).await.unwrap()
}

fn session() -> SessionId {
    SessionId::from_stored("s")
}

fn entry(id: &str, parent: &str) -> NewRecord {
    Record::Entry(native_entry(id, Some(parent), "text", 1_800_000_000_000)).at(1_800_000_000_000)
}

async fn path_ids(store: &V1Session, leaf: Option<&str>) -> Vec<String> {
    let leaf = leaf.map(EntryId::from_stored);
    let query = PathQuery { leaf, start: PathStart::Root, limit: 100 };
    let page = store.path(&session(), &query).await.unwrap();
    page.entries.iter().map(|stored| stored.entry.id.to_string()).collect()
}

#[tokio::test]
async fn reads_are_answered_from_the_file() {
    let (_, store) = served(&sample("s")).await;
    assert_eq!(path_ids(&store, None).await, ["a", "d", "e"]);
    assert_eq!(path_ids(&store, Some("c")).await, ["a", "b", "c"]);
    let heads = store.branch_heads(&session(), None, 10).await.unwrap();
    assert_eq!(heads.len(), 2);
    let snapshot = store.state(&session()).await.unwrap().unwrap();
    assert_eq!(snapshot.state.meta.message_count, 4);
    let mut out = Vec::new();
    let options = ExportOptions::whole(ExportFormat::Pi);
    export(&store, &session(), &options, &mut out).await.unwrap();
    assert_eq!(out, sample("s").as_bytes());
}

#[tokio::test]
async fn an_append_is_lines_in_the_file_before_it_is_acknowledged() {
    let (disk, store) = served(&sample("s")).await;
    let head = store.state(&session()).await.unwrap().unwrap().head;
    let appended = store.append(&head, vec![entry("n", "c"), entry("m", "n")]).await.unwrap();
    appended.durable.await.unwrap();
    let lines = values(&bytes(&disk.platter(), FILE));
    assert_eq!((&lines[6]["id"], &lines[7]["parentId"]), (&"n".into(), &"n".into()));
    assert_eq!(path_ids(&store, None).await, ["a", "b", "c", "n", "m"]);
    let conflict = store.append(&head, vec![entry("o", "m")]).await;
    assert!(matches!(conflict, Err(StoreError::Conflict { .. })));
    assert_eq!(values(&bytes(&disk, FILE)).len(), 8);
}

#[tokio::test]
async fn what_pi_writes_is_seen_and_a_file_written_anew_is_another_incarnation() {
    let (disk, store) = served(&sample("s")).await;
    let before = store.state(&session()).await.unwrap().unwrap();
    let grown = format!("{}{}\n", sample("s"), message("p", Some("e"), "by pi"));
    disk.plant(&path(FILE), grown.as_bytes()).unwrap();
    let page = store.records(&session(), Position::at(before.head.seq), 10).await.unwrap();
    assert_eq!(page.records.len(), 1);
    assert_eq!(page.incarnation, before.head.incarnation);
    disk.plant(&path(FILE), sample("s").replace("\"cwd\":\"/p\"", "\"cwd\":\"/q\"").as_bytes())
        .unwrap();
    let after = store.state(&session()).await.unwrap().unwrap();
    assert_ne!(after.head.incarnation, before.head.incarnation);
    assert_eq!(after.state.entry_count, 5);
}

#[tokio::test]
async fn what_a_v1_file_has_no_place_for_is_refused_and_nothing_is_written() {
    let (disk, store) = served(&sample("s")).await;
    let head = store.state(&session()).await.unwrap().unwrap().head;
    let renamed = MetaChange { title: Some("x".into()), ..MetaChange::default() };
    for record in [Record::Meta(renamed), Record::Tombstone] {
        let batch = vec![entry("n", "e"), record.at(1)];
        let refused = store.append(&head, batch).await;
        assert!(matches!(refused, Err(StoreError::Unsupported { .. })));
    }
    assert!(store.delete(&session(), 1).await.is_err());
    assert!(store.write(Write::Create(Vec::new().into())).await.is_err());
    assert_eq!(bytes(&disk, FILE), sample("s").as_bytes());
}

async fn move_leaf(store: &V1Session, to: Option<&str>) -> Result<(), StoreError> {
    let head = store.state(&session()).await.unwrap().unwrap().head;
    let leaf = Record::Leaf(to.map(EntryId::from_stored)).at(1_800_000_000_000);
    store.append(&head, vec![leaf]).await?.durable.await
}

#[tokio::test]
async fn a_moved_leaf_is_a_line_that_pi_goes_on_from() {
    let (disk, store) = served(&sample("s")).await;
    move_leaf(&store, Some("b")).await.unwrap();
    assert_eq!(path_ids(&store, None).await, ["a", "b"]);
    let last = values(&bytes(&disk.platter(), FILE)).pop().unwrap();
    assert_eq!((&last["type"], &last["customType"]), (&"custom".into(), &"bough.leaf".into()));
    assert_eq!(last["parentId"], "b");
    let again = open(&disk).await;
    assert_eq!(path_ids(&again, None).await[..2], ["a", "b"]);

    let head = store.state(&session()).await.unwrap().unwrap().head;
    store.append(&head, vec![entry("n", "b")]).await.unwrap().durable.await.unwrap();
    move_leaf(&store, Some("n")).await.unwrap();
    assert_eq!(path_ids(&open(&disk).await, None).await, ["a", "b", "n"]);
    assert_eq!(values(&bytes(&disk, FILE)).len(), 8, "the leaf is the last line already");

    move_leaf(&store, None).await.unwrap();
    let last = values(&bytes(&disk, FILE)).pop().unwrap();
    assert_eq!(last["parentId"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_leaf_that_a_version_1_file_cannot_have_is_refused() {
    let text = sample("s").replace("\"version\":3", "\"version\":1");
    let (disk, store) = served(&text).await;
    let refused = move_leaf(&store, Some("b")).await;
    assert!(refused.unwrap_err().to_string().contains("migrate"));
    assert_eq!(bytes(&disk, FILE), text.as_bytes());
    assert_eq!(path_ids(&store, None).await, ["a", "d", "e"]);
}
