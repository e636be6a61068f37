//! The programs of the session-manager readme, with three versions of the Rust SDK, against Bough's own bus.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_server::{ServeOptions, Server};
use serde_json::{Value, json};

/// What a handler does.
type Handler = Arc<dyn Fn(Value) -> Value + Send + Sync>;

/// What the programs need of an SDK: versions differ in where things are, not in what they do.
#[async_trait]
trait Sdk: Sized + Send + Sync {
    fn connect(url: &str) -> Self;
    async fn call(&self, function: &str, payload: Value) -> Result<Value, String>;
    fn host(&self, function: &str, handler: Handler);
    fn bind(&self, trigger_type: &str, function: &str, config: Value);
    async fn end(self);

    /// Calls a function, which must succeed.
    async fn ok(&self, function: &str, payload: Value) -> Value {
        self.call(function, payload).await.unwrap()
    }

    /// Hosts a function; others reach it when this returns.
    async fn host_now(&self, function: &str, handler: Handler) {
        self.host(function, handler);
        until("hosting", || async {
            let list = self.call("engine::functions::list", json!({})).await;
            list.is_ok_and(|list| list.to_string().contains(function))
        })
        .await;
    }
}

struct Sdk019(iii_sdk_0_19::III);
struct Sdk025(iii_sdk::IIIClient);
/// A release candidate: it has observers in place of triggers.
struct Sdk026(iii_sdk_0_26::IIIClient);

macro_rules! sdk {
    ($name:ident, $sdk:ident, $request:path, $error:path, $binding:expr) => {
        #[async_trait]
        impl Sdk for $name {
            fn connect(url: &str) -> Self {
                Self($sdk::register_worker(url, $sdk::InitOptions::default()))
            }

            async fn call(&self, function: &str, payload: Value) -> Result<Value, String> {
                use $request as Request;
                let request = Request {
                    function_id: function.to_owned(),
                    payload,
                    action: None,
                    timeout_ms: Some(10_000),
                };
                self.0.trigger(request).await.map_err(|error| error.to_string())
            }

            fn host(&self, function: &str, handler: Handler) {
                let answer = move |event: Value| {
                    let answer = handler(event);
                    async move { Ok::<_, $error>(answer) }
                };
                self.0.register_function(function, $sdk::RegisterFunction::new_async(answer));
            }

            #[allow(deprecated, reason = "triggers are what the readme shows")]
            fn bind(&self, trigger_type: &str, function: &str, config: Value) {
                let make: fn(String, String, Value) -> _ = $binding;
                let input = make(trigger_type.to_owned(), function.to_owned(), config);
                self.0.register_trigger(input).unwrap();
            }

            async fn end(self) {
                self.0.shutdown_async().await;
            }
        }
    };
}

sdk!(
    Sdk019,
    iii_sdk_0_19,
    iii_sdk_0_19::TriggerRequest,
    iii_sdk_0_19::IIIError,
    |trigger_type, function_id, config| iii_sdk_0_19::RegisterTriggerInput {
        trigger_type,
        function_id,
        config,
        metadata: None,
    }
);

sdk!(
    Sdk025,
    iii_sdk,
    iii_sdk::protocol::TriggerRequest,
    iii_sdk::Error,
    |trigger_type, function_id, config| {
        iii_sdk::protocol::RegisterTriggerInput::new(trigger_type, function_id, config)
    }
);

#[async_trait]
impl Sdk for Sdk026 {
    fn connect(url: &str) -> Self {
        Self(iii_sdk_0_26::register_worker(url, iii_sdk_0_26::InitOptions::default()))
    }

    async fn call(&self, function: &str, payload: Value) -> Result<Value, String> {
        let request = iii_sdk_0_26::CallRequest {
            function_id: function.to_owned(),
            payload,
            action: None,
            timeout_ms: Some(10_000),
        };
        self.0.call(request).await.map_err(|error| error.to_string())
    }

    fn host(&self, function: &str, handler: Handler) {
        let answer = move |event: Value| {
            let answer = handler(event);
            async move { Ok::<_, iii_sdk_0_26::Error>(answer) }
        };
        self.0.register_function(function, iii_sdk_0_26::RegisterFunction::new_async(answer));
    }

    fn bind(&self, trigger_type: &str, function: &str, config: Value) {
        let source = iii_sdk_0_26::Source::function(trigger_type).args(config);
        self.0.observe(source.deliver(iii_sdk_0_26::Deliver::Input), function);
    }

    async fn end(self) {
        self.0.shutdown_async().await;
    }
}

