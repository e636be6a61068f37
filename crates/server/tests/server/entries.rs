//! Entries over HTTP: batches, formats, documents, reads by key, and the rules of repeating and comparing.

use serde_json::{Value, json};

use crate::client::Client;
use crate::http::{new_session, user};
use crate::test_server::TestServer;

async fn patch(client: &Client, path: &str, body: Value) -> crate::client::Answer {
    client.send("PATCH", path, Some(body.to_string())).await
}

fn ids(page: &Value) -> Vec<&str> {
    page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["entry_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn one_batch_creates_a_session_with_messages_documents_and_metadata() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let batch = json!({
        "create": true,
        "meta": {"title": "made", "metadata": {"owner": "u"}},
        "entries": [
            {"entry_id": "a", "message": {"role": "user", "content": "hello"}},
            {"entry_id": "b", "format": "anthropic",
             "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}},
            {"entry_id": "c", "parent_id": "a", "custom": {"custom_type": "note", "data": [1]}},
        ],
    });
    let path = "/v1/sessions/made-by-batch/entries/batch";
    let first = client.post(path, batch.clone()).await;
    assert_eq!(first.header("idempotency-replayed"), None);
    let made = first.ok();
    assert_eq!(made["entries"][0]["parent_id"], Value::Null);
    assert_eq!(made["entries"][1]["parent_id"], "a");
    assert_eq!(made["entries"][2]["parent_id"], "a");
    let session = client.get("/v1/sessions/made-by-batch").await.ok();
    assert_eq!(session["meta"]["title"], "made");
    assert_eq!(session["meta"]["metadata"], json!({"owner": "u"}));
    assert_eq!(session["meta"]["message_count"], 2);
    assert_eq!(session["active_leaf"], "c");
    let again = client.post(path, batch).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.ok(), made);
    let wrong =
        json!({"entries": [{"message": {"role": "user", "content": "x"}, "entri_id": "d"}]});
    let refused = client.post(path, wrong).await;
    assert_eq!(refused.problem(400), "http/unknown_member");
    assert_eq!(refused.json()["errors"][0]["path"], "/entries/0/entri_id");
    assert!(refused.json()["detail"].as_str().unwrap().contains("did you mean `entry_id`?"));
    let absent = client.post("/v1/sessions/none/entries", user("x")).await;
    assert_eq!(absent.problem(404), "session/not_found");
}

/// The place of an entry is part of its content: the same id at another place is another entry.
#[tokio::test]
async fn the_same_entry_below_another_parent_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let path = "/v1/sessions/s/entries";
    let entry = |id: &str, parent: Option<Value>| {
        let mut body =
            json!({"create": true, "entry_id": id, "message": {"role": "user", "content": "x"}});
        body.as_object_mut().unwrap().extend(parent.map(|parent| ("parent_id".to_owned(), parent)));
        body
    };
    client.post(path, entry("a", None)).await.ok();
    let made = client.post(path, entry("b", Some(json!("a")))).await.ok();
    // Without a parent the request says nothing of the place; it is a repetition wherever the leaf is by now.
    for again in [Some(json!("a")), None] {
        let replayed = client.post(path, entry("b", again)).await;
        assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
        assert_eq!(replayed.ok(), made);
    }
    let root = client.post(path, entry("b", Some(Value::Null))).await;
    assert_eq!(root.problem(422), "session/other_content");
    client.post(path, entry("c", None)).await.ok();
    let other = client.post(path, entry("b", Some(json!("c")))).await;
    assert_eq!(other.problem(422), "session/other_content");
}

#[tokio::test]
async fn nothing_of_a_batch_is_there_when_one_entry_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let batch = json!({"create": true, "entries": [
        {"message": {"role": "user", "content": "x"}},
        {"format": "anthropic", "message": {"role": "nobody"}},
    ]});
    let refused = client.post("/v1/sessions/s/entries/batch", batch).await;
    assert_eq!(refused.problem(400), "session/malformed_request");
    assert_eq!(refused.json()["errors"][0]["path"], "/entries/1/message/role");
    assert_eq!(client.get("/v1/sessions/s").await.problem(404), "session/not_found");
}

