//! Deltas as lines of one request that stays open.

use serde_json::{Value, json};

use crate::client::{Client, EventStream};
use crate::streams::reply;
use crate::test_server::TestServer;

const SESSION: &str = "/v1/sessions/s";
const ENTRY: &str = "/v1/sessions/s/entries/r";
const DELTAS: &str = "/v1/sessions/s/entries/r/deltas";

async fn begin(client: &Client) {
    client.put(SESSION, json!({})).await.ok();
    let body = json!({"entry_id": "r", "message": reply(""), "stream": true});
    client.post(&format!("{SESSION}/entries"), body).await.ok();
}

async fn answer(request: &mut EventStream) -> Value {
    serde_json::from_str(&request.line().await.expect("an answer")).unwrap()
}

async fn text(client: &Client) -> String {
    let entry = client.get(ENTRY).await.ok();
    entry["entry"]["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_line_is_acknowledged_when_it_is_durable() {
    let test = TestServer::with("").await;
    let client = test.client();
    begin(&client).await;
    let mut request = client.deltas(DELTAS).await;
    request.send("{\"block\":0,\"text\":\"one \"}\n").await;
    assert_eq!(answer(&mut request).await, json!({"revision": 1}));
    assert_eq!(text(&client).await, "one ");
    // Lines in parts, several at once, and an empty one as a heartbeat.
    request.send("{\"block\":0,").await;
    request.send("\"text\":\"two \"}\n\n{\"block\":0,\"text\":\"three\"}\n").await;
    request.send("{\"block\":1,\"text\":\"hm\",\"kind\":\"thinking\"}\n").await;
    let mut last = 0;
    for _ in 0..3 {
        let revision = answer(&mut request).await["revision"].as_u64().unwrap();
        assert!(revision >= last, "in order");
        last = revision;
    }
    assert_eq!(text(&client).await, "one two three");
    request.send("{\"finish\":{\"stop_reason\":\"length\",\"usage\":{\"output\":3}}}\n").await;
    let done = answer(&mut request).await;
    assert_eq!(done, json!({"revision": last + 1, "stop_reason": "length"}));
    assert_eq!(request.line().await, None, "the answer ends with the message");
    let message = client.get(ENTRY).await.ok()["entry"]["message"].clone();
    assert_eq!(message["stop_reason"], "length");
}

#[tokio::test]
async fn a_request_that_breaks_leaves_its_message_aborted() {
    let test = TestServer::with("").await;
    let client = test.client();
    begin(&client).await;
    let mut events = client.events("/v1/sessions/s/events?after=start").await;
    let mut request = client.deltas(DELTAS).await;
    request.send("{\"block\":0,\"text\":\"one\"}\n").await;
    answer(&mut request).await;
    drop(request);
    let end = events.until("message.finished").await;
    assert_eq!((&end.data["aborted"], &end.data["stop_reason"]), (&json!(true), &json!("aborted")));
    let late = client.post(&format!("{ENTRY}/finish"), json!({})).await;
    assert_eq!(late.problem(409), "session/not_streaming");
    assert_eq!(text(&client).await, "one");
}

/// A body that ends well is whole: what it holds is taken or refused, never passed over.
#[tokio::test]
async fn a_last_line_needs_no_line_break() {
    let test = TestServer::with("").await;
    let client = test.client();
    begin(&client).await;
    let mut request = client.deltas(DELTAS).await;
    request.send("{\"block\":0,\"text\":\"one\"}\n{\"block\":0,\"text\":\" two\"}").await;
    request.send("").await;
    for _ in 0..2 {
        assert!(answer(&mut request).await["revision"].is_u64());
    }
    assert_eq!(request.line().await, None);
    assert_eq!(text(&client).await, "one two");
    let mut request = client.deltas(DELTAS).await;
    request.send("{\"block\":0,\"te").await;
    request.send("").await;
    assert_eq!(answer(&mut request).await["error"]["code"], "http/bad_request");
    assert_eq!(text(&client).await, "one two");
}

#[tokio::test]
async fn a_message_may_be_finished_after_its_request() {
    let test = TestServer::with("").await;
    let client = test.client();
    begin(&client).await;
    let mut request = client.deltas(DELTAS).await;
    request.send("{\"block\":0,\"text\":\"one\"}\n").await;
    request.send("").await;
    assert_eq!(answer(&mut request).await, json!({"revision": 1}));
    assert_eq!(request.line().await, None);
    let done = client.post(&format!("{ENTRY}/finish"), json!({})).await.ok();
    assert_eq!(done["stop_reason"], "end");
}

#[tokio::test]
async fn what_cannot_be_taken_is_said_in_the_answer() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    begin(&client).await;
    let long = format!("{{\"block\":0,\"text\":\"{}\"}}\n", "x".repeat(1024 * 1024));
    for (line, code) in [
        ("{\"block\":0,\"txt\":\"typo\"}\n", "http/unknown_member"),
        ("{\"block\":9,\"text\":\"no such block\"}\n", "session/invalid_request"),
        (long.as_str(), "http/bad_request"),
    ] {
        let mut request = client.deltas(DELTAS).await;
        request.send("{\"block\":0,\"text\":\"x\"}\n").await;
        assert!(answer(&mut request).await["revision"].is_u64());
        request.send(line).await;
        assert_eq!(answer(&mut request).await["error"]["code"], code);
        assert_eq!(request.line().await, None);
    }
    assert_eq!(text(&client).await, "xxx", "what was acknowledged stays");
    client.post(&format!("{ENTRY}/finish"), json!({})).await.ok();
    let ndjson = client.with("content-type", "application/x-ndjson");
    let finished = ndjson.post(DELTAS, json!({"block": 0, "text": "x"})).await;
    assert_eq!(finished.problem(409), "session/not_streaming");
    let none = ndjson.post("/v1/sessions/s/entries/none/deltas", json!({})).await;
    assert_eq!(none.problem(404), "session/entry_not_found");
}

