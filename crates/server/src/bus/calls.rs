//! Calls over the bus: of our own functions, of the engine's, and of those that other workers host.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bough_service::{Function, Scope, ServiceError};
use bough_session::RawJson;
use futures_util::FutureExt;
use serde_json::Value;

use super::Bus;
use super::connection::Connection;
use super::ids::BusId;
use super::namespace::Pending;
use super::wire::{self, Action, BadFrame, InvokeFrame, ResultFrame};

impl Bus {
    /// Handles one call and answers it, if an answer is wanted.
    pub(crate) async fn invoke(&self, connection: &Arc<Connection>, frame: InvokeFrame) {
        let wants_answer = frame.action != Action::Void;
        let invocation_id = frame.invocation_id.clone().filter(|_| wants_answer);
        let function_id = frame.function_id.clone();
        if let Some(answer) = self.work_on(connection, frame).await
            && let Some(invocation_id) = invocation_id
        {
            answer_with(connection, &invocation_id, &function_id, answer).await;
        }
    }

    /// The answer to a call; `None` when another worker will give it.
    async fn work_on(
        &self,
        connection: &Arc<Connection>,
        frame: InvokeFrame,
    ) -> Option<Result<RawJson, Value>> {
        if frame.action == Action::Enqueue {
            return Some(Err(wire::error_body("enqueue_error", "QueueModule not loaded")));
        }
        if let Some(function) = self.own_function(&frame.function_id) {
            return Some(self.call_own(connection, function, &frame.data).await);
        }
        if self.is_own_instance(&frame.function_id) {
            return Some(Ok(serde_json::json!({ "ok": true }).into()));
        }
        if let Some(answer) = self.call_engine(connection, &frame.function_id, &frame.data) {
            return Some(answer.map(RawJson::from));
        }
        let answer = self.call_configuration(connection, &frame.function_id, &frame.data).await;
        match answer {
            Some(answer) => Some(answer.map(RawJson::from)),
            None => self.pass_on(connection, frame).err().map(Err),
        }
    }

    /// Calls a function of our own. If it panics, the call ends with an error and the connection goes on.
    async fn call_own(
        &self,
        connection: &Connection,
        function: &'static Function,
        data: &RawJson,
    ) -> Result<RawJson, Value> {
        let call = self.app().call(&connection.caller.scope, function, data.into());
        let Ok(answer) = AssertUnwindSafe(call).catch_unwind().await else {
            self.app().metrics.panics.add(1);
            tracing::error!(function = function.id, "a call on the bus panicked");
            let message = "handler error: session/internal: the server failed while it worked on this \
                           call; call again, and look into its log if it fails again";
            return Err(wire::error_body("invocation_failed", message));
        };
        answer.and_then(|answer| answer.to_raw()).map_err(|error| service_error(&error))
    }

    /// Whether this is the call by which an instance that stores through another finds out whether that one is itself.
    fn is_own_instance(&self, function_id: &str) -> bool {
        let instance = function_id.strip_prefix("session::instance::");
        instance == Some(self.app().instance.as_str()) && self.has_sessions()
    }

    /// Passes a call on to the worker that hosts its function.
    fn pass_on(&self, connection: &Arc<Connection>, frame: InvokeFrame) -> Result<(), Value> {
        let function_id = frame.function_id;
        let id = self.fresh_id();
        let host = self.in_namespace(connection, |namespace| namespace.host(&function_id));
        let Some(host) = host else {
            let message = format!("Function {} not found", printable(&function_id));
            return Err(wire::error_body("function_not_found", &message));
        };
        let wants_answer = frame.action == Action::Call;
        if let Some(invocation_id) = frame.invocation_id.filter(|_| wants_answer) {
            let pending = Pending {
                caller: connection.clone(),
                host: host.clone(),
                invocation_id,
                function_id: function_id.clone(),
            };
            // Register it before it is sent, so that no answer can come too early.
            if !self.in_namespace(connection, |namespace| namespace.begin_call(id, pending)) {
                return Err(too_many_waiting());
            }
        }
        let caller = connection.id.to_string();
        let text = wire::invoke(id, &function_id, &frame.data, &caller, &frame.passed_on);
        let too_large = host.takes_bytes().filter(|most| text.len() >= *most);
        let refused = match too_large {
            Some(most) => Some(too_large_for_host(text.len(), most)),
            None => (!host.try_send(text)).then(too_many_waiting),
        };
        let Some(refused) = refused else { return Ok(()) };
        self.in_namespace(connection, |namespace| namespace.end_call(&host, id));
        Err(refused)
    }

    /// An answer of a worker: to a call of another one, or to an event.
    pub(crate) async fn answered(&self, connection: &Connection, frame: ResultFrame) {
        let Some(id) = BusId::parse(&frame.invocation_id) else { return };
        let pending = self.in_namespace(connection, |namespace| {
            let is_event = namespace.end_event_call(connection, id);
            if is_event { None } else { namespace.end_call(connection, id) }
        });
        let Some(pending) = pending else { return };
        let answer = match frame.error {
            Some(error) => Err(error),
            None => Ok(frame.result.unwrap_or_default()),
        };
        answer_with(&pending.caller, &pending.invocation_id, &pending.function_id, answer).await;
    }

    /// Handles a frame that could not be read: the sender gets an error, if it waits for an answer.
    pub(crate) async fn misread(&self, connection: &Connection, bad: BadFrame) {
        // The reason may contain text of the frame, so it is sent back and not logged.
        tracing::debug!("a frame on the bus could not be read");
        let Some(invocation_id) = bad.invocation_id else { return };
        let error = wire::error_body("invocation_error", &bad.reason);
        let function_id = bad.function_id.unwrap_or_default();
        answer_with(connection, &invocation_id, &function_id, Err(error)).await;
    }
}

async fn answer_with(
    connection: &Connection,
    invocation_id: &Value,
    function_id: &str,
    answer: Result<RawJson, Value>,
) {
    let mut text = wire::result(invocation_id, function_id, &answer);
    if let Some(most) = connection.takes_bytes().filter(|most| text.len() >= *most) {
        let message = format!(
            "handler error: session/too_large: the answer has {} bytes and this client takes {most}; ask for \
             smaller pages",
            text.len()
        );
        let error = wire::error_body("invocation_failed", &message);
        text = wire::result(invocation_id, function_id, &Err(error));
    }
    connection.send(text).await;
}

/// The error of one of our own functions.
pub(crate) fn service_error(error: &ServiceError) -> Value {
    let mut body = wire::error_body("invocation_failed", &error.bus_message());
    if let (Some(data), Some(map)) = (error.data(), body.as_object_mut()) {
        map.insert("data".to_owned(), data);
    }
    body
}

fn too_large_for_host(bytes: usize, most: usize) -> Value {
    let message = format!(
        "the call has {bytes} bytes and the worker that hosts the function takes {most}; send less at once"
    );
    wire::error_body("channel_send_failed", &message)
}

fn too_many_waiting() -> Value {
    wire::error_body(
        "channel_send_failed",
        "the worker that hosts the function takes no more calls now",
    )
}

/// Text for a message: without control characters, and not too long.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(256).collect()
}

impl Bus {
    pub(super) fn fresh_id(&self) -> BusId {
        self.0.ids.fresh()
    }

    pub(crate) fn has_sessions(&self) -> bool {
        self.0.has_sessions
    }

    /// Whether a scope may see a function of our own.
    pub(crate) fn may_know(scope: &Scope, function: &Function) -> bool {
        scope.has(function.right)
    }
}
