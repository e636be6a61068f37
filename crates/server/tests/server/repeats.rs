//! Repeated requests, and requests with preconditions.

use serde_json::{Value, json};

use crate::client::Client;
use crate::http::{new_session, user};
use crate::test_server::TestServer;

async fn sessions(client: &Client) -> usize {
    client.get("/v1/sessions").await.ok()["sessions"].as_array().unwrap().len()
}

async fn messages(client: &Client, id: &str) -> usize {
    let page = client.get(&format!("/v1/sessions/{id}/messages")).await.ok();
    page["messages"].as_array().unwrap().len()
}

fn batch(texts: &[&str]) -> Value {
    json!({ "entries": texts.iter().map(|text| user(text)).collect::<Vec<_>>() })
}

/// The same batch as clients of the bus know it.
fn messages_of(texts: &[&str]) -> Value {
    let messages: Vec<_> = texts.iter().map(|text| user(text)["message"].clone()).collect();
    json!({ "messages": messages })
}

#[tokio::test]
async fn a_session_that_is_made_twice_with_one_key_is_one() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let keyed = client.with("idempotency-key", "k");
    let there = new_session(&client).await;
    for path in ["/v1/sessions", "/v1/call/session::create"] {
        for body in [json!({}), json!({"title": null})] {
            let before = sessions(&client).await;
            let made = client.post(path, body.clone()).await.ok();
            assert_ne!(made["session_id"], there.as_str(), "{body}");
            assert_eq!(sessions(&client).await, before + 1, "{body}");
        }
        let made = keyed.post(path, json!({"title": "a"})).await.ok();
        let before = sessions(&client).await;
        assert_eq!(keyed.post(path, json!({"title": "a"})).await.ok(), made);
        assert_eq!(sessions(&client).await, before);
    }
}

#[tokio::test]
async fn what_is_appended_twice_with_one_key_is_there_once() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let null = |mut body: Value| {
        body["entry_id"] = Value::Null;
        body
    };
    let by_name = |mut body: Value| {
        body["session_id"] = json!(id);
        body
    };
    let requests = [
        (entries.clone(), user("x"), 1),
        (entries.clone(), null(user("x")), 1),
        (format!("{entries}/batch"), batch(&["a", "b"]), 2),
        ("/v1/call/session::append".to_owned(), by_name(user("x")), 1),
        ("/v1/call/session::append-many".to_owned(), by_name(messages_of(&["a", "b"])), 2),
    ];
    for (number, (path, body, count)) in requests.into_iter().enumerate() {
        let keyed = client.with("idempotency-key", &format!("k{number}"));
        let before = messages(&client, &id).await;
        let first = keyed.post(&path, body.clone()).await.ok();
        client.post(&entries, user("between")).await.ok();
        assert_eq!(keyed.post(&path, body.clone()).await.ok(), first, "{path}");
        assert_eq!(messages(&client, &id).await, before + count + 1, "{path}");
        let other = client.with("idempotency-key", "other").post(&path, body).await.ok();
        assert_ne!(other, first, "{path}");
    }
    let keyed = client.with("idempotency-key", "longer");
    let path = format!("{entries}/batch");
    keyed.post(&path, batch(&["a"])).await.ok();
    let refused = keyed.post(&path, batch(&["a", "b"])).await;
    assert_eq!(refused.problem(422), "session/other_content");
}

#[tokio::test]
async fn a_fork_or_a_label_that_is_made_twice_with_one_key_is_one() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entry = client.post(&format!("/v1/sessions/{id}/entries"), user("x")).await.ok();
    let entry = entry["entry_id"].clone();
    let fork = json!({"session_id": id, "entry_id": entry});
    for (path, key) in
        [(format!("/v1/sessions/{id}/fork"), "a"), ("/v1/call/session::fork".to_owned(), "b")]
    {
        let keyed = client.with("idempotency-key", key);
        let made = keyed.post(&path, fork.clone()).await.ok();
        let before = sessions(&client).await;
        assert_eq!(keyed.post(&path, fork.clone()).await.ok(), made, "{path}");
        assert_eq!(sessions(&client).await, before, "{path}");
        assert_eq!(messages(&client, made["session_id"].as_str().unwrap()).await, 1);
    }
    let label = |name: &str| json!({"session_id": id, "entry_id": entry, "label": name});
    let (one, two) = (client.with("idempotency-key", "c"), client.with("idempotency-key", "d"));
    for (client, name) in [(&one, "first"), (&two, "second"), (&one, "first")] {
        client.post("/v1/call/session::set-label", label(name)).await.ok();
    }
    let branches = client.get(&format!("/v1/sessions/{id}/branches")).await.ok();
    assert_eq!(branches["branches"][0]["label"], "second", "the repeated call changed nothing");
}

