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
        let other = client.with("idempotency-key", &format!("other{number}"));
        let other = other.post(&path, body).await.ok();
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
    assert_eq!(stale.problem(412), "session/other_incarnation");
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
        let answer = client.with("idempotency-key", path).post(path, body.clone()).await;
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
    let client = test.client();
    for ((path, body, other), session) in cases.into_iter().zip(made) {
        let client = client.with("idempotency-key", &path);
        let again = client.post(&path, body.clone()).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
        assert_eq!(again.ok()["session_id"], session.as_str());
        assert_eq!(client.post(&path, other).await.problem(422), "session/other_content");
    }
}

/// A write, and another one that is not the same.
struct Write {
    name: &'static str,
    method: &'static str,
    path: String,
    body: Option<Value>,
    /// The path and the body of the other one.
    other: (String, Option<Value>),
}

impl Write {
    async fn send(&self, client: &Client) -> crate::client::Answer {
        client.send(self.method, &self.path, self.body.as_ref().map(Value::to_string)).await
    }

    async fn send_other(&self, client: &Client) -> crate::client::Answer {
        let (path, body) = &self.other;
        client.send(self.method, path, body.as_ref().map(Value::to_string)).await
    }
}

/// Every write of a route that keeps its key with its answer. They can be sent in this order.
fn writes(id: &str, stream: &str) -> Vec<Write> {
    let session = format!("/v1/sessions/{id}");
    let entry = format!("{session}/entries/m1");
    let at = |name, method, path: &str, body: Value, other: Value| Write {
        name,
        method,
        path: path.to_owned(),
        body: Some(body),
        other: (path.to_owned(), Some(other)),
    };
    let elsewhere = |name, method, path: String, other: String| {
        let body = (method != "DELETE").then(|| json!({}));
        Write { name, method, path, body: body.clone(), other: (other, body) }
    };
    let trash = |id: &str| format!("/v1/trash/{id}/undelete");
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let finish = format!("{session}/entries/{stream}/finish");
    let new = format!("{session}-new");
    vec![
        at("patch", "PATCH", &session, json!({"title": "a"}), json!({"title": "b"})),
        at("ensure", "PUT", &new, json!({"title": "a"}), json!({"title": "b"})),
        at(
            "status",
            "PUT",
            &format!("{session}/status"),
            json!({"status": "working"}),
            json!({"status": "done"}),
        ),
        at("task", "PUT", &format!("{session}/task"), json!({"task": "a"}), json!({"task": "b"})),
        at("label", "PUT", &format!("{entry}/label"), json!({"label": "a"}), json!({"label": "b"})),
        at(
            "leaf",
            "PUT",
            &format!("{session}/leaf"),
            json!({"entry_id": "m1"}),
            json!({"entry_id": "m2"}),
        ),
        at("put entry", "PUT", &entry, text("n"), text("nn")),
        at(
            "finish",
            "POST",
            &finish,
            json!({"usage": {"input": 1, "output": 1}}),
            json!({"stop_reason": "length"}),
        ),
        at(
            "hide",
            "POST",
            &format!("{session}/entries/hide"),
            json!({"entry_ids": ["m2"]}),
            json!({"entry_ids": ["m1"]}),
        ),
        elsewhere("archive", "PUT", format!("{session}/archive"), format!("{new}/archive")),
        elsewhere("unarchive", "DELETE", format!("{session}/archive"), format!("{new}/archive")),
        elsewhere("no leaf", "DELETE", format!("{session}/leaf"), format!("{new}/leaf")),
        elsewhere("no document", "DELETE", "/v1/kv/s/k".to_owned(), "/v1/kv/s/l".to_owned()),
        elsewhere("delete", "DELETE", new.clone(), session.clone()),
        elsewhere("undelete", "POST", trash(&format!("{id}-new")), trash(id)),
    ]
}

