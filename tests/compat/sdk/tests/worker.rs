//! Bough as a worker of an iii engine. The engine's side is our own bus without sessions on it, and its configuration worker
//! is a program of the published SDK.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bough_server::{BareEngine, ConfigurationOffer, EngineError, EngineLink, ServeOptions, Server};
use bough_worker::{Worker, WorkerError};
use iii_sdk::protocol::{RegisterTriggerInput, TriggerRequest};
use iii_sdk::trigger::{TriggerConfig, TriggerHandler};
use iii_sdk::{
    Error, IIIClient, InitOptions, RegisterFunction, RegisterTriggerType, register_worker,
};
use serde_json::{Value, json};

/// What a program that is put together from server and worker hands in.
struct Link(Worker);

fn engine_error(error: WorkerError) -> EngineError {
    match error {
        WorkerError::Unreachable { reason } => EngineError::Unreachable { reason },
        WorkerError::Refused { reason } => EngineError::Refused { reason },
    }
}

#[async_trait]
impl EngineLink for Link {
    async fn configure(&self, offer: ConfigurationOffer) -> Result<Option<Value>, EngineError> {
        self.0.configure(offer.schema, offer.initial_value).await.map_err(engine_error)
    }

    async fn configuration(&self) -> Result<Option<Value>, EngineError> {
        self.0.configuration().await.map_err(engine_error)
    }

    async fn serve(
        &self,
        service: bough_server::Service,
        bindings: bough_server::Bindings,
        instance: String,
    ) -> Result<(), EngineError> {
        self.0.serve(&service, bindings, &instance).map_err(engine_error)
    }

    async fn detach(&self) {
        self.0.detach().await;
    }
}

async fn attached(engine: &BareEngine, dir: &std::path::Path) -> Server {
    attached_with(engine, dir, None).await
}

