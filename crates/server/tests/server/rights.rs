//! The rights of a token apply on every surface, and as long as the token is valid.

use std::sync::Arc;

use bough_platform::{OsDisk, OsEntropy};
use bough_server::{NewToken, TokenFile};
use bough_service::Right;
use serde_json::json;

use crate::client::until;
use crate::http::{new_session, user};
use crate::test_server::{TestServer, token};

const EVERYTHING: [Right; 3] = [Right::Read, Right::Write, Right::Admin];

/// A token that may call only these functions.
fn token_for(dir: &std::path::Path, functions: &[&str]) -> String {
    let disk = OsDisk::open(dir).unwrap();
    let new = NewToken {
        rights: EVERYTHING.to_vec(),
        functions: Some(functions.iter().map(|name| (*name).to_owned()).collect()),
        ..NewToken::default()
    };
    let (text, _) = TokenFile::new(&disk).create(new, &OsEntropy, 1).unwrap();
    text.reveal().to_owned()
}

/// A stream that is never idle checks its token too.
#[tokio::test]
async fn a_token_that_is_taken_back_hears_nothing_more() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let owner = token(dir.path(), json!({}), &EVERYTHING);
    let guest = token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let (owner, reader) = (test.client().with_token(&owner), test.client().with_token(&guest));
    let id = new_session(&owner).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let mut stream = reader.events("/v1/events").await;
    owner.post(&entries, user("before")).await.ok();
    stream.until("session::message-added").await;

    let disk = OsDisk::open(test.path()).unwrap();
    let file = TokenFile::new(&disk);
    let listed = file.list().unwrap();
    let taken = listed.iter().find(|record| guest.contains(&record.id)).unwrap();
    file.revoke(&taken.id, 1).unwrap();
    until(async || reader.get("/v1/sessions").await.status == 401).await;
    owner.post(&entries, user("after")).await.ok();
    assert_eq!(stream.next().await.map(|event| event.data), None);
}

#[tokio::test]
async fn functions_that_a_token_lacks_are_lacking_on_every_way_in() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let writes = token_for(dir.path(), &["session::create", "session::append-entry"]);
    let watches = token_for(dir.path(), &["session::watch"]);
    let test = TestServer::again(dir).await;
    let writer = test.client().with_token(&writes);
    let id = new_session(&writer).await;
    let session = format!("/v1/sessions/{id}");
    writer.post(&format!("{session}/entries"), user("a")).await.ok();
    let events = format!("{session}/events?snapshot=true");
    for path in ["/v1/watch", "/v1/events", "/v1/events?snapshot=true", &events, &session] {
        assert_eq!(writer.get(path).await.problem(403), "session/forbidden", "{path}");
    }
    // Knowing a tag gives no right to read the resource.
    let knows = writer.with("if-none-match", "*");
    assert_eq!(knows.get(&session).await.problem(403), "session/forbidden");

    let watcher = test.client().with_token(&watches);
    watcher.events("/v1/events").await;
    let mut worker = test.worker_with(&writes).await;
    worker.host("ui::heard").await;
    worker.bind("b", "session::message-added", "ui::heard", json!({})).await;
    let refused = worker.next(|frame| frame["type"] == "triggerregistrationresult").await;
    let reason = refused["error"]["message"].as_str().unwrap();
    assert!(reason.contains("session/forbidden"), "{reason}");
}