#[tokio::test]
async fn a_document_is_kept_byte_for_byte() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let data =
        r#"{"z":1.0,"a":123456789012345678901234567890,"e":1e2,"nested":{"b":[1,2.50],"a":null}}"#;
    let large = "x".repeat(3 * 1024 * 1024);
    let entries = format!("/v1/sessions/{id}/entries");
    for (name, data) in [("small", data.to_owned()), ("large", format!("{{\"t\":\"{large}\"}}"))] {
        let body =
            format!(r#"{{"entry_id":"{name}","custom":{{"custom_type":"ckpt","data":{data}}}}}"#);
        client.send("POST", &entries, Some(body)).await.ok();
        let read = client.get(&format!("{entries}/{name}")).await;
        assert!(read.text.contains(&format!("\"data\":{data}")), "{name}");
        let tag = read.header("etag").unwrap().to_owned();
        let unchanged = client.with("if-none-match", &tag).get(&format!("{entries}/{name}")).await;
        assert_eq!(unchanged.status, 304);
    }
}

#[tokio::test]
async fn entries_are_read_by_key() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/entries");
    for n in 0..6 {
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        let custom = json!({"entry_id": format!("k/{kind}/{n}"), "custom": {"custom_type": kind, "data": n}});
        client.post(&path, custom).await.ok();
        client.post(&path, user("between")).await.ok();
    }
    let read = async |query: &str| client.get(&format!("{path}?{query}")).await.ok();
    let newest = read("custom_type=even&order=newest&limit=1").await;
    assert_eq!(ids(&newest), ["k/even/4"]);
    assert_eq!(newest["entries"][0]["custom"], json!({"custom_type": "even", "data": 4}));
    let cursor = newest["next_cursor"].as_str().unwrap().replace('=', "%3D");
    let rest = read(&format!("custom_type=even&order=newest&cursor={cursor}")).await;
    assert_eq!(ids(&rest), ["k/even/2", "k/even/0"]);
    assert_eq!(rest.get("next_cursor"), None);
    assert_eq!(ids(&read("custom_type=odd").await), ["k/odd/1", "k/odd/3", "k/odd/5"]);
    assert_eq!(ids(&read("custom_type=none&order=newest").await), [""; 0]);
    assert_eq!(ids(&read("id_prefix=k/odd/&order=newest&limit=2").await), ["k/odd/5", "k/odd/3"]);
    assert_eq!(ids(&read("custom_type=odd&id_prefix=k/odd/3&order=newest").await), ["k/odd/3"]);
    assert_eq!(ids(&read("ids=k/odd/5&ids=absent&ids=k/even/0").await), ["k/odd/5", "k/even/0"]);
    let small = read("max_bytes=1").await;
    assert_eq!(small["entries"].as_array().unwrap().len(), 1, "one at least");
    let mut all = Vec::new();
    let mut query = "max_bytes=300&order=oldest".to_owned();
    loop {
        let page = read(&query).await;
        all.extend(ids(&page).into_iter().map(ToOwned::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("max_bytes=300&order=oldest&cursor={}", cursor.replace('=', "%3D"));
    }
    assert_eq!(all.len(), 12, "each once, page by page");
    let listed = client.get(&path).await;
    let tag = listed.header("etag").unwrap().to_owned();
    assert_eq!(client.with("if-none-match", &tag).get(&path).await.status, 304);
    client.post(&path, user("news")).await.ok();
    assert_eq!(client.with("if-none-match", &tag).get(&path).await.status, 200);
}

#[tokio::test]
async fn a_message_comes_back_in_its_own_format_and_in_others() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/entries");
    // Spelled as no mapping would spell it.
    let message = r#"{ "x" : 1.0, "content":[{"text":"hi","type":"text","cache_control":{"type":"ephemeral"},"n":123456789012345678901234567890}],"role":"assistant"}"#;
    let body = format!(r#"{{"entry_id":"a","format":"anthropic","message":{message}}}"#);
    client.send("POST", &path, Some(body)).await.ok();
    let messages = format!("/v1/sessions/{id}/messages");
    let same = client.get(&format!("{messages}?format=anthropic")).await;
    assert!(same.text.contains(message), "{}", same.text);
    let page = client.get(&format!("{messages}?format=openai-chat")).await.ok();
    let item = &page["messages"][0];
    assert_eq!(item["message"]["role"], "assistant");
    assert!(!item["losses"].as_array().unwrap().is_empty(), "the mark has no test there: {item}");
    let plain = client.get(&messages).await.ok();
    assert_eq!(plain["messages"][0]["message"]["content"][0]["text"], "hi");
    assert_eq!(plain["messages"][0]["revision"], 0);
    let context = client.get(&format!("/v1/sessions/{id}/context?format=anthropic")).await.ok();
    assert_eq!(context["conversation"]["messages"][0]["content"][0]["text"], "hi");
    let unknown = client.get(&format!("{messages}?format=morse")).await;
    assert_eq!(unknown.problem(400), "session/malformed_request");
}

#[tokio::test]
async fn the_metadata_of_a_session_name_its_format() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    client.put("/v1/sessions/g", json!({"metadata": {"message_format": "gemini"}})).await.ok();
    let said = json!({"message": {"role": "user", "parts": [{"text": "hello"}]}});
    client.post("/v1/sessions/g/entries", said).await.ok();
    let page = client.get("/v1/sessions/g/messages").await.ok();
    assert_eq!(page["messages"][0]["message"]["content"][0]["text"], "hello");
    // A word that is no format is not taken for Bough's own.
    let path = "/v1/sessions/g";
    client
        .send("PATCH", path, Some(json!({"metadata": {"message_format": "gemeni"}}).to_string()))
        .await
        .ok();
    let said = json!({"message": {"role": "user", "content": "hello"}});
    let refused = client.post("/v1/sessions/g/entries", said).await;
    assert_eq!(refused.problem(400), "session/invalid_request");
    let named = json!({"message": {"role": "user", "content": "hello"}, "format": "bough"});
    client.post("/v1/sessions/g/entries", named).await.ok();
}

