//! The Model Context Protocol over HTTP ("Streamable HTTP"), at `/mcp`.
//!
//! A message is one POST, and its answer the response. Nothing is kept between requests, so there is no session id, and
//! no stream but that of a request that listens. The guard identifies the caller, as everywhere.

mod headers;
mod listen;

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bough_mcp::{
    CallRefused, Functions, Host, LISTEN, Message, Request, RpcError, SessionHost, Wire, answer,
    error_text, result_text,
};
use bough_service::Function;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use crate::api::{Problem, read_json, take_request, within};
use crate::app::App;
use crate::guard::Caller;

use headers::wire_of;

/// The route. Other methods than POST are refused by the router.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp", post(take))
}

/// Takes one message.
async fn take(State(app): State<App>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let answer = within(&app, work(&app, parts, body)).await;
    answer.unwrap_or_else(Problem::into_response)
}

async fn work(app: &App, parts: Parts, body: Body) -> Result<Response, Problem> {
    let caller = Caller::of(&parts)?;
    let bytes = read_json(app, &parts.headers, body).await?;
    let _permit = take_request(app)?;
    let request = match Message::parse(&bytes) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification { .. } | Message::Answer) => {
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        Err((id, error)) => return Ok(refused(StatusCode::BAD_REQUEST, &id, &error)),
    };
    let wire = match wire_of(&parts.headers, &request) {
        Ok(wire) => wire,
        Err(error) => return Ok(refused(StatusCode::BAD_REQUEST, &request.id, &error)),
    };
    let host = host_of(app, &caller);
    if wire == Wire::Stateless && request.method == LISTEN {
        return listen::open(app, caller, host, &parts, &request).await;
    }
    Ok(respond(wire, &request, answer(&*host, wire, &request).await))
}

/// The host for this caller.
fn host_of(app: &App, caller: &Caller) -> Arc<dyn Host> {
    match &app.mcp_host {
        Some(host) => host.clone(),
        None => Arc::new(SessionHost::new(ForCaller { app: app.clone(), caller: caller.clone() })),
    }
}

/// The functions that a caller's token may call.
struct ForCaller {
    app: App,
    caller: Caller,
}

#[async_trait]
impl Functions for ForCaller {
    fn may_call(&self, function: &Function) -> bool {
        self.caller.scope.may_call(function).is_ok()
    }

    async fn call(
        &self,
        function: &'static Function,
        request: Value,
    ) -> Result<Value, CallRefused> {
        let answer = self.app.call(&self.caller.scope, function, request.into()).await;
        answer.and_then(|answer| answer.to_value()).map_err(|error| CallRefused {
            code: error.code().to_owned(),
            message: error.to_string(),
        })
    }
}

fn respond(wire: Wire, request: &Request, answer: Result<Value, RpcError>) -> Response {
    match answer {
        Ok(result) => json(StatusCode::OK, result_text(&request.id, &result)),
        Err(error) => refused(status_of(wire, &error), &request.id, &error),
    }
}

/// The status of a refusal. Clients with a handshake expect every answer with 200; for the others the protocol names a
/// few statuses.
const fn status_of(wire: Wire, error: &RpcError) -> StatusCode {
    match (wire, error.code) {
        (Wire::Stateless, RpcError::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (Wire::Stateless, RpcError::MISSING_CAPABILITY) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn refused(status: StatusCode, id: &Value, error: &RpcError) -> Response {
    json(status, error_text(id, error))
}

fn json(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}
