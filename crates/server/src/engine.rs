//! The interface to an iii engine that the server is attached to. The crate `worker` implements it, and the `bough`
//! program passes it in.

use async_trait::async_trait;
use bough_service::{Bindings, Service};
use serde_json::Value;

/// A connection to an iii engine.
#[async_trait]
pub trait EngineLink: Send + Sync {
    /// Registers the schema of our settings with the engine's configuration worker, stores initial values if there are
    /// none, and reads the stored ones. `None` if the engine has no configuration worker; one that appears later calls
    /// `session::on-config-change`.
    async fn configure(&self, offer: ConfigurationOffer) -> Result<Option<Value>, EngineError>;

    /// Reads the stored settings again. `None` if the engine has no configuration worker that has them.
    async fn configuration(&self) -> Result<Option<Value>, EngineError>;

    /// Registers the functions and triggers of the service; they stay registered over reconnects.
    async fn serve(
        &self,
        service: Service,
        bindings: Bindings,
        instance: String,
    ) -> Result<(), EngineError>;

    /// Ends the connection.
    async fn detach(&self);
}

/// What is registered with the configuration worker for our settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigurationOffer {
    /// The JSON Schema of the settings.
    pub schema: Value,
    /// The value to store if nothing is stored yet.
    pub initial_value: Value,
}

/// Why the engine did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It does not answer.
    #[error("the engine does not answer ({reason}); is it running?")]
    Unreachable {
        /// The reason.
        reason: String,
    },
    /// It refused.
    #[error("the engine refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
}