#[tokio::test]
async fn the_same_id_with_another_content_is_refused_over_http() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/entries");
    let said =
        |text: &str| json!({"entry_id": "a", "message": {"role": "assistant", "content": text}});
    client.post(&path, said("x")).await.ok();
    client.post(&format!("{path}/a/delta"), json!({"block": 0, "text": "y"})).await.ok();
    let again = client.post(&path, said("x")).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.ok()["revision"], 1, "also after a change");
    assert_eq!(client.post(&path, said("z")).await.problem(422), "session/other_content");
    let keyed = client.with("idempotency-key", "k");
    let one = keyed.post(&path, user("one")).await.ok();
    assert_eq!(keyed.post(&path, user("one")).await.ok(), one);
    assert_eq!(keyed.post(&path, user("two")).await.problem(422), "session/other_content");
    // A stream is what was sent to begin it, also after it grew and ended, and after a restart.
    let begun = |text: &str| json!({"entry_id": "s", "message": {"role": "assistant", "content": text}, "stream": true});
    client.post(&path, begun("x")).await.ok();
    client.post(&format!("{path}/s/delta"), json!({"block": 0, "text": "y"})).await.ok();
    client.post(&format!("{path}/s/finish"), json!({"stop_reason": "length"})).await.ok();
    let test = TestServer::again(test.stop().await).await;
    let client = test.client();
    let keyed = client.with("idempotency-key", "k");
    assert_eq!(keyed.post(&path, user("one")).await.ok(), one);
    assert_eq!(keyed.post(&path, user("two")).await.problem(422), "session/other_content");
    let again = client.post(&path, begun("x")).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(client.post(&path, begun("xy")).await.problem(422), "session/other_content");
    // On the bus an id that exists is skipped.
    let mut by_name = user("w");
    by_name["session_id"] = json!(id);
    by_name["entry_id"] = json!("a");
    client.post("/v1/call/session::append", by_name).await.ok();
}

#[tokio::test]
async fn four_clients_that_pop_get_each_message_once() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    let id = new_session(&client).await;
    let entries: Vec<Value> =
        (0..100).map(|n| json!({"message": {"role": "user", "content": n.to_string()}})).collect();
    let path = format!("/v1/sessions/{id}");
    client.post(&format!("{path}/entries/batch"), json!({"entries": entries})).await.ok();
    let pop = async || {
        let mut popped = Vec::new();
        loop {
            let page = client.get(&format!("{path}/messages/tail?limit=1")).await.ok();
            let Some(last) = page["messages"].get(0) else { return popped };
            let leaf = last["entry_id"].as_str().unwrap();
            let moved = match last["parent_id"].as_str() {
                Some(parent) => {
                    let to = json!({"entry_id": parent, "expected_leaf": leaf});
                    client.put(&format!("{path}/leaf"), to).await
                }
                None => client.delete(&format!("{path}/leaf?expected_leaf={leaf}")).await,
            };
            match moved.status {
                200 => popped.push(last["message"]["content"][0]["text"].to_string()),
                _ => assert_eq!(moved.problem(409), "session/leaf_conflict"),
            }
        }
    };
    let (a, b, c, d) = tokio::join!(pop(), pop(), pop(), pop());
    let mut all: Vec<String> = [a, b, c, d].concat();
    assert_eq!(all.len(), 100);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 100, "each once");
}

