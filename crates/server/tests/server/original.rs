//! Instances that store through session-manager as their main: one without `session::store::commit` and `read`. The
//! main is a Bough whose bus is reached through a proxy that hides those two functions.

use std::net::SocketAddr;

use bough_store::limits::MANAGED_SESSIONS_MAX;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, soon, until};
use crate::http::{new_session, user};
use crate::test_server::TestServer;

const MISSING: [&str; 2] = ["session::store::commit", "session::store::read"];

/// The address of a proxy to the main's bus that behaves as session-manager does.
async fn original_bus(main: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(forward(near, main));
        }
    });
    address
}

async fn forward(near: TcpStream, main: SocketAddr) {
    let near = tokio_tungstenite::accept_async(near).await.unwrap();
    let far = TcpStream::connect(main).await.unwrap();
    let (far, _) = tokio_tungstenite::client_async(format!("ws://{main}/"), far).await.unwrap();
    let ((mut to_near, mut from_near), (mut to_far, mut from_far)) = (near.split(), far.split());
    loop {
        let sent = tokio::select! {
            frame = from_near.next() => match frame {
                Some(Ok(frame)) => match refusal(&frame) {
                    Some(refusal) => to_near.send(refusal).await,
                    None => to_far.send(frame).await,
                },
                _ => return,
            },
            frame = from_far.next() => match frame {
                Some(Ok(frame)) => to_near.send(frame).await,
                _ => return,
            },
        };
        if sent.is_err() {
            return;
        }
    }
}

/// The answer of session-manager to a call of a function that it does not have.
fn refusal(frame: &Message) -> Option<Message> {
    let Message::Text(text) = frame else { return None };
    let frame: Value = serde_json::from_str(text).ok()?;
    MISSING.contains(&frame["function_id"].as_str()?).then(|| {
        let error = json!({"code": "function_not_found", "message": "function not found"});
        let (id, function) = (&frame["invocation_id"], &frame["function_id"]);
        let answer = json!({"type": "invocationresult", "invocation_id": id,
                            "function_id": function, "error": error});
        Message::text(answer.to_string())
    })
}

async fn bridge_to(main: &TestServer) -> TestServer {
    let url = format!("ws://{}", original_bus(main.bus()).await);
    TestServer::with(&format!(
        "adapter: {{name: bridge, config: {{url: '{url}', timeout_ms: 20000}}}}"
    ))
    .await
}

async fn append(client: &Client, session: &str, text: &str) -> Value {
    client.post(&format!("/v1/sessions/{session}/entries"), user(text)).await.ok()
}

async fn texts(client: &Client, session: &str) -> Vec<String> {
    let page = client.get(&format!("/v1/sessions/{session}/messages")).await.ok();
    let text = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    page["messages"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_original_main_keeps_what_an_instance_writes() {
    let main = TestServer::with("").await;
    let bridge = bridge_to(&main).await;
    let (here, there) = (bridge.client(), main.client());
    let id = new_session(&here).await;
    let entry = append(&here, &id, "first").await;
    append(&here, &id, "second").await;
    let path = format!("/v1/sessions/{id}/entries/{}", entry["entry_id"].as_str().unwrap());
    here.put(&path, json!({"content": [{"type": "text", "text": "changed"}]})).await.ok();
    here.put(&format!("/v1/sessions/{id}/status"), json!({"status": "done"})).await.ok();
    let at = json!({"entry_id": entry["entry_id"]});
    let fork = here.post(&format!("/v1/sessions/{id}/fork"), at).await.ok();
    let fork = fork["session_id"].as_str().unwrap();
    for client in [&here, &there] {
        assert_eq!(texts(client, &id).await, ["changed", "second"]);
        assert_eq!(texts(client, fork).await, ["changed"]);
        let meta = client.get(&format!("/v1/sessions/{id}")).await.ok();
        assert_eq!(
            (&meta["meta"]["status"], &meta["meta"]["message_count"]),
            (&json!("done"), &json!(2))
        );
        let listed = client.get("/v1/sessions").await.ok();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    }
    here.delete(&format!("/v1/sessions/{fork}")).await.ok();
    assert_eq!(there.get(&format!("/v1/sessions/{fork}")).await.status, 404);
}

/// Records that session-manager cannot express are kept, and another instance reads them.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_original_cannot_say_travels_in_reserved_entries() {
    let main = TestServer::with("").await;
    let (left, right) = (bridge_to(&main).await, bridge_to(&main).await);
    let id = new_session(&left.client()).await;
    append(&left.client(), &id, "said").await;
    left.client().put(&format!("/v1/sessions/{id}/archive"), json!({})).await.ok();
    for test in [&left, &right] {
        assert_eq!(texts(&test.client(), &id).await, ["said"]);
        let listed = test.client().get("/v1/sessions?archived=only").await.ok();
        assert_eq!(listed["sessions"][0]["session_id"], id.as_str(), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_heard_once_at_every_instance() {
    let main = TestServer::with("").await;
    let (left, right) = (bridge_to(&main).await, bridge_to(&main).await);
    let places = [&main, &left, &right];
    let id = new_session(&main.client()).await;
    append(&main.client(), &id, "before").await;
    let mut streams = Vec::new();
    for test in places {
        assert_eq!(texts(&test.client(), &id).await, ["before"]);
        streams.push(test.client().events(&format!("/v1/sessions/{id}/events")).await);
    }
    for (n, test) in [&main, &left, &right, &left, &main].into_iter().enumerate() {
        append(&test.client(), &id, &n.to_string()).await;
        // Without an atomic commit the writers take turns, as with session-manager.
        for test in places {
            until(async || texts(&test.client(), &id).await.len() >= n + 2).await;
        }
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        for n in 0..5 {
            let event = loop {
                let event = stream.next().await.unwrap();
                if event.name == "session::message-added" {
                    break event;
                }
            };
            let text = &event.data["payload"]["message"]["content"][0]["text"];
            assert_eq!(text, n.to_string().as_str(), "at instance {number}");
        }
    }
}

/// Sessions that were not used for long are evicted. They are read again from the main, and changes in between are
/// delivered as a gap, never as if everything in them were new.
#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_sessions_are_kept() {
    let main = TestServer::in_memory().await;
    let there = main.client();
    for n in 0..=MANAGED_SESSIONS_MAX {
        there.put(&format!("/v1/sessions/s-{n}"), json!({})).await.ok();
    }
    append(&there, "s-0", "said").await;
    let bridge = bridge_to(&main).await;
    let here = bridge.client();
    // A cursor of a session is valid for as long as the session is in memory.
    let place_of = async |n: usize| {
        let answer = here.get(&format!("/v1/sessions/s-{n}")).await;
        answer.header("etag").unwrap().to_owned()
    };
    // A starting instance reads sessions too; wait until that has ended.
    let first = soon(async {
        loop {
            let first = place_of(0).await;
            for n in 1..MANAGED_SESSIONS_MAX {
                place_of(n).await;
            }
            if place_of(0).await == first {
                return first;
            }
        }
    })
    .await;
    for n in 1..=MANAGED_SESSIONS_MAX {
        place_of(n).await;
    }
    let mut stream = here.events("/v1/events").await;
    append(&there, "s-0", "meanwhile").await;
    stream.expect("gap").await;
    assert_ne!(place_of(0).await, first, "one more");
    assert_eq!(texts(&here, "s-0").await, ["said", "meanwhile"]);
    append(&there, "s-0", "after").await;
    let added = stream.expect("session::message-added").await;
    assert_eq!(added.data["payload"]["message"]["content"][0]["text"], "after");
}
