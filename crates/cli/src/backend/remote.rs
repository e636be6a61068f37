use std::sync::Arc;

use async_trait::async_trait;
use bough_store::StoreError;
use bough_store::bridge::Asked;
use bough_store::bridge::protocol::{ReadRequest, StoreAnswer};
use serde_json::{Value, json};
use ureq::http;

use super::CallError;
use super::route::{Sendable, sendable};
use crate::command_error::{CommandError, CommandResult};
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_WAIT, CONNECT_WAIT};

/// A server, reached over HTTP.
#[derive(Clone)]
pub(crate) struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    agent: ureq::Agent,
    /// The address without a slash at its end.
    base: String,
    token: Option<String>,
}

impl Remote {
    /// A server at an address such as `http://127.0.0.1:7717`.
    pub(crate) fn new(address: &str, token: Option<String>) -> CommandResult<Self> {
        let base = address.trim_end_matches('/');
        let uri: Result<http::Uri, _> = base.parse();
        let is_web = |uri: &http::Uri| matches!(uri.scheme_str(), Some("http" | "https"));
        if !uri.is_ok_and(|uri| is_web(&uri)) {
            let text = format!("{address:?} is not the address of a server");
            return Err(CommandError::usage(text).hint("such as http://127.0.0.1:7717"));
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_WAIT))
            .timeout_global(Some(ANSWER_WAIT))
            .build();
        let agent = ureq::Agent::new_with_config(config);
        Ok(Self { shared: Arc::new(Shared { agent, base: base.to_owned(), token }) })
    }

    /// Where the server is.
    pub(crate) fn address(&self) -> &str {
        &self.shared.base
    }

    pub(super) async fn call(
        &self,
        function: &'static str,
        request: Value,
    ) -> Result<Value, CallError> {
        let found = bough_service::function(function);
        let made = found.and_then(|function| sendable(function, request));
        let sendable = made.ok_or_else(CallError::no_route)?;
        let shared = self.shared.clone();
        let sent = tokio::task::spawn_blocking(move || shared.send(sendable)).await;
        sent.map_err(|error| CallError::unreachable(self.address(), &error.to_string()))?
    }
}

/// Reads of one session go to the server's `session::raw`.
#[async_trait]
impl Asked for Remote {
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError> {
        let shape = |error: serde_json::Error| CallError::shape(&error).into_store_error();
        let mut read = serde_json::to_value(request).map_err(shape)?;
        let session = read.as_object_mut().and_then(|fields| fields.remove("session_id"));
        let request = json!({ "session_id": session, "read": read });
        let answer = self.call("session::raw", request).await;
        serde_json::from_value(answer.map_err(CallError::into_store_error)?).map_err(shape)
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Remote").field(&self.address()).finish()
    }
}

impl Shared {
    fn send(&self, sendable: Sendable) -> Result<Value, CallError> {
        let lost =
            |error: &dyn std::fmt::Display| CallError::unreachable(&self.base, &error.to_string());
        let mut request = http::Request::builder()
            .method(sendable.method)
            .uri(format!("{}{}", self.base, sendable.target))
            .header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = match sendable.body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body);
                self.agent.run(request.map_err(|error| lost(&error))?)
            }
            None => self.agent.run(request.body(()).map_err(|error| lost(&error))?),
        };
        let mut answer = answer.map_err(|error| lost(&error))?;
        let status = answer.status().as_u16();
        let reader = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        let bytes = reader.read_to_vec().map_err(|error| lost(&error))?;
        let body = parse(&bytes);
        if (200..300).contains(&status) {
            return body.map_err(|error| CallError::shape(&error));
        }
        Err(CallError::of_problem(status, &body.unwrap_or_default()))
    }
}

fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(bytes) }
}
