use std::sync::Arc;

use bough_service::Service;
use iii_sdk::runtime::WorkerMetadata;
use iii_sdk::{IIIClient, InitOptions, register_worker};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::bindings::Bindings;
use crate::configuration;
use crate::error::WorkerError;
use crate::functions;

/// A connection to an iii engine. It comes back by itself when it breaks.
pub struct Worker {
    client: Arc<IIIClient>,
    /// Where our own work runs; the SDK has a thread of its own.
    runtime: Handle,
}

impl Worker {
    /// Begins to connect to the engine at `url`. Must be called on a tokio runtime, where the work is then done.
    #[must_use]
    pub fn attach(url: &str) -> Self {
        let metadata = WorkerMetadata {
            name: "session-manager".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: Some("Durable, live, branching sessions of AI agents (Bough).".to_owned()),
            ..WorkerMetadata::default()
        };
        let options = InitOptions { metadata: Some(metadata), ..InitOptions::default() };
        Self { client: Arc::new(register_worker(url, options)), runtime: Handle::current() }
    }

    /// Registers the shape of our settings with the engine's configuration worker, stores `initial_value` where nothing is
    /// stored yet, and reads what is stored. `None` when the engine has no configuration worker.
    pub async fn configure(
        &self,
        schema: Value,
        initial_value: Value,
    ) -> Result<Option<Value>, WorkerError> {
        configuration::configure(&self.client, schema, initial_value).await
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
        instance: &str,
        follows_configuration: bool,
    ) -> Result<(), WorkerError> {
        let bindings = Bindings::new(service.clone(), self.client.clone(), self.runtime.clone());
        bindings.register_types();
        functions::register(&self.client, service, &self.runtime, instance);
        if follows_configuration {
            configuration::follow(&self.client)?;
        }
        Ok(())
    }

    /// Ends the connection.
    pub async fn detach(&self) {
        self.client.shutdown_async().await;
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("address", &self.client.address()).finish()
    }
}
