use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::rpc::RpcError;

/// What is offered to clients: tools to call, and resources to read and to follow.
///
/// Tools, resources and answers are JSON in the words of the protocol, without what depends on its version.
#[async_trait]
pub trait Host: Send + Sync {
    /// How a model should use the tools.
    fn instructions(&self) -> Option<&str>;

    /// The tools that this caller may call.
    fn tools(&self) -> Vec<Value>;

    /// Calls a tool. What the tool refuses is a result too, which the model reads; an error is for what no model can mend.
    /// `capabilities` are what the client says that it can do.
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

    /// What a resource says now; `None` where there is none of this address.
    async fn read(&self, uri: &str) -> Result<Option<Value>, RpcError>;

    /// Whether there is a resource of this address that can be followed.
    async fn has(&self, uri: &str) -> Result<bool, RpcError>;

    /// Waits for changes after a place, and not for ever; without a place it answers at once with the place that is now.
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
    /// Whether some changes may be missing here, so that anything may have changed.
    pub gap: bool,
}