/// Runs each program with each version.
macro_rules! programs {
    ($($program:ident),*) => {
        mod sdk_0_19 {
            $(#[tokio::test(flavor = "multi_thread")] async fn $program() {
                super::$program::<super::Sdk019>().await;
            })*
        }
        mod sdk_0_25 {
            $(#[tokio::test(flavor = "multi_thread")] async fn $program() {
                super::$program::<super::Sdk025>().await;
            })*
        }
        mod sdk_0_26 {
            $(#[tokio::test(flavor = "multi_thread")] async fn $program() {
                super::$program::<super::Sdk026>().await;
            })*
        }
    };
}

programs!(
    messages_are_written_read_and_followed,
    all_six_triggers_come_with_filters_and_streaming,
    functions_of_other_connections_are_called,
    it_reconnects_and_nothing_is_lost
);

async fn serve(dir: &Path, bus: &str) -> Server {
    let options = ServeOptions {
        data_dir: Some(dir.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: Some(bus.to_owned()),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    };
    Server::start(options).await.unwrap()
}

fn url(server: &Server) -> String {
    format!("ws://{}", server.bus_address().unwrap())
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

async fn until<F: Future<Output = bool>>(what: &str, check: impl Fn() -> F) {
    for _ in 0..600 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}

/// What handlers were called with.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Value>>>);

impl Seen {
    fn handler(&self) -> Handler {
        let seen = self.0.clone();
        Arc::new(move |event| {
            seen.lock().unwrap().push(event);
            json!({"ok": true})
        })
    }

    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    async fn wait_for(&self, count: usize) -> Vec<Value> {
        until("an event", || async { self.0.lock().unwrap().len() >= count }).await;
        self.all()
    }
}

async fn messages_are_written_read_and_followed<S: Sdk>() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path(), "127.0.0.1:0").await;
    let iii = S::connect(&url(&server));
    let created = iii.ok("session::create", json!({"title": "t"})).await;
    let session = created["session_id"].as_str().unwrap().to_owned();
    let seen = Seen::default();
    iii.host("my-ui::on-message-added", seen.handler());
    let config = json!({"session_id": session, "roles": ["user"]});
    iii.bind("session::message-added", "my-ui::on-message-added", config);
    // Frames of one connection are taken in order: when this is answered, the binding is there.
    iii.ok("engine::functions::list", json!({})).await;
    for n in 0..20 {
        let body = json!({"session_id": session, "message": user(&n.to_string())});
        iii.ok("session::append", body).await;
    }
    let events = seen.wait_for(20).await;
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["message"]["content"][0]["text"], n.to_string().as_str());
    }
    let page = iii.ok("session::messages", json!({"session_id": session})).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 20);
    let refused = iii.call("session::messages", json!({"session_id": "nope"})).await.unwrap_err();
    assert!(refused.contains("session/not_found"), "{refused}");
    let refused = iii.call("session::nope", json!({})).await.unwrap_err();
    assert!(refused.contains("function_not_found"), "{refused}");
    iii.end().await;
    server.stop().await;
}

const TYPES: [&str; 6] =
    ["created", "message-added", "message-updated", "status-changed", "meta-updated", "deleted"];
/// Steps of a message that streams.
const STEPS: usize = 20;

/// Everything that makes an event.
async fn live_a_life<S: Sdk>(iii: &S, owner: &str) {
    let body = json!({"title": owner, "metadata": {"owner": owner}});
    let made = iii.ok("session::create", body).await;
    let id = &made["session_id"];
    let added = iii.ok("session::append", json!({"session_id": id, "message": user("a")})).await;
    for revision in 1..=STEPS {
        let content = json!([{"type": "text", "text": "a".repeat(revision)}]);
        let body = json!({"session_id": id, "entry_id": added["entry_id"], "content": content});
        let updated = iii.ok("session::update-message", body).await;
        assert_eq!(updated, json!({"updated": true, "revision": revision}));
    }
    iii.ok("session::set-status", json!({"session_id": id, "status": "done"})).await;
    iii.ok("session::set-meta", json!({"session_id": id, "description": "d"})).await;
    iii.ok("session::delete", json!({"session_id": id})).await;
}

async fn all_six_triggers_come_with_filters_and_streaming<S: Sdk>() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path(), "127.0.0.1:0").await;
    let iii = S::connect(&url(&server));
    let seen: Vec<Seen> = TYPES.iter().map(|_| Seen::default()).collect();
    for (name, seen) in TYPES.iter().zip(&seen) {
        let function = format!("ui::{name}");
        iii.host_now(&function, seen.handler()).await;
        iii.bind(&format!("session::{name}"), &function, json!({"metadata": {"owner": "u_1"}}));
    }
    iii.ok("engine::functions::list", json!({})).await;
    live_a_life(&iii, "u_2").await;
    live_a_life(&iii, "u_1").await;
    assert_eq!(seen[0].wait_for(1).await[0]["title"], "u_1");
    let updates = seen[2].wait_for(STEPS).await;
    let revisions: Vec<Value> = updates.iter().map(|event| event["revision"].clone()).collect();
    assert_eq!(revisions, (1..=STEPS).map(|step| json!(step)).collect::<Vec<_>>());
    for (name, seen) in TYPES.iter().zip(&seen) {
        let events = seen.wait_for(1).await;
        let first = &events[0]["session_id"];
        assert!(events.iter().all(|event| event["session_id"] == *first), "{name} of others");
    }
    iii.end().await;
    server.stop().await;
}

