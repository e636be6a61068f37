//! The console's page and its files.

use bough_service::Right;
use serde_json::json;

use crate::test_server::{TestServer, token};

/// The addresses of the files that the page names.
fn assets(page: &str) -> Vec<&str> {
    page.split('"').filter(|part| part.starts_with("/assets/")).collect()
}

#[tokio::test]
async fn the_page_allows_nothing_from_elsewhere_and_is_asked_for_every_time() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let page = client.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "trusted-types 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let tag = page.header("etag").unwrap();
    let again = client.with("if-none-match", tag).get("/").await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    assert_eq!(again.header("etag"), Some(tag));
    let other = client.with("if-none-match", "\"other\"").get("/").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn files_are_kept_for_good_under_an_address_with_their_digest() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let page = client.get("/").await.text;
    let files = assets(&page);
    assert!(!files.is_empty(), "{page}");
    for path in files {
        let file = client.get(path).await;
        assert_eq!(file.status, 200, "{path}");
        let cache = file.header("cache-control").unwrap();
        assert!(cache.contains("immutable"), "{path}: {cache}");
        assert_eq!(file.header("content-encoding"), None, "{path}: it was not asked for");
    }
    let script = assets(&page).into_iter().find(|path| path.ends_with(".js")).unwrap();
    let packed = client.with("accept-encoding", "gzip").send("HEAD", script, None).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(client.get("/assets/app-0.js").await.problem(404), "http/not_found");
    assert_eq!(client.get("/assets/licences.txt").await.status, 200);
}

#[tokio::test]
async fn the_page_needs_no_token_and_what_it_shows_does() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    token(dir.path(), json!({}), &[Right::Read]);
    let test = TestServer::again(dir).await;
    let client = test.client();
    let page = client.get("/").await;
    assert_eq!(page.status, 200);
    for path in assets(&page.text) {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(client.get("/v1/sessions").await.status, 401);
    let foreign = client.with("origin", "https://evil.example").get("/").await;
    assert_eq!(foreign.problem(403), "guard/origin_not_allowed");
}
