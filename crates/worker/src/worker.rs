use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
/// How often a start looks for the engine's configuration worker, which the engine may start at the same time: about
/// 2 s, as each look takes three calls with pauses.
const CONFIGURATION_WORKER_LOOKS: u32 = 3;
/// How often an engine that had none is asked again.
const CONFIGURATION_WORKER_POLL: Duration = Duration::from_secs(2);

/// A connection to an iii engine. It reconnects by itself.
pub struct Worker {
    client: Arc<IIIClient>,
    /// The runtime of our own work; the SDK has a thread of its own.
    runtime: Handle,
    settings: Arc<OfferedSettings>,
    watching: Mutex<Option<AbortHandle>>,
}

/// Our settings, as the engine's configuration worker gets them.
#[derive(Debug, Default)]
struct OfferedSettings {
    /// Their schema, and the value to store if nothing is stored.
    offer: OnceLock<(Value, Value)>,
    /// Whether a configuration worker has them, and with that the last word.
    are_taken: AtomicBool,
}

impl OfferedSettings {
    /// Offers them; returns the stored value, or `None` if the engine has no configuration worker now.
    async fn register(&self, client: &IIIClient) -> Result<Option<Value>, WorkerError> {
        let Some((schema, initial_value)) = self.offer.get() else { return Ok(None) };
        let found = configuration::configure(client, schema, initial_value.clone()).await?;
        self.are_taken.store(found.is_some(), Ordering::Release);
        Ok(found)
    }

    fn are_taken(&self) -> bool {
        self.are_taken.load(Ordering::Acquire)
    }
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
            settings: Arc::default(),
            watching: Mutex::default(),
        }
    }

    /// Registers the schema of our settings with the engine's configuration worker, stores `initial_value` if nothing
    /// is stored yet, and reads the stored value. `None` if the engine has no configuration worker; one that appears
    /// later gets the schema then, and its value is applied.
    pub async fn configure(
        &self,
        schema: Value,
        initial_value: Value,
    ) -> Result<Option<Value>, WorkerError> {
        let _ = self.settings.offer.get_or_init(|| (schema, initial_value));
        for _ in 0..CONFIGURATION_WORKER_LOOKS {
            let found = self.settings.register(&self.client).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        tracing::warn!(
            "the engine has no configuration worker; our own settings hold until it has one"
        );
        Ok(None)
    }

    /// Reads the stored settings; `None` while no configuration worker has them.
    pub async fn configuration(&self) -> Result<Option<Value>, WorkerError> {
        if !self.settings.are_taken() {
            return Ok(None);
        }
        let found = configuration::read(&self.client).await?;
        let missing = || WorkerError::Refused { reason: "no settings are stored".to_owned() };
        found.ok_or_else(missing).map(Some)
    }

    /// Registers every function and type of event of the service; they are registered again after a reconnect. Changes
    /// of the settings in the configuration worker call `session::on-config-change`.
    pub fn serve(
        &self,
        service: &Service,
        bindings: Bindings,
        instance: &str,
    ) -> Result<(), WorkerError> {
        let bindings = EngineBindings::new(bindings, self.client.clone(), self.runtime.clone());
        bindings.register_types();
        functions::register(&self.client, service, &self.runtime, instance);
        if self.settings.are_taken() {
            configuration::follow(&self.client)?;
        }
        let watch = Watch {
            client: self.client.clone(),
            service: service.clone(),
            bindings,
            settings: self.settings.clone(),
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
    settings: Arc<OfferedSettings>,
}

impl Watch {
    async fn run(self) {
        // On a task of its own: a lost connection must be noticed meanwhile.
        let mut configuring = JoinSet::new();
        let mut was_connected = self.is_connected();
        let mut has_connected = was_connected;
        if was_connected && !self.settings.are_taken() {
            configuring.spawn(self.configure_later());
        }
        loop {
            tokio::time::sleep(CONNECTION_POLL).await;
            let is_connected = self.is_connected();
            if was_connected && !is_connected {
                configuring.abort_all();
                self.bindings.connection_lost();
            }
            if is_connected && !was_connected && has_connected {
                configuring.spawn(self.configure_later());
            }
            has_connected |= is_connected;
            was_connected = is_connected;
        }
    }

    fn is_connected(&self) -> bool {
        self.client.get_connection_state() == IIIConnectionState::Connected
    }
}

impl Watch {
    /// Gives the settings to a configuration worker that appeared since the start, or that restarted.
    fn configure_later(&self) -> impl Future<Output = ()> + Send + use<> {
        configure_later(self.client.clone(), self.service.clone(), self.settings.clone())
    }
}

/// A configuration worker stores values but no schemas, and accepts no value without the schema.
async fn configure_later(client: Arc<IIIClient>, service: Service, settings: Arc<OfferedSettings>) {
    let Some((schema, _)) = settings.offer.get() else { return };
    if settings.are_taken() {
        if let Err(error) = configuration::register_again(&client, schema).await {
            tracing::warn!(%error, "the engine's configuration worker did not take the shape of the settings");
            return;
        }
    } else {
        while !matches!(settings.register(&client).await, Ok(Some(_))) {
            tokio::time::sleep(CONFIGURATION_WORKER_POLL).await;
        }
        tracing::info!("the engine has a configuration worker now; its settings are applied");
        if let Err(error) = configuration::follow(&client) {
            tracing::warn!(%error, "changes of the settings will be seen at the next start");
        }
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
