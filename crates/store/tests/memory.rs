//! The memory adapter passes the suite.

use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::OsEntropy;
use bough_store::conformance::{self, Factory};
use bough_store::{MemoryStore, Store};

struct Memory;

#[async_trait]
impl Factory for Memory {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(Arc::new(OsEntropy)).unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_adapter_passes_the_suite() {
    conformance::run_all(&Memory).await;
}
