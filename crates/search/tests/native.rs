//! The index in SQLite: the suite that every index passes, and what is its own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use bough_platform::Platform;
use bough_search::{IndexBatch, NativeIndex, SearchIndex, conformance};

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