#[tokio::test]
async fn a_label_does_not_move_the_leaf_for_who_appends() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/entries");
    let leaf = client.post(&path, user("a")).await.ok()["entry_id"].clone();
    let label = format!("{path}/{}/label", leaf.as_str().unwrap());
    client.put(&label, json!({"label": "here"})).await.ok();
    client.put(&label, json!({"label": "there"})).await.ok();
    let session = client.get(&format!("/v1/sessions/{id}")).await.ok();
    assert_eq!(session["active_leaf"], leaf);
    let mut stale = user("b");
    stale["expected_leaf"] = json!("another");
    let refused = client.post(&path, stale).await;
    assert_eq!(refused.problem(409), "session/leaf_conflict");
    assert_eq!(refused.json()["data"]["active_leaf"], leaf);
    let mut next = user("b");
    next["expected_leaf"] = leaf;
    client.post(&path, next.clone()).await.ok();
    assert_eq!(client.post(&path, next).await.problem(409), "session/leaf_conflict");
}

#[tokio::test]
async fn metadata_are_merged_and_compared() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}");
    patch(&client, &path, json!({"metadata": {"a": 1, "b": {"c": 1, "d": 2}}})).await.ok();
    let read = client.get(&path).await;
    let tag = read.header("etag").unwrap().to_owned();
    let version = read.json()["version"].clone();
    // Entries that are appended meanwhile do not matter.
    client.post(&format!("{path}/entries"), user("x")).await.ok();
    let change = json!({"metadata": {"a": null, "b": {"c": null}}});
    let changed = patch(&client.with("if-match", &tag), &path, change.clone()).await.ok();
    assert_eq!(changed["meta"]["metadata"], json!({"b": {"d": 2}}));
    let late = patch(&client.with("if-match", &tag), &path, change.clone()).await;
    assert_eq!(late.problem(412), "session/version_conflict");
    let mut by_body = change;
    by_body["expected_version"] = version;
    let late = patch(&client, &path, by_body).await;
    assert_eq!(late.problem(409), "session/version_conflict");
    assert_eq!(late.json()["data"]["version"], changed["version"]);
}

#[tokio::test]
async fn an_entry_whose_parent_is_null_begins_a_new_tree() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let text = |text: &str| json!({"message": {"role": "user", "content": text}});
    let root = |content: &str| {
        let mut entry = text(content);
        entry["parent_id"] = Value::Null;
        entry
    };
    let batch = json!({"create": true, "entries": [text("a"), text("b"), root("c"), text("d")]});
    let made = client.post("/v1/sessions/s/entries/batch", batch).await.ok();
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| made["entries"][at].clone());
    assert_eq!(a["parent_id"], Value::Null);
    assert_eq!(b["parent_id"], a["entry_id"]);
    assert_eq!(c["parent_id"], Value::Null, "it begins a tree of its own");
    assert_eq!(d["parent_id"], c["entry_id"]);
    let single = client.post("/v1/sessions/s/entries", root("e")).await.ok();
    assert_eq!(single["parent_id"], Value::Null);
    let page = client.get("/v1/sessions/s/messages").await.ok();
    assert_eq!(page["messages"].as_array().unwrap().len(), 1, "the newest tree is the active one");
    // On the bus `null` is ignored, as in session-manager.
    let mut worker = test.worker().await;
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": "f"}], "timestamp": 1});
    let request = json!({"session_id": "s", "parent_id": null, "message": message});
    let appended = worker.call("session::append", request).await;
    assert_eq!(appended["parent_id"], single["entry_id"]);
}

/// The member that is wrong is named by its path, also inside a message, in words of JSON.
#[tokio::test]
async fn a_wrong_member_of_a_message_is_named_by_its_path() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let session = new_session(&client).await;
    let entries = format!("/v1/sessions/{session}/entries");
    let check = async |path: &str, body: Value, at: &str, words: &str| {
        let refused = client.post(path, body).await;
        assert_eq!(refused.problem(400), "session/malformed_request");
        let error = refused.json()["errors"][0].clone();
        assert_eq!((&error["path"], &error["detail"]), (&json!(at), &json!(words)));
    };
    let reply = |member: &str, value: Value| json!({"message": {member: value, "role": "assistant", "content": "x"}});
    check(
        &entries,
        reply("stop_reason", json!("foo")),
        "/message/stop_reason",
        "`stop_reason` must be one of `end`, `length`, `function_call`, `aborted`, `error`, not `foo`",
    )
    .await;
    check(
        &entries,
        reply("timestamp", json!("now")),
        "/message/timestamp",
        "`timestamp` must be a whole number, not the text \"now\"",
    )
    .await;
    check(
        &entries,
        reply("usage", json!({"input": -5})),
        "/message/usage/input",
        "`usage.input` must be a whole number, 0 or more, not `-5`",
    )
    .await;
    let batch = json!({"entries": [user("fine"), reply("timestamp", json!([]))]});
    check(
        &format!("{entries}/batch"),
        batch,
        "/entries/1/message/timestamp",
        "`timestamp` must be a whole number, not a list",
    )
    .await;
    let begun = json!({"entry_id": "a", "stream": true, "message": {"role": "assistant", "content": [], "model": "m"}});
    client.post(&entries, begun).await.ok();
    check(
        &format!("{entries}/a/finish"),
        json!({"usage": {"input": -1}}),
        "/usage/input",
        "`usage.input` must be a whole number, 0 or more, not `-1`",
    )
    .await;
}

