//! Many at once: nobody is lost, nobody interleaves, nobody is answered early.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{CountingEntropy, HandClock, Listener, TestService, object, user};
use bough_platform::Clock;
use bough_service::{EventFilter, Scope, Service, StartAt};
use bough_store::MemoryStore;
use serde_json::{Value, json};

on_every_store!(
    two_hundred_writers_make_one_chain,
    writers_of_one_entry_id_make_one_entry,
    of_writers_who_expect_the_same_leaf_one_wins,
    streams_of_two_messages_do_not_disturb_each_other,
    sessions_come_and_go_at_once,
);

fn shared(bed: TestService) -> Arc<TestService> {
    Arc::new(bed)
}

async fn two_hundred_writers_make_one_chain(bed: TestService) {
    let bed = shared(bed);
    let id = bed.create(json!({})).await;
    let tasks: Vec<_> = (0..200)
        .map(|writer| {
            let (bed, id) = (bed.clone(), id.clone());
            tokio::spawn(async move {
                bed.append(&id, json!({"message": user(&writer.to_string())})).await
            })
        })
        .collect();
    let mut entries = BTreeSet::new();
    let mut parents = BTreeSet::new();
    for task in tasks {
        let appended = task.await.unwrap();
        entries.insert(appended["entry_id"].as_str().unwrap().to_owned());
        parents.insert(appended["parent_id"].as_str().unwrap_or("").to_owned());
    }
    assert_eq!(entries.len(), 200);
    assert_eq!(parents.len(), 200, "no two entries share a parent: it is one chain");
    let texts: BTreeSet<_> = bed.texts(&id).await.into_iter().collect();
    assert_eq!(texts.len(), 200);
    assert_eq!(bed.meta(&id).await["message_count"], json!(200));
}

