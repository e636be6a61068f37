//! Documents by key over HTTP: paths, preconditions, tags, repeated requests, and bytes as they were put.

use serde_json::{Value, json};

use crate::test_server::TestServer;

#[tokio::test]
async fn a_document_is_put_compared_and_deleted() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let path = "/v1/kv/my%20app/users%2Fu_1";
    assert_eq!(client.get(path).await.problem(404), "session/document_not_found");
    let absent = client.with("if-none-match", "*");
    let first = absent.put(path, json!({"value": {"n": 1}})).await;
    let tag = first.header("etag").unwrap().to_owned();
    assert_eq!(tag, "\"1\"");
    assert_eq!(first.ok(), json!({"key": "users/u_1", "version": 1}));
    let taken = absent.put(path, json!({"value": 2})).await;
    assert_eq!(taken.problem(412), "session/document_conflict");
    assert_eq!(taken.json()["data"], json!({"key": "users/u_1", "version": 1}));
    let read = client.get(path).await;
    assert_eq!(read.header("etag"), Some(tag.as_str()));
    assert_eq!(read.ok()["value"], json!({"n": 1}));
    assert_eq!(client.with("if-none-match", &tag).get(path).await.status, 304);
    let seen = client.with("if-match", &tag);
    let second = seen.put(path, json!({"value": null})).await;
    assert_eq!(second.header("etag"), Some("\"2\""));
    assert_eq!(seen.put(path, json!({"value": 3})).await.problem(412), "session/document_conflict");
    let stale = client.put(path, json!({"value": 3, "expected_version": 1})).await;
    assert_eq!(stale.problem(409), "session/document_conflict");
    assert_eq!(client.get(path).await.ok()["value"], Value::Null);
    assert_eq!(seen.delete(path).await.problem(412), "session/document_conflict");
    let query = format!("{path}?expected_version=1");
    assert_eq!(client.delete(&query).await.problem(409), "session/document_conflict");
    assert_eq!(client.with("if-match", "\"2\"").delete(path).await.ok(), json!({"deleted": true}));
    assert_eq!(client.delete(path).await.ok(), json!({"deleted": false}));
    let wrong = client.put(path, json!({"valeu": 1})).await;
    assert_eq!(wrong.problem(400), "http/unknown_member");
    let missing = client.put(path, json!({})).await;
    assert_eq!(missing.problem(400), "session/malformed_request");
}

#[tokio::test]
async fn documents_are_listed_by_prefix_and_written_together() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let put =
        json!([{"key": "a/2", "value": 2}, {"key": "a/1", "value": 1}, {"key": "b", "value": 3}]);
    let batch = client.with("idempotency-key", "k-1");
    let body = json!({"put": put});
    let first = batch.post("/v1/kv/app", body.clone()).await;
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = batch.post("/v1/kv/app", body).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.ok(), first.ok());
    let keys = |page: &Value| -> Vec<String> {
        let documents = page["documents"].as_array().unwrap();
        documents.iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect()
    };
    let page = client.get("/v1/kv/app?prefix=a/&limit=1").await.ok();
    assert_eq!(keys(&page), ["a/1"]);
    let next = page["next_cursor"].as_str().unwrap().replace('=', "%3D").replace('+', "%2B");
    let page = client.get(&format!("/v1/kv/app?prefix=a/&limit=1&cursor={next}")).await.ok();
    assert_eq!(keys(&page), ["a/2"]);
    assert_eq!(page.get("next_cursor"), None);
    let page = client.get("/v1/kv/app?keys=b&keys=x&keys=a/1&keys_only=true").await.ok();
    assert_eq!(keys(&page), ["b", "a/1"]);
    assert_eq!(page["documents"][0].get("value"), None);
    let mixed = json!({"put": [{"key": "c", "value": 4}], "delete": [{"key": "b"}]});
    assert_eq!(client.post("/v1/kv/app", mixed).await.ok()["deleted"], 1);
    assert_eq!(keys(&client.get("/v1/kv/app").await.ok()), ["a/1", "a/2", "c"]);
    assert_eq!(client.get("/v1/kv/none").await.ok(), json!({"documents": []}));
    assert_eq!(client.get("/v1/sessions").await.ok()["sessions"], json!([]));
    let dots = json!({"scope": "app", "key": "..", "value": 1});
    client.post("/v1/call/session::kv::put", dots).await.ok();
    assert_eq!(client.get("/v1/kv/app/%2E%2E").await.problem(400), "http/bad_request");
}

#[tokio::test]
async fn a_value_is_kept_byte_for_byte() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let value = r#"{"b":1.0,"a":[123456789012345678901234567890,-0],"b":"\u0041"}"#;
    let body = format!(r#"{{ "value" : {value} }}"#);
    client.send("PUT", "/v1/kv/app/k", Some(body)).await.ok();
    let read = client.get("/v1/kv/app/k").await;
    assert!(read.text.contains(value), "{}", read.text);
    let listed = client.get("/v1/kv/app").await;
    assert!(listed.text.contains(value), "{}", listed.text);
}
