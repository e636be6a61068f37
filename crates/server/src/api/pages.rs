//! Pages about the server itself.

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::body::refuse_any_field;
use super::openapi;
use super::problem::Problem;
use super::reference::is_reference;
use crate::app::App;
use crate::console::is_console;
use crate::guard::Caller;
use crate::metrics::Gauges;

/// Pages without stored data. They need no token, so that process supervisors can poll them and developers can read
/// about the API.
pub(crate) fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/v1/version" | "/openapi.json")
        || is_console(path)
        || is_reference(path)
}

/// The oldest version of the client libraries that this server serves.
const CLIENTS_MIN: &str = "0.1.0";

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/v1/version", get(version))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi_json))
}

/// The process answers.
async fn healthz() -> Response {
    json_page(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether the process can work and runs the current configuration.
async fn readyz(State(app): State<App>) -> Response {
    let trouble = app.health.trouble();
    let reload = app.service.reload_status();
    let is_ready = app.is_ready();
    // The exact cause may name paths and addresses, so it is only in the log and `session::config-status`.
    let body = json!({
        "status": if is_ready { "ready" } else { "not ready" },
        "store": app.service.store().capabilities().name,
        "store_reachable": trouble.is_none(),
        "draining": app.shutdown.has_begun(),
        "config": reload.last_outcome,
        "rejected_reloads": reload.rejected_reloads,
        "reopened_sessions": app.service.reopened_sessions(),
    });
    json_page(if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body)
}

async fn version(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    refuse_any_field(&app, request).await?;
    let body = json!({
        "name": "bough",
        "version": env!("CARGO_PKG_VERSION"),
        "api": "v1",
        "protocols": ["http", "sse", "iii-bus"],
        "clients": { "min": CLIENTS_MIN, "max": env!("CARGO_PKG_VERSION") },
    });
    Ok(json_page(StatusCode::OK, &body))
}

async fn metrics(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.scope.may_see_metrics()?;
    let now = Gauges {
        http_connections: app.http_connections.count(),
        bus_connections: app.bus_connections.count(),
        requests: app.requests.taken(),
        streams: app.streams.taken(),
        stream_bytes: app.stream_bytes.held(),
        bus_bindings: app.bindings.taken(),
        reopened_sessions: app.service.reopened_sessions(),
        rejected_reloads: app.service.reload_status().rejected_reloads,
        is_ready: app.is_ready(),
        uptime: app.clock.monotonic(),
    };
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(CONTENT_TYPE, kind)], app.metrics.page(&now)).into_response())
}

async fn openapi_json() -> Response {
    let mut response = json_page(StatusCode::OK, openapi::document());
    let cache = HeaderValue::from_static("private, max-age=300");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}

pub(super) fn json_page(status: StatusCode, body: &Value) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], body.to_string()).into_response()
}
