//! What a request says is honoured or refused: nothing that it says is passed over.

use serde_json::{Value, json};

use crate::http::{new_session, user};
use crate::test_server::TestServer;

/// A condition in the body of a `DELETE` would otherwise not be a condition.
#[tokio::test]
async fn a_request_that_has_its_fields_in_the_query_takes_no_body() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let leaf = client.post(&format!("/v1/sessions/{id}/entries"), user("x")).await.ok();
    let path = format!("/v1/sessions/{id}/leaf");
    let body = json!({"expected_leaf": "another"}).to_string();
    for (method, path) in [("DELETE", path.as_str()), ("GET", "/v1/sessions")] {
        let refused = client.send(method, path, Some(body.clone())).await;
        assert_eq!(refused.problem(400), "http/unknown_member", "{method}");
        assert_eq!(refused.json()["errors"][0]["path"], "/expected_leaf", "{method}");
    }
    let session = client.get(&format!("/v1/sessions/{id}")).await.ok();
    assert_eq!(session["active_leaf"], leaf["entry_id"], "nothing was done");
    // Some clients send an empty object with every request.
    client.send("DELETE", &path, Some("{}".to_owned())).await.ok();
}

#[tokio::test]
async fn a_condition_that_a_write_does_not_have_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client().with("if-none-match", "*");
    let refused = client.put("/v1/sessions/s", json!({})).await;
    assert_eq!(refused.problem(400), "http/bad_request");
    assert_eq!(test.client().get("/v1/sessions/s").await.problem(404), "session/not_found");
    let by_name = client.post("/v1/call/session::ensure", json!({"session_id": "s"})).await;
    assert_eq!(by_name.problem(400), "http/bad_request");
    // Documents have this one, and only with the star.
    client.put("/v1/kv/s/k", json!({"value": 1})).await.ok();
    assert_eq!(
        client.put("/v1/kv/s/k", json!({"value": 1})).await.problem(412),
        "session/document_conflict"
    );
    let tagged = client.with("if-none-match", "\"1\"");
    assert_eq!(
        tagged.put("/v1/kv/s/k", json!({"value": 1})).await.problem(400),
        "http/bad_request"
    );
    assert_eq!(tagged.get("/v1/kv/s/k").await.status, 304);
}

#[tokio::test]
async fn requests_about_the_server_itself_take_no_unknown_names() {
    let test = TestServer::with("adapter: {name: native}").await;
    let client = test.client();
    for path in ["/v1/login", "/v1/logout", "/v1/tickets", "/v1/verify"] {
        let refused = client.post(path, json!({"seconds": 5})).await;
        assert_eq!(refused.problem(400), "http/unknown_member", "{path}");
        let refused = client.post(&format!("{path}?seconds=5"), json!({})).await;
        assert_eq!(refused.problem(400), "http/unknown_member", "{path}");
        assert!(client.post(path, json!({})).await.status < 300, "{path}");
        assert!(client.send("POST", path, None).await.status < 300, "{path}");
    }
    for path in ["/v1/health", "/v1/version"] {
        let refused = client.get(&format!("{path}?details=1")).await;
        assert_eq!(refused.problem(400), "http/unknown_member", "{path}");
        client.get(path).await.ok();
    }
    // What watches processes may add what it likes.
    client.get("/healthz?probe=1").await.ok();
}

#[tokio::test]
async fn the_lines_of_a_reply_take_neither_parameters_nor_conditions() {
    let test = TestServer::in_memory().await;
    let client = test.client().with("content-type", "application/x-ndjson");
    let begin = json!({"create": true, "entry_id": "e", "stream": true,
                       "message": {"role": "assistant", "content": []}});
    test.client().post("/v1/sessions/s/entries", begin).await.ok();
    let path = "/v1/sessions/s/entries/e/deltas";
    let lines = || Some("{\"block\": 0, \"text\": \"x\"}\n".to_owned());
    let refused = client.send("POST", &format!("{path}?expected_revision=4"), lines()).await;
    assert_eq!(refused.problem(400), "http/unknown_member");
    let refused = client.with("if-match", "\"4\"").send("POST", path, lines()).await;
    assert_eq!(refused.problem(400), "http/bad_request");
    let entry = test.client().get("/v1/sessions/s/entries/e").await.ok();
    assert_eq!(entry["entry"]["revision"], 0, "nothing was added");
}

/// An id or a key may have a comma; the words of a list that has a fixed set of them have none.
#[tokio::test]
async fn a_comma_in_an_id_is_a_part_of_it() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    for id in ["a,b", "c"] {
        let body = json!({"create": true, "entry_id": id,
                          "message": {"role": "user", "content": id}});
        client.post("/v1/sessions/s/entries", body).await.ok();
        client
            .put(&format!("/v1/kv/s/{}", id.replace(',', "%2C")), json!({"value": id}))
            .await
            .ok();
    }
    let page = client.get("/v1/sessions/s/entries?ids=c&ids=a%2Cb").await.ok();
    let ids: Vec<&Value> =
        page["entries"].as_array().unwrap().iter().map(|item| &item["entry_id"]).collect();
    assert_eq!(ids, ["c", "a,b"]);
    let page = client.get("/v1/kv/s?keys=a%2Cb").await.ok();
    assert_eq!(page["documents"][0]["value"], "a,b");
    let page = client.get("/v1/sessions/s/messages?roles=user,assistant").await.ok();
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_place_of_an_unknown_name_is_its_own() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let usage = json!({"usage": {"inputs": 1}});
    let refused = client.post("/v1/sessions/s/entries/e/finish", usage.clone()).await;
    assert_eq!(refused.problem(400), "http/unknown_member");
    assert_eq!(refused.json()["errors"][0]["path"], "/usage/inputs");
    let begin = json!({"create": true, "entry_id": "e", "stream": true,
                       "message": {"role": "assistant", "content": []}});
    client.post("/v1/sessions/s/entries", begin).await.ok();
    let client = client.with("content-type", "application/x-ndjson");
    for (line, path) in [
        (json!({"finish": usage}), "/finish/usage/inputs"),
        (json!({"finish": {"stop_reson": "end"}}), "/finish/stop_reson"),
        (json!({"finish": {"stop_reason": "never"}}), "/finish/stop_reason"),
        (json!({"block": 0, "txt": "x"}), "/txt"),
        (json!({"block": "0", "text": "x"}), "/block"),
    ] {
        let path_of_lines = "/v1/sessions/s/entries/e/deltas";
        let answer = client.send("POST", path_of_lines, Some(format!("{line}\n"))).await;
        assert_eq!(answer.json()["error"]["errors"][0]["path"], path, "{answer:?}");
    }
}
