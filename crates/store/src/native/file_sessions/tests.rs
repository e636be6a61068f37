//! Sessions that files answer for, in lists.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use bough_log::Options;
use bough_platform::Platform;
use bough_record::{ChainHash, Head, Incarnation, Position};
use bough_session::{MetaChange, NewRecord, Record, SessionId, SessionState};

use super::super::{NativeOptions, NativeStore, SessionDirectory, convert};
use super::FileSessions;
use crate::native::origin::Pointer;
use crate::types::{ListQuery, Snapshot};
use crate::{Store, StoreError, StoreExt};

/// A file whose session has got some titles.
#[derive(Debug)]
struct OneFile(Mutex<Vec<&'static str>>);

impl OneFile {
    fn titled(title: &'static str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![title])))
    }
}

impl FileSessions for OneFile {
    fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        let mut state = SessionState::new(session.clone());
        for (seq, title) in (1..).zip(&*self.0.lock().unwrap()) {
            state.apply(&titled(title).record, seq, 1);
        }
        let (seq, incarnation) = (state.seq, Incarnation::new([7; 16]));
        let head = Head { incarnation, seq, chain: ChainHash::from_bytes([0; 32]) };
        Some(Snapshot { head, position: Position::at(seq), state: Arc::new(state) })
    }
}

fn titled(title: &str) -> NewRecord {
    Record::Meta(MetaChange { title: Some(title.to_owned()), ..MetaChange::default() }).at(1)
}

fn session() -> SessionId {
    SessionId::from_stored("s")
}

async fn titles(store: &NativeStore) -> Vec<String> {
    let query = ListQuery { limit: 9, ..ListQuery::default() };
    let page = store.list(&query).await.unwrap();
    page.sessions.into_iter().map(|listed| listed.meta.title).collect()
}

/// A directory without a catalogue, with a session that a V1 file answers for.
fn with_a_file() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::system(dir.path()).unwrap();
    let directory = SessionDirectory::open(platform, Options::default()).unwrap();
    let mut staged = directory.stage(&session(), "m").unwrap();
    staged.add(convert::envelopes(&[titled("by the log")])).unwrap();
    let (path, snapshot_id) = ("/v1/s.jsonl".to_owned(), "sha256:0:0".to_owned());
    staged.present(&Pointer::JsonlV3 { path, snapshot_id }).unwrap();
    staged.publish().unwrap();
    assert!(!directory.origin(&session()).unwrap().unwrap().is_log());
    dir
}

async fn open(dir: &Path) -> NativeStore {
    let platform = Platform::system(dir).unwrap();
    NativeStore::open(platform, dir.to_owned(), NativeOptions::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_made_anew_lists_what_the_file_says_also_when_its_reader_comes_late() {
    let dir = with_a_file();
    let store = open(dir.path()).await;
    assert!(titles(&store).await.is_empty(), "no reader of files is set");
    store.list_files_of(OneFile::titled("by the file"));
    assert_eq!(titles(&store).await, ["by the file"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_is_listed_and_wakes_who_waits() {
    let dir = with_a_file();
    let store = open(dir.path()).await;
    let file = OneFile::titled("old");
    store.list_files_of(Arc::clone(&file) as Arc<dyn FileSessions>);
    assert_eq!(titles(&store).await, ["old"]);
    let mut watch = store.watch_session(&session());
    file.0.lock().unwrap().push("new");
    store.refresh(vec![session()]).await.unwrap();
    watch.changed().await;
    assert_eq!(titles(&store).await, ["new"]);
}

/// A large import must not put the log of a session aside that is served from its file.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_does_not_take_the_id_of_a_session_in_a_file() {
    let dir = with_a_file();
    let store = open(dir.path()).await;
    let mut draft = store.draft(&session()).await.unwrap();
    draft.add(vec![titled("another")].into()).await.unwrap();
    let refused = draft.finish().await;
    assert!(matches!(refused, Err(StoreError::Exists { .. })), "{refused:?}");
    assert!(store.state(&session()).await.unwrap().is_none(), "the file answers");
}
