//! Two tenants, each with a marker in everything that it writes: neither ever sees the other's.

use bough_service::Right;
use serde_json::{Value, json};

use crate::client::Client;
use crate::http::user;
use crate::test_server::{TestServer, token};
use crate::walk::Foreign;

struct Tenant {
    client: Client,
    token: String,
    mark: &'static str,
    session: String,
    entry: String,
}

async fn tenant(test: &TestServer, token: String, mark: &'static str) -> Tenant {
    let client = test.client().with_token(&token);
    let body = json!({"title": mark, "description": mark, "metadata": {"note": mark}});
    let made = client.post("/v1/sessions", body).await.ok();
    let session = made["session_id"].as_str().unwrap().to_owned();
    let added = client.post(&format!("/v1/sessions/{session}/entries"), user(mark)).await.ok();
    let entry = added["entry_id"].as_str().unwrap().to_owned();
    Tenant { client, token, mark, session, entry }
}

#[tokio::test]
async fn no_surface_shows_one_tenant_to_another() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let rights = [Right::Read, Right::Write, Right::Admin];
    let a = token(dir.path(), json!({"owner": "a"}), &rights);
    let b = token(dir.path(), json!({"owner": "b"}), &rights);
    let test = TestServer::again(dir).await;
    let a = tenant(&test, a, "mark-of-alpha").await;
    let b = tenant(&test, b, "mark-of-beta").await;
    check_http(&a, &b).await;
    check_http(&b, &a).await;
    check_events(&test, &a, &b).await;
    check_bus(&test, &a, &b).await;
}

/// The rights of a tenant, and those of one that may even store for others: a scope restricts both.
#[tokio::test]
async fn no_function_shows_or_changes_what_is_another_tenants() {
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let all = [Right::Read, Right::Write, Right::Admin, Right::Bridge];
    let a = token(dir.path(), json!({"owner": "a"}), &all);
    let b = token(dir.path(), json!({"owner": "b"}), &all[..3]);
    let test = TestServer::again(dir).await;
    let a = tenant(&test, a, "mark-of-alpha").await;
    let b = tenant(&test, b, "mark-of-beta").await;
    for (me, other) in [(&a, &b), (&b, &a)] {
        let foreign = Foreign {
            owner: &other.client,
            session: &other.session,
            entry: &other.entry,
            mark: other.mark,
        };
        foreign.walk(&me.client, &mut test.worker_with(&me.token).await).await;
    }
    for path in ["/metrics", "/openapi.json", "/readyz", "/healthz", "/v1/version"] {
        let shown = b.client.get(path).await.text;
        assert!(!shown.contains("mark-of") && !shown.contains(&a.session), "{path}");
    }
    let mut history = a.client.events("/v1/events?after=start").await;
    a.client.post(&format!("/v1/sessions/{}/entries", a.session), user("end")).await.ok();
    loop {
        let event = history.next().await.unwrap();
        assert!(!event.data.to_string().contains(b.mark), "{event:?}");
        if event.data.to_string().contains("\"end\"") {
            break;
        }
    }
}