/// The same with a file that `--config` names.
async fn attached_with(
    engine: &BareEngine,
    dir: &std::path::Path,
    config: Option<std::path::PathBuf>,
) -> Server {
    let options = ServeOptions {
        config,
        data_dir: Some(dir.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: Some("off".to_owned()),
        engine: Some(engine.url()),
        connect: Some(Arc::new(|url: &str| Arc::new(Link(Worker::attach(url))))),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    };
    Server::start(options).await.unwrap()
}

async fn call(client: &IIIClient, function: &str, payload: Value) -> Result<Value, Error> {
    let request = TriggerRequest {
        function_id: function.to_owned(),
        payload,
        action: None,
        timeout_ms: Some(5000),
    };
    client.trigger(request).await
}

/// An engine on the port of one that has just ended.
async fn start_again(port: u16) -> BareEngine {
    loop {
        match BareEngine::start(port).await {
            Ok(engine) => return engine,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn until<F: Future<Output = bool>>(what: &str, check: impl Fn() -> F) {
    for _ in 0..300 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not happen");
}

/// The engine's configuration worker, with one value in it.
fn configuration_worker(engine: &BareEngine, stored: Arc<Mutex<Option<Value>>>) -> IIIClient {
    let client = register_worker(&engine.url(), InitOptions::default());
    let values = stored.clone();
    client.register_function(
        "configuration::get",
        RegisterFunction::new_async(move |request: Value| {
            let values = values.clone();
            async move {
                assert_eq!(request["id"], "session-manager");
                match values.lock().unwrap().clone() {
                    Some(value) => Ok(json!({"id": "session-manager", "value": value})),
                    None => Err(Error::Remote {
                        code: "NOT_REGISTERED".to_owned(),
                        message: "NOT_REGISTERED: nothing is there".to_owned(),
                        stacktrace: None,
                    }),
                }
            }
        }),
    );
    client.register_function(
        "configuration::register",
        RegisterFunction::new_async(move |entry: Value| {
            let stored = stored.clone();
            async move {
                let names = &entry["schema"]["definitions"]["AdapterConfig"]["oneOf"];
                assert!(names.to_string().contains("bridge"), "{names}");
                if let Some(value) = entry.get("initial_value") {
                    stored.lock().unwrap().get_or_insert(value.clone());
                }
                Ok::<_, Error>(entry)
            }
        }),
    );
    client
}

#[tokio::test(flavor = "multi_thread")]
#[allow(deprecated, reason = "triggers are what older engines know")]
async fn functions_and_triggers_are_served_through_an_engine() {
    let engine = BareEngine::start(0).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = attached(&engine, dir.path()).await;
    let client = register_worker(&engine.url(), InitOptions::default());
    until("registration", || async { call(&client, "session::list", json!({})).await.is_ok() })
        .await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    client.register_function(
        "ui::on",
        RegisterFunction::new_async(move |event: Value| {
            told.lock().unwrap().push(event);
            async { Ok::<_, Error>(json!({})) }
        }),
    );
    let config = json!({"metadata": {"owner": "u_1"}});
    client
        .register_trigger(RegisterTriggerInput::new("session::created", "ui::on", config))
        .unwrap();
    // The binding travels to the worker that owns the type; nothing says when it has arrived.
    until("an event", || async {
        for owner in ["u_2", "u_1"] {
            let body = json!({"title": owner, "metadata": {"owner": owner}});
            call(&client, "session::create", body).await.unwrap();
        }
        !seen.lock().unwrap().is_empty()
    })
    .await;
    assert!(seen.lock().unwrap().iter().all(|event| event["title"] == "u_1"));
    let refused =
        call(&client, "session::messages", json!({"session_id": "nope"})).await.unwrap_err();
    assert!(refused.to_string().contains("session/not_found"), "{refused}");
    client.shutdown_async().await;
    server.stop().await;
}

/// What is bound to the engine's type `configuration`.
struct Bound(Arc<Mutex<Vec<TriggerConfig>>>);

#[async_trait]
impl TriggerHandler for Bound {
    async fn register_trigger(&self, config: TriggerConfig) -> Result<(), Error> {
        self.0.lock().unwrap().push(config);
        Ok(())
    }

    async fn unregister_trigger(&self, _: TriggerConfig) -> Result<(), Error> {
        Ok(())
    }
}

/// Who is told of a change of the settings is told through a binding, and reads them anew.
#[tokio::test(flavor = "multi_thread")]
#[allow(deprecated, reason = "triggers are what older engines know")]
async fn a_file_seeds_the_settings_once_and_their_changes_are_followed() {
    let engine = BareEngine::start(0).await.unwrap();
    let stored = Arc::new(Mutex::new(None));
    let configuration = configuration_worker(&engine, stored.clone());
    let bound = Arc::new(Mutex::new(Vec::new()));
    let kind = RegisterTriggerType::new("configuration", "Settings changed.", Bound(bound.clone()));
    configuration.register_trigger_type(kind);
    until("the configuration worker", || async {
        let functions = call(&configuration, "engine::functions::list", json!({})).await;
        functions.is_ok_and(|list| list.to_string().contains("configuration::register"))
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bough.yaml");
    std::fs::write(&file, "max_list_limit: ${PAGES:40}\nadapter: {name: memory}").unwrap();
    let server = attached_with(&engine, dir.path(), Some(file.clone())).await;
    let seeded = stored.lock().unwrap().clone().unwrap();
    assert_eq!(seeded["max_list_limit"], 40);
    assert_eq!(seeded["adapter"], json!({"name": "memory", "config": {}}));
    until("the binding", || async { !bound.lock().unwrap().is_empty() }).await;
    let (function, config) = {
        let bound = bound.lock().unwrap();
        (bound[0].function_id.clone(), bound[0].config.clone())
    };
    assert_eq!(config["configuration_id"], "session-manager");
    for _ in 0..3 {
        call(&configuration, "session::create", json!({})).await.unwrap();
    }
    let changed = json!({"adapter": {"name": "memory"}, "max_list_limit": "${PAGES:2}"});
    *stored.lock().unwrap() = Some(changed.clone());
    // What comes with the event is not believed; the settings are read where they are.
    let event = json!({"id": "session-manager", "value": {"max_list_limit": 1}});
    call(&configuration, &function, event).await.unwrap();
    let page = call(&configuration, "session::list", json!({})).await.unwrap();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 2);
    server.stop().await;
    let server = attached_with(&engine, dir.path(), Some(file)).await;
    assert_eq!(stored.lock().unwrap().clone().unwrap(), changed, "the file seeds only once");
    configuration.shutdown_async().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_live_in_the_configuration_worker() {
    let engine = BareEngine::start(0).await.unwrap();
    let stored = Arc::new(Mutex::new(None));
    let configuration = configuration_worker(&engine, stored.clone());
    let client = register_worker(&engine.url(), InitOptions::default());
    until("the configuration worker", || async {
        let functions = call(&client, "engine::functions::list", json!({})).await;
        functions.is_ok_and(|list| list.to_string().contains("configuration::register"))
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let server = attached(&engine, dir.path()).await;
    let seeded = stored.lock().unwrap().clone().unwrap();
    assert_eq!(seeded["adapter"]["name"], "native", "the first boot stores what it runs with");
    until("registration", || async { call(&client, "session::list", json!({})).await.is_ok() })
        .await;
    for _ in 0..3 {
        call(&client, "session::create", json!({})).await.unwrap();
    }
    *stored.lock().unwrap() = Some(json!({"adapter": {"name": "native"}, "max_list_limit": 2}));
    call(&client, "session::on-config-change", json!({})).await.unwrap();
    let page = call(&client, "session::list", json!({})).await.unwrap();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 2);
    *stored.lock().unwrap() = Some(json!({"adapter": {"name": "odd"}}));
    call(&client, "session::on-config-change", json!({})).await.unwrap();
    let status = call(&client, "session::config-status", json!({})).await.unwrap();
    assert_eq!(status["last_outcome"], "rejected");
    server.stop().await;
    *stored.lock().unwrap() = Some(json!({"adapter": {"name": "memory"}}));
    let server = attached(&engine, dir.path()).await;
    assert_eq!(
        server.service().store().capabilities().name,
        "memory",
        "a stored value is never overwritten"
    );
    assert_eq!(stored.lock().unwrap().clone().unwrap(), json!({"adapter": {"name": "memory"}}));
    configuration.shutdown_async().await;
    client.shutdown_async().await;
    server.stop().await;
}

/// The titles that a subscriber was told of, however often.
type Titles = Arc<Mutex<Vec<String>>>;

/// A subscriber in a process of its own: another connection, another id for its binding.
#[allow(deprecated, reason = "triggers are what older engines know")]
fn subscriber(engine: &str, titles: &Titles) -> IIIClient {
    let client = register_worker(engine, InitOptions::default());
    let titles = titles.clone();
    client.register_function(
        "ui::on",
        RegisterFunction::new_async(move |event: Value| {
            titles.lock().unwrap().push(event["title"].as_str().unwrap().to_owned());
            async { Ok::<_, Error>(json!({})) }
        }),
    );
    client
        .register_trigger(RegisterTriggerInput::new("session::created", "ui::on", json!({})))
        .unwrap();
    client
}

async fn create(server: &Server, title: &str) {
    let (owner, request) = (bough_service::Scope::owner(), json!({ "title": title }));
    server.service().call(&owner, "session::create", request).await.unwrap();
}

/// Creates sessions until the subscriber has been told of one: nothing says when a binding has arrived.
async fn until_bound(server: &Server, titles: &Titles) {
    until("the binding", || async {
        create(server, "probe").await;
        titles.lock().unwrap().iter().any(|title| title == "probe")
    })
    .await;
}

async fn until_all(titles: &Titles, all: &[String]) {
    until("every event", || async {
        let told = titles.lock().unwrap();
        all.iter().all(|title| told.contains(title))
    })
    .await;
}

/// After its restart the engine is reached by Bough first and by the subscriber later, as a real one is: the functions that Bough
/// would call are not there yet. Everything that was acknowledged meanwhile is delivered.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_restarts_under_load_loses_no_event() {
    let engine = BareEngine::start(0).await.unwrap();
    let (url, port) = (engine.url(), engine.port());
    let dir = tempfile::tempdir().unwrap();
    let server = Arc::new(attached(&engine, dir.path()).await);
    let titles = Titles::default();
    let client = subscriber(&url, &titles);
    until_bound(&server, &titles).await;
    let (writer, is_over) = (server.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let over = is_over.clone();
    let writing = tokio::spawn(async move {
        let mut all = Vec::new();
        while !over.load(std::sync::atomic::Ordering::Acquire) {
            let title = format!("n{}", all.len());
            create(&writer, &title).await;
            all.push(title);
        }
        all
    });
    until("some events", || async { titles.lock().unwrap().len() > 10 }).await;
    drop(engine);
    client.shutdown_async().await;
    let _engine = start_again(port).await;
    let probe = register_worker(&url, InitOptions::default());
    until("Bough on the engine", || async {
        call(&probe, "session::list", json!({})).await.is_ok()
    })
    .await;
    let client = subscriber(&url, &titles);
    tokio::time::sleep(Duration::from_millis(200)).await;
    is_over.store(true, std::sync::atomic::Ordering::Release);
    let all = writing.await.unwrap();
    until_all(&titles, &all).await;
    probe.shutdown_async().await;
    client.shutdown_async().await;
    Arc::into_inner(server).unwrap().stop().await;
}

/// A subscriber that comes back through the engine goes on where it was; so does one that finds another process of Bough.
#[tokio::test(flavor = "multi_thread")]
async fn subscribers_and_servers_come_back_to_where_they_were() {
    let engine = BareEngine::start(0).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = attached(&engine, dir.path()).await;
    let titles = Titles::default();
    let client = subscriber(&engine.url(), &titles);
    until_bound(&server, &titles).await;
    client.shutdown_async().await;
    let mut all: Vec<String> = (0..20).map(|number| format!("away{number}")).collect();
    for title in &all {
        create(&server, title).await;
    }
    let client = subscriber(&engine.url(), &titles);
    until_all(&titles, &all).await;
    client.shutdown_async().await;
    let more: Vec<String> = (0..20).map(|number| format!("later{number}")).collect();
    for title in &more {
        create(&server, title).await;
    }
    all.extend(more);
    server.stop().await;
    let server = attached(&engine, dir.path()).await;
    let client = subscriber(&engine.url(), &titles);
    until_all(&titles, &all).await;
    client.shutdown_async().await;
    server.stop().await;
}

/// A configuration worker that restarts has the value and no schema; it takes no new value until somebody registers the schema.
#[tokio::test(flavor = "multi_thread")]
async fn settings_can_be_set_after_the_engine_restarted() {
    let engine = BareEngine::start(0).await.unwrap();
    let (url, port) = (engine.url(), engine.port());
    let stored = Arc::new(Mutex::new(None));
    let configuration = configuration_worker(&engine, stored.clone());
    until("the configuration worker", || async {
        let functions = call(&configuration, "engine::functions::list", json!({})).await;
        functions.is_ok_and(|list| list.to_string().contains("configuration::register"))
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let server = attached(&engine, dir.path()).await;
    configuration.shutdown_async().await;
    drop(engine);
    let _engine = start_again(port).await;
    let registered = Arc::new(Mutex::new(Vec::new()));
    let again = register_worker(&url, InitOptions::default());
    let (entries, value) = (registered.clone(), stored.clone());
    again.register_function(
        "configuration::register",
        RegisterFunction::new_async(move |entry: Value| {
            entries.lock().unwrap().push(entry.clone());
            async move { Ok::<_, Error>(entry) }
        }),
    );
    again.register_function(
        "configuration::get",
        RegisterFunction::new_async(move |_: Value| {
            let value = value.lock().unwrap().clone();
            async move { Ok::<_, Error>(json!({"id": "session-manager", "value": value})) }
        }),
    );
    until("the schema", || async { !registered.lock().unwrap().is_empty() }).await;
    let entry = registered.lock().unwrap()[0].clone();
    assert_eq!(entry["id"], "session-manager");
    assert!(entry["schema"].is_object());
    assert_eq!(entry.get("initial_value"), None, "what is stored is not replaced");
    again.shutdown_async().await;
    server.stop().await;
}

/// An engine starts its workers at the same time, so its configuration worker may appear after the start. What is stored there
/// is applied then, and can be changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_worker_that_appears_later_has_the_last_word() {
    let engine = BareEngine::start(0).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = attached(&engine, dir.path()).await;
    assert_eq!(server.service().store().capabilities().name, "native");
    let stored = Arc::new(Mutex::new(Some(json!({"adapter": {"name": "memory"}}))));
    let configuration = configuration_worker(&engine, stored.clone());
    let bound = Arc::new(Mutex::new(Vec::new()));
    let kind = RegisterTriggerType::new("configuration", "Settings changed.", Bound(bound.clone()));
    #[allow(deprecated, reason = "triggers are what older engines know")]
    configuration.register_trigger_type(kind);
    until("the stored settings", || async {
        server.service().store().capabilities().name == "memory"
    })
    .await;
    until("the binding", || async { !bound.lock().unwrap().is_empty() }).await;
    for _ in 0..3 {
        call(&configuration, "session::create", json!({})).await.unwrap();
    }
    *stored.lock().unwrap() = Some(json!({"adapter": {"name": "memory"}, "max_list_limit": 2}));
    call(&configuration, "session::on-config-change", json!({})).await.unwrap();
    let page = call(&configuration, "session::list", json!({})).await.unwrap();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 2);
    configuration.shutdown_async().await;
    server.stop().await;
}