#[tokio::test]
async fn a_delta_is_repeated_by_its_revision() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let entry = client.post(&entries, user("x")).await.ok()["entry_id"].clone();
    let entry = format!("{entries}/{}", entry.as_str().unwrap());
    let delta = format!("{entry}/delta");
    let text = async || {
        let read = client.get(&entry).await.ok();
        read["entry"]["message"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let keyed = client.with("idempotency-key", "k");
    let more = json!({"block": 0, "text": "y"});
    assert_eq!(keyed.post(&delta, more.clone()).await.problem(400), "http/bad_request");
    assert_eq!(text().await, "x");
    let expecting = json!({"block": 0, "text": "y", "expected_revision": 0});
    assert_eq!(keyed.post(&delta, expecting.clone()).await.ok()["updated"], json!(true));
    assert_eq!(keyed.post(&delta, expecting).await.problem(409), "session/revision_conflict");
    assert_eq!(text().await, "xy");
    let tag = client.get(&entry).await.header("etag").unwrap().to_owned();
    let done = client.with("if-match", &tag).post(&delta, more.clone()).await;
    let next = done.header("etag").unwrap().to_owned();
    let late = client.with("if-match", &tag).post(&delta, more.clone()).await;
    assert_eq!(late.problem(412), "session/revision_conflict");
    assert_eq!(client.with("if-match", &next).post(&delta, more).await.status, 200);
    assert_eq!(text().await, "xyyy");
}

#[tokio::test]
async fn preconditions_hold_for_calls_by_name() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let leaf = client.post(&entries, user("a")).await.header("etag").unwrap().to_owned();
    client.post(&entries, user("b")).await.ok();
    let mut body = user("c");
    body["session_id"] = json!(id);
    let late = client.with("if-match", &leaf).post("/v1/call/session::append", body).await;
    assert_eq!(late.problem(412), "session/leaf_conflict");
    assert_eq!(messages(&client, &id).await, 2);
}

/// An id that is used again after the session was deleted and created again is another entry.
#[tokio::test]
async fn a_tag_of_an_entry_is_of_one_life_of_its_session() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let (session, entry) = ("/v1/sessions/s", "/v1/sessions/s/entries/e");
    let mut tags = Vec::new();
    for text in ["first", "second"] {
        client.put(session, json!({})).await.ok();
        let mut body = user(text);
        body["entry_id"] = json!("e");
        client.post("/v1/sessions/s/entries", body).await.ok();
        tags.push(client.get(entry).await.header("etag").unwrap().to_owned());
        if text == "first" {
            client.delete(session).await.ok();
        }
    }
    let read = client.with("if-none-match", &tags[0]).get(entry).await.ok();
    assert_eq!(read["entry"]["message"]["content"][0]["text"], "second");
    assert_eq!(client.with("if-none-match", &tags[1]).get(entry).await.status, 304);
    let content = json!({"content": [{"type": "text", "text": "third"}]});
    let stale = client.with("if-match", &tags[0]).put(entry, content.clone()).await;
    assert_eq!(stale.problem(412), "session/other_life");
    let changed = client.with("if-match", &tags[1]).put(entry, content).await;
    let tag = changed.header("etag").unwrap();
    assert_eq!(client.with("if-none-match", tag).get(entry).await.status, 304);
}

#[tokio::test]
async fn a_key_that_made_another_session_is_refused() {
    let test = TestServer::with("").await;
    let client = test.client();
    let id = new_session(&client).await;
    let mut entries = Vec::new();
    for text in ["x", "y"] {
        let entry = client.post(&format!("/v1/sessions/{id}/entries"), user(text)).await.ok();
        entries.push(entry["entry_id"].clone());
    }
    let fork = |entry: &Value, title: &str| json!({"entry_id": entry, "title": title});
    let cases = [
        ("/v1/sessions".to_owned(), json!({"title": "a"}), json!({"title": "b"})),
        (format!("/v1/sessions/{id}/fork"), fork(&entries[0], "a"), fork(&entries[1], "a")),
    ];
    let mut made = Vec::new();
    for (path, body, _) in &cases {
        let answer = client.with("idempotency-key", "k").post(path, body.clone()).await;
        assert_eq!(answer.header("idempotency-replayed"), None, "{path}");
        let session = answer.ok()["session_id"].as_str().unwrap().to_owned();
        // Later changes of the session do not matter.
        let title = json!({"title": "changed"}).to_string();
        client.send("PATCH", &format!("/v1/sessions/{session}"), Some(title)).await.ok();
        client.post(&format!("/v1/sessions/{session}/entries"), user("more")).await.ok();
        made.push(session);
    }
    let dir = test.stop().await;
    let test = TestServer::again(dir).await;
    let client = test.client().with("idempotency-key", "k");
    for ((path, body, other), session) in cases.into_iter().zip(made) {
        let again = client.post(&path, body.clone()).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
        assert_eq!(again.ok()["session_id"], session.as_str());
        assert_eq!(client.post(&path, other).await.problem(422), "session/other_content");
    }
}
