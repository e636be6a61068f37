//! Replies that stream, heard over connections that break.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client::{Client, Event};
use crate::place::Place;

const MESSAGES: usize = 40;
const STEPS: u64 = 5;

/// Streams one reply after the other, and says when it is done.
async fn write(client: &Client) {
    for number in 0..MESSAGES {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": ""}],
            "stop_reason": "end", "model": "m", "provider": "p", "timestamp": 1});
        let entry = json!({"entry_id": format!("e{number}"), "message": message});
        client.post("/v1/sessions/s/entries", entry).await.ok();
        let path = format!("/v1/sessions/s/entries/e{number}/delta");
        for step in 0..STEPS {
            client.post(&path, json!({"block": 0, "text": format!("{step} ")})).await.ok();
        }
    }
    client.put("/v1/sessions/s/status", json!({"status": "done"})).await.ok();
}

/// Everything up to the end, over connections that break after one to four events.
async fn hear(client: &Client, path: &str, start: String) -> Vec<Event> {
    let (mut heard, mut last): (Vec<Event>, String) = (Vec::new(), start);
    for events in (1..=4).cycle() {
        let mut stream = client.with("last-event-id", &last).events(path).await;
        for _ in 0..events {
            let event = stream.next().await.unwrap();
            assert_ne!(event.name, "gap", "{event:?}");
            last = event.id.clone().unwrap();
            let is_end = event.name == "session::status-changed";
            heard.push(event);
            if is_end {
                return heard;
            }
        }
    }
    heard
}

/// Each place is told once, in order, and each reply up to its last step, no step of it twice.
fn check(heard: &[Event]) {
    let number = |value: &Value| value.as_u64().unwrap();
    let mut places = BTreeSet::new();
    let mut revisions: BTreeMap<String, u64> = BTreeMap::new();
    for event in heard {
        let place = (number(&event.data["seq"]), number(&event.data["step"]));
        assert!(places.insert(place), "{place:?} after {places:?}");
        let said = &event.data["payload"];
        if event.name == "session::message-updated" {
            let entry = said["entry_id"].as_str().unwrap().to_owned();
            let revision = number(&said["revision"]);
            let before = revisions.insert(entry.clone(), revision).unwrap_or(0);
            assert!(before < revision, "revision {revision} of {entry} after {before}");
            let text: String = (0..revision).map(|step| format!("{step} ")).collect();
            assert_eq!(said["message"]["content"][0]["text"], text, "at {place:?}");
        }
    }
    let all = (0..MESSAGES).map(|number| (format!("e{number}"), STEPS));
    assert_eq!(revisions, all.collect(), "the last step of each reply is told");
}

/// With nobody else there, what is at hand for those who follow is begun anew in the middle of a stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_step_of_each_reply_is_told_once_however_often_the_connection_breaks() {
    let place = Place::with("").await;
    let client = place.client();
    client.put("/v1/sessions/s", json!({})).await.ok();
    let mut hearing = Vec::new();
    for (path, query) in [("/v1/events", ""), ("/v1/sessions/s/events", "?session_id=s")] {
        let start = client.get(&format!("/v1/watch{query}")).await.ok()["next"].clone();
        let (client, start) = (client.clone(), start.as_str().unwrap().to_owned());
        hearing.push(tokio::spawn(async move { hear(&client, path, start).await }));
    }
    write(&client).await;
    for heard in hearing {
        check(&heard.await.unwrap());
    }
}
