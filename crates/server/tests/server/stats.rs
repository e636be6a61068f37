//! Sums over all sessions, and health, as dashboards request them.

use std::sync::Arc;

use bough_service::Right;
use serde_json::{Value, json};

use crate::client::{Client, until};
use crate::http::new_session;
use crate::test_server::{TestServer, token};

#[tokio::test]
async fn sums_and_health_are_delivered_over_http() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let said = json!({"message": {"role": "assistant", "content": "x", "model": "m",
        "provider": "p", "stop_reason": "end", "usage": {"output": 3}}});
    client.post(&format!("/v1/sessions/{id}/entries"), said).await.ok();
    let stats = client.get("/v1/stats?by=model").await.ok();
    assert_eq!(stats["rows"][0]["usage"]["output"], 3, "{stats}");
    let refused = client.get("/v1/stats?by=model,tool").await;
    assert_eq!(refused.problem(400), "session/invalid_request");
    let health = client.get("/v1/health").await.ok();
    assert_eq!(health["status"], "ready");
    assert_eq!(health["store"]["sessions"], 1);
    assert!(health["now"]["requests"].is_u64());
    let limits = &health["store"]["limits"];
    assert_eq!(
        (&limits["entry_id_bytes"], &limits["streams_per_session"]),
        (&json!(256), &json!(64))
    );
    let listed = client.get("/v1/sessions?include_details=true").await.ok();
    assert_eq!(listed["sessions"][0]["details"]["usage"]["total"]["output"], 3);
    assert!(listed.get("details").is_none(), "lists are one array");
}

#[tokio::test]
async fn health_tells_each_caller_what_it_may_see() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let ours = token(dir.path(), json!({"tenant": "t1"}), &[Right::Read, Right::Metrics]);
    let all = token(dir.path(), json!({}), &[Right::Read, Right::Metrics]);
    let writer = token(dir.path(), json!({}), &[Right::Read, Right::Write]);
    let test = TestServer::again(dir).await;
    let client = test.client();
    new_session(&client.with_token(&writer)).await;
    let health = client.with_token(&ours).get("/v1/health").await.ok();
    assert_eq!(health["store"]["sessions"], 0, "others' sessions are not counted");
    for counts in [&health["now"], &health["since_start"], &health["store"]["size"]] {
        assert!(
            counts.is_null(),
            "what all callers do is not shown to one who sees some: {health}"
        );
    }
    let health = client.with_token(&writer).get("/v1/health").await.ok();
    assert!(health["now"].is_null(), "what the server counts needs a right of its own");
    assert!(client.with_token(&all).get("/v1/health").await.ok()["now"].is_object());
    assert_eq!(client.get("/v1/health").await.status, 401);
}

/// Waits until health has the expected value.
async fn health_with(client: &Client, is_there: impl Fn(&Value) -> bool) -> Value {
    let mut health = Value::Null;
    until(async || {
        health = client.get("/v1/health").await.ok();
        is_there(&health)
    })
    .await;
    health
}

async fn verify(client: &Client) -> Value {
    let begun = client.post("/v1/verify", json!({})).await;
    assert_eq!(begun.status, 202);
    let is_done = |health: &Value| {
        let verification = &health["verification"];
        verification["running_since"].is_null() && verification["status"] != "never"
    };
    health_with(client, is_done).await["verification"].clone()
}

#[tokio::test]
async fn health_tells_the_size_and_the_checkpoints_of_the_store() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let test = TestServer::again(dir).await;
    let client = test.client();
    let (kept, gone) = (new_session(&client).await, new_session(&client).await);
    client.delete(&format!("/v1/sessions/{gone}")).await.ok();
    let test = TestServer::again(test.stop().await).await;
    let client = test.client();
    let health = health_with(&client, |health| !health["store"]["size"].is_null()).await;
    let size = &health["store"]["size"];
    let bytes = |name: &str| size[format!("{name}_bytes")].as_u64().unwrap();
    for part in ["sessions", "trash", "catalogue", "search", "shared"] {
        assert!(bytes(part) > 0, "{part}: {size}");
    }
    let parts = ["sessions", "trash", "staging", "catalogue", "search", "shared"];
    assert_eq!(bytes("total"), parts.iter().map(|part| bytes(part)).sum::<u64>());
    assert!(size["measured_at"].as_i64().unwrap() > 0);
    let checkpoints = &health["store"]["checkpoints"];
    assert_eq!((&checkpoints["checkpointed"], &checkpoints["dirty"]), (&json!(1), &json!(0)));
    drop(kept);
}

#[tokio::test]
async fn a_verification_is_kept_with_its_time_and_names_what_is_damaged() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let test = TestServer::again(dir.clone()).await;
    let client = test.client();
    let id = new_session(&client).await;
    let never = client.get("/v1/health").await.ok();
    assert_eq!(never["verification"]["status"], "never");
    assert!(never["verification"]["last"].is_null());
    let well = verify(&client).await;
    assert_eq!((&well["status"], &well["last"]["sessions"]), (&json!("well"), &json!(1)));
    assert!(well["last"]["bytes"].as_u64().unwrap() > 0);
    assert!(well["last"]["finished_at"].as_i64() >= well["last"]["started_at"].as_i64());
    let dir = test.stop().await;
    break_a_segment(dir.path());
    let test = TestServer::again(dir).await;
    let client = test.client();
    let kept = client.get("/v1/health").await.ok();
    assert_eq!(kept["verification"], well, "the result outlives the server");
    let damaged = verify(&client).await;
    assert_eq!(damaged["status"], "damaged");
    assert_eq!(damaged["last"]["damaged_sessions"], json!([id]));
}

/// Changes a byte in the middle of the only segment.
fn break_a_segment(dir: &std::path::Path) {
    let mut folders = vec![dir.join("sessions")];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "seg") {
                let mut bytes = std::fs::read(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&path, bytes).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn who_may_verify_and_see_the_result_has_the_rights_for_it() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let reader = token(dir.path(), json!({}), &[Right::Read]);
    let watcher = token(dir.path(), json!({}), &[Right::Read, Right::Metrics]);
    let admin = token(dir.path(), json!({}), &[Right::Read, Right::Metrics, Right::Admin]);
    let test = TestServer::again(dir).await;
    let client = test.client();
    for who in [&reader, &watcher] {
        let refused = client.with_token(who).post("/v1/verify", json!({})).await;
        assert_eq!(refused.problem(403), "session/forbidden");
    }
    verify(&client.with_token(&admin)).await;
    let seen = client.with_token(&watcher).get("/v1/health").await.ok();
    assert_eq!(seen["verification"]["status"], "well");
    assert!(
        seen["verification"]["last"]["damaged_sessions"].is_null(),
        "their names are the administrator's"
    );
    let less = client.with_token(&reader).get("/v1/health").await.ok();
    assert!(less["verification"].is_null() && less["store"]["size"].is_null());
}

#[tokio::test]
async fn a_store_without_files_says_that_it_cannot_be_verified() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let refused = client.post("/v1/verify", json!({})).await;
    assert_eq!(refused.problem(409), "http/cannot_verify");
    assert!(client.get("/v1/health").await.ok()["verification"].is_null());
}
