//! The adapter passes the suite that every adapter passes.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bough_platform::Platform;

use super::{NativeOptions, NativeStore};
use crate::Store;
use crate::conformance::{Factory, run_all};

#[derive(Default)]
struct Native {
    dirs: Mutex<Vec<tempfile::TempDir>>,
}

impl Native {
    async fn open(&self, root: PathBuf) -> Arc<dyn Store> {
        let platform = Platform::system(&root).unwrap();
        Arc::new(NativeStore::open(platform, root, NativeOptions::default()).await.unwrap())
    }
}

#[async_trait]
impl Factory for Native {
    async fn fresh(&self) -> Arc<dyn Store> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        self.dirs.lock().unwrap().push(dir);
        self.open(root).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.close().await.unwrap();
        drop(store);
        let root = self.dirs.lock().unwrap().last().unwrap().path().to_owned();
        self.open(root).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_native_adapter_conforms() {
    run_all(&Native::default()).await;
}
