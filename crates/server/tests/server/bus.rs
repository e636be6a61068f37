//! The iii bus.

use serde_json::{Value, json};

use crate::client::Worker;
use crate::test_server::TestServer;

fn message(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

#[tokio::test]
async fn functions_are_called_and_answered() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    assert_eq!(worker.capabilities.as_deref(), Some("tcp-nodelay"));
    let made = worker.call("session::create", json!({"title": "t"})).await;
    let id = made["session_id"].clone();
    worker.call("session::append", json!({"session_id": id, "message": message("hi")})).await;
    let page =
        worker.call("session::messages", json!({"session_id": id, "_caller_worker_id": "x"})).await;
    assert_eq!(page["messages"][0]["message"]["content"][0]["text"], "hi");
    assert_eq!(worker.call("session::get", json!({"session_id": "none"})).await, json!(null));
    let listed = worker.call("engine::functions::list", json!({})).await;
    let ids: Vec<_> =
        listed["functions"].as_array().unwrap().iter().map(|f| f["function_id"].clone()).collect();
    assert!(
        ids.contains(&json!("session::create"))
            && ids.contains(&json!("session::store::put-entry"))
    );
}

#[tokio::test]
async fn errors_have_the_words_that_clients_match_on() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    let (code, text) = worker.refused("session::messages", json!({"session_id": "nope"})).await;
    assert_eq!(code, "invocation_failed");
    assert_eq!(text, "handler error: session/not_found: session nope does not exist");
    let (_, text) =
        worker.refused("session::set-status", json!({"session_id": "s", "status": "halted"})).await;
    assert!(text.starts_with("serialization error: unknown variant `halted`"), "{text}");
    let (code, text) = worker.refused("session::nope", json!({})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("function_not_found", "Function session::nope not found")
    );
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_is_answered_where_there_is_an_id() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let frames = [
        r#"{"type":"invokefunction","invocation_id":"a","function_id":7}"#.to_owned(),
        r#"{"type":"invokefunction","invocation_id":"b","function_id":"f","action":{"type":"odd"}}"#.to_owned(),
        format!(r#"{{"type":"invokefunction","invocation_id":"c","function_id":"session::create","metadata":{deep}}}"#),
    ];
    for (frame, id) in frames.iter().zip(["a", "b", "c"]) {
        worker.send_text("nonsense").await;
        worker.send_text(frame).await;
        let answer = worker.next(|frame| frame["invocation_id"] == id).await;
        assert_eq!(answer["error"]["code"], "invocation_error", "{answer}");
    }
    worker
        .send(json!({"type": "invokefunction", "invocation_id": "d", "function_id": "q", "data": 1,
                       "action": {"type": "enqueue", "queue": "q"}}))
        .await;
    let answer = worker.next(|frame| frame["invocation_id"] == "d").await;
    assert_eq!(answer["error"]["code"], "enqueue_error");
    worker.send(json!({"type": "ping"})).await;
    worker.next(|frame| frame["type"] == "pong").await;
}

#[tokio::test]
async fn numbers_of_a_message_stay_as_they_were_written() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.call("session::ensure", json!({"session_id": "s"})).await;
    let kept = r#""n":123456789012345678901234567890,"z":1.10"#;
    let message = format!(r#"{{"role":"user","content":[],"timestamp":1,{kept}}}"#);
    worker
        .send_text(&format!(
            r#"{{"type":"invokefunction","invocation_id":"n","function_id":"session::append","data":{{"session_id":"s","message":{message}}}}}"#
        ))
        .await;
    let answer = worker.next(|frame| frame["invocation_id"] == "n").await;
    assert_eq!(answer["error"], json!(null), "{answer}");
    let text = test.client().get("/v1/sessions/s/entries").await.text;
    assert!(text.contains(kept), "{text}");
}

