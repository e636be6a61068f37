//! Live events over server-sent events.

use std::sync::Arc;

use bough_service::EventKind;
use serde_json::{Value, json};

use crate::client::{Client, Event};
use crate::http::{new_session, user};
use crate::test_server::TestServer;

fn texts(events: &[Event]) -> Vec<&str> {
    let text = |event: &'_ Event| event.data.pointer("/payload/message/content/0/text").cloned();
    events
        .iter()
        .filter(|event| text(event).is_some())
        .filter_map(|event| event.data.pointer("/payload/message/content/0/text")?.as_str())
        .collect()
}

async fn append(client: &Client, id: &str, text: &str) -> Value {
    client.post(&format!("/v1/sessions/{id}/entries"), user(text)).await.ok()
}

#[tokio::test]
async fn events_are_delivered_in_order_with_their_place() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let mut all = client.events("/v1/events").await;
    let id = new_session(&client).await;
    let mut one = client.events(&format!("/v1/sessions/{id}/events")).await;
    let entry = append(&client, &id, "hello\nworld\r\n\nid: 7").await;
    client.put(&format!("/v1/sessions/{id}/status"), json!({"status": "working"})).await.ok();
    assert_eq!(all.expect("session::created").await.data["payload"]["session_id"], id.as_str());
    for stream in [&mut all, &mut one] {
        let added = stream.expect("session::message-added").await;
        assert_eq!(added.data["payload"]["entry_id"], entry["entry_id"]);
        assert_eq!(added.data["type"], "session::message-added");
        assert_eq!(added.id.as_deref(), added.data["cursor"].as_str());
        assert!(added.data["seq"].as_u64().is_some());
        let text = &added.data["payload"]["message"]["content"][0]["text"];
        assert_eq!(text, "hello\nworld\r\n\nid: 7", "what users write stays inside the data");
        let changed = stream.expect("session::status-changed").await;
        assert_eq!(changed.data["payload"]["status"], "working");
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_that_was_seen() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    // The newest events of all sessions are in memory while they have a subscriber.
    let _follower = client.events("/v1/events").await;
    for (path, header) in
        [(format!("/v1/sessions/{id}/events"), true), ("/v1/events".to_owned(), false)]
    {
        let mut stream = client.events(&path).await;
        append(&client, &id, "1").await;
        append(&client, &id, "2").await;
        let first = stream.expect("session::message-added").await;
        drop(stream);
        append(&client, &id, "3").await;
        let cursor = first.id.clone().unwrap();
        let mut resumed = if header {
            client.with("last-event-id", &cursor).events(&path).await
        } else {
            client.events(&format!("{path}?after={cursor}")).await
        };
        let second = resumed.expect("session::message-added").await;
        let third = resumed.expect("session::message-added").await;
        assert_eq!(texts(&[first, second, third]), ["1", "2", "3"]);
    }
}

#[tokio::test]
async fn every_event_is_delivered_once_however_often_the_connection_breaks() {
    let test = TestServer::with("").await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/events");
    let writing = {
        let (client, id) = (client.clone(), id.clone());
        tokio::spawn(async move {
            for n in 0..60 {
                append(&client, &id, &n.to_string()).await;
            }
        })
    };
    let mut seen: Vec<Event> = Vec::new();
    let mut after = "start".to_owned();
    while seen.len() < 60 {
        let mut stream = client.events(&format!("{path}?after={after}")).await;
        // Each connection breaks after a few events.
        for _ in 0..7 {
            if seen.len() == 60 {
                break;
            }
            let event = stream.next().await.unwrap();
            after = event.id.clone().unwrap();
            if event.name == "session::message-added" {
                seen.push(event);
            }
        }
    }
    writing.await.unwrap();
    let expected: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    assert_eq!(texts(&seen), expected);
}

#[tokio::test]
async fn a_session_stream_goes_on_after_a_restart() {
    let test = TestServer::with("").await;
    let client = test.client();
    let id = new_session(&client).await;
    let path = format!("/v1/sessions/{id}/events");
    let mut stream = client.events(&path).await;
    append(&client, &id, "1").await;
    let first = stream.expect("session::message-added").await;
    append(&client, &id, "2").await;
    let dir = test.stop().await;
    let test = TestServer::again(dir).await;
    let client = test.client();
    let mut resumed = client.with("last-event-id", &first.id.unwrap()).events(&path).await;
    append(&client, &id, "3").await;
    let second = resumed.expect("session::message-added").await;
    let third = resumed.expect("session::message-added").await;
    assert_eq!(texts(&[second, third]), ["2", "3"]);
}

