//! A V1 file that answers for a session is read once, however many ask for it meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::common::*;
use bough_migrate::{Migrator, RollbackOptions, ServedStore};
use bough_platform::{Disk, OsDisk, Platform};
use bough_store::{NativeOptions, NativeStore, Store, StoreExt};
use bough_testkit::{Call, CountingDisk, MeanwhileDisk};

const FILE: &str = "s.jsonl";
const MESSAGES: usize = 2_000;

/// A data directory in which a file of some hundred thousand bytes answers for its session.
struct Served {
    _folder: tempfile::TempDir,
    store: ServedStore,
    meanwhile: MeanwhileDisk,
    counting: CountingDisk,
    file_bytes: u64,
}

async fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let (data, v1) = (folder.path().join("data"), folder.path().join("v1"));
    Platform::system(&v1).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(&v1).unwrap());
    let lines: Vec<_> = (0..MESSAGES)
        .map(|number| {
            let parent = number.checked_sub(1).map(|before| format!("m{before}"));
            message(&format!("m{number}"), parent.as_deref(), &"text ".repeat(40))
        })
        .collect();
    let text = file(&[&[header("s")], lines.as_slice()].concat());
    disk.create(&path(FILE)).unwrap().write_at(0, text.as_bytes()).unwrap();
    let platform = Platform::system(&data).unwrap();
    let files = Arc::new(DiskFiles(Arc::clone(&disk)));
    let migrator = Migrator::open(platform.clone(), files).unwrap();
    migrate(&migrator, FILE);
    migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap();
    let meanwhile = MeanwhileDisk::new(disk);
    let counting = CountingDisk::new(Arc::new(meanwhile.clone()));
    let options = NativeOptions::default();
    let native = NativeStore::open(platform.clone(), data, options).await.unwrap();
    let store =
        ServedStore::over(native, platform, Arc::new(DiskFiles(Arc::new(counting.clone()))));
    counting.reset();
    Served { _folder: folder, store, meanwhile, counting, file_bytes: text.len() as u64 }
}

impl Served {
    /// Each look at an open file reads its edges once more.
    #[track_caller]
    fn check_read_once(&self) {
        let read = self.counting.counts().bytes_read;
        assert!(read < 2 * self.file_bytes, "{read} bytes of {}", self.file_bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_once_for_all_who_ask_at_the_same_time() {
    const CALLERS: usize = 8;
    let served = served().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let all = Arc::clone(&asked);
    // The first reader waits until everyone has asked.
    served.meanwhile.before(Call::Open, FILE, move |_| {
        while all.load(Ordering::Acquire) < CALLERS {
            std::thread::yield_now();
        }
    });
    let callers = (0..CALLERS).map(|_| {
        let (store, asked) = (served.store.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            asked.fetch_add(1, Ordering::Release);
            store.state(&session_s()).await
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        let found = caller.await.unwrap().unwrap().unwrap();
        assert_eq!(found.state.meta.message_count, MESSAGES as u64);
    }
    served.check_read_once();
    served.store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_gives_up_leaves_the_file_open_for_the_next() {
    let served = served().await;
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (gave_up, has_given_up) = mpsc::channel::<()>();
    served.meanwhile.before(Call::Open, FILE, move |_| {
        begun.send(()).unwrap();
        has_given_up.recv().unwrap();
    });
    let session = session_s();
    tokio::select! {
        biased;
        begun = has_begun => begun.unwrap(),
        _ = served.store.state(&session) => panic!("the file cannot be read yet"),
    }
    gave_up.send(()).unwrap();
    let found = served.store.state(&session).await.unwrap().unwrap();
    assert_eq!(found.state.meta.message_count, MESSAGES as u64);
    served.check_read_once();
    served.store.close().await.unwrap();
}
