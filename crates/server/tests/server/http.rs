//! The HTTP API.

use serde_json::{Value, json};

use crate::client::Client;
use crate::test_server::TestServer;

pub(crate) fn user(text: &str) -> Value {
    json!({"message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}})
}

pub(crate) async fn new_session(client: &Client) -> String {
    let made = client.post("/v1/sessions", json!({"title": "t"})).await.ok();
    made["session_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_made_written_and_read() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let made =
        client.post("/v1/sessions", json!({"title": "first", "metadata": {"owner": "u_1"}})).await;
    assert_eq!(made.status, 201);
    let id = made.json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location"), Some(format!("/v1/sessions/{id}").as_str()));
    let entries = format!("/v1/sessions/{id}/entries");
    let first = client.post(&entries, user("hello")).await.ok();
    let page = client.get(&format!("/v1/sessions/{id}/messages?roles=user&limit=5")).await.ok();
    assert_eq!(page["messages"][0]["entry_id"], first["entry_id"]);
    let listed = client.get("/v1/sessions?metadata.owner=u_1").await.ok();
    assert_eq!(listed["sessions"][0]["session_id"], id.as_str());
    let none = client.get("/v1/sessions?metadata.owner=u_2").await.ok();
    assert_eq!(none["sessions"], json!([]));
    let meta = client.get(&format!("/v1/sessions/{id}")).await.ok();
    assert_eq!(meta["meta"]["message_count"], 1);
    assert_eq!(client.delete(&format!("/v1/sessions/{id}")).await.ok(), json!({"deleted": true}));
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).await.problem(404), "session/not_found");
}

#[tokio::test]
async fn pages_follow_each_other_by_cursor() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    for n in 0..5 {
        client.post(&format!("/v1/sessions/{id}/entries"), user(&n.to_string())).await.ok();
    }
    let messages = in_pages(&client, &format!("/v1/sessions/{id}/messages"), "messages").await;
    let text = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    let texts: Vec<String> = messages.iter().map(text).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn branches_come_in_pages_too() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let root = client.post(&entries, user("root")).await.ok()["entry_id"].clone();
    let mut ends = Vec::new();
    for n in 0..5 {
        let branch = json!({"message": user(&n.to_string())["message"], "parent_id": root});
        ends.insert(0, client.post(&entries, branch).await.ok()["entry_id"].clone());
    }
    let branches = in_pages(&client, &format!("/v1/sessions/{id}/branches"), "branches").await;
    let found: Vec<&Value> = branches.iter().map(|branch| &branch["entry_id"]).collect();
    assert_eq!(found, ends.iter().collect::<Vec<_>>(), "each once, the newest first");
}

/// All items of a list, in pages of two.
async fn in_pages(client: &Client, path: &str, what: &str) -> Vec<Value> {
    let (mut found, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let page = client.get(&format!("{path}?{query}")).await.ok();
        found.extend(page[what].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { return found };
        query = format!("limit=2&cursor={}", cursor.replace('+', "%2B").replace('=', "%3D"));
    }
}

#[tokio::test]
async fn ids_of_any_kind_are_one_part_of_the_path() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let path = "/v1/sessions/..%2Fescape%20chat%3F%E4%B8%96";
    let made = client.put(path, json!({"title": "odd"})).await.ok();
    assert_eq!(made["session_id"], "../escape chat?世");
    assert_eq!(client.get(path).await.ok()["meta"]["title"], "odd");
}

#[tokio::test]
async fn the_same_idempotency_key_is_the_same_request() {
    let test = TestServer::in_memory().await;
    let client = test.client().with("idempotency-key", "k-1");
    let first = client.post("/v1/sessions", json!({"title": "a"})).await.ok();
    let again = client.post("/v1/sessions", json!({"title": "a"})).await.ok();
    assert_eq!(first, again);
    assert!(first.get("created").is_none(), "the answer is the one of session::create");
    let entries = format!("/v1/sessions/{}/entries", first["session_id"].as_str().unwrap());
    // A key is for one request of any kind.
    assert_eq!(client.post(&entries, user("x")).await.problem(422), "session/other_content");
    let keyed = client.with("idempotency-key", "k-3");
    let one = keyed.post(&entries, user("x")).await.ok();
    assert_eq!(keyed.post(&entries, user("x")).await.ok(), one);
    let other = client.with("idempotency-key", "k-2").post(&entries, user("x")).await.ok();
    assert_ne!(other["entry_id"], one["entry_id"]);
    let long = client.with("idempotency-key", &"k".repeat(300));
    assert_eq!(long.post("/v1/sessions", json!({})).await.problem(400), "http/bad_request");
}

