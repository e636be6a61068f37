use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::rpc::RpcError;

/// What is offered to clients: tools to call, and resources to read and to follow.
///
/// Tools, resources and answers are JSON in the terms of the protocol, without parts that depend on its version.
#[async_trait]
pub trait Host: Send + Sync {
    /// How a model should use the tools.
    fn instructions(&self) -> Option<&str>;

    /// The tools that this caller may call.
    fn tools(&self) -> Vec<Value>;

    /// Calls a tool. A refusal by the tool is a result too, which the model reads; an error is for mistakes that no
    /// model can correct. `capabilities` are those that the client declares.
    async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        capabilities: &Value,
    ) -> Result<Value, RpcError>;

    /// A page of the resources: `resources`, and `nextCursor` when there are more.
    async fn resources(&self, cursor: Option<&str>) -> Result<Value, RpcError>;

    /// The patterns of the addresses of resources.
    fn templates(&self) -> Vec<Value>;

    /// The content of a resource; `None` if there is no resource with this address.
    async fn read(&self, uri: &str) -> Result<Option<Value>, RpcError>;

    /// Whether a resource with this address can be followed.
    async fn has(&self, uri: &str) -> Result<bool, RpcError>;

    /// Waits for changes after a position, with a time limit; without one it returns the current position at once.
    async fn changes(&self, after: Option<&str>) -> Result<Changes, RpcError>;
}

/// What changed among the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Where to go on.
    pub next: String,
    /// Whether resources were added or removed.
    pub list_changed: bool,
    /// The addresses of the resources that changed.
    pub updated: BTreeSet<String>,
    /// Whether some changes may be missing, so that anything may have changed.
    pub gap: bool,
}
