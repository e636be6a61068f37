//! A service on each store, and short ways to call it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of this")]

pub mod flaky_store;
pub mod process;
pub mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bough_platform::{Clock, Entropy};
use bough_service::api::JsonMap;
use bough_service::{
    Delivery, EventFilter, EventKind, FeedItem, Scope, Service, ServiceError, StartAt, Subscription,
};
use serde_json::{Value, json};

pub use stores::StoreFactory;

/// Runs each named test once on every store: `async fn name(bed: TestService)`.
macro_rules! on_every_store {
    ($($name:ident),* $(,)?) => {
        on_store!(on_memory, memory, $($name),*);
        on_store!(on_fs, fs, $($name),*);
        on_store!(on_native, native, $($name),*);
    };
}

/// The same on one store.
macro_rules! on_store {
    ($module:ident, $store:ident, $($name:ident),*) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                let factory = crate::common::stores::$store();
                super::$name(crate::common::TestService::on(&factory).await).await;
            })*
        }
    };
}

/// Time that stands still until it is moved.
#[derive(Debug)]
pub struct HandClock(AtomicI64);

impl HandClock {
    pub fn at(now_ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(now_ms)))
    }

    pub fn tick(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms().unsigned_abs())
    }

    fn sleep(&self, duration: Duration) {
        self.tick(i64::try_from(duration.as_millis()).unwrap());
    }
}

/// Bytes that never repeat, in any bed of the process.
#[derive(Debug)]
pub struct CountingEntropy(AtomicU64);

impl Default for CountingEntropy {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(AtomicU64::new(NEXT.fetch_add(1 << 32, Ordering::SeqCst)))
    }
}

impl Entropy for CountingEntropy {
    fn fill(&self, out: &mut [u8]) -> std::io::Result<()> {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        for (index, byte) in out.iter_mut().enumerate() {
            *byte = number[7 - index % 8];
        }
        Ok(())
    }
}

/// A service on one store.
pub struct TestService {
    pub service: Service,
    pub scope: Scope,
    pub clock: Arc<HandClock>,
    pub entropy: Arc<CountingEntropy>,
    pub factory: Arc<dyn StoreFactory>,
}

impl TestService {
    pub async fn on(factory: &Arc<dyn StoreFactory>) -> Self {
        let clock = HandClock::at(1_700_000_000_000);
        let entropy = Arc::new(CountingEntropy::default());
        let store = factory.open(entropy.clone(), clock.clone()).await;
        Self {
            service: Service::new(store, clock.clone(), entropy.clone()),
            scope: Scope::owner(),
            clock,
            entropy,
            factory: factory.clone(),
        }
    }

    /// The same sessions seen by another caller.
    pub fn with_scope(&self, scope: Scope) -> Self {
        Self {
            service: self.service.clone(),
            scope,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            factory: self.factory.clone(),
        }
    }

    /// Closes the store and opens the same data again.
    pub async fn reopen(&mut self) {
        self.service.store().close().await.unwrap();
        let nothing = stores::memory().open(self.entropy.clone(), self.clock.clone()).await;
        self.service = Service::new(nothing, self.clock.clone(), self.entropy.clone());
        let store = self.factory.open(self.entropy.clone(), self.clock.clone()).await;
        self.service = Service::new(store, self.clock.clone(), self.entropy.clone());
    }

    pub fn tick(&self, ms: i64) {
        self.clock.tick(ms);
    }

    pub async fn call(&self, function: &str, request: Value) -> Result<Value, ServiceError> {
        self.service.call(&self.scope, function, request).await
    }

    /// The answer to a call that must succeed.
    pub async fn ok(&self, function: &str, request: Value) -> Value {
        let shown = request.to_string();
        let answer = self.call(function, request).await;
        answer.unwrap_or_else(|error| panic!("{function} {shown}: {}: {error}", error.code()))
    }

    /// The code and text of a call that must be refused.
    pub async fn err(&self, function: &str, request: Value) -> (String, String) {
        let shown = request.to_string();
        match self.call(function, request).await {
            Ok(answer) => panic!("{function} {shown} was not refused: {answer}"),
            Err(error) => (error.code().to_owned(), error.to_string()),
        }
    }