#[tokio::test]
async fn all_six_triggers_are_delivered_with_their_filters() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    let types = [
        "created",
        "message-added",
        "message-updated",
        "status-changed",
        "meta-updated",
        "deleted",
    ];
    for (at, name) in types.iter().enumerate() {
        let function = format!("ui::{name}");
        worker.host(&function).await;
        let config = json!({"metadata": {"owner": "u_1"}});
        worker.bind(&format!("t-{at}"), &format!("session::{name}"), &function, config).await;
    }
    for owner in ["u_2", "u_1"] {
        let made = worker
            .call("session::create", json!({"title": owner, "metadata": {"owner": owner}}))
            .await;
        let id = made["session_id"].clone();
        let entry = worker
            .call("session::append", json!({"session_id": id, "message": message("a")}))
            .await;
        let content = json!([{"type": "text", "text": "b"}]);
        let update = json!({"session_id": id, "entry_id": entry["entry_id"], "content": content});
        worker.call("session::update-message", update).await;
        worker.call("session::set-status", json!({"session_id": id, "status": "done"})).await;
        worker.call("session::set-meta", json!({"session_id": id, "description": "d"})).await;
        worker.call("session::delete", json!({"session_id": id})).await;
    }
    let created = worker.called("ui::created").await;
    assert_eq!(created["data"]["title"], "u_1", "{created}");
    assert!(created["data"]["_caller_worker_id"].is_string());
    for name in &types[1..] {
        let call = worker.called(&format!("ui::{name}")).await;
        assert_eq!(call["data"]["session_id"], created["data"]["session_id"], "{call}");
        worker.answer(&call, json!({"ok": true})).await;
    }
}

#[tokio::test]
async fn a_malformed_filter_is_refused_in_the_originals_words() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.host("ui::on").await;
    worker.bind("t", "session::message-added", "ui::on", json!({"sesion_id": "s"})).await;
    let refused = worker.next(|frame| frame["type"] == "triggerregistrationresult").await;
    assert_eq!(refused["error"]["code"], "trigger_registration_failed");
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("invalid session::message-added config: unknown field `sesion_id`"),
        "{text}"
    );
}

#[tokio::test]
async fn a_function_is_found_on_another_connection() {
    let test = TestServer::in_memory().await;
    let (mut caller, mut host) = (test.worker().await, test.worker().await);
    host.host("math::double").await;
    host.call("engine::workers::register", json!({"name": "host", "runtime": "test"})).await;
    let calling = caller.call("math::double", json!({"n": 4}));
    let hosting = async {
        let call = host.called("math::double").await;
        assert_eq!(call["data"]["n"], 4);
        assert!(call["data"]["_caller_worker_id"].is_string());
        host.answer(&call, json!({"n": 8})).await;
    };
    let (answer, ()) = tokio::join!(calling, hosting);
    assert_eq!(answer, json!({"n": 8}));
    let workers = caller.call("engine::workers::list", json!({})).await.to_string();
    assert!(workers.contains("\"host\""), "{workers}");
    // An event may be bound on one connection and handled on another.
    caller.bind("t", "session::created", "math::double", json!({})).await;
    caller.call("session::create", json!({"title": "routed"})).await;
    assert_eq!(host.called("math::double").await["data"]["title"], "routed");
    drop(host);
    loop {
        let (code, _) = caller.refused("math::double", json!({})).await;
        if code == "function_not_found" {
            break;
        }
    }
}

#[tokio::test]
async fn a_call_ends_when_its_host_goes_away() {
    let test = TestServer::in_memory().await;
    let (mut caller, mut host) = (test.worker().await, test.worker().await);
    host.host("slow::one").await;
    host.call("engine::workers::list", json!({})).await;
    let leaving = async {
        host.called("slow::one").await;
        drop(host);
    };
    let ((code, _), ()) = tokio::join!(caller.refused("slow::one", json!({})), leaving);
    assert_eq!(code, "invocation_stopped");
}

#[tokio::test]
async fn every_call_ends_when_its_host_goes_away_however_many_there_are() {
    const CALLS: usize = 1000;
    let test = TestServer::in_memory().await;
    let (mut caller, mut host) = (test.worker().await, test.worker().await);
    host.host("slow::one").await;
    host.call("engine::workers::list", json!({})).await;
    for n in 0..CALLS {
        let id = format!("00000000-0000-0000-0001-{n:012}");
        caller
            .send(json!({"type": "invokefunction", "invocation_id": id, "function_id": "slow::one", "data": {}}))
            .await;
        host.called("slow::one").await;
    }
    drop(host);
    let mut stopped = std::collections::BTreeSet::new();
    while stopped.len() < CALLS {
        let answer = caller.next(|frame| frame["type"] == "invocationresult").await;
        assert_eq!(answer["error"]["code"], "invocation_stopped", "{answer}");
        assert!(stopped.insert(answer["invocation_id"].to_string()), "one answer each");
    }
}