/// All stored events are delivered from the beginning, and then new ones.
#[tokio::test]
async fn all_sessions_are_delivered_from_the_start() {
    for config in ["", "adapter: {name: memory}"] {
        let test = TestServer::with(config).await;
        let client = test.client();
        let (one, two) = (new_session(&client).await, new_session(&client).await);
        append(&client, &one, "1").await;
        append(&client, &two, "2").await;
        let mut stream = client.events("/v1/events?after=start").await;
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(stream.next().await.unwrap());
        }
        append(&client, &one, "3").await;
        seen.push(stream.next().await.unwrap());
        // Events of one session are in order; between two sessions there is no order.
        for (id, said) in [(&one, vec!["1", "3"]), (&two, vec!["2"])] {
            let own = |event: &&Event| event.data["payload"]["session_id"] == id.as_str();
            let own: Vec<Event> = seen.iter().filter(own).cloned().collect();
            assert_eq!(own[0].name, "session::created");
            assert_eq!(texts(&own[1..]), said);
        }
        let page = client.get("/v1/watch?after=start").await.ok();
        assert_eq!(page["events"].as_array().unwrap().len(), 5, "{page}");
        assert_eq!(page["gap"], false);
    }
}

/// If the beginning is no longer stored, the stream begins with a gap.
#[tokio::test]
async fn a_start_that_is_no_longer_kept_is_a_gap() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let fs = format!("{{name: fs, config: {{data_dir: '{}'}}}}", dir.path().join("f").display());
    for config in [format!("adapter: {fs}"), String::new()] {
        let test = TestServer::with(&config).await;
        let id = new_session(&test.client()).await;
        let dir = test.stop().await;
        // Changes are stored in the catalogue.
        for name in ["catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
            let _ = std::fs::remove_file(dir.path().join(name)).is_ok();
        }
        let test = TestServer::again(dir).await;
        let client = test.client();
        let mut stream = client.events("/v1/events?after=start").await;
        stream.expect("gap").await;
        append(&client, &id, "after").await;
        let added = stream.until("session::message-added").await;
        assert_eq!(texts(&[added]), ["after"]);
    }
}

#[tokio::test]
async fn a_snapshot_comes_before_what_follows() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    append(&client, &id, "before").await;
    let mut stream = client.events(&format!("/v1/sessions/{id}/events?snapshot=true")).await;
    let snapshot = stream.expect("snapshot").await;
    assert_eq!(snapshot.data["meta"]["session_id"], id.as_str());
    assert_eq!(snapshot.data["messages"][0]["message"]["content"][0]["text"], "before");
    append(&client, &id, "after").await;
    let added = stream.until("session::message-added").await;
    assert_eq!(texts(&[added]), ["after"]);
}

#[tokio::test]
async fn filters_choose_types_roles_and_metadata() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let query = "types=session::message-added&roles=assistant&metadata.owner=u_1";
    let mut stream = client.events(&format!("/v1/events?{query}")).await;
    let assistant = |text: &str| {
        json!({"message": {"role": "assistant", "content": [{"type": "text", "text": text}],
               "stop_reason": "end", "model": "m", "provider": "p", "timestamp": 1}})
    };
    for (owner, marks) in [("u_2", ["x", "y"]), ("u_1", ["z", "wanted"])] {
        let body = json!({"metadata": {"owner": owner}});
        let made = client.post("/v1/sessions", body).await.ok();
        let path = format!("/v1/sessions/{}/entries", made["session_id"].as_str().unwrap());
        client.post(&path, user(marks[0])).await.ok();
        client.post(&path, assistant(marks[1])).await.ok();
    }
    let event = stream.next().await.unwrap();
    assert_eq!(texts(&[event]), ["wanted"]);
    let refused = client.get("/v1/events?types=session::odd").await;
    assert_eq!(refused.problem(400), "session/malformed_request");
}

#[tokio::test]
async fn a_cursor_of_another_incarnation_is_a_gap() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let path = "/v1/sessions/s/events";
    client.put("/v1/sessions/s", json!({})).await.ok();
    let mut stream = client.events(path).await;
    append(&client, "s", "old").await;
    let old = stream.expect("session::message-added").await.id.unwrap();
    client.delete("/v1/sessions/s").await.ok();
    client.put("/v1/sessions/s", json!({})).await.ok();
    let mut resumed = client.with("last-event-id", &old).events(path).await;
    // The reader gets the events in between, or a gap; the new incarnation is never taken for the old.
    let first = resumed.next().await.unwrap();
    assert!(["gap", "session::deleted"].contains(&first.name.as_str()), "{first:?}");
}

