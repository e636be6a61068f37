//! The adapter over files of session-manager passes the suite.

use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Platform;
use bough_store::conformance::{self, Factory};
use bough_store::{FsStore, Store};

/// Each fresh store has a directory of its own; a reopened one has that of the last fresh one.
struct Files {
    dir: tempfile::TempDir,
    count: std::sync::atomic::AtomicUsize,
}

impl Files {
    fn open(&self, count: usize) -> Arc<dyn Store> {
        let root = self.dir.path().join(count.to_string());
        Arc::new(FsStore::open(Platform::system(&root).unwrap(), root).unwrap())
    }
}

#[async_trait]
impl Factory for Files {
    async fn fresh(&self) -> Arc<dyn Store> {
        let count = 1 + self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.open(count)
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        // Not closed: what was acknowledged must be there without a farewell. The lock goes with it.
        drop(store);
        self.open(self.count.load(std::sync::atomic::Ordering::SeqCst))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fs_adapter_passes_the_suite() {
    let files = Files { dir: tempfile::tempdir().unwrap(), count: 0.into() };
    conformance::run_all(&files).await;
}