/// Every read and write of one tenant on the other's session answers "not found".
async fn check_http(me: &Tenant, other: &Tenant) {
    let theirs = format!("/v1/sessions/{}", other.session);
    let lists = [
        "/v1/sessions",
        "/v1/search?query=mark",
        "/v1/trash",
        "/v1/watch?after=start",
        "/metrics",
        "/readyz",
    ];
    for path in lists {
        let answer = me.client.get(path).await;
        assert!(
            !answer.text.contains(other.mark) && !answer.text.contains(&other.session),
            "{path}"
        );
    }
    let reads =
        ["", "/messages", "/messages/tail", "/branches", "/context", "/usage", "/entries/e"];
    for part in reads {
        let answer = me.client.get(&format!("{theirs}{part}")).await;
        let missing = me.client.get(&format!("/v1/sessions/none{part}")).await;
        assert_eq!(
            (answer.status, answer.problem(404)),
            (missing.status, missing.problem(404)),
            "{part}"
        );
        let told = answer.text.replace(&other.session, "none");
        assert_eq!(told, missing.text, "not there and not yours look the same");
    }
    let writes: [(&str, &str, Value); 6] = [
        ("POST", "/entries", user("x")),
        ("PATCH", "", json!({"title": "x"})),
        ("PUT", "/status", json!({"status": "done"})),
        ("PUT", "/archive", json!({})),
        ("POST", "/fork", json!({"entry_id": "e"})),
        ("PUT", "/leaf", json!({"entry_id": "e"})),
    ];
    for (method, part, body) in writes {
        let answer =
            me.client.send(method, &format!("{theirs}{part}"), Some(body.to_string())).await;
        assert_eq!(answer.problem(404), "session/not_found", "{method} {part}");
    }
    let deleted = me.client.delete(&theirs).await.ok();
    assert_eq!(deleted, json!({"deleted": false}));
    let steal = json!({"metadata": {"owner": other.mark}});
    assert_eq!(me.client.post("/v1/sessions", steal).await.problem(403), "session/forbidden");
}

async fn check_events(test: &TestServer, a: &Tenant, b: &Tenant) {
    let mut stream = a.client.events("/v1/events").await;
    let path = format!("/v1/sessions/{}/events", b.session);
    assert_eq!(a.client.get(&path).await.problem(404), "session/not_found");
    let mut theirs = a.client.events(&format!("{path}?create=wait")).await;
    b.client.post(&format!("/v1/sessions/{}/entries", b.session), user(b.mark)).await.ok();
    a.client.post(&format!("/v1/sessions/{}/entries", a.session), user("mine")).await.ok();
    let event = stream.next().await.unwrap();
    assert_eq!(event.data["payload"]["session_id"], a.session.as_str());
    let quiet = tokio::time::timeout(std::time::Duration::from_millis(200), theirs.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    drop(test.client());
}

async fn check_bus(test: &TestServer, a: &Tenant, b: &Tenant) {
    let mut alpha = test.worker_with(&a.token).await;
    let mut beta = test.worker_with(&b.token).await;
    beta.host("mark-of-beta::function").await;
    beta.bind("t-b", "session::message-added", "mark-of-beta::function", json!({})).await;
    let name = json!({"name": "mark-of-beta-worker", "runtime": "test"});
    beta.call("engine::workers::register", name).await;
    for list in ["engine::workers::list", "engine::functions::list", "engine::triggers::list"] {
        let seen = alpha.call(list, json!({})).await.to_string();
        assert!(!seen.contains("beta"), "{list}: {seen}");
    }
    let (code, _) = alpha.refused("mark-of-beta::function", json!({})).await;
    assert_eq!(code, "function_not_found");
    let theirs = json!({"session_id": b.session});
    assert_eq!(alpha.call("session::get", theirs.clone()).await, json!(null));
    let (_, message) = alpha.refused("session::messages", theirs.clone()).await;
    assert!(message.contains("session/not_found"), "{message}");
    let (_, message) = alpha.refused("session::store::list-metas", json!({})).await;
    assert!(message.contains("session/forbidden"), "{message}");
    alpha.host("alpha::on").await;
    alpha.bind("t-a", "session::message-added", "alpha::on", json!({})).await;
    alpha.bind("t-s", "session::store::events", "alpha::on", json!({})).await;
    let refused = alpha.next(|frame| frame["type"] == "triggerregistrationresult").await;
    assert_eq!(refused["id"], "t-s");
    b.client.post(&format!("/v1/sessions/{}/entries", b.session), user(b.mark)).await.ok();
    a.client.post(&format!("/v1/sessions/{}/entries", a.session), user("own")).await.ok();
    let call = alpha.called("alpha::on").await;
    assert_eq!(call["data"]["session_id"], a.session.as_str());
}