#[tokio::test]
async fn etags_are_preconditions_on_revisions_and_leaves() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let first = client.post(&entries, user("a")).await;
    let leaf = first.header("etag").unwrap().to_owned();
    let entry = format!("{entries}/{}", first.json()["entry_id"].as_str().unwrap());
    let read = client.get(&entry).await;
    let tag = read.header("etag").unwrap().to_owned();
    assert_eq!(client.with("if-none-match", &tag).get(&entry).await.status, 304);
    let content = json!({"content": [{"type": "text", "text": "b"}]});
    let changed = client.with("if-match", &tag).put(&entry, content.clone()).await;
    assert_eq!(changed.status, 200);
    let stale = client.with("if-match", &tag).put(&entry, content).await;
    assert_eq!(stale.problem(412), "session/revision_conflict");
    assert_eq!(client.with("if-none-match", &tag).get(&entry).await.status, 200);
    let followed = client.with("if-match", &leaf).post(&entries, user("c")).await;
    assert_eq!(followed.status, 200);
    let late = client.with("if-match", &leaf).post(&entries, user("d")).await;
    assert_eq!(late.problem(412), "session/leaf_conflict");
    let session = format!("/v1/sessions/{id}");
    let tag = client.get(&session).await.header("etag").unwrap().to_owned();
    let page = client.get(&format!("{session}/messages")).await.header("etag").unwrap().to_owned();
    for other in [&tag, &page] {
        // Nothing was appended: a conflict would send the caller to read what is not there.
        let refused = client.with("if-match", other).post(&entries, user("d")).await;
        assert_eq!(refused.problem(400), "http/bad_request", "{other}");
    }
    assert_eq!(client.with("if-none-match", &tag).get(&session).await.status, 304);
    client.post(&entries, user("e")).await.ok();
    assert_eq!(client.with("if-none-match", &tag).get(&session).await.status, 200);
}

#[tokio::test]
async fn what_is_wrong_is_a_problem_with_a_code_and_a_hint() {
    let test = TestServer::with("adapter: {name: memory}\nlimits: {body_bytes: 1000}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let plain = client.with("content-type", "text/plain");
    let check = |answer: crate::client::Answer, status: u16, code: &str| {
        assert_eq!(answer.problem(status), code);
    };
    check(client.get("/v1/nothing").await, 404, "http/not_found");
    check(client.post("/v1/search", json!({})).await, 405, "http/method_not_allowed");
    check(client.get("/v1/sessions?limt=1").await, 400, "http/unknown_member");
    check(client.get("/v1/sessions?limit=x").await, 400, "http/bad_request");
    check(client.get("/v1/sessions?status=odd").await, 400, "session/malformed_request");
    check(client.send("POST", "/v1/sessions", Some("{".to_owned())).await, 400, "http/bad_request");
    check(client.post("/v1/sessions", json!([])).await, 400, "http/bad_request");
    check(plain.post("/v1/sessions", json!({})).await, 415, "http/not_json");
    check(client.post(&entries, user(&"x".repeat(2000))).await, 413, "http/too_large");
    check(client.post(&entries, json!({"session_id": "other"})).await, 400, "http/bad_request");
    check(client.post("/v1/sessions/none/entries", user("a")).await, 404, "session/not_found");
    check(client.get(&format!("{entries}/none")).await, 404, "session/entry_not_found");
    check(client.get("/v1/events?after=nonsense").await, 400, "session/invalid_cursor");
}

/// A caller that does not know the form of a message gets an example that can be sent.
#[tokio::test]
async fn the_example_in_a_hint_and_in_the_first_words_is_good() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let entries = format!("/v1/sessions/{}/entries", new_session(&client).await);
    let refused = client.post(&entries, json!({"message": "hello"})).await;
    assert_eq!(refused.problem(400), "session/malformed_request");
    let hint = refused.json()["hint"].as_str().unwrap().to_owned();
    let example = &hint[hint.find('{').unwrap()..=hint.rfind('}').unwrap()];
    let message: serde_json::Value = serde_json::from_str(example).unwrap();
    client.post(&entries, json!({ "message": message })).await.ok();
    assert!(test.server().welcome().contains(example));
}

#[tokio::test]
async fn every_function_can_be_called_by_its_name() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let made = client.post("/v1/call/session::create", json!({"title": "t"})).await.ok();
    assert!(made["session_id"].is_string());
    let none = client.post("/v1/call/session::get", json!({"session_id": "none"})).await;
    assert_eq!((none.status, none.text.as_str()), (200, "null"));
    let wrong = client.post("/v1/call/session::nope", json!({})).await;
    assert_eq!(wrong.problem(404), "session/function_not_found");
}

