//! The iii bus, embedded: the engine's side of the worker protocol, with our functions and triggers on it.

mod bindings;
mod calls;
mod configuration;
mod connection;
mod event_calls;
mod ids;
mod introspection;
mod namespace;
mod socket;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use bough_platform::Entropy;
use bough_service::{Bindings, Function, Scope, TriggerType};
use bough_store::shared_state::SharedState;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::api::Problem;
use crate::app::App;
use crate::guard::with_guard;
use connection::Connection;
use ids::{BusId, Ids};
use namespace::{Departure, Namespace};

/// The bus. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bus(Arc<Inner>);

struct Inner {
    app: App,
    /// Whether our own functions and triggers are registered; without them it is a bare engine.
    has_sessions: bool,
    /// Our own name on it.
    id: BusId,
    /// Since when it is there.
    since_ms: i64,
    ids: Ids,
    namespaces: Mutex<HashMap<String, Namespace>>,
    /// Bindings to our own types.
    bindings: Bindings,
    /// Stores the settings of workers.
    shared: Arc<dyn SharedState>,
    function_changes: watch::Sender<u64>,
    /// Whether the last binding did not begin in time.
    is_store_slow: AtomicBool,
}

impl Bus {
    /// A bus with or without our functions and triggers.
    pub(crate) fn new(
        app: App,
        entropy: Arc<dyn Entropy>,
        bindings: Bindings,
        shared: Arc<dyn SharedState>,
        has_sessions: bool,
    ) -> std::io::Result<Self> {
        let ids = Ids::new(entropy)?;
        Ok(Self(Arc::new(Inner {
            since_ms: app.clock.now_ms(),
            app,
            has_sessions,
            id: ids.fresh(),
            ids,
            namespaces: Mutex::default(),
            bindings,
            shared,
            function_changes: watch::Sender::new(0),
            is_store_slow: AtomicBool::new(false),
        })))
    }

    /// The routes of the bus's port.
    pub(crate) fn router(&self) -> Router {
        let router = Router::new()
            .route("/", any(socket::open))
            .route("/otel", any(socket::open_and_ignore))
            .fallback(no_such_socket)
            .with_state(self.clone());
        with_guard(router, &self.0.app, |_| false)
    }

    pub(crate) fn app(&self) -> &App {
        &self.0.app
    }

    /// Our own name, as the caller of events.
    pub(crate) fn name(&self) -> String {
        self.0.id.to_string()
    }

    fn shared(&self) -> &Arc<dyn SharedState> {
        &self.0.shared
    }

    /// The function of our own with this name.
    pub(crate) fn own_function(&self, id: &str) -> Option<&'static Function> {
        bough_service::function(id).filter(|_| self.0.has_sessions)
    }

    fn own_type(&self, name: &str) -> Option<TriggerType> {
        TriggerType::named(name).filter(|_| self.0.has_sessions)
    }

    /// Changes when a worker registers a function.
    pub(crate) fn function_changes(&self) -> watch::Receiver<u64> {
        self.0.function_changes.subscribe()
    }

    /// The host of a function in a namespace.
    pub(crate) fn host(&self, namespace: &str, function_id: &str) -> Option<Arc<Connection>> {
        self.namespaces().get(namespace)?.host(function_id)
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        // Each change leaves the namespaces consistent, so a poisoned lock can be used.
        self.0.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_event_call(
        &self,
        namespace: &str,
        id: BusId,
        host: &Connection,
        answer: oneshot::Sender<()>,
    ) {
        // Without the namespace its host is gone, and the end of the channel wakes the callers that wait.
        if let Some(namespace) = self.namespaces().get_mut(namespace) {
            namespace.begin_event_call(id, host, answer);
        }
    }

    fn forget_event_call(&self, namespace: &str, id: BusId) {
        if let Some(namespace) = self.namespaces().get_mut(namespace) {
            namespace.forget_event_call(id);
        }
    }

    /// Runs `read` on a connection's namespace.
    fn in_namespace<T>(
        &self,
        connection: &Connection,
        read: impl FnOnce(&mut Namespace) -> T,
    ) -> T {
        let key = namespace_key(&connection.caller.scope);
        let mut namespaces = self.namespaces();
        read(namespaces.entry(key).or_default())
    }

    fn enter(&self, connection: &Arc<Connection>) {
        self.in_namespace(connection, |namespace| {
            namespace.connections.insert(connection.id, connection.clone())
        });
    }

    /// Removes a connection with everything that it registered, and notifies the workers concerned.
    fn leave(&self, connection: &Connection) {
        let key = namespace_key(&connection.caller.scope);
        let departure = {
            let mut namespaces = self.namespaces();
            let Some(namespace) = namespaces.get_mut(&key) else { return };
            let departure = namespace.depart(connection);
            if namespace.connections.is_empty() {
                namespaces.remove(&key);
            }
            departure
        };
        self.announce(departure);
    }

    fn announce(&self, departure: Departure) {
        for pending in departure.stopped {
            let error = wire::error_body(
                "invocation_stopped",
                "the worker that hosts the function went away",
            );
            let answer = wire::result(&pending.invocation_id, &pending.function_id, &Err(error));
            pending.caller.notify(answer);
        }
        for (owner, frame) in departure.unbound {
            owner.notify(wire::unregister_trigger(&frame.id, &frame.trigger_type));
        }
        for id in departure.bindings {
            self.0.bindings.disconnect(id);
        }
    }

    fn register_function(
        &self,
        connection: &Arc<Connection>,
        id: String,
        info: wire::FunctionInfo,
    ) {
        if self.own_function(&id).is_some() || id.starts_with("engine::") {
            connection.notify(wire::function_refused(&id, &self.name()));
            return;
        }
        let (was_hosted, is_taken) = self.in_namespace(connection, |namespace| {
            let was_hosted = namespace.host(&id).is_some();
            (was_hosted, namespace.add_function(connection, id.clone(), info))
        });
        if !is_taken {
            connection.notify(wire::function_refused(&id, &connection.id.to_string()));
        } else if !was_hosted {
            self.notify_observers(connection, &id);
        }
        self.0.function_changes.send_modify(|count| *count += 1);
    }

    fn register_type(
        &self,
        connection: &Arc<Connection>,
        id: String,
        info: serde_json::Map<String, Value>,
    ) {
        if self.own_type(&id).is_some() {
            return;
        }
        let waiting =
            self.in_namespace(connection, |namespace| namespace.add_type(connection, id, info));
        for frame in waiting {
            connection.notify(wire::register_trigger(&frame));
        }
    }

    /// A worker has reconnected: the old connection, which may not be known to be dead, ends.
    fn reattach(&self, connection: &Connection, previous: &str, token: &str) {
        let (Some(previous), Some(token)) = (BusId::parse(previous), BusId::parse(token)) else {
            return;
        };
        let old = self.in_namespace(connection, |namespace| {
            namespace.connections.get(&previous).filter(|old| old.reattach_token == token).cloned()
        });
        if let Some(old) = old {
            old.close();
            self.leave(&old);
        }
    }
}

/// Callers of one scope share a namespace.
fn namespace_key(scope: &Scope) -> String {
    json!(scope.metadata()).to_string()
}

async fn no_such_socket(State(_): State<Bus>, _: Request) -> Result<Response, Problem> {
    let hint = "Workers connect to / with a WebSocket.";
    let status = http::StatusCode::NOT_FOUND;
    Err(Problem::new(status, "http/not_found", "there is nothing at this path", hint))
}
