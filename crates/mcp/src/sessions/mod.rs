//! Bough's sessions as tools and resources.

mod pages;
mod resources;
mod tools;

use async_trait::async_trait;
use bough_service::{Function, function};
use serde_json::{Map, Value, json};

use crate::host::{Changes, Host};
use crate::rpc::RpcError;

/// The functions of the service's table, called for one caller.
#[async_trait]
pub trait Functions: Send + Sync {
    /// Whether the caller may call a function.
    fn may_call(&self, function: &Function) -> bool;

    /// Calls one.
    async fn call(&self, function: &'static Function, request: Value)
    -> Result<Value, CallRefused>;
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRefused {
    /// The stable code, such as `session/not_found`.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl CallRefused {
    fn is_not_found(&self) -> bool {
        self.code.ends_with("not_found")
    }

    /// The error and the next step, in words of the tools.
    fn text(&self) -> String {
        let next = match self.code.as_str() {
            "session/not_found" => "list_sessions and search say which sessions there are.",
            "session/entry_not_found" | "session/parent_not_found" => {
                "read_messages and list_branches say which entries there are."
            }
            "session/invalid_cursor" => "Leave `cursor` out to begin again.",
            "session/leaf_conflict" => {
                "Others wrote meanwhile: read the latest messages, then try again."
            }
            "session/other_content" => "Leave `entry_id` out to append a new entry.",
            "session/already_exists" => "Leave `new_session_id` out to get a new one.",
            "session/locked" | "session/busy" => "Try again later.",
            "session/forbidden" => "The token of this connection does not allow it.",
            "session/too_large" => "Send less text.",
            _ => "Compare the arguments with the tool's schema.",
        };
        format!("{}. {next}", self.message.trim_end_matches('.'))
    }
}

impl From<CallRefused> for RpcError {
    fn from(refused: CallRefused) -> Self {
        let code =
            if refused.code == "session/storage" { Self::INTERNAL } else { Self::INVALID_PARAMS };
        Self::new(code, refused.text()).with_data(json!({ "code": refused.code }))
    }
}

/// The sessions that a caller sees.
pub struct SessionHost<F> {
    functions: F,
}

impl<F: Functions> SessionHost<F> {
    /// Over the functions as a caller may call them.
    pub const fn new(functions: F) -> Self {
        Self { functions }
    }

    /// Calls a function of the table by its name.
    async fn call(&self, name: &str, request: Value) -> Result<Value, CallRefused> {
        let Some(found) = function(name) else {
            let message = format!("{name} is not a function");
            return Err(CallRefused { code: "session/function_not_found".to_owned(), message });
        };
        self.functions.call(found, request).await
    }
}

const INSTRUCTIONS: &str = "Bough keeps conversations of agents. A session is a tree of messages; its active path is the \
conversation as it stands. Find sessions with search or list_sessions, read one with read_latest_messages or read_messages, \
continue it with append_message. To answer an earlier message differently, append with `parent_id`, or copy the path up to it \
with fork_session. Nothing is overwritten.";

#[async_trait]
impl<F: Functions> Host for SessionHost<F> {
    fn instructions(&self) -> Option<&str> {
        Some(INSTRUCTIONS)
    }

    fn tools(&self) -> Vec<Value> {
        tools::TOOLS.iter().filter(|tool| self.may_use(tool)).map(tools::Tool::describe).collect()
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        _capabilities: &Value,
    ) -> Result<Value, RpcError> {
        let tool = tools::TOOLS.iter().find(|tool| tool.name == name);
        let Some(tool) = tool else {
            let names: Vec<&str> = tools::TOOLS.iter().map(|tool| tool.name).collect();
            let text = format!("there is no tool {name:?}; the tools are {}", names.join(", "));
            return Err(RpcError::bad_params(text));
        };
        Ok(match self.use_tool(tool, arguments).await {
            Ok(answer) => done(&answer),
            Err(text) => failed(&text),
        })
    }

    async fn resources(&self, cursor: Option<&str>) -> Result<Value, RpcError> {
        Ok(self.list_resources(cursor).await?)
    }

    fn templates(&self) -> Vec<Value> {
        resources::templates()
    }

    async fn read(&self, uri: &str) -> Result<Option<Value>, RpcError> {
        found(self.read_resource(uri).await)
    }

    async fn has(&self, uri: &str) -> Result<bool, RpcError> {
        Ok(found(self.has_resource(uri).await)?.is_some())
    }

    async fn changes(&self, after: Option<&str>) -> Result<Changes, RpcError> {
        Ok(self.look_for_changes(after).await?)
    }
}

/// For a look-up, "not found" is an answer and not a failure.
fn found<T>(answer: Result<Option<T>, CallRefused>) -> Result<Option<T>, RpcError> {
    match answer {
        Err(refused) if refused.is_not_found() => Ok(None),
        answer => Ok(answer?),
    }
}

/// The answer of a tool: as text for the model, and as it is for programs.
fn done(answer: &Value) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": answer.to_string() }] });
    if let (Some(fields), true) = (result.as_object_mut(), answer.is_object()) {
        fields.insert("structuredContent".to_owned(), answer.clone());
    }
    result
}

/// A refusal that the model reads, so that it can correct its call.
fn failed(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

#[cfg(test)]
mod tests;