#[tokio::test]
async fn the_server_says_how_it_is() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    new_session(&client).await;
    assert_eq!(client.get("/healthz").await.ok()["status"], "ok");
    let ready = client.get("/readyz").await.ok();
    assert_eq!((&ready["status"], &ready["config"]), (&json!("ready"), &json!("applied")));
    assert_eq!(client.get("/v1/version").await.ok()["name"], "bough");
    let metrics = client.get("/metrics").await;
    assert!(
        metrics.text.contains("bough_calls_total{function=\"session::create\",outcome=\"ok\"} 1")
    );
    let document = client.get("/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(test.server().welcome().contains("/docs"));
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let test = TestServer::with("").await;
    let client = test.client();
    let id = new_session(&client).await;
    client.post(&format!("/v1/sessions/{id}/entries"), user("kept")).await.ok();
    let dir = test.stop().await;
    assert!(
        !dir.path().join("server.key").exists(),
        "the key of a server that is gone opens nothing"
    );
    let test = TestServer::again(dir).await;
    let page = test.client().get(&format!("/v1/sessions/{id}/messages")).await.ok();
    assert_eq!(page["messages"][0]["message"]["content"][0]["text"], "kept");
}

#[tokio::test]
async fn a_member_that_nobody_knows_is_refused_with_the_name_that_is_meant() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let mut body = user("x");
    body["expected_Leaf"] = json!("");
    let refused = client.post(&entries, body.clone()).await;
    assert_eq!(refused.problem(400), "http/unknown_member");
    let problem = refused.json();
    assert_eq!(problem["errors"][0]["path"], "/expected_Leaf");
    assert!(problem["detail"].as_str().unwrap().contains("did you mean `expected_leaf`?"));
    // A call by name has the same rules.
    for function in ["session::append", "session::append-entry"] {
        let mut by_name = body.clone();
        by_name["session_id"] = json!(id);
        let refused = client.post(&format!("/v1/call/{function}"), by_name).await;
        assert_eq!(refused.problem(400), "http/unknown_member", "{function}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("did you mean `expected_leaf`?"), "{function}: {detail}");
    }
    let query = client.post("/v1/call/session::get?session_id=x", json!({"session_id": id})).await;
    assert_eq!(query.problem(400), "http/unknown_member");
    let query = client.get(&format!("/v1/sessions/{id}/messages?limt=5")).await;
    assert_eq!(query.problem(400), "http/unknown_member");
    assert_eq!(query.json()["errors"][0]["path"], "/limt");
    let query = client.get(&format!("/v1/sessions/{id}/messages?limit=five")).await;
    assert_eq!(query.problem(400), "http/bad_request");
    assert_eq!(query.json()["errors"][0]["path"], "/limit");
    let page = client.get(&format!("/v1/sessions/{id}/messages")).await.ok();
    assert_eq!(page["messages"], json!([]), "nothing was appended");
    // On the bus an engine adds members of its own.
    let mut on_bus = user("x");
    on_bus["session_id"] = json!(id);
    on_bus["_caller_worker_id"] = json!("w");
    let answer = test.worker().await.call("session::append", on_bus).await;
    assert!(answer["entry_id"].is_string(), "{answer}");
}

#[tokio::test]
async fn a_stale_revision_is_a_conflict_by_name_too() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let entry = client.post(&entries, user("x")).await.ok()["entry_id"].clone();
    let content = json!([{"type": "text", "text": "y"}]);
    let mut body = json!({"session_id": id, "entry_id": entry, "content": content});
    body["expected_revision"] = json!(7);
    let stale = client.post("/v1/call/session::update-message", body.clone()).await;
    assert_eq!(stale.problem(409), "session/revision_conflict");
    // The bus keeps session-manager's answer.
    let answer = test.worker().await.call("session::update-message", body).await;
    assert_eq!(answer, json!({"updated": false, "revision": 0}));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named_by_its_path() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let check = async |path: &str, body: Value, at: &str| {
        let refused = client.post(&format!("/v1/sessions/{id}{path}"), body).await;
        assert_eq!(refused.problem(400), "session/malformed_request");
        assert_eq!(refused.json()["errors"][0]["path"], at);
    };
    check("/entries", json!({"message": {"role": "user"}}), "/message/content").await;
    check("/entries", json!({"origin": 1}), "/origin").await;
    check("/entries/hide", json!({}), "/entry_ids").await;
    // Calls by name keep session-manager's shapes: content is a list there.
    let message = r#"{"role": "user", "content": "x", "timestamp": 1}"#;
    let body = format!(r#"{{"session_id": "{id}", "message": {message}}}"#);
    let refused = client.send("POST", "/v1/call/session::append", Some(body)).await;
    assert_eq!(refused.problem(400), "session/malformed_request");
    assert_eq!(refused.json()["errors"][0]["path"], "/message/content");
}

