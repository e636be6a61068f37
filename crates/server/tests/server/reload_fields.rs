//! Every field of the configuration, changed in the file of a running server.
//!
//! A field is in one of the tables of fields that change at once, each with a check of its effect; or it needs a
//! restart and the server reports that; or the server does not use it. A field that is in none of them fails a test.

use std::collections::BTreeSet;
use std::time::Duration;

use bough_server::config::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, Worker, soon, until};
use crate::http::{new_session, user};
use crate::test_server::TestServer;

/// A field, and a file in which it has another value than its default.
type Change = (&'static str, &'static str);

const LISTS_AND_GUARD: &[Change] = &[
    ("default_list_limit", "default_list_limit: 2"),
    ("max_list_limit", "max_list_limit: 2"),
    ("retention.trash", "retention: {trash: forever}"),
    ("retention.idempotency_keys", "retention: {idempotency_keys: 1ms}"),
    ("allow.hosts", "allow: {hosts: [bough.example]}"),
    ("allow.origins", "allow: {origins: ['https://page.example']}"),
    ("allow.proxies", "allow: {proxies: ['127.0.0.1']}"),
    ("tokens.required", "tokens: {required: true}"),
];

const COUNTS: &[Change] = &[
    ("limits.body_bytes", "limits: {body_bytes: 100}"),
    ("limits.bus_message_bytes", "limits: {bus_message_bytes: 1000}"),
    ("limits.connections", "limits: {connections: 1}"),
    ("limits.requests", "limits: {requests: 1}"),
    ("limits.streams", "limits: {streams: 1}"),
];

const TIMES: &[Change] = &[
    ("limits.header_timeout", "limits: {header_timeout: 50ms}"),
    ("limits.request_timeout", "limits: {request_timeout: 50ms}"),
    ("limits.heartbeat", "limits: {heartbeat: 20ms}"),
    ("streaming.abandoned_after", "streaming: {abandoned_after: 50ms}"),
];

const STALLS: &[Change] = &[
    ("limits.write_stall_timeout", "limits: {write_stall_timeout: 50ms}"),
    ("limits.stream_bytes_per_token", "limits: {stream_bytes_per_token: 1}"),
];

/// Fields about the storage of sessions; tested separately.
const STORAGE: &[&str] = &["adapter", "durability"];

/// Fields about the log; tested with the real program, which has a log of its own.
const LOG: &[&str] = &["log.format", "log.level"];

const AT_START: &[&str] = &["bus", "data_dir", "engine", "listen"];

/// Read whenever a session is compacted or recorded.
const NOT_THE_SERVERS: &[&str] = &[
    "compaction.command",
    "compaction.enabled",
    "compaction.keep_recent_tokens",
    "compaction.reserve_tokens",
    "compaction.windows",
    "session.scope",
];

/// How many requests repeat an idempotency key.
const KEYED_REPEATS: usize = 50;
/// How long a check waits for something that should not happen.
const A_WHILE: Duration = Duration::from_millis(700);

#[test]
fn every_field_is_in_one_of_the_tables() {
    let config =
        Config { data_dir: Some("d".into()), engine: Some("ws://e:1".into()), ..Config::default() };
    let mut fields = BTreeSet::new();
    for (name, value) in serde_json::to_value(config).unwrap().as_object().unwrap() {
        match value {
            Value::Object(inner) if name != "adapter" => {
                fields.extend(inner.keys().map(|field| format!("{name}.{field}")));
            }
            _ => drop(fields.insert(name.clone())),
        }
    }
    let changes = [LISTS_AND_GUARD, COUNTS, TIMES, STALLS].concat();
    let named = changes.iter().map(|(field, _)| *field);
    let others = [STORAGE, LOG, AT_START, NOT_THE_SERVERS].concat();
    let known: Vec<String> = named.chain(others).map(str::to_owned).collect();
    assert_eq!(fields, known.iter().cloned().collect());
    assert_eq!(fields.len(), known.len(), "none is in two tables");
}

/// Changes each field by itself and waits for its effect, which must not be there before.
async fn check_each(changes: &[Change]) {
    for (field, change) in changes {
        let test = TestServer::in_memory().await;
        for _ in 0..3 {
            new_session(&test.client()).await;
        }
        assert!(!is_in_force(&test, field, false).await, "{field} is so without the change");
        test.reconfigure(&format!("adapter: {{name: memory}}\n{change}"));
        until(async || is_in_force(&test, field, true).await).await;
    }
}