async fn writers_of_one_entry_id_make_one_entry(bed: TestService) {
    let bed = shared(bed);
    let id = bed.create(json!({})).await;
    let tasks: Vec<_> = (0..50)
        .map(|writer| {
            let (bed, id) = (bed.clone(), id.clone());
            tokio::spawn(async move {
                let message = user(&writer.to_string());
                bed.append(&id, json!({"entry_id": "only", "message": message})).await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "everybody is told the same");
    assert_eq!(bed.texts(&id).await.len(), 1);
}

async fn of_writers_who_expect_the_same_leaf_one_wins(bed: TestService) {
    let bed = shared(bed);
    let id = bed.create(json!({})).await;
    let leaf = bed.say(&id, "question").await;
    let tasks: Vec<_> = (0..50)
        .map(|writer| {
            let (bed, id, leaf) = (bed.clone(), id.clone(), leaf.clone());
            tokio::spawn(async move {
                let message = user(&writer.to_string());
                let request = json!({"session_id": id, "message": message, "expected_leaf": leaf});
                bed.call("session::append", request).await
            })
        })
        .collect();
    let mut won = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.code(), "session/leaf_conflict"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(bed.texts(&id).await.len(), 2);
}

async fn streams_of_two_messages_do_not_disturb_each_other(bed: TestService) {
    let bed = shared(bed);
    let id = bed.create(json!({})).await;
    let mut tasks = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let entry = bed.say(&id, "").await;
        let (bed, id) = (bed.clone(), id.clone());
        tasks.push(tokio::spawn(async move {
            for step in 0..30 {
                let request = json!({"session_id": id, "entry_id": entry, "block": 0, "text": name, "expected_revision": step});
                let answer = bed.ok("session::append-delta", request).await;
                assert_eq!(answer, json!({"updated": true, "revision": step + 1}));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let texts = bed.texts(&id).await;
    let expected: Vec<_> =
        ["a", "b", "c", "d", "e", "f"].iter().map(|name| name.repeat(30)).collect();
    assert_eq!(texts, expected);
}

async fn sessions_come_and_go_at_once(bed: TestService) {
    let bed = shared(bed);
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let bed = bed.clone();
            tokio::spawn(async move {
                let id = format!("s{}", number % 4);
                bed.ok("session::ensure", json!({"session_id": id})).await;
                let appended = bed
                    .call("session::append", json!({"session_id": id, "message": user("x")}))
                    .await;
                if let Err(error) = appended {
                    assert_eq!(error.code(), "session/not_found");
                }
                bed.ok("session::delete", json!({"session_id": id})).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(bed.pages("session::list", json!({})).await, Vec::<String>::new());
}

/// A store that accepts and is not durable until it is released.
struct Held {
    store: MemoryStore,
    service: Service,
    scope: Scope,
}

impl Held {
    async fn new() -> (Self, String) {
        let entropy = Arc::new(CountingEntropy::default());
        let clock: Arc<dyn Clock> = HandClock::at(1);
        let store = MemoryStore::new(entropy.clone()).unwrap();
        let service = Service::new(Arc::new(store.clone()), clock, entropy);
        let held = Self { store, service, scope: Scope::owner() };
        let created = held.call("session::create", json!({})).await;
        held.store.hold();
        (held, created["session_id"].as_str().unwrap().to_owned())
    }

    async fn call(&self, function: &str, request: Value) -> Value {
        self.service.call(&self.scope, function, request).await.unwrap()
    }

    /// Begins a call and lets it run as far as it gets without the disk.
    async fn begin(
        &self,
        function: &'static str,
        request: Value,
    ) -> tokio::task::JoinHandle<Value> {
        let (service, scope) = (self.service.clone(), self.scope.clone());
        let task =
            tokio::spawn(async move { service.call(&scope, function, request).await.unwrap() });
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        task
    }
}

fn append(session: &str, more: Value) -> Value {
    let mut request = object(json!({"session_id": session, "message": user("x")}));
    request.extend(object(more));
    Value::Object(request)
}

#[tokio::test]
async fn an_append_is_answered_shown_and_delivered_only_once_it_is_durable() {
    let (held, id) = Held::new().await;
    let filter = EventFilter::everything();
    let subscription = held.service.subscribe(&held.scope, filter, StartAt::Now).await.unwrap();
    let mut listener = Listener { subscription };
    let appended = held.begin("session::append", append(&id, json!({}))).await;
    assert!(!appended.is_finished());
    let page = held.call("session::messages", json!({"session_id": id})).await;
    assert_eq!(page, json!({"messages": []}));
    assert_eq!(listener.kinds().await, Vec::<&str>::new());
    held.store.release();
    appended.await.unwrap();
    assert_eq!(listener.kinds().await, ["message-added"]);
}

#[tokio::test]
async fn many_writers_are_on_their_way_at_once() {
    let (held, id) = Held::new().await;
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(held.begin("session::append", append(&id, json!({}))).await);
    }
    assert!(tasks.iter().all(|task| !task.is_finished()));
    held.store.release();
    let mut parents = BTreeSet::new();
    for task in tasks {
        parents.insert(task.await.unwrap()["parent_id"].to_string());
    }
    assert_eq!(parents.len(), 20, "each was decided on top of the one before");
}

#[tokio::test]
async fn the_same_entry_id_waits_for_the_first_to_be_durable() {
    let (held, id) = Held::new().await;
    let first = held.begin("session::append", append(&id, json!({"entry_id": "e"}))).await;
    let second = held.begin("session::append", append(&id, json!({"entry_id": "e"}))).await;
    assert!(!first.is_finished() && !second.is_finished());
    held.store.release();
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    let page = held.call("session::messages", json!({"session_id": id})).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_changes_nothing_waits_for_what_it_rests_on() {
    let (held, id) = Held::new().await;
    let working = json!({"session_id": id, "status": "working"});
    let first = held.begin("session::set-status", working.clone()).await;
    let second = held.begin("session::set-status", working).await;
    let ensured = held.begin("session::ensure", json!({"session_id": id})).await;
    assert!(!second.is_finished() && !ensured.is_finished());
    held.store.release();
    assert_eq!(first.await.unwrap()["previous_status"], json!("idle"));
    assert_eq!(second.await.unwrap()["previous_status"], json!("working"));
    assert_eq!(ensured.await.unwrap()["meta"]["status"], json!("working"));
}

#[tokio::test]
async fn a_message_may_be_changed_while_it_is_on_its_way() {
    let (held, id) = Held::new().await;
    let appended = held.begin("session::append", append(&id, json!({"entry_id": "e"}))).await;
    let request = json!({"session_id": id, "entry_id": "e", "block": 0, "text": "y"});
    let updated = held.begin("session::append-delta", request).await;
    assert!(!updated.is_finished());
    held.store.release();
    appended.await.unwrap();
    assert_eq!(updated.await.unwrap(), json!({"updated": true, "revision": 1}));
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_stop_its_write() {
    let (held, id) = Held::new().await;
    let appended = held.begin("session::append", append(&id, json!({"entry_id": "e"}))).await;
    appended.abort();
    assert!(appended.await.unwrap_err().is_cancelled());
    held.store.release();
    let again = held.call("session::append", append(&id, json!({"entry_id": "e"}))).await;
    assert_eq!(again["parent_id"], Value::Null);
    let next = held.call("session::append", append(&id, json!({}))).await;
    assert_eq!(next["parent_id"], json!("e"));
}
