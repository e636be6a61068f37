//! Detailed health, for people and dashboards.

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use bough_service::Right;
use bough_service::api::{ReloadStatus, SearchStatusRequest, StatsRequest, StatsResponse};
use bough_session::limits::{
    BATCH_BYTES_MAX, BATCH_RECORDS_MAX, ENTRY_ID_BYTES_MAX, MESSAGE_BYTES_MAX, METADATA_BYTES_MAX,
    SESSION_ID_BYTES_MAX, STATE_FORKS_MAX, STATE_OPEN_STREAMS_MAX,
};
use bough_store::limits::{DELTA_BYTES_MAX, RECORD_BYTES_MAX};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::body::refuse_any_field;
use super::pages::json_page;
use super::problem::Problem;
use crate::app::App;
use crate::guard::Caller;
use crate::inspection::Verification;
use crate::tasks::verify_store;

/// Health as a caller gets it: its own sessions, and the server's counts if it may see metrics and every session. Causes of errors may
/// name paths and addresses, so only administrators get them.
pub(crate) async fn health(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    refuse_any_field(&app, request).await?;
    let scope = &caller.scope;
    let sums = app.service.stats(scope, StatsRequest::default()).await?;
    let search = app.service.search_status(scope, SearchStatusRequest::default()).await?;
    let reload = app.service.reload_status();
    let trouble = app.health.trouble();
    let is_admin = scope.has(Right::Admin);
    let sees_sessions = scope.sees_every_session();
    let sees_all = scope.has(Right::Metrics) && sees_sessions;
    let verification = if sees_all { verification(&app, is_admin).await } else { Value::Null };
    let body = json!({
        "status": if app.is_ready() { "ready" } else { "not ready" },
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": u64::try_from(app.clock.monotonic().as_millis()).unwrap_or(u64::MAX),
        "draining": app.shutdown.has_begun(),
        "store": store(&app, &sums, trouble.filter(|_| is_admin), (sees_sessions, sees_all)),
        "verification": verification,
        "search": search,
        "config": config(reload, is_admin),
        "now": sees_all.then(|| now(&app)),
        "since_start": sees_all.then(|| since_start(&app)),
        "limits": app.limits(),
    });
    Ok(json_page(StatusCode::OK, &body))
}

fn store(
    app: &App,
    sums: &StatsResponse,
    trouble: Option<String>,
    (sees_sessions, sees_all): (bool, bool),
) -> Value {
    if sees_all {
        app.inspection.refresh_measurement(app.clock.now_ms());
    }
    let measured = app.inspection.measured().filter(|_| sees_all);
    json!({
        "kind": app.service.store().capabilities().name,
        "is_reachable": app.health.trouble().is_none(),
        "trouble": trouble,
        "sessions": sums.sessions,
        "reopened_sessions": if sees_sessions { app.service.reopened_sessions() } else { 0 },
        "size": measured.map(|measured| measured.size),
        "checkpoints": measured.map(|measured| measured.checkpoints),
        "limits": store_limits(),
    })
}

/// What a store holds at the most, whatever is configured.
fn store_limits() -> Value {
    let limits: Map<String, Value> =
        STORE_LIMITS.iter().map(|(name, limit, _)| ((*name).to_owned(), json!(limit))).collect();
    Value::Object(limits)
}

/// Each bound with its name and what it means.
pub(super) const STORE_LIMITS: [(&str, usize, &str); 10] = [
    ("record_bytes", RECORD_BYTES_MAX, "Bytes of one record as it is stored."),
    ("batch_records", BATCH_RECORDS_MAX, "Records that are written together."),
    ("batch_bytes", BATCH_BYTES_MAX, "Bytes of those."),
    ("message_bytes", MESSAGE_BYTES_MAX, "Bytes of one message or document."),
    ("session_id_bytes", SESSION_ID_BYTES_MAX, "Bytes of the id of a session."),
    ("entry_id_bytes", ENTRY_ID_BYTES_MAX, "Bytes of the id of an entry."),
    ("metadata_bytes", METADATA_BYTES_MAX, "Bytes of the metadata of a session."),
    (
        "listed_branches",
        STATE_FORKS_MAX,
        "Branches of a session that are found without reading it; the oldest are left out.",
    ),
    (
        "streams_per_session",
        STATE_OPEN_STREAMS_MAX,
        "Messages of a session that may stream at the same time.",
    ),
    ("delta_bytes", DELTA_BYTES_MAX, "Bytes of one delta of a message that streams."),
];

/// Begins a verification of every byte of the store, unless one is running already. `/v1/health` shows the result.
pub(crate) async fn verify(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    caller.scope.may_administer()?;
    refuse_any_field(&app, request).await?;
    let directory = app.inspection.directory().ok_or_else(nothing_to_verify)?;
    if let Some(started_at) = app.inspection.begin_verification(app.clock.now_ms()) {
        tokio::spawn(verify_store(app.clone(), directory, started_at));
    }
    Ok(json_page(StatusCode::ACCEPTED, &verification(&app, true).await))
}

fn nothing_to_verify() -> Problem {
    let detail = "this server's store keeps no files here that could be verified";
    let hint = "Verify where the sessions are: on the main instance, or with the native adapter.";
    Problem::new(StatusCode::CONFLICT, "http/cannot_verify", detail, hint)
}

/// The last verification, and whether one is running. `null` for a store without files.
async fn verification(app: &App, is_admin: bool) -> Value {
    let Some(directory) = app.inspection.directory() else { return Value::Null };
    let running_since = app.inspection.running_since();
    let last = match directory.last_verification().await {
        Ok(last) => last,
        Err(error) => {
            // Not `never`: that would be a claim.
            tracing::error!(%error, "the result of the last verification could not be read");
            return Value::Null;
        }
    };
    let status = last.as_ref().map_or("never", Verification::status);
    let last = last.map(|last| {
        json!({
            "started_at": last.started_at,
            "finished_at": last.finished_at,
            "sessions": last.sessions,
            "bytes": last.bytes,
            "damaged": last.damaged,
            "damaged_sessions": is_admin.then_some(last.damaged_sessions),
            "failure": last.failure.filter(|_| is_admin),
        })
    });
    json!({ "status": status, "running_since": running_since, "last": last })
}

fn config(mut reload: ReloadStatus, is_admin: bool) -> ReloadStatus {
    reload.last_error = reload.last_error.filter(|_| is_admin);
    reload
}

/// The current activity of the server.
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