#[tokio::test]
async fn lists_retention_and_guard_change_at_once() {
    check_each(LISTS_AND_GUARD).await;
}

#[tokio::test]
async fn bounds_on_numbers_change_at_once() {
    check_each(COUNTS).await;
}

#[tokio::test]
async fn bounds_on_times_change_at_once() {
    check_each(TIMES).await;
}

#[tokio::test]
async fn the_bound_on_stalls_changes_at_once() {
    check_each(STALLS).await;
}

async fn is_in_force(test: &TestServer, field: &str, is_changed: bool) -> bool {
    let client = test.client();
    match field {
        "default_list_limit" => listed(test, "").await == 2,
        "max_list_limit" => listed(test, "?limit=3").await == 2,
        "retention.trash" => {
            let id = new_session(&client).await;
            client.delete(&format!("/v1/sessions/{id}")).await.ok();
            let trash = client.get("/v1/trash").await.ok();
            trash["sessions"][0].get("expires_at").is_none()
        }
        "retention.idempotency_keys" => {
            let keyed = client.with("idempotency-key", "k");
            let made = keyed.post("/v1/sessions", json!({})).await.ok();
            // The key of the new configuration is valid for a millisecond, which one of these requests outlasts.
            for _ in 0..KEYED_REPEATS {
                if keyed.post("/v1/sessions", json!({})).await.ok() != made {
                    return true;
                }
            }
            false
        }
        "allow.hosts" => client.with("host", "bough.example").get("/healthz").await.status == 200,
        "allow.origins" => {
            client.with("origin", "https://page.example").get("/healthz").await.status == 200
        }
        "streaming.abandoned_after" => a_stream_is_abandoned(test).await,
        "allow.proxies" => client.with("via", "1.1 proxy").get("/v1/sessions").await.status == 200,
        "tokens.required" => client.get("/v1/sessions").await.status == 401,
        "limits.body_bytes" => {
            client.post("/v1/sessions", json!({"title": "t".repeat(200)})).await.status == 413
        }
        "limits.bus_message_bytes" => large_message_ends_worker(test).await,
        "limits.connections" => second_connection_is_refused(test).await,
        "limits.requests" => {
            let _first = waiting(test).await;
            client.get("/v1/sessions").await.status == 503
        }
        "limits.streams" => {
            let _first = client.events("/v1/events").await;
            let second = connect_and_send(test, "GET /v1/events HTTP/1.1", "").await;
            read_a_while(second).await.starts_with("HTTP/1.1 503")
        }
        "limits.header_timeout" => {
            let mut stream = TcpStream::connect(test.server().http_address()).await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
            ends_in_a_while(&mut stream).await
        }
        "limits.request_timeout" => {
            let answer = read_a_while(half_sent(test).await).await;
            answer.contains("http/timeout")
        }
        "limits.write_stall_timeout" => stalled_stream_ends(test).await,
        "limits.stream_bytes_per_token" => {
            one_stalled_stream_holds_an_event(test, is_changed).await
        }
        "limits.heartbeat" => {
            let stream = connect_and_send(test, "GET /v1/events HTTP/1.1", "").await;
            read_a_while(stream).await.matches(": ok").count() > 2
        }
        other => panic!("nobody looks at {other}"),
    }
}

async fn listed(test: &TestServer, query: &str) -> usize {
    let page = test.client().get(&format!("/v1/sessions{query}")).await.ok();
    page["sessions"].as_array().unwrap().len()
}