#[tokio::test]
async fn what_is_longer_than_declared_is_refused_in_paths_and_queries() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let long = "x".repeat(5000);
    for path in [
        format!("/v1/watch?session_id={long}"),
        format!("/v1/events?session_id={long}"),
        format!("/v1/sessions?task={long}"),
        format!("/v1/sessions/s/entries?custom_type={long}"),
        format!("/v1/kv/scope?prefix={long}"),
        format!("/v1/sessions/{long}"),
    ] {
        assert_eq!(client.get(&path).await.problem(413), "session/too_large", "{path}");
    }
    let deleted = client.send("DELETE", &format!("/v1/trash/{long}"), None).await;
    assert_eq!(deleted.problem(413), "session/too_large");
}

#[tokio::test]
async fn a_whole_number_may_be_written_with_a_fraction() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let reply = json!({"stream": true, "message": {"role": "assistant", "content": "a"}});
    let entry = client.post(&entries, reply).await.ok()["entry_id"].as_str().unwrap().to_owned();
    let path = format!("{entries}/{entry}/delta");
    let delta = r#"{"block": 0.0, "text": "b", "expected_revision": 0.0}"#;
    let added = client.send("POST", &path, Some(delta.to_owned())).await;
    assert_eq!(added.ok()["revision"], 1);
    assert_eq!(client.get(&format!("{entries}?limit=1.0")).await.status, 200);
}

#[tokio::test]
async fn content_may_be_a_text_and_null_counts_as_absent() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let reply = json!({"role": "assistant", "content": "first", "stop_reason": null, "model": null, "timestamp": null});
    let appended = client.post(&entries, json!({"message": reply})).await.ok();
    let path = format!("{entries}/{}", appended["entry_id"].as_str().unwrap());
    let changed = client.send("PUT", &path, Some(json!({"content": "second"}).to_string())).await;
    assert_eq!(changed.ok()["revision"], 1);
    let message = client.get(&path).await.ok()["entry"]["message"].clone();
    assert_eq!(message["content"], json!([{"type": "text", "text": "second"}]));
    assert_eq!(message["stop_reason"], "end");
}

#[tokio::test]
async fn a_problem_names_paths_and_no_functions() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries = format!("/v1/sessions/{id}/entries");
    let custom = json!({"custom": {"custom_type": "note", "data": 1}});
    let note = client.post(&entries, custom).await.ok()["entry_id"].clone();
    let note = format!("{entries}/{}", note.as_str().unwrap());
    let content = json!({"content": []});
    for refused in [
        client.get("/v1/sessions/none").await,
        client.get(&format!("{entries}/none")).await,
        client.put(&note, content).await,
        client.post(&entries, json!({})).await,
        client.get("/v1/trash/none").await,
    ] {
        assert!(refused.status >= 400);
        assert!(!refused.json().to_string().contains("::"), "{}", refused.json());
    }
}

/// Callers that send JSON do not know the names of Rust's types.
#[tokio::test]
async fn problems_speak_of_json() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let at = |rest: &str| format!("/v1/sessions/{id}{rest}");
    let bad = [
        ("POST", at("/entries/e/delta"), json!({"block": "x", "text": "t"}), "/block"),
        ("POST", at("/entries/e/delta"), json!({"block": -1, "text": "t"}), "/block"),
        ("POST", at("/entries/batch"), json!({"entries": {}}), "/entries"),
        ("POST", at("/entries/batch"), json!({"entries": [5]}), "/entries/0"),
        ("PATCH", at(""), json!({"metadata": []}), "/metadata"),
        ("PUT", at("/status"), json!({"status": "bored"}), "/status"),
        ("PUT", at("/status"), json!({}), "/status"),
        ("POST", at("/entries"), json!({"message": "hello"}), "/message"),
        (
            "POST",
            at("/entries"),
            json!({"message": {"role": "assistant", "content": "x", "usage": {"input": -5}}}),
            "/message/usage/input",
        ),
    ];
    for (method, path, body, field) in bad {
        let refused = client.send(method, &path, Some(body.to_string())).await;
        assert_eq!(refused.problem(400), "session/malformed_request", "{body}");
        let problem = refused.json();
        assert_eq!(problem["errors"][0]["path"], field, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        for word in ["u32", "u64", "struct", "sequence", "map", "variant", "column", "``"] {
            assert!(!detail.contains(word), "{word}: {detail}");
        }
    }
}
