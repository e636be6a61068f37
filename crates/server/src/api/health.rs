//! How the server is, in detail, for people and dashboards.

use axum::extract::{Extension, State};
use axum::response::Response;
use bough_service::Right;
use bough_service::api::{ReloadStatus, SearchStatusRequest, StatsRequest, StatsResponse};
use http::StatusCode;
use serde_json::{Value, json};

use super::pages::json_page;
use super::problem::Problem;
use crate::app::App;
use crate::guard::Caller;

/// What a caller may see of the whole: its own sessions, and with the right to see metrics what the server is doing. Why
/// something is wrong may name places and addresses, so only who administers the server sees it.
pub(crate) async fn health(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let scope = &caller.scope;
    let sums = app.service.stats(scope, StatsRequest::default()).await?;
    let search = app.service.search_status(scope, SearchStatusRequest::default()).await?;
    let reload = app.service.reload_status();
    let trouble = app.health.trouble();
    let is_ready = trouble.is_none() && !app.shutdown.has_begun();
    let is_admin = scope.has(Right::Admin);
    let body = json!({
        "status": if is_ready { "ready" } else { "not ready" },
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": u64::try_from(app.clock.monotonic().as_millis()).unwrap_or(u64::MAX),
        "draining": app.shutdown.has_begun(),
        "store": store(&app, &sums, trouble.filter(|_| is_admin)),
        "search": search,
        "config": config(reload, is_admin),
        "now": scope.has(Right::Metrics).then(|| now(&app)),
        "since_start": scope.has(Right::Metrics).then(|| since_start(&app)),
        "limits": app.limits(),
    });
    Ok(json_page(StatusCode::OK, &body))
}

fn store(app: &App, sums: &StatsResponse, trouble: Option<String>) -> Value {
    json!({
        "kind": app.service.store().capabilities().name,
        "is_reachable": app.health.trouble().is_none(),
        "trouble": trouble,
        "sessions": sums.sessions,
        "reopened_sessions": app.service.reopened_sessions(),
    })
}

fn config(mut reload: ReloadStatus, is_admin: bool) -> ReloadStatus {
    reload.last_error = reload.last_error.filter(|_| is_admin);
    reload
}

/// What is going on.
fn now(app: &App) -> Value {
    json!({
        "http_connections": app.http_connections.count(),
        "bus_connections": app.bus_connections.count(),
        "requests": app.requests.taken(),
        "subscribers": app.streams.taken(),
        "bus_bindings": app.bindings.taken(),
    })
}

fn since_start(app: &App) -> Value {
    json!({
        "refused_requests": app.metrics.refused.get(),
        "limited_requests": app.metrics.limited.get(),
        "panics": app.metrics.panics.get(),
        "events_streamed": app.metrics.events_streamed.get(),
        "events_delivered": app.metrics.events_delivered.get(),
        "gaps": app.metrics.gaps.get(),
    })
}