/// Sends the head of a request with more headers, and what there is of a body.
async fn connect_and_send(test: &TestServer, line: &str, rest: &str) -> TcpStream {
    let address = test.server().http_address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{line}\r\nhost: {address}\r\n{rest}");
    let head = if rest.is_empty() { format!("{head}\r\n") } else { head };
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// A request whose body never ends.
async fn half_sent(test: &TestServer) -> TcpStream {
    let more = "content-type: application/json\r\ncontent-length: 50\r\n\r\n{";
    connect_and_send(test, "POST /v1/sessions HTTP/1.1", more).await
}

/// A request that waits for an event; the server is handling it when this returns.
async fn waiting(test: &TestServer) -> TcpStream {
    let stream = connect_and_send(test, "GET /v1/watch?wait_ms=20000 HTTP/1.1", "").await;
    let gauge = |page: &str| page.lines().any(|line| line == "bough_requests 1");
    crate::client::until(async || gauge(&test.client().get("/metrics").await.text)).await;
    stream
}

/// What comes within a while.
async fn read_a_while(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(A_WHILE, stream.read_to_end(&mut bytes)).await.is_ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ends_in_a_while(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    tokio::time::timeout(A_WHILE, stream.read_to_end(&mut bytes)).await.is_ok()
}

async fn large_message_ends_worker(test: &TestServer) -> bool {
    let mut worker = Worker::connect(test.bus(), None).await;
    let data = json!({"title": "t".repeat(2000)});
    let call = worker.call_frame("session::create", data);
    // The connection ends with or without an answer.
    tokio::time::timeout(
        A_WHILE,
        futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(call)),
    )
    .await
    .is_ok_and(|ended| ended.is_err())
}

async fn second_connection_is_refused(test: &TestServer) -> bool {
    let address = test.server().http_address();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut first = connect_and_send(test, "GET /v1/events HTTP/1.1", "").await;
    let mut answer = [0; 12];
    // If the last request has not ended yet, the first one is refused already.
    if soon(first.read_exact(&mut answer)).await.is_err() {
        return false;
    }
    let mut second = TcpStream::connect(address).await.unwrap();
    let _ = second.write_all(request.as_bytes()).await.is_ok();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(A_WHILE, second.read_to_end(&mut bytes)).await;
    read.is_ok() && bytes.is_empty()
}

/// Whether a stream that is not read is ended once its buffers are full.
async fn stalled_stream_ends(test: &TestServer) -> bool {
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("GET /v1/sessions/{id}/events HTTP/1.1");
    let _unread = connect_and_send(test, &path, "").await;
    let streams = async || client.get("/metrics").await.text;
    while !streams().await.contains("\nbough_streams 1\n") {}
    for _ in 0..12 {
        client.post(&format!("/v1/sessions/{id}/entries"), user(&"x".repeat(1 << 20))).await.ok();
    }
    let ended = until(async || streams().await.contains("\nbough_streams 0\n"));
    tokio::time::timeout(A_WHILE, ended).await.is_ok()
}

/// Whether of two streams that are not read only one holds an event, once their buffers are full.
///
/// Before the change both hold one, however long that takes. After it, the second is only waited for a while.
async fn one_stalled_stream_holds_an_event(test: &TestServer, is_changed: bool) -> bool {
    let client = test.client();
    let mut unread = Vec::new();
    for _ in 0..2 {
        let id = new_session(&client).await;
        for _ in 0..12 {
            let large = user(&"x".repeat(1 << 20));
            client.post(&format!("/v1/sessions/{id}/entries"), large).await.ok();
        }
        let path = format!("GET /v1/sessions/{id}/events?after=start HTTP/1.1");
        unread.push(connect_and_send(test, &path, "").await);
    }
    let hold_more = until(async || held_bytes(test).await > 3 << 20);
    let wait = if is_changed { A_WHILE } else { PATIENCE };
    tokio::time::timeout(wait, hold_more).await.is_err()
}

/// The bytes that the streams hold for their readers.
async fn held_bytes(test: &TestServer) -> usize {
    let page = test.client().get("/metrics").await.text;
    let line = page.lines().find_map(|line| line.strip_prefix("bough_stream_bytes "));
    line.unwrap().parse().unwrap()
}

/// A change that needs a restart is reported until it is reverted, and no other change is.
#[tokio::test]
async fn what_waits_for_the_next_start_is_named() {
    let test = TestServer::by_file("").await;
    let client = test.client();
    let waiting = async |more: &str, names: &[&str]| {
        test.reconfigure_by_file(more);
        until(async || {
            let status = client.get("/v1/config/status").await.ok();
            let said = status.get("needs_restart").cloned().unwrap_or(json!([]));
            said == json!(names) && status["last_outcome"] == "applied"
        })
        .await;
    };
    waiting("listen: '127.0.0.1:7'", &["listen"]).await;
    waiting("bus: 'off'", &["bus"]).await;
    waiting("engine: 'ws://127.0.0.1:7'", &["engine"]).await;
    waiting("data_dir: elsewhere\nbus: 'off'", &["data_dir", "bus"]).await;
    waiting("compaction: {enabled: false}\nsession: {scope: persistent}", &[]).await;
}

#[tokio::test]
async fn a_store_is_another_one_at_once() {
    let main = TestServer::in_memory().await;
    let there = new_session(&main.client()).await;
    let test = TestServer::in_memory().await;
    let client = test.client();
    let folder = test.path();
    let at = |name: &str| folder.join(name).display().to_string();
    let fs = |name: &str| format!("{{name: fs, config: {{data_dir: '{}'}}}}", at(name));
    let bridge = format!("{{name: bridge, config: {{url: 'ws://{}'}}}}", main.bus());
    let native = format!("{{name: native, config: {{data_dir: '{}'}}}}", at("n"));
    let mut made: Vec<String> = Vec::new();
    for (adapter, name) in
        [(fs("a"), "fs"), (fs("b"), "fs"), (native, "native"), (bridge, "bridge")]
    {
        let before = new_session(&client).await;
        test.reconfigure(&format!("adapter: {adapter}"));
        let path = format!("/v1/sessions/{before}");
        soon(async { while client.get(&path).await.status != 404 {} }).await;
        assert_eq!(client.get("/readyz").await.json()["store"], name);
        made.push(before);
    }
    assert_eq!(client.get(&format!("/v1/sessions/{there}")).await.status, 200);
    test.reconfigure(&format!("adapter: {}", fs("a")));
    let path = format!("/v1/sessions/{}", made[1]);
    soon(async { while client.get(&path).await.status != 200 {} }).await;
}

#[tokio::test]
async fn the_first_words_say_where_the_sessions_are() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere").display().to_string();
    for name in ["fs", "native"] {
        let config = format!("adapter: {{name: {name}, config: {{data_dir: '{elsewhere}'}}}}");
        let test = TestServer::with(&config).await;
        let welcome = test.server().welcome();
        assert!(welcome.contains(&format!("{elsewhere} ({name})")), "{welcome}");
    }
}

