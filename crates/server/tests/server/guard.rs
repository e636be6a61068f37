//! Who may come in.

use bough_service::Right;
use serde_json::json;

use crate::client::{Worker, until};
use crate::test_server::{TestServer, options, token};

#[tokio::test]
async fn hosts_and_origins_are_compared_on_every_request_and_upgrade() {
    let config =
        "adapter: {name: memory}\nallow: {hosts: [bough.example], origins: ['https://ok.example']}";
    let test = TestServer::with(config).await;
    let client = test.client();
    let own = client.get("/healthz").await;
    assert_eq!(own.status, 200);
    let check = |host: &'static str, origin: Option<&'static str>, status: u16| {
        let mut client = client.clone();
        if !host.is_empty() {
            client = client.with("host", host);
        }
        if let Some(origin) = origin {
            client = client.with("origin", origin);
        }
        async move {
            for path in ["/healthz", "/v1/sessions", "/v1/nothing"] {
                let answer = client.get(path).await;
                let refused =
                    answer.json()["code"].as_str().is_some_and(|code| code.starts_with("guard/"));
                assert_eq!(refused, status != 200, "{host} {origin:?} {path}: {answer:?}");
                if refused {
                    assert_eq!(answer.status, status);
                }
            }
        }
    };
    check("", None, 200).await;
    check("bough.example", None, 200).await;
    check("evil.example", None, 421).await;
    check("", Some("https://ok.example"), 200).await;
    check("", Some("https://evil.example"), 403).await;
    check("", Some("null"), 403).await;
    check("", Some("http://localhost:3000"), 403).await;
    let bus = test.bus();
    assert!(Worker::try_connect(bus, None, Some("https://ok.example")).await.is_ok());
    assert_eq!(Worker::try_connect(bus, None, Some("https://evil.example")).await.err(), Some(403));
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_ask_first() {
    let config = "adapter: {name: memory}\nallow: {origins: ['https://ok.example']}";
    let test = TestServer::with(config).await;
    let asking = test.client().with("origin", "https://ok.example");
    let asked = asking.with("access-control-request-method", "POST");
    let answer = asked.send("OPTIONS", "/v1/sessions", None).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://ok.example"));
    let other = test.client().with("origin", "https://evil.example");
    let asked = other.with("access-control-request-method", "POST");
    assert_eq!(asked.send("OPTIONS", "/v1/sessions", None).await.status, 403);
}

#[tokio::test]
async fn with_tokens_everybody_shows_one() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let reader = token(dir.path(), json!({}), &[Right::Read]);
    let writer = token(dir.path(), json!({}), &[Right::Read, Right::Write]);
    let test = TestServer::again(dir).await;
    let client = test.client();
    assert_eq!(client.get("/v1/sessions").await.problem(401), "guard/token_needed");
    assert_eq!(
        client.with_token("bough_x_y").get("/v1/sessions").await.problem(401),
        "guard/token_not_valid"
    );
    assert_eq!(client.get("/metrics").await.status, 401);
    assert_eq!(client.get("/healthz").await.status, 200);
    let (reader, writer) = (client.with_token(&reader), client.with_token(&writer));
    assert_eq!(reader.get("/v1/sessions").await.status, 200);
    assert_eq!(reader.post("/v1/sessions", json!({})).await.problem(403), "session/forbidden");
    assert_eq!(writer.post("/v1/sessions", json!({})).await.status, 201);
    let store = writer.post("/v1/call/session::store::list-metas", json!({})).await;
    assert_eq!(store.problem(403), "session/forbidden");
    assert_eq!(Worker::try_connect(test.bus(), None, None).await.err(), Some(401));
}

#[tokio::test]
async fn a_command_on_the_same_machine_finds_its_key() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let disk: Box<dyn bough_platform::Disk> =
        Box::new(bough_platform::OsDisk::open(test.path()).unwrap());
    let name = bough_platform::RelPath::parse(bough_server::LOCAL_KEY_FILE).unwrap();
    let key = String::from_utf8(disk.read_all(&name, 1000).unwrap()).unwrap();
    assert_eq!(test.client().with_token(&key).post("/v1/sessions", json!({})).await.status, 201);
}

#[tokio::test]
async fn a_token_that_is_made_while_the_server_runs_is_good_and_shuts_the_door() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    assert_eq!(client.get("/v1/sessions").await.status, 200);
    let text = token(&test.path(), json!({}), &[Right::Read]);
    until(async || client.get("/v1/sessions").await.status == 401).await;
    assert_eq!(client.with_token(&text).get("/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn other_machines_are_not_let_in_without_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.listen = Some("0.0.0.0:0".to_owned());
    let refused = bough_server::Server::start(options).await.err().unwrap();
    assert!(matches!(refused, bough_server::ServeError::NeedsTokens { .. }), "{refused:?}");
}
