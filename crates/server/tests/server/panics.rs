//! A panic below the server ends one request, and nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId};
use bough_store::{
    Appended, Capabilities, ChangeCursor, ChangeHub, ChangePage, Draft, EntryQuery, Head, ListPage,
    ListQuery, Loaded, PathPage, PathQuery, ReadStore, RecordPage, RecordQuery, Snapshot, Store,
    StoreError, StoredEntry, Trashed, UsageQuery, UsageReport, Write,
};
use serde_json::json;

use crate::client::Client;
use crate::http::new_session;
use crate::test_server::{TestServer, options};

/// A store that panics on every call, except the one for the end of its feed, which may hang.
struct Broken {
    hub: ChangeHub,
    hangs: bool,
}

impl Broken {
    fn new(hangs: bool) -> Arc<Self> {
        Arc::new(Self { hub: ChangeHub::new(Incarnation::new([1; 16])), hangs })
    }
}

type Answer<T> = Result<T, StoreError>;

#[async_trait]
impl ReadStore for Broken {
    async fn load(&self, _: &SessionId, _: Option<&Head>) -> Answer<Loaded> {
        panic!("broken")
    }

    async fn read_entry(&self, _: &SessionId, _: &EntryQuery) -> Answer<Option<StoredEntry>> {
        panic!("broken")
    }

    async fn read_records(&self, _: &SessionId, _: &RecordQuery) -> Answer<RecordPage> {
        panic!("broken")
    }

    async fn path(&self, _: &SessionId, _: &PathQuery) -> Answer<PathPage> {
        panic!("broken")
    }

    async fn branch_heads(
        &self,
        _: &SessionId,
        _: Option<&EntryId>,
        _: usize,
    ) -> Answer<Vec<BranchHead>> {
        panic!("broken")
    }
}

#[async_trait]
impl Store for Broken {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "broken",
            survives_restart: false,
            other_processes: false,
            keeps_change_cursor: false,
            keeps_unknown_records: false,
        }
    }

    async fn write(&self, _: &SessionId, _: Write) -> Answer<Appended> {
        panic!("broken")
    }

    async fn draft(&self, _: &SessionId) -> Answer<Box<dyn Draft>> {
        panic!("broken")
    }

    async fn delete(&self, _: &SessionId, _: i64) -> Answer<Option<Trashed>> {
        panic!("broken")
    }

    async fn undelete(&self, _: &SessionId, _: Incarnation, _: i64) -> Answer<Snapshot> {
        panic!("broken")
    }

    async fn purge(&self, _: &SessionId, _: Incarnation, _: Option<i64>) -> Answer<bool> {
        panic!("broken")
    }

    async fn trash(&self, _: Option<&SessionId>) -> Answer<Vec<Trashed>> {
        panic!("broken")
    }

    async fn list(&self, _: &ListQuery) -> Answer<ListPage> {
        panic!("broken")
    }

    async fn usage(&self, _: &UsageQuery) -> Answer<UsageReport> {
        panic!("broken")
    }

    fn hub(&self) -> &ChangeHub {
        &self.hub
    }

    async fn changes(&self, after: Option<&ChangeCursor>, limit: usize) -> Answer<ChangePage> {
        assert!(after.is_none(), "broken");
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(self.hub.changes(after, limit))
    }

    async fn reopen(&self, _: &SessionId) -> Answer<()> {
        panic!("broken")
    }

    async fn close(&self) -> Answer<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_server_goes_on() {
    let test = TestServer::in_memory().await;
    let (client, mut worker) = (test.client(), test.worker().await);
    let id = new_session(&client).await;
    let good = test.server().service().swap_store(Broken::new(false));
    assert_eq!(client.get("/v1/sessions").await.problem(500), "http/internal");
    let (code, message) = worker.refused("session::get", json!({"session_id": id})).await;
    assert_eq!(code, "invocation_failed");
    assert!(message.contains("session/internal"), "{message}");
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.lines().any(|line| line == "bough_panics_total 2"), "{metrics}");
    test.server().service().swap_store(good);
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).await.status, 200);
    worker.call("session::get", json!({"session_id": id})).await;
}

#[tokio::test]
async fn a_store_that_has_not_answered_yet_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.wrap_native = Some(Arc::new(|_, _| Ok(Broken::new(true))));
    let server = bough_server::Server::start(options).await.unwrap();
    let ready = Client::new(server.http_address()).get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["store_reachable"]), (503, &json!(false)));
}

#[tokio::test]
async fn a_binding_that_cannot_begin_holds_up_no_call() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    test.server().service().swap_store(Broken::new(true));
    worker.host("ui::on").await;
    for n in 0..100 {
        worker.bind(&format!("t{n}"), "session::created", "ui::on", json!({})).await;
    }
    worker.call("session::config-status", json!({})).await;
}