#[tokio::test]
async fn another_durability_is_no_news_to_subscribers() {
    let test = TestServer::with("").await;
    let client = test.client();
    new_session(&client).await;
    let mut stream = client.events("/v1/events").await;
    let before = new_session(&client).await;
    assert_eq!(stream.expect("session::created").await.data["payload"]["session_id"], before);
    test.reconfigure("durability: may_lose_newest_on_power_cut");
    test.worker().await.call("session::on-config-change", json!({})).await;
    let after = new_session(&client).await;
    let event = stream.expect("session::created").await;
    assert_eq!(event.data["payload"]["session_id"], after, "no gap, and nothing told again");
}

/// A frame says up to which record everything before it is known to be on the disk.
#[tokio::test]
async fn durability_is_another_one_at_once() {
    let test = TestServer::with("").await;
    let client = test.client();
    let vouches_for_all = async || {
        let id = new_session(&client).await;
        let path = format!("/v1/sessions/{id}/entries");
        for text in ["1", "2", "3"] {
            // For a moment both stores are open, and a session has one writer.
            while client.post(&path, user(text)).await.status == 423 {}
        }
        let frame = last_frame(&test.path(), &id);
        let number = |name: &str| frame.get(name).and_then(Value::as_u64);
        // Whether the frame vouches for the two messages before the last.
        number("w").or(number("q")) > number("q").map(|last| last - 2)
    };
    assert!(vouches_for_all().await);
    test.reconfigure("durability: may_lose_newest_on_power_cut");
    soon(async { while vouches_for_all().await {} }).await;
    test.reconfigure("durability: synced");
    soon(async { while !vouches_for_all().await {} }).await;
}

/// The last frame of a session's newest segment.
fn last_frame(data: &std::path::Path, id: &str) -> Value {
    let inside = |dir: std::path::PathBuf| {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let containers = inside(data.join("sessions")).into_iter().flat_map(inside);
    let mut own = containers.filter(|path| path.to_string_lossy().contains(id));
    let segment = inside(own.next().unwrap().join("segments")).pop().unwrap();
    let text = std::fs::read_to_string(segment).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

async fn a_stream_is_abandoned(test: &TestServer) -> bool {
    let client = test.client();
    let id = new_session(&client).await;
    let mut events = client.events(&format!("/v1/sessions/{id}/events")).await;
    let body = json!({"message": crate::streams::reply("a"), "stream": true});
    client.post(&format!("/v1/sessions/{id}/entries"), body).await.ok();
    let ended = tokio::time::timeout(A_WHILE, events.until("message.finished")).await;
    ended.is_ok_and(|event| event.data["aborted"] == json!(true))
}
