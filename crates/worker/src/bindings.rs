//! Our types of events, registered with the engine, and the bindings that others make to them.
//!
//! An engine sends the same message when a subscriber unregisters a binding and when it disconnects. In both cases the
//! position is kept: otherwise every subscriber that reconnects would lose events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bough_service::limits::{EVENT_ANSWER_WAIT, EVENT_RETRY_PAUSE};
use bough_service::{
    BindingId, BindingRequest, BindingSpec, Called, EventKind, EventSink, FeedEvent, Scope,
    TriggerType,
};
use iii_sdk::protocol::{TriggerRequest, TriggerRequestWithMetadata};
use iii_sdk::runtime::IIIConnectionState;
use iii_sdk::trigger::{TriggerConfig, TriggerHandler};
use iii_sdk::{Error, IIIClient, RegisterTriggerType};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The bindings of one engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EngineBindings {
    bindings: bough_service::Bindings,
    client: Arc<IIIClient>,
    runtime: Handle,
    /// The bindings that the engine has registered on this connection, by their id.
    registered: Arc<Mutex<HashMap<String, BindingId>>>,
    /// Counts the connections to the engine that ended.
    lost: watch::Sender<u64>,
}

/// One type of event, as the engine calls it.
struct Owner {
    bindings: EngineBindings,
    trigger_type: TriggerType,
}

#[async_trait]
impl TriggerHandler for Owner {
    async fn register_trigger(&self, config: TriggerConfig) -> Result<(), Error> {
        self.bindings.register(self.trigger_type, config).await
    }

    async fn unregister_trigger(&self, config: TriggerConfig) -> Result<(), Error> {
        self.bindings.unregister(&config.id);
        Ok(())
    }
}

impl EngineBindings {
    pub(crate) fn new(
        bindings: bough_service::Bindings,
        client: Arc<IIIClient>,
        runtime: Handle,
    ) -> Self {
        let (registered, lost) = (Arc::default(), watch::Sender::new(0));
        Self { bindings, client, runtime, registered, lost }
    }

    /// Registers every type of event.
    pub(crate) fn register_types(&self) {
        for trigger_type in TriggerType::all() {
            match trigger_type {
                TriggerType::StoreEvents => self.register_type::<NoFilter>(trigger_type),
                TriggerType::Event(EventKind::Created) => {
                    self.register_type::<CreatedFilter>(trigger_type);
                }
                TriggerType::Event(EventKind::MessageAdded | EventKind::MessageUpdated) => {
                    self.register_type::<MessageFilter>(trigger_type);
                }
                TriggerType::Event(_) => self.register_type::<SessionFilter>(trigger_type),
            }
        }
    }

