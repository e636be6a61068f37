use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_platform::{OsEntropy, SystemClock};
use bough_store::MemoryStore;
use bough_store::shared_state::{Change, Expected, MemorySharedState, Persistence, SharedState};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{BindingId, BindingRequest, BindingSpec, Bindings, Called, EventSink};
use crate::limits::{BINDINGS_KEPT_MAX, EVENT_CALLS_MAX, EVENT_REPLAY_CALLS_MAX};
use crate::{EventFilter, EventKind, FeedEvent, Scope, Service};

/// A function that notes the titles of sessions that were created.
struct Function {
    is_there: AtomicBool,
    /// One for each answer that it gives.
    answers: Semaphore,
    /// Whether an answer comes later than its call, as over a network.
    is_far: AtomicBool,
    /// How many calls found it away.
    absent: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    /// The titles in the order in which the calls came, and in which they were answered.
    called: Mutex<Vec<String>>,
    titles: Mutex<Vec<String>>,
    gaps: Mutex<Vec<&'static str>>,
}

impl Function {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_there: AtomicBool::new(true),
            answers: Semaphore::new(100_000),
            is_far: AtomicBool::new(false),
            absent: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
            called: Mutex::default(),
            titles: Mutex::default(),
            gaps: Mutex::default(),
        })
    }

    fn titles(&self) -> Vec<String> {
        self.titles.lock().unwrap().clone()
    }

    async fn until_all(&self, titles: &[String]) {
        while !titles.iter().all(|title| self.titles().contains(title)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until(&self, count: usize) -> Vec<String> {
        while self.titles().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.titles()
    }
}

#[async_trait]
impl EventSink for Function {
    async fn call(&self, event: &FeedEvent) -> Called {
        if !self.is_there.load(Ordering::Acquire) {
            self.absent.fetch_add(1, Ordering::AcqRel);
            return Called::Absent;
        }
        let title = event.value()["title"].as_str().unwrap_or_default().to_owned();
        self.called.lock().unwrap().push(title.clone());
        let under_way = self.under_way.fetch_add(1, Ordering::AcqRel) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::AcqRel);
        self.answers.acquire().await.unwrap().forget();
        if self.is_far.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        self.titles.lock().unwrap().push(title);
        Called::Taken
    }

    async fn ready(&self) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    fn missed(&self, reason: &'static str) {
        self.gaps.lock().unwrap().push(reason);
    }
}

struct World {
    service: Service,
    shared: Arc<dyn SharedState>,
}

impl World {
    fn new() -> Self {
        Self { service: service(), shared: Arc::new(MemorySharedState::new()) }
    }

    async fn bindings(&self) -> Bindings {
        let clock = Arc::new(SystemClock::new());
        Bindings::open(self.service.clone(), self.shared.clone(), clock, "bus").await.unwrap()
    }

    async fn create(&self, title: &str) {
        let request = json!({ "title": title });
        self.service.call(&Scope::owner(), "session::create", request).await.unwrap();
    }

