//! A new store is replayed to a binding while others go on writing.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_service::{
    BindingRequest, BindingSpec, Bindings, Called, EventFilter, EventKind, EventSink, FeedEvent,
    Scope, Service,
};
use bough_store::shared_state::MemorySharedState;
use serde_json::{Value, json};

use crate::common::TestService;
use crate::common::flaky_store::FlakyStore;

const SESSIONS: usize = 300;
/// The call during which another session is made.
const CALLS_BEFORE: usize = 10;
const LIVE: &str = "live";

/// A function that answers at once and makes a session at its tenth call, when the replay is under way.
struct Function {
    service: Service,
    titles: Mutex<Vec<Value>>,
}

#[async_trait]
impl EventSink for Function {
    async fn call(&self, event: &FeedEvent) -> Called {
        let count = {
            let mut titles = self.titles.lock().unwrap();
            titles.push(event.value()["title"].clone());
            titles.len()
        };
        if count == CALLS_BEFORE {
            let request = json!({ "title": LIVE });
            self.service.call(&Scope::owner(), "session::create", request).await.unwrap();
        }
        Called::Taken
    }

    async fn ready(&self) {}

    fn missed(&self, _: &'static str) {}
}

/// The next event of a replay is always there, and a live one has to be asked for: it must not be given up each time.
#[tokio::test]
async fn a_live_event_that_is_far_away_does_not_wait_for_the_end_of_a_replay() {
    let bed = TestService::on(&crate::common::stores::memory()).await;
    let (other, store) = FlakyStore::bed();
    for number in 0..SESSIONS {
        other.create(json!({ "title": number.to_string() })).await;
    }
    let service = bed.service.clone();
    let function = Arc::new(Function { service: service.clone(), titles: Mutex::default() });
    let shared = Arc::new(MemorySharedState::default());
    let bindings = Bindings::open(service.clone(), shared, bed.clock.clone(), "t").await.unwrap();
    let request = BindingRequest {
        spec: BindingSpec::new("session::created", "f", "", &json!({})),
        trigger_id: "t".to_owned(),
        scope: Scope::owner(),
        filter: EventFilter::of([EventKind::Created]),
        route: "t".to_owned(),
        sink: function.clone(),
    };
    bindings.register(request).begun.await.unwrap();
    store.distance.store(1_000, Ordering::SeqCst);
    service.swap_store(store);
    let titles = || function.titles.lock().unwrap().clone();
    let of_replay = |titles: &[Value]| titles.iter().filter(|title| *title != LIVE).count();
    while of_replay(&titles()) < SESSIONS || !titles().contains(&json!(LIVE)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let live = titles().iter().position(|title| title == LIVE).unwrap();
    assert!(live < SESSIONS - 1, "it came after the replay: at {live}");
}