/// What comes after the end is refused like any delta of a finished message, so that no line is without an answer.
#[tokio::test]
async fn a_line_after_the_end_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    begin(&client).await;
    let mut request = client.deltas(DELTAS).await;
    let lines = ["{\"block\":0,\"text\":\"x\"}", "{\"finish\":{}}", "{\"block\":0,\"text\":\"y\"}"];
    request.send(&format!("{}\n", lines.join("\n"))).await;
    assert_eq!(answer(&mut request).await, json!({"revision": 1}));
    assert_eq!(answer(&mut request).await, json!({"revision": 2, "stop_reason": "end"}));
    let error = answer(&mut request).await["error"].clone();
    assert_eq!((&error["status"], &error["code"]), (&json!(409), &json!("session/not_streaming")));
    assert_eq!(error["data"]["revision"], 2);
    assert_eq!(request.line().await, None);
    assert_eq!(text(&client).await, "x");
}

/// A line that is no delta is named, with what is wrong with it and not the parser's words.
#[tokio::test]
async fn a_line_that_is_no_delta_is_told_in_words_of_json() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    begin(&client).await;
    for (line, code, words) in [
        ("{\"block\":0,\"txt\":\"x\"}", "http/unknown_member", "did you mean `text`?"),
        (
            "{\"finish\":{\"stop_resaon\":\"end\"}}",
            "http/unknown_member",
            "did you mean `stop_reason`?",
        ),
        ("{\"block\":\"a\"}", "http/bad_request", "`block` must be a whole number"),
        ("nothing", "http/bad_request", "it is not JSON; each line is one JSON object"),
        ("{} {}", "http/bad_request", "it is not JSON; each line is one JSON object"),
        ("7", "http/bad_request", "it must be an object, not `7`"),
        ("[0,\"x\"]", "http/bad_request", "it must be an object, not a list"),
        ("{}", "http/bad_request", "it has neither `text` nor `finish`"),
        ("{\"block\":0}", "http/bad_request", "it has neither `text` nor `finish`"),
        (
            "{\"block\":0,\"text\":\"y\",\"finish\":{}}",
            "http/bad_request",
            "`finish` stands alone in its line",
        ),
    ] {
        let mut request = client.deltas(DELTAS).await;
        request.send("{\"block\":0,\"text\":\"x\"}\n").await;
        assert!(answer(&mut request).await["revision"].is_u64());
        request.send(&format!("{line}\n")).await;
        let error = answer(&mut request).await["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.starts_with("line 2 is not a delta: "), "{detail}");
        assert!(detail.contains(words) && !detail.contains("column"), "{detail}");
    }
}
