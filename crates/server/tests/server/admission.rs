//! Refused callers, and idle connections that must not block others.

use std::sync::Arc;

use bough_service::Right;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Client, soon};
use crate::http::new_session;
use crate::test_server::{TestServer, token};

/// Peers that send nothing, or only the beginning of a request, are closed in favour of new
/// connections.
#[tokio::test]
async fn silent_connections_do_not_keep_clients_out() {
    let test = TestServer::with("adapter: {name: memory}\nlimits: {connections: 8}").await;
    let address = test.server().http_address();
    let mut silent = Vec::new();
    for number in 0..24 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").await.unwrap();
        }
        if number % 3 == 0 {
            let head = format!("POST /v1/sessions HTTP/1.1\r\nhost: {address}\r\n");
            let rest = "content-type: application/json\r\ncontent-length: 50\r\n\r\n{";
            stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        }
        silent.push(stream);
        assert_eq!(test.client().get("/healthz").await.status, 200, "after {number}");
    }
}

/// A body that is never complete holds neither the right to work nor, once others wait, the right to be read.
#[tokio::test]
async fn slow_bodies_do_not_keep_requests_out() {
    let test = TestServer::with("adapter: {name: memory}\nlimits: {requests: 4}").await;
    let address = test.server().http_address();
    let mut slow = Vec::new();
    for path in ["/v1/sessions", "/v1/call/session::create"].repeat(2) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n");
        let rest = "content-type: application/json\r\ncontent-length: 50\r\n\r\n{";
        stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        slow.push(stream);
        // Answered by the same server, so that the body is being read by now.
        assert_eq!(test.client().get("/v1/sessions").await.status, 200);
    }
    new_session(&test.client()).await;
    let mut start = [0; 12];
    soon(slow[0].read_exact(&mut start)).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 408");
}

/// The beginning of a request is nothing that a closing server would have to finish.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_does_not_wait_for_the_rest_of_a_request() {
    let test = TestServer::in_memory().await;
    let (http, bus) = (test.server().http_address(), test.bus());
    let head = format!("PUT /v1/sessions/s HTTP/1.1\r\nhost: {http}\r\n");
    let body = format!("{head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{{");
    let mut peers = Vec::new();
    for (address, text) in [(http, "GET /v1/sess"), (http, &body), (bus, "GET / HT")] {
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(text.as_bytes()).await.unwrap();
        peers.push(peer);
    }
    // Answered after them, so all of them have been accepted.
    assert_eq!(test.client().get("/healthz").await.status, 200);
    test.worker().await;
    let began = std::time::Instant::now();
    test.stop().await;
    let seconds = began.elapsed().as_secs();
    assert!(seconds < 6, "{seconds} s");
}

#[tokio::test]
async fn an_address_that_is_too_long_is_a_problem() {
    let test = TestServer::in_memory().await;
    let path = format!("/v1/sessions?id_prefix={}", "x".repeat(40_000));
    assert_eq!(test.client().get(&path).await.problem(431), "http/head_too_large");
}

/// Streams are working connections: they are not closed for others, which are refused then.
#[tokio::test]
async fn connections_at_work_are_not_closed_for_others() {
    let test = TestServer::with("adapter: {name: memory}\nlimits: {connections: 1}").await;
    let mut stream = test.client().events("/v1/events").await;
    stream.sign_of_life().await;
    let mut second = TcpStream::connect(test.server().http_address()).await.unwrap();
    let mut bytes = Vec::new();
    let read = soon(second.read_to_end(&mut bytes)).await;
    assert!(read.is_err() || bytes.is_empty(), "{bytes:?}");
    new_session_through(&test).await;
    stream.until("session::created").await;
}

/// A session that is made without HTTP.
async fn new_session_through(test: &TestServer) {
    test.worker().await.call("session::create", json!({"title": "t"})).await;
}

#[tokio::test]
async fn without_tokens_a_proxy_is_refused_unless_it_is_trusted() {
    let test = TestServer::in_memory().await;
    let passed_on = test.client().with("x-forwarded-for", "203.0.113.7");
    assert_eq!(passed_on.get("/v1/sessions").await.problem(403), "guard/proxy_not_trusted");
    assert_eq!(passed_on.get("/healthz").await.status, 200);
    let trusting =
        TestServer::with("adapter: {name: memory}\nallow: {proxies: ['127.0.0.1']}").await;
    let passed_on = trusting.client().with("x-forwarded-for", "203.0.113.7");
    assert_eq!(passed_on.get("/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn with_a_token_a_proxy_is_as_good_as_anybody() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let reader = token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let passed_on = test.client().with("forwarded", "for=203.0.113.7").with_token(&reader);
    assert_eq!(passed_on.get("/v1/sessions").await.status, 200);
}

/// The first words are to be pasted: without the token they would be refused.
#[tokio::test]
async fn the_first_words_send_a_token_where_one_is_needed() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    token(dir.path(), json!({}), &[Right::Read]);
    let guarded = TestServer::again(dir).await.server().welcome();
    let open = TestServer::in_memory().await.server().welcome();
    let sends_token = |words: &str| {
        let commands = words.lines().filter(|line| line.trim_start().starts_with("curl"));
        commands.map(|line| line.contains("Bearer $BOUGH_TOKEN")).collect::<Vec<_>>()
    };
    assert_eq!(sends_token(&guarded), [true; 4]);
    assert_eq!(sends_token(&open), [false; 4]);
}

/// The answer arrives although the body never does.
#[tokio::test]
async fn rights_are_checked_before_the_body_is_read() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let reader = token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let address = test.server().http_address();
    for path in ["/v1/sessions", "/v1/call/session::create"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {reader}\r\n\
             content-type: application/json\r\ncontent-length: 60000000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        soon(stream.read_exact(&mut start)).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 403", "{path}");
    }
}