    /// Waits until the one document says something.
    async fn until_written(&self, check: impl Fn(&Value) -> bool) {
        loop {
            let documents = self.shared.list("bindings/", None, 9).await.unwrap();
            if documents.first().is_some_and(|(_, document)| check(&document.value)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn service() -> Service {
    let store = MemoryStore::new(Arc::new(OsEntropy)).unwrap();
    Service::new(Arc::new(store), Arc::new(SystemClock::new()), Arc::new(OsEntropy))
}

async fn bind(bindings: &Bindings, trigger_id: &str, function: &Arc<Function>) -> BindingId {
    bind_function(bindings, "ui::on", trigger_id, function).await
}

async fn bind_function(
    bindings: &Bindings,
    function_id: &str,
    trigger_id: &str,
    function: &Arc<Function>,
) -> BindingId {
    let filter = EventFilter::parse(EventKind::Created, &Value::Null).unwrap();
    let registered = bindings.register(BindingRequest {
        spec: BindingSpec::new("session::created", function_id, "", &Value::Null),
        trigger_id: trigger_id.to_owned(),
        scope: Scope::owner(),
        filter,
        route: trigger_id.to_owned(),
        sink: function.clone(),
    });
    // A binding that went on as it is has begun already.
    let _ = registered.begun.await.is_ok();
    registered.id
}

#[tokio::test]
async fn a_new_binding_starts_at_the_present_and_a_known_one_where_it_was() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    world.create("before").await;
    let first = bind(&bindings, "t1", &function).await;
    world.create("one").await;
    assert_eq!(function.until(1).await, ["one"]);
    bindings.disconnect(first);
    world.create("two").await;
    world.create("three").await;
    let again = bind(&bindings, "another id", &function).await;
    assert_eq!(function.until(3).await, ["one", "two", "three"]);
    bindings.unregister(again);
    world.create("four").await;
    bind(&bindings, "t1", &function).await;
    world.create("five").await;
    assert_eq!(function.until(4).await, ["one", "two", "three", "five"]);
    bindings.disconnect(first);
    world.create("six").await;
    assert_eq!(function.until(5).await.len(), 5, "an old registration ends nothing");
}

#[tokio::test]
async fn calls_are_made_again_until_the_function_is_there() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.is_there.store(false, Ordering::Release);
    bind(&bindings, "t", &function).await;
    for title in ["a", "b", "c"] {
        world.create(title).await;
    }
    tokio::task::yield_now().await;
    assert!(function.titles().is_empty());
    function.is_there.store(true, Ordering::Release);
    let mut titles = function.until(3).await;
    titles.sort();
    assert_eq!(titles, ["a", "b", "c"]);
}

/// The function is away until as many calls wait as may run at once, and comes back with more events behind them.
#[tokio::test]
async fn what_waited_for_the_function_is_delivered_before_what_came_later() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.is_far.store(true, Ordering::Release);
    function.is_there.store(false, Ordering::Release);
    bind(&bindings, "t", &function).await;
    let all: Vec<String> = (0..3 * EVENT_CALLS_MAX).map(|number| number.to_string()).collect();
    for title in &all {
        world.create(title).await;
    }
    while function.absent.load(Ordering::Acquire) < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    function.is_there.store(true, Ordering::Release);
    function.until(all.len()).await;
    assert_eq!(*function.called.lock().unwrap(), all);
}

/// The process ends without a word; the next one finds the position in the shared documents.
#[tokio::test]
async fn a_position_outlives_the_process() {
    let world = World::new();
    let function = Function::new();
    let bindings = world.bindings().await;
    bind(&bindings, "t1", &function).await;
    world.create("one").await;
    function.until(1).await;
    let is_held = |value: &Value| value["left_ms"].is_null() && value["cursor"].is_string();
    world.until_written(is_held).await;
    bindings.flush().await.unwrap();
    drop(bindings);
    world.create("two").await;
    let bindings = world.bindings().await;
    world.create("three").await;
    bind(&bindings, "t2", &function).await;
    assert_eq!(function.until(3).await, ["one", "two", "three"]);
    assert!(function.gaps.lock().unwrap().is_empty());
}

/// A position is kept for a time after its connection ended. Here the time is over when the next process starts.
#[tokio::test]
async fn a_position_that_was_left_long_ago_is_dropped() {
    let world = World::new();
    let function = Function::new();
    let bindings = world.bindings().await;
    let bound = bind(&bindings, "t1", &function).await;
    world.create("one").await;
    function.until(1).await;
    bindings.disconnect(bound);
    world.until_written(|value| value["left_ms"].is_number()).await;
    drop(bindings);
    let (key, mut document) = world.shared.list("bindings/", None, 9).await.unwrap().remove(0);
    document.value["left_ms"] = json!(0);
    let change = Change { key, expected: Expected::Any, value: Some(document.value) };
    world.shared.apply(vec![change], Persistence::ProcessExit).await.unwrap();
    world.create("two").await;
    let bindings = world.bindings().await;
    world.until_written(|value| value["dropped"] == json!(true)).await;
    bind(&bindings, "t1", &function).await;
    world.create("three").await;
    assert_eq!(function.until(2).await, ["one", "three"]);
    assert_eq!(*function.gaps.lock().unwrap(), ["too_old"], "it missed `two`");
    world.until_written(|value| value["dropped"].is_null() && value["cursor"].is_string()).await;
}

/// A binding that nobody dropped is a new one and missed nothing, also after one that unregistered.
#[tokio::test]
async fn a_binding_that_was_unregistered_has_no_gap() {
    let world = World::new();
    let function = Function::new();
    let bindings = world.bindings().await;
    let bound = bind(&bindings, "t1", &function).await;
    bindings.unregister(bound);
    world.create("one").await;
    bind(&bindings, "t1", &function).await;
    world.create("two").await;
    assert_eq!(function.until(1).await, ["two"]);
    assert!(function.gaps.lock().unwrap().is_empty());
}

/// Those that left first lose their positions when there are too many, and are told so when they come back.
#[tokio::test]
async fn a_position_that_had_to_make_way_is_a_gap() {
    let world = World::new();
    let function = Function::new();
    let bindings = world.bindings().await;
    let bound = bind(&bindings, "t1", &function).await;
    bindings.disconnect(bound);
    world.create("one").await;
    world.until_written(|value| value["left_ms"].is_number()).await;
    drop(bindings);
    let (key, document) = world.shared.list("bindings/", None, 9).await.unwrap().remove(0);
    let others = (0..BINDINGS_KEPT_MAX).map(|number| {
        let mut value = document.value.clone();
        value["spec"]["function_id"] = json!(number.to_string());
        value["left_ms"] = json!(value["left_ms"].as_i64().unwrap() + 1);
        Change { key: format!("{key}-{number}"), expected: Expected::Any, value: Some(value) }
    });
    world.shared.apply(others.collect(), Persistence::ProcessExit).await.unwrap();
    let bindings = world.bindings().await;
    bind_function(&bindings, "another", "t2", &Function::new()).await;
    bind(&bindings, "t1", &function).await;
    world.create("two").await;
    assert_eq!(function.until(1).await, ["two"]);
    assert_eq!(*function.gaps.lock().unwrap(), ["too_old"]);
}

/// The store keeps a bounded number of changes; a binding whose position is before the first of them is told so.
#[tokio::test]
async fn a_position_that_the_feed_does_not_reach_is_a_gap() {
    let mut world = World::new();
    let store = MemoryStore::keeping(Arc::new(OsEntropy), 3).unwrap();
    world.service =
        Service::new(Arc::new(store), Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let function = Function::new();
    let bindings = world.bindings().await;
    let bound = bind(&bindings, "t1", &function).await;
    bindings.disconnect(bound);
    for number in 0..9 {
        world.create(&number.to_string()).await;
    }
    bind(&bindings, "t1", &function).await;
    world.create("after").await;
    function.until_all(&["after".to_owned()]).await;
    assert_eq!(*function.gaps.lock().unwrap(), ["too_old"]);
}

#[tokio::test]
async fn an_event_that_was_not_answered_is_delivered_again() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.answers.forget_permits(100_000);
    let first = bind(&bindings, "t", &function).await;
    world.create("one").await;
    while function.under_way.load(Ordering::Acquire) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bindings.disconnect(first);
    function.answers.add_permits(10);
    bind(&bindings, "t", &function).await;
    assert_eq!(function.until(1).await, ["one"]);
}

#[tokio::test]
async fn a_bounded_number_of_calls_is_under_way() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.answers.forget_permits(100_000);
    let first = bind(&bindings, "t", &function).await;
    bindings.disconnect(first);
    let count = EVENT_CALLS_MAX + 50;
    for number in 0..count {
        world.create(&number.to_string()).await;
    }
    bind(&bindings, "t", &function).await;
    while function.under_way.load(Ordering::Acquire) < EVENT_CALLS_MAX {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    function.answers.add_permits(count);
    assert_eq!(function.until(count).await.len(), count);
    assert_eq!(function.most_under_way.load(Ordering::Acquire), EVENT_CALLS_MAX);
}

/// A position of an earlier store cannot be resumed from: the sessions of this one are replayed, as after a swap.
#[tokio::test]
async fn a_position_of_another_store_leads_to_a_replay() {
    let mut world = World::new();
    let function = Function::new();
    let bindings = world.bindings().await;
    bind(&bindings, "t", &function).await;
    bindings.flush().await.unwrap();
    drop(bindings);
    world.service = service();
    world.create("meanwhile").await;
    let bindings = world.bindings().await;
    bind(&bindings, "t", &function).await;
    world.create("one").await;
    function.until_all(&["meanwhile".to_owned(), "one".to_owned()]).await;
    assert_eq!(*function.gaps.lock().unwrap(), ["store_swapped"]);
}

/// Swaps the store for one with many sessions, and waits until a part of them was replayed; returns their titles.
async fn begin_replay(world: &World, function: &Function) -> Vec<String> {
    let other = service();
    let titles: Vec<_> = (0..EVENT_CALLS_MAX + 50).map(|number| number.to_string()).collect();
    for title in &titles {
        let request = json!({ "title": title });
        other.call(&Scope::owner(), "session::create", request).await.unwrap();
    }
    world.service.swap_store(other.store());
    function.answers.add_permits(20);
    function.until(20).await;
    titles
}

/// The rest of a replay, and what happens meanwhile, is delivered to a binding that leaves in the middle and comes back.
#[tokio::test]
async fn a_replay_that_was_left_is_repeated() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.answers.forget_permits(100_000);
    let first = bind(&bindings, "t", &function).await;
    let mut titles = begin_replay(&world, &function).await;
    world.create("live, bound").await;
    bindings.disconnect(first);
    world.create("live, away").await;
    function.answers.add_permits(10_000);
    bind(&bindings, "t", &function).await;
    world.create("live, back").await;
    titles.extend(["live, bound", "live, away", "live, back"].map(str::to_owned));
    function.until_all(&titles).await;
    // When all is answered, the next time there is nothing to repeat.
    world.until_written(|value| value["replays"].is_null() && value["cursor"].is_string()).await;
    assert_eq!(*function.gaps.lock().unwrap(), ["store_swapped", "store_swapped"]);
}

