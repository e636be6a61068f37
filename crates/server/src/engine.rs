//! What the server needs of an iii engine that it is attached to. The crate `worker` speaks to the engine; whoever puts the program
//! together hands its link in.

use async_trait::async_trait;
use bough_service::{Bindings, Service};
use serde_json::Value;

/// A connection to an iii engine.
#[async_trait]
pub trait EngineLink: Send + Sync {
    /// Registers the shape of our settings with the engine's configuration worker, seeds them where none are stored, and reads
    /// what is stored. `None` when the engine has no configuration worker.
    async fn configure(&self, offer: ConfigurationOffer) -> Result<Option<Value>, EngineError>;

    /// Reads the stored settings again.
    async fn configuration(&self) -> Result<Value, EngineError>;

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

/// What the configuration worker is told of our settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigurationOffer {
    /// The JSON Schema of the settings.
    pub schema: Value,
    /// What to store when nothing is stored yet.
    pub initial_value: Value,
}

/// Why the engine did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It does not answer.
    #[error("the engine does not answer ({reason}); is it running?")]
    Unreachable {
        /// What happened.
        reason: String,
    },
    /// It refused.
    #[error("the engine refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
}