#[tokio::test]
async fn metrics_need_a_right_of_their_own() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let all = [Right::Read, Right::Write, Right::Admin, Right::Bridge];
    let others = token(dir.path(), json!({}), &all);
    let metrics = token(dir.path(), json!({}), &[Right::Metrics]);
    let test = TestServer::again(dir).await;
    let client = test.client();
    let refused = client.with_token(&others).get("/metrics").await;
    assert_eq!(refused.problem(403), "session/forbidden");
    assert_eq!(client.with_token(&metrics).get("/metrics").await.status, 200);
    let refused = client.with_token(&metrics).get("/v1/sessions").await;
    assert_eq!(refused.problem(403), "session/forbidden");
}

#[tokio::test]
async fn what_is_not_there_is_not_counted_as_ok() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    assert_eq!(client.get("/v1/sessions/none").await.status, 404);
    let page = client.get("/metrics").await.text;
    let line = "bough_calls_total{function=\"session::describe\",outcome=\"error\"} 1";
    assert!(page.lines().any(|found| found == line), "{page}");
}

/// The cookie that an answer sets, as a browser sends it back.
fn set_cookie(answer: &crate::client::Answer) -> (String, String) {
    let line = answer.header("set-cookie").unwrap();
    let (pair, attributes) = line.split_once("; ").unwrap();
    (pair.to_owned(), attributes.to_owned())
}

async fn place_with_writer() -> (TestServer, Client) {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let text = token(dir.path(), json!({}), &[Right::Read, Right::Write]);
    let test = TestServer::again(dir).await;
    let client = test.client().with_token(&text);
    (test, client)
}

#[tokio::test]
async fn a_browser_exchanges_its_token_for_a_cookie() {
    let (test, bearer) = place_with_writer().await;
    let login = bearer.post("/v1/login", json!({})).await;
    assert_eq!(login.json()["rights"], json!(["read", "write"]));
    let (cookie, attributes) = set_cookie(&login);
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
    let origin = format!("http://{}", test.server().http_address());
    let browser = test.client().with("cookie", &cookie);
    let page = browser.with("origin", &origin);
    assert_eq!(browser.get("/v1/sessions").await.status, 200);
    let unnamed = browser.post("/v1/sessions", json!({})).await;
    assert_eq!(unnamed.problem(403), "guard/origin_needed");
    new_session(&page).await;
    let again = page.post("/v1/login", json!({})).await;
    assert_eq!(again.problem(401), "guard/token_needed", "a cookie makes no cookie");
    let logout = page.post("/v1/logout", json!({})).await;
    assert_eq!(logout.status, 204);
    assert!(set_cookie(&logout).1.contains("Max-Age=0"));
    assert_eq!(browser.get("/v1/sessions").await.problem(401), "guard/token_needed");
}

#[tokio::test]
async fn where_everybody_is_let_in_a_login_sets_no_cookie() {
    let test = TestServer::in_memory().await;
    let login = test.client().post("/v1/login", json!({})).await;
    assert_eq!(login.header("set-cookie"), None);
    assert_eq!(login.ok()["token_id"], json!(null));
}

#[tokio::test]
async fn a_ticket_opens_one_stream() {
    let (test, bearer) = place_with_writer().await;
    let session = new_session(&bearer).await;
    let ticket = async || {
        let made = bearer.post("/v1/tickets", json!({})).await.ok();
        made["ticket"].as_str().unwrap().to_owned()
    };
    let anybody = test.client();
    let of_session = format!("/v1/sessions/{session}/events?snapshot=true&ticket=");
    for path in ["/v1/events?ticket=", &of_session] {
        let address = format!("{path}{}", ticket().await);
        anybody.events(&address).await.sign_of_life().await;
        let again = anybody.get(&address).await;
        assert_eq!(again.problem(401), "guard/ticket_not_valid", "{path}");
    }
    let elsewhere = anybody.get(&format!("/v1/sessions?ticket={}", ticket().await)).await;
    assert_eq!(elsewhere.problem(401), "guard/token_needed", "a ticket is for streams");
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let test = TestServer::in_memory().await;
    let id = async |path: &str| {
        let answer = test.client().get(path).await;
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_ne!(id("/healthz").await, id("/v1/none").await);
}
