//! Subscribers of the bus that come and go, and those that observe.

use serde_json::json;

use crate::client::Worker;
use crate::test_server::TestServer;

/// How many workers are connected, with the server itself.
async fn workers(worker: &mut Worker) -> usize {
    let listed = worker.call("engine::workers::list", json!({})).await;
    let listed = listed["workers"].as_array().unwrap().clone();
    assert!(listed.iter().all(|row| row["connected_at_ms"].as_i64() > Some(0)), "{listed:?}");
    listed.len()
}

/// A worker is replaced by another one that binds the same before the first has gone.
#[tokio::test]
async fn a_rolling_restart_of_a_subscriber_doubles_nothing() {
    let test = TestServer::in_memory().await;
    let mut first = test.worker().await;
    first.host("ui::on").await;
    first.bind("one", "session::created", "ui::on", json!({})).await;
    let mut second = test.worker().await;
    second.host("ui::on").await;
    second.bind("two", "session::created", "ui::on", json!({})).await;
    second.call("engine::workers::list", json!({})).await;
    drop(first);
    let mut writer = test.worker().await;
    while workers(&mut writer).await > 3 {}
    writer.call("session::create", json!({"title": "heard"})).await;
    let call = second.called("ui::on").await;
    second.answer(&call, json!({})).await;
    second.call("engine::workers::list", json!({})).await;
    drop(second);
    while workers(&mut writer).await > 2 {}
    let mut third = test.worker().await;
    third.host("ui::on").await;
    third.bind("three", "session::created", "ui::on", json!({})).await;
    writer.call("session::create", json!({"title": "new"})).await;
    assert_eq!(third.called("ui::on").await["data"]["title"], "new");
}

/// SDK 0.26 has no triggers: it observes, once the server announces that it can.
#[tokio::test]
async fn sdk_0_26_observes_sessions() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    worker.host("ui::on").await;
    let observe = |id: &str, source: serde_json::Value| json!({"type": "observe", "id": id, "source": source, "target": {"function_id": "ui::on"}});
    let result = async |worker: &mut Worker, frame| {
        worker.send(frame).await;
        worker.next(|frame| frame["type"] == "observeresult").await
    };
    let source = json!({"function_id": "session::created", "args": {"metadata": {"a": 1}}});
    let active = result(&mut worker, observe("o", source)).await;
    assert_eq!((&active["id"], &active["state"]), (&json!("o"), &json!("active")));
    let source = json!({"function_id": "session::created", "args": {"owner": 1}});
    let refused = result(&mut worker, observe("bad", source)).await;
    assert_eq!(
        (&refused["state"], &refused["error"]["code"]),
        (&json!("error"), &json!("INVALID_ARGS"))
    );
    let created = json!({"function_id": "session::created"});
    let mut bounded = observe("bounded", created.clone());
    bounded["max_in_flight"] = json!(1);
    for frame in [
        observe("other", json!({"function_id": "math::add"})),
        observe("failures", json!({"function_id": "session::created", "on": "error"})),
        bounded,
    ] {
        let refused = result(&mut worker, frame).await;
        assert_eq!(refused["error"]["code"], "UNSUPPORTED", "{refused}");
    }
    let mut early = observe("early", json!({"function_id": "session::deleted", "on": "success"}));
    early["target"]["function_id"] = json!("ui::later");
    assert_eq!(result(&mut worker, early).await["state"], "pending");
    worker.host("ui::later").await;
    let active = worker.next(|frame| frame["type"] == "observerstatechanged").await;
    assert_eq!((&active["id"], &active["state"]), (&json!("early"), &json!("active")));
    worker.call("session::create", json!({"title": "other"})).await;
    worker.call("session::create", json!({"title": "mine", "metadata": {"a": 1}})).await;
    let call = worker.called("ui::on").await;
    assert_eq!(call["data"]["input"]["title"], "mine");
    assert_eq!(
        (&call["data"]["observer_id"], &call["data"]["status"]),
        (&json!("o"), &json!("success"))
    );
    let activation = json!({"observer_id": "o", "activation_id": call["invocation_id"]});
    assert_eq!(call["activation"], activation);
    worker.answer(&call, json!({})).await;
    worker.send(json!({"type": "unobserve", "id": "o"})).await;
    let gone = worker.next(|frame| frame["type"] == "observerstatechanged").await;
    assert_eq!(gone["state"], "disposed");
}

/// An event that a client cannot take is not sent again, and counts as missed.
#[tokio::test]
async fn an_event_that_is_too_large_for_its_subscriber_is_a_gap() {
    let test = TestServer::in_memory().await;
    let mut old = test.worker().await;
    old.call("engine::workers::register", json!({"runtime": "python", "version": "0.19.7"})).await;
    old.host("ui::on").await;
    old.bind("t", "session::message-added", "ui::on", json!({})).await;
    let mut writer = test.worker().await;
    writer.call("session::ensure", json!({"session_id": "s"})).await;
    for text in ["x".repeat(2_000_000), "small".to_owned()] {
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"role": "user", "content": content, "timestamp": 1});
        writer.call("session::append", json!({"session_id": "s", "message": message})).await;
    }
    let call = old.called("ui::on").await;
    assert_eq!(call["data"]["message"]["content"][0]["text"], "small");
    let metrics = test.client().get("/metrics").await.text;
    assert!(metrics.contains("bough_gaps_total 1"), "{metrics}");
}