#[tokio::test]
async fn a_quiet_stream_shows_that_it_lives_and_there_are_only_so_many() {
    let test =
        TestServer::with("adapter: {name: memory}\nlimits: {heartbeat: 20ms, streams: 1}").await;
    let client = test.client();
    let mut first = client.events("/v1/events").await;
    assert_eq!(client.get("/v1/events").await.problem(503), "http/too_busy");
    // The greeting, and two heartbeats.
    for _ in 0..3 {
        first.sign_of_life().await;
    }
    let id = new_session(&client).await;
    let created = first.expect("session::created").await;
    assert_eq!(created.data["payload"]["session_id"], id.as_str());
}

/// The request is refused at once, as a binding on the bus is, instead of a stream that never has an event.
#[tokio::test]
async fn a_filter_that_nothing_passes_is_refused() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    for path in ["/v1/events", "/v1/sessions/s/events", "/v1/watch"] {
        for query in ["types=session::created&roles=user", "types="] {
            let refused = client.get(&format!("{path}?{query}")).await;
            assert_eq!(refused.problem(400), "session/invalid_request", "{path}?{query}");
        }
    }
}

#[tokio::test]
async fn a_session_that_is_not_there_is_waited_for_only_when_asked() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    for path in ["/v1/sessions/later/events", "/v1/events?session_id=later"] {
        for query in ["after=start", "snapshot=true", "deltas=off"] {
            let with = if path.contains('?') { '&' } else { '?' };
            let refused = client.get(&format!("{path}{with}{query}")).await;
            assert_eq!(refused.problem(404), "session/not_found", "{path} {query}");
        }
    }
    for bad in ["/v1/sessions/later/events?create=true", "/v1/events?create=wait"] {
        assert_eq!(client.get(bad).await.problem(400), "http/bad_request");
    }
    let mut waiting = client.events("/v1/sessions/later/events?create=wait").await;
    let mut by_query = client.events("/v1/events?session_id=later&create=wait").await;
    client.put("/v1/sessions/later", json!({})).await.ok();
    let made = waiting.expect("session::created").await;
    assert_eq!(by_query.expect("session::created").await.id, made.id, "it is the same stream");
    // Subscribers of a session receive its deletion.
    client.delete("/v1/sessions/later").await.ok();
    let last = made.id.unwrap();
    let mut resumed = client.with("last-event-id", &last).events("/v1/sessions/later/events").await;
    resumed.expect("session::deleted").await;
    let new = client.get("/v1/sessions/later/events").await;
    assert_eq!(new.problem(404), "session/not_found");
}

#[tokio::test]
async fn ids_that_cannot_be_in_a_path_are_reached_without_one() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    for (id, in_path) in [(".", "%2E"), ("..", "%2e%2E")] {
        let entries = format!("/v1/sessions/{in_path}/entries");
        let body = json!({"create": true, "message": {"role": "user", "content": "x"}});
        assert_eq!(client.post(&entries, body).await.problem(400), "http/bad_request");
        let put = client.put(&format!("/v1/sessions/{in_path}"), json!({})).await;
        assert_eq!(put.problem(400), "http/bad_request");
        let events = client.get(&format!("/v1/sessions/{in_path}/events?create=wait")).await;
        assert_eq!(events.problem(400), "http/bad_request");
        let mut worker = test.worker().await;
        worker.call("session::ensure", json!({"session_id": id})).await;
        let mut stream = client.events(&format!("/v1/events?session_id={id}")).await;
        let call = async |name: &str, mut request: Value| {
            request["session_id"] = json!(id);
            client.post(&format!("/v1/call/{name}"), request).await.ok()
        };
        let mut entry = user("hello");
        entry["entry_id"] = json!("..");
        call("session::append-entry", entry).await;
        let added = stream.expect("session::message-added").await;
        assert_eq!(added.data["payload"]["entry_id"], "..");
        let read = call("session::entry", json!({"entry_id": ".."})).await;
        assert_eq!(read["entry"]["entry_id"], "..");
        assert_eq!(call("session::get", json!({})).await["meta"]["session_id"], id);
        call("session::delete", json!({})).await;
        stream.expect("session::deleted").await;
    }
}

/// Without this event a reader would show for good what nobody else can read.
#[tokio::test]
async fn a_reader_that_names_no_types_hears_that_a_message_was_hidden() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let id = new_session(&client).await;
    let entry = client.post(&format!("/v1/sessions/{id}/entries"), user("x")).await.ok();
    let mut events = client.events(&format!("/v1/sessions/{id}/events?after=start")).await;
    events.until(EventKind::MessageAdded.name()).await;
    let hide = json!({"entry_ids": [entry["entry_id"]]});
    client.post(&format!("/v1/sessions/{id}/entries/hide"), hide).await.ok();
    let event = events.until(EventKind::MessageRemoved.name()).await;
    assert_eq!(event.data["payload"]["entry_id"], entry["entry_id"]);
}
