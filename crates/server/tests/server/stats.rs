//! What dashboards ask: sums over all sessions, and how the server is.

use std::sync::Arc;

use bough_service::Right;
use serde_json::json;

use crate::http::new_session;
use crate::place::{Place, token};

#[tokio::test]
async fn sums_and_health_are_told_over_http() {
    let place = Place::in_memory().await;
    let client = place.client();
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
    let listed = client.get("/v1/sessions?include_details=true").await.ok();
    assert_eq!(listed["sessions"][0]["details"]["usage"]["total"]["output"], 3);
    assert!(listed.get("details").is_none(), "lists are one array");
}

#[tokio::test]
async fn health_tells_each_caller_what_it_may_see() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let ours = token(dir.path(), json!({"tenant": "t1"}), &[Right::Read]);
    let writer = token(dir.path(), json!({}), &[Right::Read, Right::Write]);
    let place = Place::again(dir).await;
    let client = place.client();
    new_session(&client.with_token(&writer)).await;
    let health = client.with_token(&ours).get("/v1/health").await.ok();
    assert_eq!(health["store"]["sessions"], 0, "others' sessions are not counted");
    assert!(health["now"].is_null(), "what the server counts needs a right of its own");
    assert_eq!(client.get("/v1/health").await.status, 401);
}
