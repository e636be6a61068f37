//! Implements the server's interface to an iii engine with the worker's connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bough_server::{ConfigurationOffer, EngineConnector, EngineError, EngineLink};
use bough_service::{Bindings, Service};
use bough_worker::{Worker, WorkerError};
use serde_json::Value;

/// How `bough serve` connects to an engine.
pub(crate) fn connector() -> EngineConnector {
    Arc::new(|url: &str| {
        Arc::new(Link {
            worker: Worker::attach(url),
            follows_configuration: AtomicBool::new(false),
        })
    })
}

struct Link {
    worker: Worker,
    /// Whether the engine has a configuration worker, whose changes are then followed.
    follows_configuration: AtomicBool,
}

#[async_trait]
impl EngineLink for Link {
    async fn configure(&self, offer: ConfigurationOffer) -> Result<Option<Value>, EngineError> {
        let found = self.worker.configure(offer.schema, offer.initial_value).await;
        let found = found.map_err(engine_error)?;
        self.follows_configuration.store(found.is_some(), Ordering::Relaxed);
        Ok(found)
    }

    async fn configuration(&self) -> Result<Value, EngineError> {
        self.worker.configuration().await.map_err(engine_error)
    }

    async fn serve(
        &self,
        service: Service,
        bindings: Bindings,
        instance: String,
    ) -> Result<(), EngineError> {
        let follows = self.follows_configuration.load(Ordering::Relaxed);
        self.worker.serve(&service, bindings, &instance, follows).map_err(engine_error)
    }

    async fn detach(&self) {
        self.worker.detach().await;
    }
}

fn engine_error(error: WorkerError) -> EngineError {
    match error {
        WorkerError::Unreachable { reason } => EngineError::Unreachable { reason },
        WorkerError::Refused { reason } => EngineError::Refused { reason },
    }
}