/// The same when the process ends without a word.
#[tokio::test]
async fn a_replay_that_a_kill_ended_is_repeated() {
    let world = World::new();
    let function = Function::new();
    function.answers.forget_permits(100_000);
    let bindings = world.bindings().await;
    bind(&bindings, "t", &function).await;
    let mut titles = begin_replay(&world, &function).await;
    world.create("live, bound").await;
    world.until_written(|value| value["replays"] == json!(true)).await;
    drop(bindings);
    world.create("live, away").await;
    function.answers.add_permits(10_000);
    let bindings = world.bindings().await;
    bind(&bindings, "another id", &function).await;
    titles.extend(["live, bound", "live, away"].map(str::to_owned));
    function.until_all(&titles).await;
}

/// A worker is replaced by another one that binds the same before the first has gone.
#[tokio::test]
async fn a_rolling_restart_doubles_nothing() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    let first = bind(&bindings, "a", &function).await;
    let second = bind(&bindings, "b", &function).await;
    bindings.disconnect(first);
    world.create("one").await;
    function.until(1).await;
    bindings.flush().await.unwrap();
    bindings.disconnect(second);
    world.create("two").await;
    bind(&bindings, "c", &function).await;
    assert_eq!(function.until(2).await, ["one", "two"]);
    bind(&bindings, "d", &function).await;
    world.create("three").await;
    assert_eq!(function.until(4).await, ["one", "two", "three", "three"]);
}

/// A new store is replayed to every binding; what happens meanwhile does not wait for that.
#[tokio::test]
async fn a_replay_does_not_hold_up_what_happens() {
    let world = World::new();
    let bindings = world.bindings().await;
    let function = Function::new();
    function.answers.forget_permits(100_000);
    bind(&bindings, "t", &function).await;
    let other = service();
    let count = EVENT_CALLS_MAX + 50;
    for number in 0..count {
        let request = json!({ "title": number.to_string() });
        other.call(&Scope::owner(), "session::create", request).await.unwrap();
    }
    world.service.swap_store(other.store());
    let until_under_way = async |calls: usize| {
        while function.under_way.load(Ordering::Acquire) < calls {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    until_under_way(EVENT_REPLAY_CALLS_MAX).await;
    world.create("live").await;
    until_under_way(EVENT_REPLAY_CALLS_MAX + 1).await;
    function.answers.add_permits(10_000);
    // The replay may contain the new session too, so the event may come twice.
    let has = |title: &str| function.titles().iter().any(|told| told == title);
    while !((0..count).all(|number| has(&number.to_string())) && has("live")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.create("after").await;
    while !has("after") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(*function.gaps.lock().unwrap(), ["store_swapped"]);
}
