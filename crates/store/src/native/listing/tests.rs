//! Marks of processes, and rows that could not be made at once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use bough_log::{Expected, LogStore, Options};
use bough_platform::{Disk, Lock, OsDisk, Platform, RelPath};
use bough_session::{MetaChange, NewRecord, Record, SessionId, SessionState};
use bough_testkit::{Call, MeanwhileDisk};

use super::{leave_mark, others_ended_uncleanly};
use crate::native::{NativeOptions, NativeStore, convert};
use crate::types::IncarnationPosition;
use crate::{ListQuery, Store, StoreExt};

/// A directory, and a disk on which another process can come in between.
fn disturbed(dir: &Path) -> (Platform, MeanwhileDisk) {
    let disk = MeanwhileDisk::new(Arc::new(OsDisk::open(dir).unwrap()));
    let platform = Platform { disk: Arc::new(disk.clone()), ..Platform::system(dir).unwrap() };
    (platform, disk)
}

async fn open(dir: &Path, platform: Platform) -> NativeStore {
    let store = NativeStore::open(platform, dir.to_owned(), NativeOptions::default()).await;
    let store = store.unwrap();
    store.filled().await;
    store
}

fn titled(title: &str) -> NewRecord {
    Record::Meta(MetaChange { title: Some(title.to_owned()), ..MetaChange::default() }).at(1)
}

#[test]
fn a_mark_that_its_process_is_about_to_take_is_not_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let (platform, meanwhile) = disturbed(dir.path());
    let own = leave_mark(&platform, "").unwrap();
    let os: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    let mark = RelPath::parse("processes/0123456789abcdef").unwrap();
    // It is there and not locked; then its process locks it.
    drop(os.create(&mark).unwrap());
    let held: Arc<Mutex<Option<Box<dyn Lock>>>> = Arc::default();
    let (other, kept) = (Arc::clone(&os), Arc::clone(&held));
    meanwhile.before(Call::Lock, mark.file_name(), move |path| {
        *kept.lock().unwrap() = other.lock(path, "").ok();
    });
    assert!(!others_ended_uncleanly(&platform, ""));
    assert!(meanwhile.is_done() && held.lock().unwrap().is_some());
    assert!(os.lock_holder(&mark).unwrap().is_some(), "the mark is where it was");
    drop(own);
}

#[test]
fn the_mark_of_a_dead_process_is_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::system(dir.path()).unwrap();
    let own = leave_mark(&platform, "").unwrap();
    let mark = RelPath::parse("processes/0123456789abcdef").unwrap();
    drop(platform.disk.create(&mark).unwrap());
    assert!(others_ended_uncleanly(&platform, ""));
    assert!(platform.disk.stat(&mark).unwrap().is_none());
    assert!(!others_ended_uncleanly(&platform, ""), "its own is not a dead one's");
    drop(own);
}

#[test]
fn who_meets_somebody_that_looks_for_dead_marks_leaves_another() {
    let dir = tempfile::tempdir().unwrap();
    let (platform, meanwhile) = disturbed(dir.path());
    let os: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    let held: Arc<Mutex<Option<Box<dyn Lock>>>> = Arc::default();
    let kept = Arc::clone(&held);
    meanwhile.before(Call::Lock, "processes/", move |path| {
        *kept.lock().unwrap() = os.lock(path, "looking").ok();
    });
    leave_mark(&platform, "here").unwrap();
    assert!(held.lock().unwrap().is_some());
}

/// Puts a folder in the place of the session's manifest, or takes it away again.
fn spoil_manifest(dir: &Path, spoiled: bool) {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir).unwrap());
    let sessions = RelPath::parse("sessions").unwrap();
    let shard = sessions.join(&disk.list(&sessions).unwrap()[0].name).unwrap();
    let listed = disk.list(&shard).unwrap().into_iter().find(|listed| listed.is_dir).unwrap();
    let container = shard.join(&listed.name).unwrap();
    let (manifest, aside) = (container.join("manifest.json"), container.join("aside"));
    let (manifest, aside) = (manifest.unwrap(), aside.unwrap());
    if spoiled {
        disk.rename(&manifest, &aside).unwrap();
        disk.create_dir(&manifest).unwrap();
    } else {
        disk.remove_dir(&manifest).unwrap();
        disk.rename(&aside, &manifest).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_could_not_be_made_is_made_when_the_disk_answers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), Platform::system(dir.path()).unwrap()).await;
    let session = SessionId::from_stored("s");
    let created = store.create(&session, vec![titled("old")].into()).await.unwrap();
    store.shared.make_rows();
    // Written beside the store, so that only what is touched by hand tells it.
    let platform = Platform::system(dir.path()).unwrap();
    let beside = <LogStore<SessionState>>::open(platform, Options::default()).unwrap();
    beside.append("s", Expected::Any, convert::envelopes(&[titled("new")])).unwrap();
    beside.close_all().unwrap();
    spoil_manifest(dir.path(), true);
    let end = IncarnationPosition::new(created.head.incarnation, created.position);
    store.shared.mark_dirty(&session, end, None);
    store.shared.make_rows();
    spoil_manifest(dir.path(), false);
    let page = store.list(&ListQuery { limit: 9, ..ListQuery::default() }).await.unwrap();
    assert_eq!(page.sessions[0].meta.title, "new");
}
