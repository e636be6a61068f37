use std::sync::Arc;

use async_trait::async_trait;
use bough_server::config::Address;
use bough_service::{Right, percent_encode};
use bough_store::StoreError;
use bough_store::bridge::ReadTransport;
use bough_store::bridge::protocol::{ReadRequest, StoreAnswer};
use serde_json::{Value, json};
use ureq::http;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::CallError;
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
        let uri: Option<http::Uri> = base.parse().ok();
        let scheme = uri.as_ref().and_then(http::Uri::scheme_str);
        let (Some("http" | "https"), Some(uri)) = (scheme, &uri) else {
            let text = format!("{address:?} is not the address of a server");
            return Err(CommandError::usage(text).hint("such as http://127.0.0.1:7717"));
        };
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_WAIT))
            .timeout_global(Some(ANSWER_WAIT));
        if is_this_machine(uri) {
            // A proxy of the environment would look for the server on its own machine.
            config = config.proxy(None);
        }
        if scheme == Some("https") {
            config = config.tls_config(TlsConfig::builder().root_certs(trusted_roots()).build());
        }
        let config = config.build();
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
        if found.is_none_or(|function| function.right == Right::Bridge) {
            return Err(CallError::no_route());
        }
        let path = format!("/v1/call/{}", percent_encode(function));
        let body = without_nulls(request).to_string();
        self.blocking(move |shared| shared.call(&path, &body)).await
    }

    /// The status and the body of a page that is no function, such as `/readyz`.
    pub(crate) async fn page(&self, path: &str) -> Result<(u16, Value), CallError> {
        let path = path.to_owned();
        let (status, bytes) = self.blocking(move |shared| shared.exchange(&path, None)).await?;
        // Another program may listen there, whose pages are not JSON.
        Ok((status, parse(&bytes).unwrap_or_default()))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        let shared = self.shared.clone();
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| CallError::unreachable(self.address(), &error.to_string()))?
    }
}

/// Reads of one session go to the server's `session::raw`.
#[async_trait]
impl ReadTransport for Remote {
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
    fn call(&self, path: &str, body: &str) -> Result<Value, CallError> {
        let (status, bytes) = self.exchange(path, Some(body))?;
        let answer = parse(&bytes);
        if (200..300).contains(&status) {
            return answer.map_err(|error| CallError::shape(&error));
        }
        Err(CallError::of_problem(status, &answer.unwrap_or_default()))
    }

    /// Sends a body to a path, or asks for a page without one. Returns the status and the body of the answer.
    fn exchange(&self, path: &str, body: Option<&str>) -> Result<(u16, Vec<u8>), CallError> {
        let lost =
            |error: &dyn std::fmt::Display| CallError::unreachable(&self.base, &error.to_string());
        let mut request = http::Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(format!("{}{path}", self.base))
            .header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body);
                self.agent.run(request.map_err(|error| lost(&error))?)
            }
            None => self.agent.run(request.body(()).map_err(|error| lost(&error))?),
        };
        let mut answer = answer.map_err(|error| lost(&error))?;
        let status = answer.status().as_u16();
        let reader = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        Ok((status, reader.read_to_vec().map_err(|error| lost(&error))?))
    }
}

/// Fields without a value are left out: to some functions `null` is a value.
fn without_nulls(mut request: Value) -> Value {
    if let Some(fields) = request.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    request
}

fn is_this_machine(uri: &http::Uri) -> bool {
    let host = uri.host().unwrap_or_default().to_owned();
    Address { host, port: 0 }.is_loopback()
}

/// The certificate authorities that this machine trusts, which may be an organisation's own; where it names none, those that
/// browsers trust.
fn trusted_roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return RootCerts::WebPki;
    }
    found.iter().map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into()
}

fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(bytes) }
}
