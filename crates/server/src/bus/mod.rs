//! The iii bus, embedded: the engine's side of the worker protocol, with our functions and triggers on it.

mod bindings;
mod calls;
mod engine;
mod ids;
mod line;
mod parking;
mod room;
mod socket;
mod triggers;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use bough_platform::Entropy;
use bough_service::{Function, Scope};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::api::{Problem, with_door};
use crate::app::App;
use ids::{BusId, Ids};
use line::Line;
use parking::Parking;
use room::{Departure, Room};
use triggers::OwnType;

/// The bus. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bus(Arc<Inner>);

struct Inner {
    app: App,
    /// Whether our own functions and triggers are on it; without them it is a bare engine.
    has_sessions: bool,
    /// Our own name on it.
    id: BusId,
    ids: Ids,
    rooms: Mutex<HashMap<String, Room>>,
    parking: Mutex<Parking>,
    function_changes: watch::Sender<u64>,
    /// The last binding that was waited for did not begin in time.
    is_store_slow: AtomicBool,
}

impl Bus {
    /// A bus with our functions and triggers on it, or without.
    pub(crate) fn new(
        app: App,
        entropy: Arc<dyn Entropy>,
        has_sessions: bool,
    ) -> std::io::Result<Self> {
        let ids = Ids::new(entropy)?;
        Ok(Self(Arc::new(Inner {
            app,
            has_sessions,
            id: ids.fresh(),
            ids,
            rooms: Mutex::default(),
            parking: Mutex::default(),
            function_changes: watch::Sender::new(0),
            is_store_slow: AtomicBool::new(false),
        })))
    }

    /// What is served on the port of the bus.
    pub(crate) fn router(&self) -> Router {
        let router = Router::new()
            .route("/", any(socket::open))
            .route("/otel", any(socket::open_and_ignore))
            .fallback(no_such_socket)
            .with_state(self.clone());
        with_door(router, &self.0.app)
    }

    pub(crate) fn app(&self) -> &App {
        &self.0.app
    }

    /// Our own name, as the caller of events.
    pub(crate) fn name(&self) -> String {
        self.0.id.to_string()
    }

    /// The function of our own with this name.
    pub(crate) fn own_function(&self, id: &str) -> Option<&'static Function> {
        bough_service::function(id).filter(|_| self.0.has_sessions)
    }

    fn own_type(&self, name: &str) -> Option<OwnType> {
        OwnType::named(name).filter(|_| self.0.has_sessions)
    }

    /// Changes when somebody comes to host a function.
    pub(crate) fn function_changes(&self) -> watch::Receiver<u64> {
        self.0.function_changes.subscribe()
    }

    /// Who hosts a function in a room.
    pub(crate) fn host(&self, room: &str, function_id: &str) -> Option<Arc<Line>> {
        self.rooms().get(room)?.host(function_id)
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, Room>> {
        // Rooms are changed in steps that leave them whole, so a panic elsewhere does not spoil them.
        self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parking(&self) -> MutexGuard<'_, Parking> {
        self.0.parking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into a line's room.
    fn in_room<T>(&self, line: &Line, look: impl FnOnce(&mut Room) -> T) -> T {
        let key = room_key(&line.caller.scope);
        let mut rooms = self.rooms();
        look(rooms.entry(key).or_default())
    }

    fn enter(&self, line: &Arc<Line>) {
        self.in_room(line, |room| room.lines.insert(line.id, line.clone()));
    }

    /// Takes a line away with all that it had, and tells who must know.
    fn leave(&self, line: &Line) {
        let key = room_key(&line.caller.scope);
        let departure = {
            let mut rooms = self.rooms();
            let Some(room) = rooms.get_mut(&key) else { return };
            let departure = room.depart(line);
            if room.lines.is_empty() {
                rooms.remove(&key);
            }
            departure
        };
        self.tell(&key, departure);
    }

    fn tell(&self, room: &str, departure: Departure) {
        for pending in departure.stopped {
            let error = wire::error_body(
                "invocation_stopped",
                "the worker that hosts the function went away",
            );
            let answer = wire::result(&pending.invocation_id, &pending.function_id, Err(error));
            pending.caller.tell(answer);
        }
        for (owner, frame) in departure.unbound {
            owner.tell(wire::unregister_trigger(&frame.id, &frame.trigger_type));
        }
        let now = self.0.app.clock.monotonic();
        for (frame, binding) in departure.bindings {
            binding.stop();
            if let Some(cursor) = binding.resume_from() {
                self.parking().put(room, &frame, cursor, now);
            }
        }
    }

    fn register_function(&self, line: &Arc<Line>, id: String, info: wire::FunctionInfo) {
        if self.own_function(&id).is_some() || id.starts_with("engine::") {
            line.tell(wire::function_refused(&id, &self.name()));
            return;
        }
        let is_taken = self.in_room(line, |room| room.add_function(line, id.clone(), info));
        if !is_taken {
            line.tell(wire::function_refused(&id, &line.id.to_string()));
        }
        self.0.function_changes.send_modify(|count| *count += 1);
    }

    fn register_type(&self, line: &Arc<Line>, id: String, info: serde_json::Map<String, Value>) {
        if self.own_type(&id).is_some() {
            return;
        }
        let waiting = self.in_room(line, |room| room.add_type(line, id, info));
        for frame in waiting {
            line.tell(wire::register_trigger(&frame));
        }
    }

    /// A worker is back on a new connection: the old one, which may not know that it is dead, ends.
    fn reattach(&self, line: &Line, previous: &str, token: &str) {
        let (Some(previous), Some(token)) = (BusId::parse(previous), BusId::parse(token)) else {
            return;
        };
        let old = self.in_room(line, |room| {
            room.lines.get(&previous).filter(|old| old.reattach_token == token).cloned()
        });
        if let Some(old) = old {
            old.close();
            self.leave(&old);
        }
    }
}

/// Callers of one scope share a room.
fn room_key(scope: &Scope) -> String {
    json!(scope.metadata()).to_string()
}

async fn no_such_socket(State(_): State<Bus>, _: Request) -> Result<Response, Problem> {
    let hint = "Workers connect to / with a WebSocket.";
    let status = http::StatusCode::NOT_FOUND;
    Err(Problem::new(status, "http/not_found", "there is nothing at this path", hint))
}