#[tokio::test]
async fn a_worker_that_is_back_before_its_old_connection_is_known_to_be_dead_hears_everything() {
    let test = TestServer::in_memory().await;
    let mut writer = test.worker().await;
    let (mut old, mut back) = (test.worker().await, test.worker().await);
    for worker in [&mut old, &mut back] {
        worker.host("ui::on").await;
        worker.bind("same-id", "session::created", "ui::on", json!({})).await;
        worker.call("engine::workers::list", json!({})).await;
        writer.call("session::create", json!({"title": "one"})).await;
    }
    // Calls that the old connection did not answer may not have arrived there.
    for _ in 0..2 {
        assert_eq!(back.called("ui::on").await["data"]["title"], "one");
    }
    // The old connection no longer owns the binding.
    old.send(json!({"type": "unregistertrigger", "id": "same-id"})).await;
    old.call("engine::workers::list", json!({})).await;
    drop(old);
    let workers = async |writer: &mut crate::client::Worker| {
        let listed = writer.call("engine::workers::list", json!({})).await;
        listed["workers"].as_array().unwrap().len()
    };
    while workers(&mut writer).await > 3 {}
    writer.call("session::create", json!({"title": "two"})).await;
    assert_eq!(back.called("ui::on").await["data"]["title"], "two");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_with_a_reason() {
    let test =
        TestServer::with("adapter: {name: memory}\nlimits: {bus_message_bytes: 65536}").await;
    let mut worker = test.worker().await;
    worker.send_text(&"x".repeat(8 * 1024 * 1024)).await;
    let (code, reason) = worker.closed().await;
    assert_eq!(code, 1009);
    assert!(reason.contains("65536"), "{reason}");
}

#[tokio::test]
async fn a_call_that_its_host_can_never_take_says_so() {
    let test = TestServer::in_memory().await;
    let (mut caller, mut host) = (test.worker().await, test.worker().await);
    host.host("old::one").await;
    host.call("engine::workers::register", json!({"runtime": "python", "version": "0.19.7"})).await;
    let (_, text) = caller.refused("old::one", json!({"d": "x".repeat(2_000_000)})).await;
    assert!(text.contains("takes 1048576; send less"), "{text}");
}

/// How many workers are connected.
async fn workers(worker: &mut Worker) -> usize {
    let listed = worker.call("engine::workers::list", json!({})).await;
    listed["workers"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_subscriber_that_comes_back_missed_nothing() {
    let test = TestServer::in_memory().await;
    let mut writer = test.worker().await;
    let made = writer.call("session::create", json!({})).await;
    let id = made["session_id"].clone();
    let mut texts = Vec::new();
    let mut round = 0;
    let alone = workers(&mut writer).await;
    while texts.len() < 3 {
        let mut reader = test.worker().await;
        reader.host("ui::on").await;
        reader.bind("same-id", "session::message-added", "ui::on", json!({"session_id": id})).await;
        reader.call("engine::workers::list", json!({})).await;
        for part in 0..2 {
            let text = format!("{round}.{part}");
            writer
                .call("session::append", json!({"session_id": id, "message": message(&text)}))
                .await;
        }
        let call = reader.called("ui::on").await;
        texts.push(call["data"]["message"]["content"][0]["text"].as_str().unwrap().to_owned());
        reader.answer(&call, json!({})).await;
        // The answer is read before the connection breaks.
        reader.call("engine::workers::list", json!({})).await;
        drop(reader);
        while workers(&mut writer).await > alone {}
        round += 1;
    }
    assert_eq!(texts, ["0.0", "0.1", "1.0"]);
}

#[tokio::test]
async fn a_trigger_type_of_another_worker_is_routed_to_it() {
    let test = TestServer::in_memory().await;
    let (mut subscriber, mut owner) = (test.worker().await, test.worker().await);
    subscriber.host("ui::tick").await;
    subscriber.bind("early", "clock::tick", "ui::tick", json!({"every": 1})).await;
    subscriber.call("engine::workers::list", json!({})).await;
    owner
        .send(json!({"type": "registertriggertype", "id": "clock::tick", "description": "d"}))
        .await;
    let bound = owner.next(|frame| frame["type"] == "registertrigger").await;
    assert_eq!((&bound["id"], &bound["config"]), (&json!("early"), &json!({"every": 1})));
    owner
        .send(json!({"type": "invokefunction", "function_id": "ui::tick", "data": {"n": 1},
                      "action": {"type": "void"}}))
        .await;
    assert_eq!(subscriber.called("ui::tick").await["data"]["n"], 1);
    subscriber.bind("bad", "clock::tick", "ui::tick", json!({"every": 0})).await;
    owner.next(|frame| frame["type"] == "registertrigger" && frame["id"] == "bad").await;
    owner
        .send(
            json!({"type": "triggerregistrationresult", "id": "bad", "trigger_type": "clock::tick",
                      "function_id": "ui::tick", "error": {"code": "x", "message": "no"}}),
        )
        .await;
    let refused = subscriber.next(|frame| frame["type"] == "triggerregistrationresult").await;
    assert_eq!(refused["error"]["code"], "x");
    drop(subscriber);
    let gone = owner.next(|frame| frame["type"] == "unregistertrigger").await;
    assert_eq!(gone["id"], "early");
}

#[tokio::test]
async fn bridges_hear_of_everything_in_envelopes() {
    let test = TestServer::in_memory().await;
    let mut bridge = test.worker().await;
    bridge.host("session::bridge::recv::1").await;
    bridge.bind("b", "session::store::events", "session::bridge::recv::1", json!({})).await;
    let body = json!({"title": "t", "metadata": {"owner": "u"}});
    let made = bridge.call("session::create", body).await;
    let call = bridge.called("session::bridge::recv::1").await;
    assert_eq!(call["data"]["trigger_type"], "session::created");
    assert_eq!(call["data"]["payload"]["session_id"], made["session_id"]);
    assert_eq!(call["data"]["session_metadata"], json!({"owner": "u"}));
}

/// Deliveries wait for a subscriber that takes none; no other subscriber waits for it.
#[tokio::test]
async fn a_subscriber_that_stands_still_slows_no_appender() {
    let test = TestServer::in_memory().await;
    let (mut stuck, mut writer) = (test.worker().await, test.worker().await);
    let made = writer.call("session::create", json!({})).await;
    let session = made["session_id"].as_str().unwrap();
    stuck.host("ui::on").await;
    stuck.bind("b", "session::message-added", "ui::on", json!({})).await;
    stuck.call("session::list", json!({})).await;
    // More than all the buffers between the server and the stalled subscriber.
    let text = "x".repeat(256 * 1024);
    for _ in 0..100 {
        let data = json!({"session_id": session, "message": message(&text)});
        writer.call("session::append", data).await;
    }
    for _ in 0..100 {
        let told = stuck.called("ui::on").await;
        assert_eq!(
            told["data"]["message"]["content"][0]["text"].as_str().unwrap().len(),
            text.len()
        );
    }
}

#[tokio::test]
async fn a_close_is_answered_with_a_close() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.close(1000).await;
    assert_eq!(worker.closed().await.0, 1000);
    assert!(worker.is_over().await, "the server ends the connection first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_does_not_wait_for_its_clients() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.host("ui::on").await;
    let began = std::time::Instant::now();
    let stopping = tokio::spawn(test.stop());
    assert_eq!(worker.closed().await.0, 1001);
    assert!(worker.is_over().await);
    stopping.await.unwrap();
    assert!(began.elapsed().as_secs() < 3, "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_on_the_bus_is_delivered_in_the_shapes_of_the_engine() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.call("engine::workers::register", json!({"runtime": "node", "name": "ui"})).await;
    worker.host("ui::on").await;
    worker.bind("t", "session::created", "ui::on", json!({"metadata": {"a": 1}})).await;
    let list = worker.call("engine::functions::list", json!({"prefix": "ui::"})).await;
    let row = json!({"function_id": "ui::on", "namespace": "default", "worker_name": "ui"});
    assert_eq!(list, json!({ "functions": [row] }));
    let info = worker.call("engine::functions::info", json!({"function_id": "ui::on"})).await;
    let bound =
        json!([{"id": "t", "trigger_type": "session::created", "config": {"metadata": {"a": 1}}}]);
    assert_eq!(info["registered_triggers"], bound);
    let ids = json!({"function_ids": ["session::append", "nope"]});
    let info = worker.call("engine::functions::info", ids).await;
    assert!(info["functions"][0]["request_schema"].is_object());
    assert_eq!(info["functions"][1], json!({"function_id": "nope", "error": "not_found"}));
    let types = worker.call("engine::triggers::list", json!({})).await;
    assert_eq!(types["triggers"][0]["id"], "session::created");
    assert_eq!(types["triggers"][0]["worker_name"], "session-manager");
    let info = worker.call("engine::triggers::info", json!({"id": "session::message-added"})).await;
    assert!(info["configuration_schema"]["properties"]["roles"].is_object(), "{info}");
    assert_eq!(info["instance_count"], 0);
    let bound = worker.call("engine::registered-triggers::list", json!({})).await;
    assert_eq!(bound["registered_triggers"][0]["worker_name"], "ui");
    let bound = worker.call("engine::registered-triggers::info", json!({"id": "t"})).await;
    assert_eq!(bound["trigger"]["instance_count"], 1);
    assert_eq!(bound["function"]["function_id"], "ui::on");
    let own = worker.call("engine::workers::info", json!({"name": "session-manager"})).await;
    assert_eq!(own["worker"]["version"], "1.0.0");
    assert!(own["functions"].as_array().unwrap().len() >= 14);
    assert!(own["trigger_types"].as_array().unwrap().len() >= 7);
}

/// A client that binds under another id each time is the same subscriber; one that unregisters is not.
#[tokio::test]
async fn a_binding_is_known_by_what_it_asks_for() {
    let test = TestServer::in_memory().await;
    let mut writer = test.worker().await;
    let mut first = test.worker().await;
    first.host("ui::on").await;
    first.bind("one", "session::created", "ui::on", json!({})).await;
    first.call("engine::workers::list", json!({})).await;
    drop(first);
    let workers = async |writer: &mut crate::client::Worker| {
        let listed = writer.call("engine::workers::list", json!({})).await;
        listed["workers"].as_array().unwrap().len()
    };
    while workers(&mut writer).await > 2 {}
    writer.call("session::create", json!({"title": "missed"})).await;
    let mut second = test.worker().await;
    second.host("ui::on").await;
    second.bind("two", "session::created", "ui::on", json!({})).await;
    let call = second.called("ui::on").await;
    assert_eq!(call["data"]["title"], "missed");
    second.answer(&call, json!({})).await;
    second.send(json!({"type": "unregistertrigger", "id": "two"})).await;
    second.call("engine::workers::list", json!({})).await;
    writer.call("session::create", json!({"title": "not wanted"})).await;
    second.bind("three", "session::created", "ui::on", json!({})).await;
    second.call("engine::workers::list", json!({})).await;
    writer.call("session::create", json!({"title": "wanted"})).await;
    assert_eq!(second.called("ui::on").await["data"]["title"], "wanted");
}

/// Any text within the bound is an id, including control characters.
#[tokio::test]
async fn ids_may_hold_control_characters() {
    for adapter in ["native", "memory"] {
        let test = TestServer::with(&format!("adapter: {{name: {adapter}}}")).await;
        let mut worker = test.worker().await;
        let id = "line\nbreak\u{0}\u{1b}[31m\u{85}";
        worker.call("session::ensure", json!({"session_id": id})).await;
        let entry = json!({"session_id": id, "entry_id": "e\r\n", "message": message("hi")});
        assert_eq!(worker.call("session::append", entry).await["entry_id"], "e\r\n");
        let page = worker.call("session::messages", json!({"session_id": id})).await;
        assert_eq!(page["messages"][0]["entry_id"], "e\r\n");
        let listed = worker.call("session::list", json!({})).await;
        assert_eq!(listed["sessions"][0]["session_id"], id);
        let (_, text) = worker.refused("session::ensure", json!({"session_id": ""})).await;
        assert!(text.contains("session/invalid_request"), "{text}");
    }
}