    pub async fn create(&self, request: Value) -> String {
        let created = self.ok("session::create", request).await;
        created["session_id"].as_str().unwrap().to_owned()
    }

    pub async fn append(&self, session: &str, request: Value) -> Value {
        let mut request = object(request);
        request.insert("session_id".into(), json!(session));
        self.ok("session::append", Value::Object(request)).await
    }

    /// Appends a user message; gives its entry id.
    pub async fn say(&self, session: &str, text: &str) -> String {
        let appended = self.append(session, json!({"message": user(text)})).await;
        appended["entry_id"].as_str().unwrap().to_owned()
    }

    pub async fn update(&self, session: &str, entry: &str, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        let request = json!({"session_id": session, "entry_id": entry, "content": content});
        self.ok("session::update-message", request).await
    }

    pub async fn meta(&self, session: &str) -> Value {
        self.ok("session::get", json!({"session_id": session})).await["meta"].clone()
    }

    pub async fn entry(&self, session: &str, entry: &str) -> Value {
        let request = json!({"session_id": session, "entry_id": entry});
        self.ok("session::get-message", request).await["entry"].clone()
    }

    /// The texts of the active path.
    pub async fn texts(&self, session: &str) -> Vec<String> {
        let request = json!({"session_id": session, "limit": 500});
        let page = self.ok("session::messages", request).await;
        page["messages"].as_array().unwrap().iter().map(|item| text(&item["message"])).collect()
    }

    /// The ids of all pages of a list or of a path, put together.
    pub async fn pages(&self, function: &str, request: Value) -> Vec<String> {
        let mut request = object(request);
        let mut seen = Vec::new();
        loop {
            let page = self.ok(function, Value::Object(request.clone())).await;
            let (items, key) = match page.get("sessions") {
                Some(items) => (items, "session_id"),
                None => (&page["messages"], "entry_id"),
            };
            let ids =
                items.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned());
            seen.extend(ids);
            match page.get("next_cursor") {
                Some(cursor) => request.insert("cursor".into(), cursor.clone()),
                None => return seen,
            };
        }
    }

    pub async fn subscribe(&self, filter: EventFilter, start: StartAt) -> Listener {
        let subscription = self.service.subscribe(&self.scope, filter, start).await.unwrap();
        Listener { subscription }
    }

    /// Everything public from now on.
    pub async fn listen(&self) -> Listener {
        self.subscribe(EventFilter::everything(), StartAt::Now).await
    }
}

/// A subscription with patience: a test that waits in vain says so.
pub struct Listener {
    pub subscription: Subscription,
}

impl Listener {
    pub async fn item(&mut self) -> FeedItem {
        let item = tokio::time::timeout(Duration::from_secs(120), self.subscription.next()).await;
        item.expect("nothing was told").unwrap()
    }

    pub async fn delivery(&mut self) -> Delivery {
        match self.item().await {
            FeedItem::Event(delivery) => delivery,
            other => panic!("not an event: {other:?}"),
        }
    }

    /// The next event as its name and payload.
    pub async fn event(&mut self) -> (EventKind, Value) {
        let delivery = self.delivery().await;
        (delivery.event.kind(), delivery.event.value())
    }

    /// The names of everything that is there to be told now.
    pub async fn kinds(&mut self) -> Vec<&'static str> {
        let events = self.ready().await;
        events.iter().map(|(kind, _)| kind.name().trim_start_matches("session::")).collect()
    }

    /// Everything that is there to be told now.
    pub async fn ready(&mut self) -> Vec<(EventKind, Value)> {
        let told = self.deliveries().await;
        told.iter().map(|told| (told.event.kind(), told.event.value())).collect()
    }

    /// The same, each with where the subscriber is after it.
    pub async fn deliveries(&mut self) -> Vec<Delivery> {
        let mut told = Vec::new();
        while let Some(item) = self.subscription.next_ready().await.unwrap() {
            if let FeedItem::Event(delivery) = item {
                told.push(delivery);
            }
        }
        told
    }
}

pub fn object(value: Value) -> JsonMap {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

pub fn assistant(text: &str) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end",
        "model": "m-1", "provider": "p", "timestamp": 2,
    })
}

/// The text blocks of a message, joined.
pub fn text(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().concat()
}
