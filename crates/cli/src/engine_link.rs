//! Implements the server's interface to an iii engine with the worker's connection.

use std::sync::Arc;

use async_trait::async_trait;
use bough_server::{ConfigurationOffer, EngineConnector, EngineError, EngineLink};
use bough_service::{Bindings, Service};
use bough_worker::{Worker, WorkerError};
use serde_json::Value;

/// How `bough serve` connects to an engine.
pub(crate) fn connector() -> EngineConnector {
    Arc::new(|url: &str| Arc::new(Link(Worker::attach(url))))
}

struct Link(Worker);

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
        service: Service,
        bindings: Bindings,
        instance: String,
    ) -> Result<(), EngineError> {
        self.0.serve(&service, bindings, &instance).map_err(engine_error)
    }

    async fn detach(&self) {
        self.0.detach().await;
    }
}

fn engine_error(error: WorkerError) -> EngineError {
    match error {
        WorkerError::Unreachable { reason } => EngineError::Unreachable { reason },
        WorkerError::Refused { reason } => EngineError::Refused { reason },
    }
}
