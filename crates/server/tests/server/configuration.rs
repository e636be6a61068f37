//! `configuration::*` on the bus: settings of workers.

use std::sync::Arc;

use bough_service::Right;
use serde_json::{Value, json};

use crate::test_server::{TestServer, token};

fn entry() -> Value {
    json!({"id": "mail", "name": "Mail", "description": "Sends mail.",
        "schema": {"type": "object"}, "initial_value": {"host": "a"}, "metadata": {"team": "x"}})
}

#[tokio::test]
async fn a_worker_registers_reads_and_changes_its_settings() {
    let test = TestServer::in_memory().await;
    let (mut worker, mut other) = (test.worker().await, test.worker().await);
    let (code, _) = worker.refused("configuration::get", json!({"id": "mail"})).await;
    assert_eq!(code, "NOT_REGISTERED");
    let mut made = entry();
    made.as_object_mut().unwrap().remove("initial_value");
    made["value"] = json!({"host": "a"});
    assert_eq!(worker.call("configuration::register", entry()).await, made);
    other.host("mail::changed").await;
    let filter = json!({"configuration_id": "mail", "event_types": ["configuration:updated"]});
    other.bind("t", "configuration", "mail::changed", filter).await;
    other.host("else::changed").await;
    other.bind("u", "configuration", "else::changed", json!({"configuration_id": "else"})).await;
    other.call("engine::workers::list", json!({})).await;
    let set = json!({"id": "mail", "value": {"host": "b"}});
    let answer = worker.call("configuration::set", set).await;
    assert_eq!(answer, json!({"old_value": {"host": "a"}, "new_value": {"host": "b"}}));
    let told = other.called("mail::changed").await["data"].clone();
    assert_eq!(
        (&told["type"], &told["event_type"]),
        (&json!("configuration"), &json!("configuration:updated"))
    );
    assert_eq!((&told["id"], &told["name"]), (&json!("mail"), &json!("Mail")));
    assert_eq!(
        (&told["old_value"], &told["new_value"]),
        (&json!({"host": "a"}), &json!({"host": "b"}))
    );
    assert_eq!(told["metadata"], json!({"team": "x"}));
    let read = other.call("configuration::get", json!({"id": "mail"})).await;
    assert_eq!(read, json!({"id": "mail", "value": {"host": "b"}}));
    // A worker that restarts registers again; its value stays.
    worker.call("configuration::register", entry()).await;
    assert_eq!(
        other.call("configuration::get", json!({"id": "mail"})).await["value"],
        json!({"host": "b"})
    );
    let schema = other.call("configuration::schema", json!({"id": "mail"})).await;
    assert_eq!(schema, json!({"id": "mail", "schema": {"type": "object"}}));
    let listed = other.call("configuration::list", json!({})).await;
    let ids: Vec<&Value> =
        listed["configurations"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["session-manager", "mail"]);
}

#[tokio::test]
async fn settings_of_workers_are_there_after_a_restart() {
    let test = TestServer::with("").await;
    test.worker().await.call("configuration::register", entry()).await;
    let test = TestServer::again(test.stop().await).await;
    let read = test.worker().await.call("configuration::get", json!({"id": "mail"})).await;
    assert_eq!(read["value"], json!({"host": "a"}));
}

#[tokio::test]
async fn our_own_settings_are_read_and_not_changed() {
    let test = TestServer::by_file("default_list_limit: 7").await;
    let mut worker = test.worker().await;
    let own = json!({"id": "session-manager"});
    let read = worker.call("configuration::get", own.clone()).await;
    assert_eq!(read["value"]["default_list_limit"], 7);
    assert!(read["value"]["adapter"]["name"].is_string(), "{read}");
    let schema = worker.call("configuration::schema", own).await;
    assert!(schema["schema"]["properties"]["adapter"].is_object(), "{schema}");
    let set = json!({"id": "session-manager", "value": {}});
    let (code, _) = worker.refused("configuration::set", set).await;
    assert_eq!(code, "ADAPTER_ERROR");
}

#[tokio::test]
async fn what_cannot_be_registered_is_refused_with_the_engines_codes() {
    let test = TestServer::in_memory().await;
    let mut worker = test.worker().await;
    let cases = [
        ("configuration::register", json!({"id": "", "schema": {}}), "INVALID_ID"),
        ("configuration::register", json!({"id": "a\u{7}", "schema": {}}), "INVALID_ID"),
        ("configuration::register", json!({"id": "a", "schema": 7}), "SCHEMA_INVALID"),
        ("configuration::set", json!({"id": "a", "value": 1}), "NOT_REGISTERED"),
        ("configuration::schema", json!({"id": "a"}), "NOT_REGISTERED"),
        ("configuration::nope", json!({"id": "a"}), "function_not_found"),
    ];
    for (function, data, expected) in cases {
        let (code, _) = worker.refused(function, data).await;
        assert_eq!(code, expected, "{function}");
    }
}

#[tokio::test]
async fn the_functions_are_listed_and_a_worker_that_hosts_them_is_asked_instead() {
    let test = TestServer::in_memory().await;
    let (mut caller, mut host) = (test.worker().await, test.worker().await);
    let asked = json!({"function_id": "configuration::get"});
    let shown = caller.call("engine::functions::info", asked.clone()).await;
    assert_eq!(shown["worker_name"], "configuration");
    let types = caller.call("engine::triggers::list", json!({})).await.to_string();
    assert!(types.contains("\"id\":\"configuration\""), "{types}");
    host.call("engine::workers::register", json!({"name": "own"})).await;
    host.host("configuration::get").await;
    host.call("engine::workers::list", json!({})).await;
    let shown = caller.call("engine::functions::info", asked).await;
    assert_eq!(shown["worker_name"], "own");
    let hosting = async {
        let call = host.called("configuration::get").await;
        host.answer(&call, json!({"id": "x", "value": "theirs"})).await;
    };
    let (answer, ()) = tokio::join!(caller.call("configuration::get", json!({"id": "x"})), hosting);
    assert_eq!(answer["value"], "theirs");
}

#[tokio::test]
async fn one_tenant_does_not_see_the_settings_of_another() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let rights = [Right::Read, Right::Write];
    let tokens = ["a", "b"].map(|tenant| token(dir.path(), json!({"tenant": tenant}), &rights));
    let reads = token(dir.path(), json!({"tenant": "a"}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let mut first = test.worker_with(&tokens[0]).await;
    first.call("configuration::register", entry()).await;
    let mut second = test.worker_with(&tokens[1]).await;
    let (code, _) = second.refused("configuration::get", json!({"id": "mail"})).await;
    assert_eq!(code, "NOT_REGISTERED");
    let mut reader = test.worker_with(&reads).await;
    assert_eq!(reader.call("configuration::get", json!({"id": "mail"})).await["id"], "mail");
    let set = json!({"id": "mail", "value": 1});
    let (code, _) = reader.refused("configuration::set", set).await;
    assert_eq!(code, "FORBIDDEN");
}
