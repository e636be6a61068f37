//! A disk that fails: nothing is acknowledged that is not there, and reopening goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::support::{create, id, push, says, step, text_of};
use bough_platform::{Access, Disk, File, OsDisk, Platform, RelPath};
use bough_store::{FsStore, Store, StoreError, StoreExt};
use bough_testkit::pass_on;

/// A disk whose writes and syncs fail once a number of them have gone well.
#[derive(Debug)]
struct Faulty {
    inner: OsDisk,
    left: Arc<AtomicI64>,
    kind: io::ErrorKind,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn File>,
    left: Arc<AtomicI64>,
    kind: io::ErrorKind,
}

fn spend(left: &AtomicI64, kind: io::ErrorKind) -> io::Result<()> {
    if left.fetch_sub(1, Ordering::SeqCst) > 0 { Ok(()) } else { Err(kind.into()) }
}

impl Faulty {
    fn wrap(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(FaultyFile { inner, left: Arc::clone(&self.left), kind: self.kind })
    }
}

impl Disk for Faulty {
    pass_on! { inner: create_dir, rename, remove_file, remove_dir, list, stat, sync_dir, lock, lock_holder }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        self.inner.create(path).map(|file| self.wrap(file))
    }
    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        self.inner.open(path, access).map(|file| self.wrap(file))
    }
}

impl File for FaultyFile {
    pass_on! { inner: len, read_at, set_len }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = spend(&self.left, self.kind) {
            // Half of it reaches the disk all the same.
            let half = bytes.split_at(bytes.len() / 2).0;
            self.inner.write_at(at, half)?;
            return Err(error);
        }
        self.inner.write_at(at, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        spend(&self.left, self.kind)?;
        self.inner.sync()
    }
}

struct Broken {
    _dir: tempfile::TempDir,
    store: FsStore,
    left: Arc<AtomicI64>,
}

fn disk_that_fails(kind: io::ErrorKind) -> Broken {
    let dir = tempfile::tempdir().unwrap();
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let mut platform = Platform::system(dir.path()).unwrap();
    let inner = OsDisk::create(dir.path()).unwrap();
    platform.disk = Arc::new(Faulty { inner, left: Arc::clone(&left), kind });
    let store = FsStore::open(platform, dir.path().to_owned()).unwrap();
    Broken { _dir: dir, store, left }
}

/// The nth write or sync fails: the append is refused, reads go on, writing waits for a reopening, and
/// then the same append lands once.
async fn check(kind: io::ErrorKind, nth: i64) {
    let Broken { _dir, store, left } = disk_that_fails(kind);
    let session = id("s");
    create(&store, &session).await;
    push(&store, &session, vec![says("a", None, "kept", 2)]).await;
    let head = store.state(&session).await.unwrap().unwrap().head;
    left.store(nth, Ordering::SeqCst);
    let failed = store.append(&session, &head, vec![says("b", Some("a"), "new", 3)].into()).await;
    let error = failed.unwrap_err();
    match kind {
        io::ErrorKind::StorageFull => assert!(matches!(error, StoreError::Full), "{error}"),
        _ => assert!(matches!(error, StoreError::Io(_)), "{error}"),
    }
    left.store(i64::MAX, Ordering::SeqCst);
    assert_eq!(store.state(&session).await.unwrap().unwrap().head, head);
    assert_eq!(text_of(&store, &session, "a").await.as_deref(), Some("kept"));
    let latched = store.append(&session, &head, vec![says("b", None, "new", 3)].into()).await;
    assert!(matches!(latched, Err(StoreError::Latched { .. })), "{latched:?}");

    store.reopen(&session).await.unwrap();
    let now = store.state(&session).await.unwrap().unwrap();
    if now.head == head {
        push(&store, &session, vec![says("b", Some("a"), "new", 3)]).await;
    }
    assert_eq!(text_of(&store, &session, "b").await.as_deref(), Some("new"));
    let state = store.state(&session).await.unwrap().unwrap().state;
    assert_eq!(state.meta.message_count, 2);
}

#[tokio::test]
async fn a_failed_write_or_sync_latches_the_session() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for nth in 0..2 {
            check(kind, nth).await;
        }
    }
}

#[tokio::test]
async fn a_failed_step_of_a_stream_is_not_shown() {
    let Broken { _dir, store, left } = disk_that_fails(io::ErrorKind::Other);
    let session = id("s");
    create(&store, &session).await;
    push(&store, &session, vec![says("a", None, "x", 2)]).await;
    store.append_delta(&session, step("a", 1, "y")).await.unwrap();
    left.store(0, Ordering::SeqCst);
    store.append_delta(&session, step("a", 2, "z")).await.unwrap_err();
    left.store(i64::MAX, Ordering::SeqCst);
    assert_eq!(text_of(&store, &session, "a").await.as_deref(), Some("xy"));
    store.reopen(&session).await.unwrap();
    store.append_delta(&session, step("a", 2, "z")).await.unwrap();
    assert_eq!(text_of(&store, &session, "a").await.as_deref(), Some("xyz"));
}

#[tokio::test]
async fn other_sessions_go_on() {
    let Broken { _dir, store, left } = disk_that_fails(io::ErrorKind::Other);
    create(&store, &id("s")).await;
    create(&store, &id("t")).await;
    let head = store.state(&id("s")).await.unwrap().unwrap().head;
    left.store(0, Ordering::SeqCst);
    store.append(&id("s"), &head, vec![says("a", None, "x", 2)].into()).await.unwrap_err();
    left.store(i64::MAX, Ordering::SeqCst);
    push(&store, &id("t"), vec![says("a", None, "x", 2)]).await;
    assert_eq!(text_of(&store, &id("t"), "a").await.as_deref(), Some("x"));
}
