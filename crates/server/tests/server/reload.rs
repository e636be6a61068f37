//! Configuration that changes while the server runs.

use serde_json::json;

use crate::client::{Client, until};
use crate::http::new_session;
use crate::test_server::TestServer;

async fn until_answer(client: &Client, path: &str, fits: impl Fn(&serde_json::Value) -> bool) {
    until(async || fits(&client.get(path).await.json())).await;
}

#[tokio::test]
async fn limits_change_without_a_restart() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    for _ in 0..3 {
        new_session(&client).await;
    }
    test.reconfigure("adapter: {name: memory}\nmax_list_limit: 2");
    until_answer(&client, "/v1/sessions", |page| page["sessions"].as_array().unwrap().len() == 2)
        .await;
    let status = client.get("/v1/config/status").await.ok();
    assert_eq!(
        (&status["last_outcome"], &status["rejected_reloads"]),
        (&json!("applied"), &json!(0))
    );
}

#[tokio::test]
async fn a_configuration_that_cannot_be_built_leaves_everything_as_it_was() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let bad = [
        "adapter: {name: nowhere}",
        "max_list_limit: 0",
        "adapter: {name: fs, config: {data_dir: /dev/null/x}}",
        "adapter: [",
    ];
    for (count, config) in bad.iter().enumerate() {
        test.reconfigure(config);
        until_answer(&client, "/v1/config/status", |status| {
            status["rejected_reloads"] == count + 1
        })
        .await;
        let status = client.get("/v1/config/status").await.ok();
        assert_eq!(status["last_outcome"], "rejected");
        assert!(status["last_error"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(client.get(&format!("/v1/sessions/{id}")).await.status, 200);
    }
    assert_eq!(client.get("/readyz").await.ok()["config"], "rejected");
    test.reconfigure("adapter: {name: memory}\nmax_list_limit: 7");
    until_answer(&client, "/v1/config/status", |status| status["last_outcome"] == "applied").await;
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).await.status, 200);
}

#[tokio::test]
async fn another_store_is_swapped_in_and_told_to_subscribers() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let old = new_session(&client).await;
    let mut stream = client.events("/v1/events").await;
    let dir = test.path().join("files");
    test.reconfigure(&format!("adapter: {{name: fs, config: {{data_dir: '{}'}}}}", dir.display()));
    stream.expect("gap").await;
    let gone = stream.expect("session::deleted").await;
    assert_eq!(gone.data["payload"]["session_id"], old.as_str());
    assert_eq!(client.get(&format!("/v1/sessions/{old}")).await.status, 404);
    let new = new_session(&client).await;
    loop {
        let event = stream.next().await.unwrap();
        if event.name == "session::created" {
            assert_eq!(event.data["payload"]["session_id"], new.as_str());
            break;
        }
    }
    assert_eq!(client.get("/readyz").await.ok()["store"], "fs");
}

/// A configuration that the next start would refuse is refused now.
#[tokio::test]
async fn a_door_that_would_stand_open_is_refused_while_the_server_runs() {
    let test = TestServer::by_file("").await;
    let client = test.client();
    test.reconfigure_by_file("listen: '0.0.0.0:7717'");
    until_answer(&client, "/v1/config/status", |status| status["rejected_reloads"] == 1).await;
    let status = client.get("/v1/config/status").await.ok();
    let reason = status["last_error"].as_str().unwrap();
    assert!(reason.contains("bough token create"), "{reason}");
}
