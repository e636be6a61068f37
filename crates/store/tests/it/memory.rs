//! The memory adapter passes the suite; what it holds back is accepted and not yet seen.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{create, id, says, step, text_of, titled};
use async_trait::async_trait;
use bough_platform::OsEntropy;
use bough_store::conformance::{self, Factory};
use bough_store::{MemoryStore, Store, StoreError, StoreExt};

struct Memory;

fn fresh() -> MemoryStore {
    MemoryStore::new(Arc::new(OsEntropy)).unwrap()
}

#[async_trait]
impl Factory for Memory {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(fresh())
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_adapter_passes_the_suite() {
    conformance::run_all(&Memory).await;
}

#[tokio::test]
async fn what_is_held_is_accepted_and_not_seen() {
    let store = fresh();
    let session = id("s");
    let first = create(&store, &session).await;
    let mut watch = store.watch_session(&session);
    store.hold();
    let one = store.append(&session, &first, vec![says("a", None, "x", 2)].into()).await.unwrap();
    let two = store.append(&session, &one.head, vec![titled("u", 3)].into()).await.unwrap();
    let three = store.append_delta(&session, step("a", 1, "y")).await.unwrap();
    let stale = store.append(&session, &first, vec![titled("v", 3)].into()).await.unwrap_err();
    assert!(matches!(stale, StoreError::Conflict { current } if current == three.head));

    assert_eq!(store.state(&session).await.unwrap().unwrap().head, first);
    assert_eq!(text_of(&store, &session, "a").await, None);
    let waiting = tokio::time::timeout(Duration::from_millis(1), watch.changed()).await;
    assert!(waiting.is_err(), "no watch wakes for what is not durable");

    store.release();
    for durable in [one.durable, two.durable, three.durable] {
        durable.await.unwrap();
    }
    assert_eq!(watch.changed().await.unwrap().end.unwrap().position.seq, three.head.seq);
    assert_eq!(text_of(&store, &session, "a").await.as_deref(), Some("xy"));
}

#[tokio::test]
async fn a_held_session_appears_when_it_is_released() {
    let store = fresh();
    store.hold();
    let created = store.create(&id("s"), vec![titled("t", 1)].into()).await.unwrap();
    assert!(store.state(&id("s")).await.unwrap().is_none());
    assert!(matches!(
        store.create(&id("s"), vec![titled("t", 1)].into()).await,
        Err(StoreError::Exists { .. })
    ));
    store.release();
    created.durable.await.unwrap();
    assert!(store.state(&id("s")).await.unwrap().is_some());
}
