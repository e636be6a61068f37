use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bough_service::{Bindings, Scope, Service, WORKER_DESCRIPTION, WORKER_NAME, WORKER_VERSION};
use iii_sdk::runtime::{IIIConnectionState, WorkerMetadata};
use iii_sdk::{IIIClient, InitOptions, register_worker};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

use crate::bindings::EngineBindings;
use crate::configuration;
use crate::error::WorkerError;
use crate::functions;

/// How often the connection to the engine is checked. The client waits longer before it reconnects.
const CONNECTION_POLL: Duration = Duration::from_millis(100);

/// A connection to an iii engine. It reconnects by itself.
pub struct Worker {
    client: Arc<IIIClient>,
    /// The runtime of our own work; the SDK has a thread of its own.
    runtime: Handle,
    /// The schema of our settings, once the engine's configuration worker has it.
    schema: Mutex<Option<Value>>,
    watching: Mutex<Option<AbortHandle>>,
}

impl Worker {
    /// Begins to connect to the engine at `url`. Must be called on a tokio runtime, where the work is then done.
    #[must_use]
    pub fn attach(url: &str) -> Self {
        let metadata = WorkerMetadata {
            name: WORKER_NAME.to_owned(),
            version: WORKER_VERSION.to_owned(),
            description: Some(WORKER_DESCRIPTION.to_owned()),
            ..WorkerMetadata::default()
        };
        let options = InitOptions { metadata: Some(metadata), ..InitOptions::default() };
        Self {
            client: Arc::new(register_worker(url, options)),
            runtime: Handle::current(),
            schema: Mutex::default(),
            watching: Mutex::default(),
        }
    }

    /// Registers the schema of our settings with the engine's configuration worker, stores `initial_value` if nothing
    /// is stored yet, and reads the stored value. `None` if the engine has no configuration worker.
    pub async fn configure(
        &self,
        schema: Value,
        initial_value: Value,
    ) -> Result<Option<Value>, WorkerError> {
        let found = configuration::configure(&self.client, &schema, initial_value).await?;
        let noted = found.is_some().then_some(schema);
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        Ok(found)
    }

    /// Reads the stored settings.
    pub async fn configuration(&self) -> Result<Value, WorkerError> {
        let found = configuration::read(&self.client).await?;
        found.ok_or_else(|| WorkerError::Refused { reason: "no settings are stored".to_owned() })
    }

    /// Registers every function and type of event of the service; they are registered again after a reconnect. With
    /// `follows_configuration`, changes of the settings call `session::on-config-change`.
    pub fn serve(
        &self,
        service: &Service,
        bindings: Bindings,
        instance: &str,
        follows_configuration: bool,
    ) -> Result<(), WorkerError> {
        let bindings = EngineBindings::new(bindings, self.client.clone(), self.runtime.clone());
        bindings.register_types();
        functions::register(&self.client, service, &self.runtime, instance);
        if follows_configuration {
            configuration::follow(&self.client)?;
        }
        let watch = Watch {
            client: self.client.clone(),
            service: service.clone(),
            bindings,
            schema: self.schema.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let task = self.runtime.spawn(watch.run()).abort_handle();
        *self.watching.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(())
    }

    /// Ends the connection.
    pub async fn detach(&self) {
        if let Some(task) = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        self.client.shutdown_async().await;
    }
}

/// Restores what an engine forgets when it restarts, and handles broken connections.
struct Watch {
    client: Arc<IIIClient>,
    service: Service,
    bindings: EngineBindings,
    schema: Option<Value>,
}

impl Watch {
    async fn run(self) {
        // On a task of its own: a lost connection must be noticed meanwhile.
        let mut configuring = JoinSet::new();
        let mut was_connected = self.is_connected();
        let mut has_connected = was_connected;
        loop {
            tokio::time::sleep(CONNECTION_POLL).await;
            let is_connected = self.is_connected();
            if was_connected && !is_connected {
                configuring.abort_all();
                self.bindings.connection_lost();
            }
            if is_connected && !was_connected && has_connected {
                configuring.spawn(configure_again(
                    self.client.clone(),
                    self.service.clone(),
                    self.schema.clone(),
                ));
            }
            has_connected |= is_connected;
            was_connected = is_connected;
        }
    }

    fn is_connected(&self) -> bool {
        self.client.get_connection_state() == IIIConnectionState::Connected
    }
}

/// A configuration worker stores values but no schemas, and accepts no value without the
/// schema.
async fn configure_again(client: Arc<IIIClient>, service: Service, schema: Option<Value>) {
    let Some(schema) = schema else { return };
    if let Err(error) = configuration::register_again(&client, &schema).await {
        tracing::warn!(%error, "the engine's configuration worker did not take the shape of the settings");
        return;
    }
    // They may have changed while we were disconnected.
    let (owner, function) = (Scope::owner(), "session::on-config-change");
    if let Err(error) = service.call(&owner, function, Value::Null).await {
        tracing::warn!(code = error.code(), "the settings could not be read again");
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("address", &self.client.address()).finish_non_exhaustive()
    }
}
