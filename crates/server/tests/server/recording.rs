//! Events of agents, recorded over HTTP while they arrive.

use bough_server::limits::RECORDED_LINES_PER_CALL;
use bough_service::Right;
use serde_json::{Value, json};

use crate::client::Client;
use crate::test_server::{TestServer, token};

/// The events of one loop, as lines.
fn exchange(session: &str, number: u32) -> Vec<String> {
    let loop_id = format!("{session}.main.{number}");
    let start = json!({
        "type": "AgentStart", "agent_id": "agent", "session_id": session, "loop_id": loop_id,
        "timestamp": format!("2026-01-01T00:00:{number:02}Z"),
    });
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": loop_id}], "timestamp": 1});
    let end = json!({
        "type": "AgentEnd", "loop_id": loop_id, "messages": [message],
        "usage": {"input": 1, "output": 1}, "timestamp": format!("2026-01-01T00:01:{number:02}Z"),
    });
    vec![start.to_string(), end.to_string()]
}

fn body(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn recorder(test: &TestServer) -> Client {
    test.client().with("content-type", "application/x-ndjson")
}

#[tokio::test]
async fn a_body_of_events_becomes_a_session() {
    let test = TestServer::in_memory().await;
    let events = [exchange("s", 1), exchange("s", 2)].concat();
    let answer = recorder(&test).send("POST", "/v1/record", Some(body(&events))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let last = lines(&answer.text).pop().unwrap();
    assert_eq!(last["position"], json!(4));
    let name = last["recording_id"].as_str().unwrap();
    let ended = test.client().get(&format!("/v1/record/{name}")).await;
    let code = ended.problem(404);
    assert_eq!(code, "session/recording_not_open", "a recording without a name ends with its body");
    let loops = test.client().get("/v1/sessions/s/loops").await.ok();
    assert_eq!(loops["loops"].as_array().unwrap().len(), 2);
    let chain = test.client().get("/v1/sessions/s/loops/s.main.2/chain").await.ok();
    assert_eq!(chain["loop_ids"], json!(["s.main.2"]));
}

#[tokio::test]
async fn a_broken_connection_goes_on_by_position() {
    let test = TestServer::in_memory().await;
    let events = [exchange("s", 1), exchange("s", 2)].concat();
    let first = body(&events[..3]);
    let path = "/v1/record?recording_id=r&after=0";
    recorder(&test).broken_post(path, &first, "\"position\":3").await;
    let stands = test.client().get("/v1/record/r").await.ok();
    assert_eq!(stands["position"], json!(3));
    // A caller that missed the answer sends everything again.
    let answer = recorder(&test).send("POST", path, Some(body(&events))).await;
    assert_eq!(lines(&answer.text).pop().unwrap()["position"], json!(4), "{answer:?}");
    let loops = test.client().get("/v1/sessions/s/loops").await.ok();
    let statuses: Vec<&Value> =
        loops["loops"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["completed", "completed"]);
    let messages = test.client().get("/v1/sessions/s/messages").await.ok();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_refused_at_once_is_a_problem_and_later_a_line() {
    let test = TestServer::in_memory().await;
    let json = test.client().post("/v1/record", json!({})).await;
    assert_eq!(json.problem(415), "http/not_ndjson");
    let bad = recorder(&test).send("POST", "/v1/record", Some("{\"type\":\n".to_owned())).await;
    assert_eq!(bad.problem(400), "http/bad_request");
    recorder(&test).send("POST", "/v1/record?recording_id=r", Some(body(&exchange("s", 1)))).await;
    let gap = "/v1/record?recording_id=r&after=9";
    let gap = recorder(&test).send("POST", gap, Some(body(&exchange("s", 2)))).await;
    assert_eq!(gap.problem(409), "session/recording_gap");
    assert_eq!(gap.json()["data"]["position"], json!(2));
    let mut late = body(&exchange("t", 1));
    late.push_str(&"x".repeat(2 * 1024 * 1024));
    late.push('\n');
    let answer = recorder(&test).send("POST", "/v1/record", Some(late)).await;
    assert_eq!(answer.status, 200);
    let last = lines(&answer.text).pop().unwrap();
    assert_eq!(last["error"]["code"], json!("http/bad_request"));
    let loops = test.client().get("/v1/sessions/t/loops").await.ok();
    assert_eq!(loops["loops"].as_array().unwrap().len(), 1, "what came before is recorded");
}

#[tokio::test]
async fn recording_needs_the_right_to_write() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let reads = token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let reader = recorder(&test).with_token(&reads);
    let refused = reader.send("POST", "/v1/record", Some(body(&exchange("s", 1)))).await;
    assert_eq!(refused.problem(403), "session/forbidden");
}

/// A caller without the right is refused before it sends a body.
#[tokio::test]
async fn rights_are_checked_before_the_body() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let reads = token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let reader = recorder(&test).with_token(&reads).with("content-length", "50000000");
    let refused = reader.send("POST", "/v1/record", None).await;
    assert_eq!(refused.problem(403), "session/forbidden");
}

/// The line is counted over the whole body, in whatever parts it is recorded.
#[tokio::test]
async fn a_line_that_is_no_event_is_named() {
    let test = TestServer::in_memory().await;
    let mut events: Vec<String> = (1..=50).flat_map(|number| exchange("s", number)).collect();
    let again = events.clone();
    while events.len() <= RECORDED_LINES_PER_CALL {
        events.extend_from_slice(&again);
    }
    events.push(r#"{"type":"TurnStart"}"#.to_owned());
    let refused = recorder(&test).send("POST", "/v1/record", Some(body(&events))).await;
    let line = format!("line {} of the body", events.len());
    assert!(refused.text.contains(&line), "{}", refused.text);
    let wrong = recorder(&test).send("POST", "/v1/record", Some("{oops\n".to_owned())).await;
    assert_eq!(wrong.problem(400), "http/bad_request");
    assert!(wrong.text.contains("line 1 of the body"), "{}", wrong.text);
    assert!(wrong.text.contains("it is not JSON; each line is one JSON object"), "{}", wrong.text);
    assert!(!wrong.text.contains("column"), "{}", wrong.text);
}

/// What is wrong with an event is said in words of JSON, with its field.
#[tokio::test]
async fn the_field_of_an_event_that_is_wrong_is_named() {
    let test = TestServer::in_memory().await;
    let start = |member: &str| {
        format!(
            r#"{{"type":"AgentStart","agent_id":"a","session_id":"s",{member},"timestamp":"2026-01-01T00:00:00Z"}}"#
        )
    };
    for (event, detail, path) in [
        (start(r#""loop_id":7"#), "`loop_id` must be a string, not `7`", "/loop_id"),
        (
            start(r#""loop_id":"s.1","continuation_kind":"Rerun""#),
            "`continuation_kind` must be an object, not a text",
            "/continuation_kind",
        ),
        (
            r#"{"loop_id":7,"type":"TurnStart"}"#.to_owned(),
            "`loop_id` must be a string, not `7`",
            "/loop_id",
        ),
    ] {
        let line = recorder(&test).send("POST", "/v1/record", Some(format!("{event}\n"))).await;
        assert_eq!(line.problem(400), "http/bad_request");
        assert!(line.text.contains(detail), "{}", line.text);
        let event: Value = serde_json::from_str(&event).unwrap();
        let call = test.client().post("/v1/record/r", json!({"events": [event]})).await;
        assert_eq!(call.problem(400), "session/malformed_request");
        assert!(
            call.text.contains(&format!("`events[0]` is not an event: {detail}")),
            "{}",
            call.text
        );
        assert_eq!(call.json()["errors"][0]["path"], format!("/events/0{path}"));
    }
}

/// The members that this version does not know, the order of all of them and the spelling of numbers come back.
#[tokio::test]
async fn a_recorded_message_comes_back_byte_for_byte() {
    let test = TestServer::with("adapter: {name: native}").await;
    let message = concat!(
        r#"{"role":"assistant","provider":"p","model":"m","stopReason":"toolUse","content":["#,
        r#"{"type":"thinking","thinking":"t","signature":"S","extra":1},"#,
        r#"{"type":"text","text":"\u00e9","cache_control":{"type":"ephemeral"}},"#,
        r#"{"type":"toolCall","id":"c","name":"f","arguments":{"n":123456789012345678901234567890,"z":1.10}},"#,
        r#"{"type":"image","data":"AAA","mimeType":"image/png","detail":"high"}],"timestamp":1, "id":7,"#,
        r#""usage":{"input":12,"output":3,"service_tier":"std"}}"#
    );
    let mut events = exchange("s", 1);
    let end = events.pop().unwrap().replace("\"messages\":[", &format!("\"messages\":[{message},"));
    let told = format!(r#"{{"type":"MessageEnd","loop_id":"s.main.1","message":{message}}}"#);
    events.extend([told, end]);
    let answer = recorder(&test).send("POST", "/v1/record", Some(body(&events))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let messages = test.client().get("/v1/sessions/s/messages?format=phi").await;
    assert_eq!(messages.status, 200, "{messages:?}");
    assert!(messages.text.contains(message), "{}", messages.text);
}