async fn functions_of_other_connections_are_called<S: Sdk>() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path(), "127.0.0.1:0").await;
    let (iii, other) = (S::connect(&url(&server)), S::connect(&url(&server)));
    let double: Handler = Arc::new(|data| json!({"n": data["n"].as_u64().unwrap() * 2}));
    other.host_now("other::double", double).await;
    assert_eq!(iii.ok("other::double", json!({"n": 21})).await, json!({"n": 42}));
    // The store is a worker as session-manager was; each SDK says who it is with `engine::workers::register`.
    let workers = iii.ok("engine::workers::list", json!({})).await;
    let named = workers["workers"].as_array().unwrap();
    let is_store = |worker: &&Value| worker["name"] == "session-manager";
    let is_sdk = |worker: &&Value| worker["runtime"] == "rust" && !is_store(worker);
    assert_eq!(named.iter().filter(is_store).count(), 1, "{workers}");
    assert_eq!(named.iter().filter(is_sdk).count(), 2, "{workers}");
    iii.end().await;
    other.end().await;
    server.stop().await;
}

async fn it_reconnects_and_nothing_is_lost<S: Sdk>() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path(), "127.0.0.1:0").await;
    let bus = server.bus_address().unwrap().to_string();
    let iii = S::connect(&url(&server));
    let made = iii.ok("session::create", json!({})).await;
    let id = made["session_id"].as_str().unwrap();
    iii.ok("session::append", json!({"session_id": id, "message": user("kept")})).await;
    let seen = Seen::default();
    iii.host_now("ui::added", seen.handler()).await;
    iii.bind("session::message-added", "ui::added", json!({"session_id": id}));
    server.stop().await;
    let server = serve(dir.path(), &bus).await;
    until("reconnecting", || async { iii.call("session::list", json!({})).await.is_ok() }).await;
    let page = iii.ok("session::messages", json!({"session_id": id})).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    // The binding is made again; nothing says when it has arrived.
    until("an event after the reconnect", || async {
        iii.ok("session::append", json!({"session_id": id, "message": user("again")})).await;
        !seen.all().is_empty()
    })
    .await;
    assert_eq!(seen.all()[0]["message"]["content"][0]["text"], "again");
    iii.end().await;
    server.stop().await;
}

/// What only observers have: the envelope around an event, an answer that says whether they are active, and an end.
#[tokio::test(flavor = "multi_thread")]
async fn observers_of_sdk_0_26_are_ready_refused_and_disposed() {
    use iii_sdk_0_26::{ObserverState, On, Source};
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path(), "127.0.0.1:0").await;
    let Sdk026(iii) = Sdk026::connect(&url(&server));
    let seen = Seen::default();
    let sdk = Sdk026(iii.clone());
    sdk.host_now("ui::created", seen.handler()).await;
    assert_eq!(iii.engine_supports_observe(), Some(true));
    let source = Source::function("session::created").args(json!({"metadata": {"owner": "u_1"}}));
    let observer = iii.observe(source, "ui::created");
    observer.ready().await.unwrap();
    for owner in ["u_2", "u_1"] {
        sdk.ok("session::create", json!({"title": owner, "metadata": {"owner": owner}})).await;
    }
    let observed: iii_sdk_0_26::Observed =
        serde_json::from_value(seen.wait_for(1).await.remove(0)).unwrap();
    assert_eq!(observed.observer_id, observer.id());
    assert_eq!(observed.function_id, "session::created");
    assert_eq!(observed.input.unwrap()["title"], "u_1");
    let failures = iii.observe(Source::function("session::created").on(On::Error), "ui::created");
    let refused = failures.ready().await.unwrap_err().to_string();
    assert!(refused.contains("UNSUPPORTED"), "{refused}");
    observer.dispose().await.unwrap();
    assert_eq!(observer.state(), ObserverState::Disposed);
    sdk.ok("session::create", json!({"title": "late", "metadata": {"owner": "u_1"}})).await;
    sdk.ok("engine::functions::list", json!({})).await;
    assert_eq!(seen.all().len(), 1);
    sdk.end().await;
    server.stop().await;
}
