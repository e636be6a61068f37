//! Compaction over HTTP and on the bus.

use serde_json::{Value, json};

use crate::test_server::TestServer;

fn message(number: u32) -> Value {
    let text = format!("message {number} {}", "word ".repeat(6));
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

/// A server with a session `s` of ten messages.
async fn with_conversation() -> TestServer {
    let test = TestServer::in_memory().await;
    for number in 0..10 {
        let body = json!({"message": message(number), "create": true});
        test.client().post("/v1/sessions/s/entries", body).await.ok();
    }
    test
}

#[tokio::test]
async fn a_session_is_planned_compacted_and_restored_over_http() {
    let test = with_conversation().await;
    let (client, path) = (test.client(), "/v1/sessions/s/compaction");
    let planned = client.get(&format!("{path}?keep_recent_tokens=25")).await.ok();
    assert_eq!(planned["written"], json!(false));
    let request = json!({"keep_recent_tokens": 25, "summary": "My words."});
    let done = client.with("idempotency-key", "k").post(path, request.clone()).await;
    let tag = done.header("etag").unwrap().to_owned();
    let done = done.ok();
    assert_eq!((&done["written"], &done["summary"]), (&json!(true), &json!("My words.")));
    assert_eq!(done["first_kept_entry_id"], planned["first_kept_entry_id"]);
    let again = client.with("idempotency-key", "k").post(path, request).await.ok();
    assert_eq!(again, done, "the same key is the same call");
    let context = client.get("/v1/sessions/s/context").await.ok();
    assert_eq!(context["messages"][0]["entry_id"], done["entry_id"]);
    let nothing = client.post(path, json!({"digest": true})).await.ok();
    assert_eq!(nothing["reason"], "just_compacted");
    client.post("/v1/sessions/s/entries", json!({"message": message(10)})).await.ok();
    let stale = client.with("if-match", &tag).delete(path).await;
    assert_eq!(stale.status, 412, "{stale:?}");
    let leaf = done["entry_id"].as_str().unwrap();
    let stale = client.delete(&format!("{path}?expected_leaf={leaf}")).await;
    assert_eq!(stale.problem(409), "session/leaf_conflict");
    let stale = json!({"digest": true, "expected_leaf": leaf});
    assert_eq!(client.post(path, stale).await.problem(409), "session/leaf_conflict");
    assert_eq!(client.post(path, json!({})).await.problem(400), "session/invalid_request");
    assert_eq!(client.delete(path).await.ok()["undone"], done["entry_id"]);
    let context = client.get("/v1/sessions/s/context").await.ok();
    assert_eq!(context["messages"].as_array().unwrap().len(), 11);
}

#[tokio::test]
async fn the_functions_are_on_the_bus_and_answer_the_same() {
    let test = with_conversation().await;
    let mut worker = test.worker().await;
    let request = json!({"session_id": "s", "keep_recent_tokens": 25});
    let planned = worker.call("session::plan-compaction", request.clone()).await;
    let by_http = test.client().get("/v1/sessions/s/compaction?keep_recent_tokens=25").await.ok();
    assert_eq!(planned, by_http);
    let mut request = request;
    request["digest"] = json!(true);
    let done = worker.call("session::compact", request).await;
    assert_eq!((&done["written"], &done["summary"]), (&json!(true), &planned["summary"]));
    let undone = worker.call("session::undo-compaction", json!({"session_id": "s"})).await;
    assert_eq!(undone["undone"], done["entry_id"]);
}

#[tokio::test]
async fn the_windows_and_the_reserve_are_those_of_the_configuration() {
    let test = TestServer::by_file(
        "compaction: {keep_recent_tokens: 25, windows: {own-model: 60}, reserve_tokens: 10}",
    )
    .await;
    let client = test.client();
    for number in 0..10 {
        let text = format!("answer {number} {}", "word ".repeat(6));
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "model": "own-model", "provider": "p", "stop_reason": "end", "timestamp": 1});
        let body = json!({"message": message, "create": true});
        client.post("/v1/sessions/s/entries", body).await.ok();
    }
    let planned = client.get("/v1/sessions/s/compaction?only_if_due=true").await.ok();
    assert_eq!(planned["window"], json!(60), "{planned}");
    assert!(planned["first_kept_entry_id"].is_string(), "{planned}");
    assert_eq!(client.get("/v1/sessions/s/context").await.ok()["window"], json!(60));
}
