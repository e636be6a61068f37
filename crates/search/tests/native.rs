//! The index in SQLite: the suite that every index passes, and what is its own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use bough_platform::{Platform, RelPath};
use bough_search::{
    IndexBatch, IndexCounts, IndexFile, NativeIndex, SearchError, SearchIndex, SessionUpdate,
    conformance,
};
use bough_session::SessionId;

fn open(folder: &std::path::Path) -> NativeIndex {
    let platform = Platform::system(folder).unwrap();
    NativeIndex::in_folder(platform.disk, folder, platform.clock).unwrap()
}

#[tokio::test]
async fn an_index_in_a_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let count = AtomicU32::new(0);
    conformance::check(async || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        open(&folder.path().join(number.to_string()))
    })
    .await;
}

#[tokio::test]
async fn an_index_in_memory_conforms() {
    conformance::check(async || NativeIndex::in_memory().unwrap()).await;
}

#[tokio::test]
async fn two_that_share_a_file_see_each_other_and_one_has_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let held = one.lock().await.unwrap();
    assert!(held.is_some() && other.lock().await.unwrap().is_none());
    drop(held);
    assert!(other.lock().await.unwrap().is_some());
    let cursor = Some("1".to_owned());
    one.apply(IndexBatch { cursor: cursor.clone(), ..IndexBatch::default() }).await.unwrap();
    assert_eq!(other.cursor().await.unwrap(), cursor);
}

#[tokio::test]
async fn a_damaged_file_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("search.sqlite"), "no database ".repeat(500)).unwrap();
    assert_eq!(open(folder.path()).cursor().await.unwrap(), None);
}

/// Makes an index of some pages, and damages all but the first.
async fn damaged(folder: &std::path::Path) {
    let stale = |number: u32| SessionUpdate::Stale {
        session_id: SessionId::from_stored(format!("session-{number}")),
    };
    let updates = (0..500).map(stale).collect();
    open(folder).apply(IndexBatch { updates, ..IndexBatch::default() }).await.unwrap();
    let path = folder.join("search.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(4096).for_each(|byte| *byte = 0xa5);
    std::fs::write(&path, bytes).unwrap();
}

#[tokio::test]
async fn a_file_that_is_damaged_in_the_middle_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    damaged(folder.path()).await;
    let index = open(folder.path());
    assert_eq!(index.sessions(None, 9).await.unwrap(), []);
    damaged(&folder.path().join("locked")).await;
    let index = open(&folder.path().join("locked"));
    let _held = index.lock().await.unwrap().unwrap();
    assert_eq!(index.counts().await.unwrap(), IndexCounts::default());
    damaged(&folder.path().join("cleared")).await;
    let index = open(&folder.path().join("cleared"));
    index.clear().await.unwrap();
    assert_eq!(index.sessions(None, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_damaged_file_that_another_process_updates_is_only_cleared_on_request() {
    let folder = tempfile::tempdir().unwrap();
    damaged(folder.path()).await;
    let (one, other) = (open(folder.path()), open(folder.path()));
    let _held = other.lock().await.unwrap().unwrap();
    let refused = one.sessions(None, 9).await;
    assert!(matches!(refused, Err(SearchError::Corrupt { .. })), "{refused:?}");
    one.clear().await.unwrap();
    assert_eq!(one.sessions(None, 9).await.unwrap(), []);
    assert_eq!(other.sessions(None, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_file_that_was_deleted_is_left_for_the_one_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let batch = |text: &str| IndexBatch { cursor: Some(text.to_owned()), ..IndexBatch::default() };
    let index = open(folder.path());
    index.apply(batch("old")).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(folder.path().join(format!("search.sqlite{suffix}"))).unwrap();
    }
    open(folder.path()).apply(batch("new")).await.unwrap();
    assert_eq!(index.cursor().await.unwrap().as_deref(), Some("new"));
    let next = IndexBatch { expected_cursor: Some("new".to_owned()), ..batch("next") };
    index.apply(next).await.unwrap();
    assert_eq!(open(folder.path()).cursor().await.unwrap().as_deref(), Some("next"));
}

/// On a disk that is mounted read-only SQLite opens the file all the same, for reading; on a full one it cannot be opened.
#[tokio::test]
async fn where_the_file_cannot_be_written_the_index_is_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let cursor = |text: &str| Some(text.to_owned());
    let batch = |text: &str| IndexBatch { cursor: cursor(text), ..IndexBatch::default() };
    open(folder.path()).apply(batch("old")).await.unwrap();
    let path = folder.path().join("search.sqlite");
    for path in [format!("file:{}?mode=ro", path.display()), "no/such/folder/index".to_owned()] {
        let Platform { disk, clock, .. } = Platform::system(folder.path()).unwrap();
        let name = RelPath::parse("search.sqlite").unwrap();
        let index = NativeIndex::new(IndexFile { disk, name, path: path.into(), clock });
        assert!(index.lock().await.unwrap().is_some());
        assert_eq!(index.cursor().await.unwrap(), None, "everything is to be indexed again");
        index.apply(batch("new")).await.unwrap();
        assert_eq!(index.cursor().await.unwrap(), cursor("new"));
    }
    assert_eq!(open(folder.path()).cursor().await.unwrap(), cursor("old"));
}