    #[expect(
        deprecated,
        reason = "engines before 0.25 know only this way, and later ones still do"
    )]
    fn register_type<F: JsonSchema + Serialize + Send + Sync>(&self, trigger_type: TriggerType) {
        let owner = Owner { bindings: self.clone(), trigger_type };
        let (name, description) = (trigger_type.name(), trigger_type.description());
        let registration = RegisterTriggerType::new(name, description, owner);
        // The type stays registered as long as the client exists; the handle is for unregistering.
        drop(self.client.register_trigger_type(registration.trigger_request_format::<F>()));
    }

    /// Registers a binding. The engine registers all of them again after a reconnect.
    async fn register(
        &self,
        trigger_type: TriggerType,
        config: TriggerConfig,
    ) -> Result<(), Error> {
        let scope = Scope::owner();
        let filter = trigger_type.filter(&scope, &config.config).map_err(Error::Handler)?;
        if self.lock().contains_key(&config.id) {
            // The engine registers it again only after a connection whose end we missed; calls on that one will never
            // be answered.
            self.lost.send_modify(|count| *count += 1);
        }
        let namespace = config.namespace.clone().unwrap_or_default();
        let spec =
            BindingSpec::new(trigger_type.name(), &config.function_id, &namespace, &config.config);
        let sink = EngineCaller {
            client: self.client.clone(),
            runtime: self.runtime.clone(),
            lost: self.lost.subscribe(),
            trigger_type,
            function_id: config.function_id,
            metadata: config.metadata,
            namespace: config.namespace,
        };
        let trigger_id = config.id.clone();
        let (route, sink) = (self.lost.borrow().to_string(), Arc::new(sink));
        let request = BindingRequest { spec, trigger_id, scope, filter, route, sink };
        let registered = {
            let _on_ours = self.runtime.enter();
            self.bindings.register(request)
        };
        self.lock().insert(config.id, registered.id);
        // A binding that continues unchanged has begun already.
        let _ = registered.begun.await.is_ok();
        Ok(())
    }

    fn unregister(&self, id: &str) {
        if let Some(binding) = self.lock().remove(id) {
            self.bindings.disconnect(binding);
        }
    }

    /// The connection to the engine ended: every binding keeps its position until the engine registers it again.
    pub(crate) fn connection_lost(&self) {
        self.lost.send_modify(|count| *count += 1);
        let registered = std::mem::take(&mut *self.lock());
        for binding in registered.into_values() {
            self.bindings.disconnect(binding);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BindingId>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client takes the schema of a filter from a type, but an event type has it as a value.
macro_rules! filter_types {
    ($($name:ident = $sample:expr),* $(,)?) => {
        $(
            #[derive(Serialize)]
            struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> String {
                    stringify!($name).to_owned()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    let schema: TriggerType = $sample;
                    // If the schema could not be read, everything would pass; the filter is checked anyway.
                    serde_json::from_value(schema.configuration_schema()).unwrap_or(Schema::Bool(true))
                }
            }
        )*
    };
}

filter_types! {
    CreatedFilter = TriggerType::Event(EventKind::Created),
    MessageFilter = TriggerType::Event(EventKind::MessageAdded),
    SessionFilter = TriggerType::Event(EventKind::Deleted),
    NoFilter = TriggerType::StoreEvents,
}

/// Calls the function of one binding through the engine.
struct EngineCaller {
    client: Arc<IIIClient>,
    runtime: Handle,
    lost: watch::Receiver<u64>,
    trigger_type: TriggerType,
    function_id: String,
    metadata: Option<Value>,
    namespace: Option<String>,
}

#[async_trait]
impl EventSink for EngineCaller {
    /// The call asks for an answer: only then does the engine report that no worker hosts the function, as after its own
    /// restart, when we may reconnect before the subscriber does.
    async fn call(&self, event: &FeedEvent) -> Called {
        let mut lost = self.lost.clone();
        lost.mark_unchanged();
        if self.client.get_connection_state() != IIIConnectionState::Connected {
            return Called::Absent;
        }
        let (client, request) = (self.client.clone(), self.request(event));
        // The client drops a call only when it is answered or timed out, so run it on its own task.
        let answer = self.runtime.spawn(async move { client.trigger(request).await });
        tokio::select! {
            answer = answer => match answer {
                Ok(Err(error)) if is_absent(&error) => Called::Absent,
                Ok(Err(error)) if is_refused(&error) => {
                    // The engine would refuse it the next time too.
                    self.missed("refused");
                    Called::Taken
                }
                _ => Called::Taken,
            },
            // The client does not end the calls of a broken connection.
            _ = lost.changed() => Called::Absent,
        }
    }

    async fn ready(&self) {
        tokio::time::sleep(EVENT_RETRY_PAUSE).await;
    }

    fn missed(&self, reason: &'static str) {
        let trigger_type = self.trigger_type.name();
        tracing::warn!(reason, trigger_type, "a binding of the engine missed events");
    }
}

impl EngineCaller {
    fn request(&self, event: &FeedEvent) -> TriggerRequestWithMetadata {
        let payload = serde_json::from_str(&self.trigger_type.payload(event)).unwrap_or_default();
        let mut request = TriggerRequestWithMetadata::from(TriggerRequest {
            function_id: self.function_id.clone(),
            payload,
            action: None,
            timeout_ms: u64::try_from(EVENT_ANSWER_WAIT.as_millis()).ok(),
        });
        if let Some(metadata) = &self.metadata {
            request = request.metadata(metadata.clone());
        }
        if let Some(namespace) = &self.namespace {
            request = request.namespace(namespace.clone());
        }
        request
    }
}

/// Whether the engine did not pass a call on: its function was not called.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Remote { code, .. }
        if matches!(code.as_str(), "FORBIDDEN" | "function_not_invokable" | "invocation_error"))
}

/// Whether no worker took a call: no worker hosts the function, or its host has gone.
fn is_absent(error: &Error) -> bool {
    match error {
        Error::NotConnected | Error::WebSocket(_) => true,
        Error::Remote { code, .. } => matches!(
            code.as_str(),
            "function_not_found" | "invocation_stopped" | "channel_send_failed"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_engine_refuses_is_neither_answered_nor_made_again() {
        let remote = |code: &str| Error::Remote {
            code: code.to_owned(),
            message: String::new(),
            stacktrace: None,
        };
        for code in ["FORBIDDEN", "function_not_invokable", "invocation_error"] {
            assert!(is_refused(&remote(code)) && !is_absent(&remote(code)), "{code}");
        }
        for code in ["function_not_found", "invocation_stopped"] {
            assert!(is_absent(&remote(code)) && !is_refused(&remote(code)), "{code}");
        }
        // The function was called, and failed: that is its own matter.
        let failed = remote("invocation_failed");
        assert!(!is_refused(&failed) && !is_absent(&failed));
    }
}
