//! Instances that store through a main one.

use bough_server::{OpenError, ServeError};
use serde_json::{Value, json};

use crate::client::{Client, soon, until};
use crate::http::{new_session, user};
use crate::test_server::{TestServer, options, token};

/// How long a bridge waits for its main in tests where no call should fail.
const PATIENT_MS: u64 = 20_000;

async fn bridge_to(main: &TestServer) -> TestServer {
    bridge_that_waits(main, PATIENT_MS).await
}

async fn bridge_that_waits(main: &TestServer, timeout_ms: u64) -> TestServer {
    bridge_at(main.bus(), timeout_ms).await
}

async fn bridge_at(main: std::net::SocketAddr, timeout_ms: u64) -> TestServer {
    let url = format!("ws://{main}");
    let config = format!("{{url: '{url}', timeout_ms: {timeout_ms}}}");
    TestServer::with(&format!("adapter: {{name: bridge, config: {config}}}")).await
}

async fn append(client: &Client, id: &str, text: &str) -> Value {
    client.post(&format!("/v1/sessions/{id}/entries"), user(text)).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_instance_writes_all_of_them_read() {
    let main = TestServer::with("").await;
    let (left, right) = (bridge_to(&main).await, bridge_to(&main).await);
    let id = new_session(&left.client()).await;
    let entry = append(&right.client(), &id, "hello").await;
    let content = json!({"content": [{"type": "text", "text": "changed"}]});
    let path = format!("/v1/sessions/{id}/entries/{}", entry["entry_id"].as_str().unwrap());
    left.client().put(&path, content).await.ok();
    for test in [&main, &left, &right] {
        let page = test.client().get(&format!("/v1/sessions/{id}/messages")).await.ok();
        assert_eq!(page["messages"][0]["message"]["content"][0]["text"], "changed");
        let listed = test.client().get("/v1/sessions").await.ok();
        assert_eq!(listed["sessions"][0]["session_id"], id.as_str());
    }
    assert_eq!(left.client().get("/readyz").await.ok()["store"], "bridge");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_reaches_every_instance_once() {
    let main = TestServer::with("").await;
    let (left, right) = (bridge_to(&main).await, bridge_to(&main).await);
    let id = new_session(&main.client()).await;
    let path = format!("/v1/sessions/{id}/events");
    let mut streams = Vec::new();
    for test in [&main, &left, &right] {
        streams.push(test.client().events(&path).await);
    }
    for (n, test) in [&main, &left, &right, &left].into_iter().enumerate() {
        append(&test.client(), &id, &n.to_string()).await;
    }
    for stream in &mut streams {
        for n in 0..4 {
            let event = stream.expect("session::message-added").await;
            let text = &event.data["payload"]["message"]["content"][0]["text"];
            assert_eq!(text, n.to_string().as_str());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_is_delivered_whole_over_a_bridge() {
    let main = TestServer::with("").await;
    let bridge = bridge_to(&main).await;
    let mut stream = bridge.client().events("/v1/events").await;
    new_session(&main.client()).await;
    let test = stream.expect("session::created").await.id.unwrap();
    drop(stream);
    let mut gone = Vec::new();
    for _ in 0..3 {
        let id = new_session(&main.client()).await;
        append(&main.client(), &id, "hello").await;
        main.client().delete(&format!("/v1/sessions/{id}")).await.ok();
        gone.push(id);
    }
    let client = bridge.client().with("last-event-id", &test);
    let mut stream = client.events("/v1/events").await;
    for id in gone {
        for name in ["session::created", "session::message-added", "session::deleted"] {
            let event = stream.expect(name).await;
            assert_eq!(event.data["payload"]["session_id"], id.as_str());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_that_append_to_one_session_lose_nothing() {
    const EACH: usize = 20;
    let main = TestServer::with("").await;
    let (left, right) = (bridge_to(&main).await, bridge_to(&main).await);
    let id = new_session(&main.client()).await;
    let writing = |client: Client, mark: &'static str, id: String| async move {
        for n in 0..EACH {
            append(&client, &id, &format!("{mark}{n}")).await;
        }
    };
    tokio::join!(
        writing(left.client(), "l", id.clone()),
        writing(right.client(), "r", id.clone()),
        writing(main.client(), "m", id.clone())
    );
    let page = main.client().get(&format!("/v1/sessions/{id}/messages?limit=500")).await.ok();
    let texts: Vec<&str> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["message"]["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 3 * EACH, "one unbroken path with everything on it");
    for mark in ["l", "r", "m"] {
        let own: Vec<&&str> = texts.iter().filter(|text| text.starts_with(mark)).collect();
        let expected: Vec<String> = (0..EACH).map(|n| format!("{mark}{n}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_does_not_answer_for_the_store() {
    let main = TestServer::with("").await;
    let bridge = bridge_to(&main).await;
    let mut worker = bridge.worker().await;
    let (_, text) = worker.refused("session::store::list-metas", json!({})).await;
    assert!(text.contains("session/not_authoritative"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_main_that_goes_away_gives_clear_errors_and_recovers() {
    let main = TestServer::with("").await;
    let address = main.bus();
    let bridge = bridge_that_waits(&main, 2000).await;
    let client = bridge.client();
    let id = new_session(&client).await;
    let dir = main.stop().await;
    let refused = client.post(&format!("/v1/sessions/{id}/entries"), user("lost")).await;
    assert_eq!(refused.json()["code"], "session/storage", "{refused:?}");
    let mut again = options(dir.path());
    again.bus = Some(address.to_string());
    let main = soon(bough_server::Server::start(again)).await.unwrap();
    let entries = format!("/v1/sessions/{id}/entries");
    until(async || client.post(&entries, user("kept")).await.status == 200).await;
    let page = client.get(&format!("/v1/sessions/{id}/messages")).await.ok();
    assert_eq!(page["messages"][0]["message"]["content"][0]["text"], "kept");
    main.stop().await;
}

/// Makes many calls at once, on many sessions and on one. Each must fail because the main is missing, without waiting
/// for the others.
async fn all_fail_together(bridge: &TestServer) {
    const EACH: usize = 20;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..EACH {
        let (one, other) = (bridge.client(), bridge.client());
        calls.spawn(async move { one.get(&format!("/v1/sessions/s{n}")).await });
        calls.spawn(async move { other.post("/v1/sessions/s/entries", user("lost")).await });
    }
    for answer in soon(calls.join_all()).await {
        assert_eq!(answer.json()["code"], "session/storage", "{answer:?}");
    }
}

/// An address where nobody listens.
async fn nobody() -> std::net::SocketAddr {
    let probe = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    probe.local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_do_not_queue_up_for_a_main_that_is_not_there() {
    // Each wait is long, and the test ends before a second one would.
    let bridge = bridge_at(nobody().await, PATIENT_MS).await;
    all_fail_together(&bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_main_never_answered_is_not_ready() {
    let main = nobody().await;
    let bridge = bridge_at(main, PATIENT_MS).await;
    let ready = bridge.client().get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["store_reachable"]), (503, &json!(false)));
    let welcome = bridge.server().welcome();
    assert!(welcome.contains(&format!("at the main ws://{main} (bridge)")), "{welcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_is_refused_says_what_to_change() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let weak = token(dir.path(), json!({}), &[bough_service::Right::Read]);
    let main = TestServer::again(dir).await;
    let without = bridge_to(&main).await;
    let other = bridge_to(&without).await;
    let with = |token: &str| {
        let config = format!("{{url: 'ws://{}', token: '{token}'}}", main.bus());
        format!("adapter: {{name: bridge, config: {config}}}")
    };
    let (wrong, weak) =
        (TestServer::with(&with("nonsense")).await, TestServer::with(&with(&weak)).await);
    let cases = [
        (&without, "asks for a token; give adapter.config.token"),
        (&wrong, "does not take the token in adapter.config.token"),
        (&weak, "does not let this bridge store there; give adapter.config.token"),
        (&other, "names an instance that is a bridge itself"),
    ];
    for (bridge, words) in cases {
        let refused = bridge.client().get("/v1/sessions").await.json();
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(words) && !detail.contains("try again"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_do_not_queue_up_for_a_main_that_says_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let main = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            open.push(tokio_tungstenite::accept_async(stream).await);
        }
    });
    let bridge = bridge_at(silent, 3000).await;
    all_fail_together(&bridge).await;
    main.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_to_itself_is_refused_however_it_is_spelt() {
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.0.0.2"] {
        let dir = tempfile::tempdir().unwrap();
        let probe = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        let mut options = options(dir.path());
        options.bus = Some(format!("127.0.0.1:{port}"));
        let config = dir.path().join("bridge.yaml");
        let (disk, name) = (
            bough_platform::OsDisk::open(dir.path()).unwrap(),
            bough_platform::RelPath::parse("bridge.yaml").unwrap(),
        );
        let text = format!("adapter: {{name: bridge, config: {{url: 'ws://{host}:{port}'}}}}");
        let file = bough_platform::Disk::create(&disk, &name).unwrap();
        file.write_at(0, text.as_bytes()).unwrap();
        options.config = Some(config);
        let refused = bough_server::Server::start(options).await.err().unwrap();
        assert!(
            matches!(refused, ServeError::Store(OpenError::SelfReference { .. })),
            "{host}: {refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misconfigured_bridge_is_refused_while_running_and_fatal_at_boot() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let own = format!(
        "adapter: {{name: bridge, config: {{url: 'ws://localhost:{}'}}}}",
        test.bus().port()
    );
    for (count, config) in ["adapter: {name: bridge}", own.as_str()].iter().enumerate() {
        test.reconfigure(config);
        until(async || {
            client.get("/v1/config/status").await.json()["rejected_reloads"] == count + 1
        })
        .await;
        assert_eq!(
            client.get(&format!("/v1/sessions/{id}")).await.status,
            200,
            "what ran still runs"
        );
    }
    test.reconfigure("adapter: {name: bridge, config: {url: 'http://main'}}");
    let dir = test.stop().await;
    assert!(bough_server::Server::start(options(dir.path())).await.is_err(), "no silent fall-back");
}
