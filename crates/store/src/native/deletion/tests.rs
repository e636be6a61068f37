//! Deletions and restores that a killed process left half done.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;

use bough_log::{Envelope, Expected, Options, kind};
use bough_platform::{Platform, RelPath};
use bough_session::{MetaChange, Record, SessionId, SessionState};

type LogStore = bough_log::LogStore<SessionState>;

use super::super::{NativeOptions, NativeStore};
use crate::{ListQuery, Store, StoreExt};

async fn open(dir: &Path) -> NativeStore {
    let platform = Platform::system(dir).unwrap();
    let store = NativeStore::open(platform, dir.to_owned(), NativeOptions::default()).await;
    let store = store.unwrap();
    store.filled().await;
    store
}

fn log(dir: &Path) -> LogStore {
    LogStore::open(Platform::system(dir).unwrap(), Options::default()).unwrap()
}

fn session() -> SessionId {
    SessionId::from_stored("s")
}

async fn listed(store: &NativeStore) -> usize {
    let query = ListQuery { limit: 10, ..ListQuery::default() };
    store.list(&query).await.unwrap().sessions.len()
}

/// A directory with one session that is listed.
async fn with_a_session() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let change = MetaChange { title: Some("t".to_owned()), ..MetaChange::default() };
    store.create(&session(), vec![Record::Meta(change).at(1)].into()).await.unwrap();
    assert_eq!(listed(&store).await, 1);
    store.close().await.unwrap();
    dir
}

/// The mark of a process that was killed.
fn somebody_was_killed(dir: &Path) {
    let disk = Platform::system(dir).unwrap().disk;
    drop(disk.create(&RelPath::parse("processes/0123456789abcdef").unwrap()).unwrap());
}

/// The record of the deletion is there, and the log is where it was.
fn delete_by_half(dir: &Path) {
    let log = log(dir);
    let tombstone = Envelope::plain(kind::TOMBSTONE, 5, "{}");
    log.append("s", Expected::Any, vec![tombstone]).unwrap();
    log.close_all().unwrap();
}

/// The record of the restore is there, and the log is still in the trash.
fn restore_by_half(dir: &Path) {
    let log = log(dir);
    log.delete("s", 5, "{}").unwrap();
    log.undelete("s", None, 6, "{}").unwrap();
    let disk = Platform::system(dir).unwrap().disk;
    let sessions = RelPath::parse("sessions").unwrap();
    for shard in disk.list(&sessions).unwrap() {
        let shard = sessions.join(&shard.name).unwrap();
        for listed in disk.list(&shard).unwrap().into_iter().filter(|listed| listed.is_dir) {
            let to = RelPath::parse("trash").unwrap().join(&listed.name).unwrap();
            disk.rename(&shard.join(&listed.name).unwrap(), &to).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_cut_short_does_not_expire_and_can_be_asked_for_again() {
    let dir = with_a_session().await;
    let store = open(dir.path()).await;
    restore_by_half(dir.path());
    let trash = store.trash(Some(&session())).await.unwrap();
    assert_eq!((trash.len(), trash[0].deleted_at), (1, None));
    let incarnation = trash[0].incarnation;
    assert!(!store.purge(&session(), incarnation, None).await.unwrap());
    assert!(!store.purge(&session(), incarnation, Some(0)).await.unwrap());
    store.undelete(&session(), incarnation, 7).await.unwrap();
    assert_eq!(listed(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_cut_short_by_a_kill_is_finished_by_the_next_process() {
    let dir = with_a_session().await;
    restore_by_half(dir.path());
    somebody_was_killed(dir.path());
    let store = open(dir.path()).await;
    assert_eq!(listed(&store).await, 1);
    assert_eq!(store.state(&session()).await.unwrap().unwrap().state.meta.title, "t");
    assert!(store.trash(None).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_was_cut_short_by_a_kill_is_finished_by_the_next_process() {
    let dir = with_a_session().await;
    delete_by_half(dir.path());
    somebody_was_killed(dir.path());
    let store = open(dir.path()).await;
    assert_eq!(listed(&store).await, 0);
    let trash = store.trash(None).await.unwrap();
    assert_eq!((trash.len(), trash[0].deleted_at), (1, Some(5)));
    assert!(store.shared.in_files.is_empty(), "no file answers for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_was_cut_short_is_in_the_trash_for_whoever_asks_for_it() {
    let dir = with_a_session().await;
    let store = open(dir.path()).await;
    delete_by_half(dir.path());
    let trash = store.trash(Some(&session())).await.unwrap();
    assert_eq!(trash.len(), 1);
    assert_eq!(listed(&store).await, 0, "its row goes as well");
    store.undelete(&session(), trash[0].incarnation, 7).await.unwrap();
    assert_eq!(listed(&store).await, 1);
}