async fn session_to_write(client: &Client) -> String {
    let id = new_session(client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    for name in ["m1", "m2"] {
        let mut body = user(name);
        body["entry_id"] = json!(name);
        client.post(&entries, body).await.ok();
    }
    let stream =
        json!({"entry_id": "st", "stream": true, "message": {"role": "assistant", "content": []}});
    client.post(&entries, stream).await.ok();
    client.put("/v1/kv/s/k", json!({"value": 1})).await.ok();
    id
}

#[tokio::test]
async fn every_write_is_done_once_with_one_key() {
    let test = TestServer::with("").await;
    let client = test.client();
    let id = session_to_write(&client).await;
    let mut answers = Vec::new();
    for write in writes(&id, "st") {
        let keyed = client.with("idempotency-key", write.name);
        let first = write.send(&keyed).await;
        assert_eq!(first.header("idempotency-replayed"), None, "{}", write.name);
        let again = write.send(&keyed).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", write.name);
        assert_eq!(again.header("etag"), first.header("etag"), "{}", write.name);
        assert_eq!((again.status, &again.text), (first.status, &first.text), "{}", write.name);
        assert_eq!(first.status, 200, "{}: {}", write.name, first.text);
        answers.push(first.text);
    }
    let entry = client.get(&format!("/v1/sessions/{id}/entries/m1")).await.ok();
    assert_eq!(entry["entry"]["revision"], 1, "the message was replaced once");
    // A change by somebody else stays, and what a key was used for is known after a restart.
    client.put(&format!("/v1/sessions/{id}/status"), json!({"status": "error"})).await.ok();
    let test = TestServer::again(test.stop().await).await;
    let client = test.client();
    for (write, answer) in writes(&id, "st").iter().zip(answers) {
        let keyed = client.with("idempotency-key", write.name);
        let again = write.send(&keyed).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", write.name);
        assert_eq!(again.text, answer, "{}", write.name);
        let other = write.send_other(&keyed).await;
        assert_eq!(other.problem(422), "session/other_content", "{}", write.name);
    }
    let session = client.get(&format!("/v1/sessions/{id}")).await.ok();
    assert_eq!(session["meta"]["status"], "error");
}

#[tokio::test]
async fn a_key_is_for_one_function() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let (session, entries) = (format!("/v1/sessions/{id}"), format!("/v1/sessions/{id}/entries"));
    let title = json!({"title": "t"});
    let uses = [
        ("POST", "/v1/sessions".to_owned(), title.clone()),
        ("PATCH", session.clone(), title.clone()),
        ("POST", entries.clone(), user("x")),
        ("PUT", format!("{session}/status"), json!({"status": "working"})),
        ("POST", "/v1/kv/s".to_owned(), json!({"put": [{"key": "a", "value": 1}]})),
    ];
    for (first, one) in uses.iter().enumerate() {
        let keyed = client.with("idempotency-key", &format!("k{first}"));
        let send = async |(method, path, body): &(&str, String, Value)| {
            keyed.send(method, path, Some(body.to_string())).await
        };
        assert!(send(one).await.status < 300, "{one:?}");
        for other in uses.iter().filter(|other| other.1 != one.1) {
            assert_eq!(
                send(other).await.problem(422),
                "session/other_content",
                "{one:?} {other:?}"
            );
        }
        assert_eq!(send(one).await.header("idempotency-replayed"), Some("true"), "{one:?}");
    }
}

#[tokio::test]
async fn a_refused_request_does_not_use_its_key() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let keyed = client.with("idempotency-key", "k");
    let title = Some(json!({"title": "t"}).to_string());
    let missing = keyed.send("PATCH", "/v1/sessions/later", title.clone()).await;
    assert_eq!(missing.problem(404), "session/not_found");
    client.put("/v1/sessions/later", json!({})).await.ok();
    let done = keyed.send("PATCH", "/v1/sessions/later", title).await;
    assert_eq!((done.status, done.header("idempotency-replayed")), (200, None));
    // A stale revision is a refusal too.
    let keyed = client.with("idempotency-key", "l");
    let entry = client.post("/v1/sessions/later/entries", user("x")).await.ok()["entry_id"].clone();
    let path = format!("/v1/sessions/later/entries/{}", entry.as_str().unwrap());
    let replace = |revision: u64| json!({"content": [], "expected_revision": revision});
    assert_eq!(keyed.put(&path, replace(5)).await.problem(409), "session/revision_conflict");
    assert_eq!(keyed.put(&path, replace(0)).await.ok()["revision"], 1);
    let again = keyed.put(&path, replace(0)).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.ok(), json!({"updated": true, "revision": 1}));
}

#[tokio::test]
async fn a_replay_says_so_by_name_too() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let text = |text: &str| user(text)["message"].clone();
    let cases = [
        ("session::create", json!({"title": "a"}), json!({"title": "b"})),
        (
            "session::append",
            json!({"session_id": id, "message": text("a")}),
            json!({"session_id": id, "message": text("b")}),
        ),
        (
            "session::set-meta",
            json!({"session_id": id, "title": "a"}),
            json!({"session_id": id, "title": "b"}),
        ),
    ];
    for (function, body, other) in cases {
        let keyed = client.with("idempotency-key", function);
        let path = format!("/v1/call/{function}");
        let first = keyed.post(&path, body.clone()).await;
        assert_eq!(first.header("idempotency-replayed"), None, "{function}");
        let again = keyed.post(&path, body).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{function}");
        assert_eq!(again.ok(), first.ok(), "{function}");
        assert_eq!(keyed.post(&path, other).await.problem(422), "session/other_content");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_honoured_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = session_to_write(&client).await;
    let keyed = client.with("idempotency-key", "k");
    let protocol = keyed.post("/v1/call/session::store::list-metas", json!({})).await;
    assert_eq!(protocol.problem(400), "http/bad_request");
    let lines = keyed.with("content-type", "application/x-ndjson");
    for path in [format!("/v1/sessions/{id}/entries/st/deltas"), "/v1/record".to_owned()] {
        let refused = lines.send("POST", &path, Some("{}".to_owned())).await;
        assert_eq!(refused.problem(400), "http/bad_request", "{path}");
    }
}

/// The document declares the header where it is honoured, and nowhere else.
#[tokio::test]
async fn the_document_says_which_requests_take_a_key() {
    let test = TestServer::in_memory().await;
    let document = test.client().get("/openapi.json").await.ok();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let is_declared = parameters.iter().any(|one| one["name"] == "Idempotency-Key");
            let function = operation["x-function"].as_str().and_then(bough_service::function);
            let is_honoured = match function {
                Some(function) => !function.is_read() && function.id != "session::append-delta",
                None => path == "/v1/call/{function_id}",
            };
            assert_eq!(is_declared, is_honoured, "{method} {path}");
        }
    }
    let by_name = &document["paths"]["/v1/call/{function_id}"]["post"]["description"];
    assert!(by_name.as_str().unwrap().contains("`..`"), "{by_name}");
}