/// As RFC 7396 has it: `null` removes.
#[tokio::test]
async fn null_in_a_patch_removes() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let made = json!({"title": "t", "description": "d", "metadata": {"a": 1, "b": 2}});
    client.put("/v1/sessions/s", made).await;
    let meta =
        async |body: Value| patch(&client, "/v1/sessions/s", body).await.ok()["meta"].clone();
    let first = meta(json!({"title": null})).await;
    assert_eq!((&first["title"], &first["description"]), (&json!(""), &json!("d")));
    assert_eq!(first["metadata"], json!({"a": 1, "b": 2}));
    let second = meta(json!({"description": null, "metadata": {"a": null}})).await;
    assert_eq!((&second["description"], &second["metadata"]), (&json!(""), &json!({"b": 2})));
    assert_eq!(meta(json!({"metadata": null})).await["metadata"], json!({}));
}

/// Metadata and origins are values with numbers of 64 bits. A number that would become another one is refused, and nothing
/// is stored.
#[tokio::test]
async fn a_number_that_would_be_altered_is_refused_by_its_place() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    client.put("/v1/sessions/s", json!({"metadata": {"z": 1.5}})).await.ok();
    let check = async |method: &str, path: &str, body: &str, at: &str| {
        let body = body.replace("LONG", "123456789012345678901234567890");
        let refused = client.send(method, path, Some(body)).await;
        assert_eq!(refused.problem(400), "session/malformed_request", "{at}");
        assert_eq!(refused.json()["errors"][0]["path"], at);
    };
    let message = r#""message":{"role":"user","content":"x"}"#;
    let metadata = r#"{"metadata":{"a":[1,{"n":LONG}]}}"#;
    check("POST", "/v1/sessions", metadata, "/metadata/a/1/n").await;
    check("PUT", "/v1/sessions/other", metadata, "/metadata/a/1/n").await;
    check("PATCH", "/v1/sessions/s", r#"{"metadata":{"deep":{"n":LONG}}}"#, "/metadata/deep/n")
        .await;
    let entries = "/v1/sessions/s/entries";
    let entry = format!(r#"{{{message},"origin":{{"n":LONG}}}}"#);
    check("POST", entries, &entry, "/origin/n").await;
    let batch = format!(r#"{{"entries":[{{{message}}},{entry}]}}"#);
    check("POST", &format!("{entries}/batch"), &batch, "/entries/1/origin/n").await;
    let meta = client.get("/v1/sessions/s").await.ok()["meta"].clone();
    assert_eq!(meta["metadata"], json!({"z": 1.5}));
    assert_eq!(client.get("/v1/sessions/other").await.status, 404);
    // The message itself holds any number, and so does a number that stays the same.
    let kept = r#"{"message":{"role":"user","content":"x","n":123456789012345678901234567890},"origin":{"n":18446744073709551615,"z":1.10}}"#;
    client.send("POST", entries, Some(kept.to_owned())).await.ok();
    let text = client.get(entries).await.text;
    assert!(text.contains(r#""n":123456789012345678901234567890"#), "{text}");
    assert!(text.contains(r#""n":18446744073709551615,"z":1.1"#), "{text}");
}

/// A writer that changes a session twice needs no read between.
#[tokio::test]
async fn a_changed_session_has_its_new_tag() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}");
    let patch = async |tag: &str, title: &str| {
        let body = Some(json!({"title": title}).to_string());
        client.with("if-match", tag).send("PATCH", &path, body).await
    };
    let first = client.get(&path).await.header("etag").unwrap().to_owned();
    let changed = patch(&first, "one").await;
    let second = changed.header("etag").unwrap().to_owned();
    assert_eq!(patch(&first, "two").await.problem(412), "session/version_conflict");
    assert_eq!(patch(&second, "two").await.status, 200);
    let known = client.with("if-none-match", &second).get(&path).await;
    assert_eq!(known.status, 200, "the session has changed since");
}
