//! What browsers need beside bearer tokens: a login that becomes a cookie, and tickets for streams.

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bough_service::Right;
use http::header::{AUTHORIZATION, ORIGIN, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;

use super::body::refuse_any_field;
use super::pages::json_page;
use super::problem::Problem;
use crate::app::App;
use crate::guard::{Caller, PassError, PassKind, Refusal, login_cookie_name};
use crate::limits::LOGIN_TIME;
use crate::net::Peer;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/login", post(log_in))
        .route("/v1/logout", post(log_out))
        .route("/v1/tickets", post(new_ticket))
}

/// Exchanges a bearer token for a cookie. On a server without tokens there is nothing to exchange, and the answer says
/// so.
async fn log_in(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    refuse_any_field(&app, request).await?;
    let rights: Vec<&str> = Right::ALL
        .iter()
        .filter(|right| caller.scope.has(**right))
        .map(|right| right.name())
        .collect();
    if caller.id.is_none() {
        let body = json!({ "token_id": null, "rights": rights, "expires_at": null });
        return Ok(json_page(StatusCode::OK, &body));
    }
    // A cookie must not renew itself: it would never expire.
    if !headers.contains_key(AUTHORIZATION) {
        return Err(Refusal::TokenNeeded.into());
    }
    let login = app.guard.issue_pass(PassKind::Login, &caller).map_err(no_pass)?;
    let cookie = cookie(&headers, peer, &login.text, LOGIN_TIME.as_secs())?;
    let body = json!({ "token_id": caller.id, "rights": rights, "expires_at": login.ends_at });
    Ok(([(SET_COOKIE, cookie)], json_page(StatusCode::OK, &body)).into_response())
}

async fn log_out(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    refuse_any_field(&app, request).await?;
    app.guard.log_out(&headers, peer);
    let cookie = cookie(&headers, peer, "", 0)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// A ticket for one stream, for an `EventSource`, which cannot send headers.
async fn new_ticket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    refuse_any_field(&app, request).await?;
    let ticket = app.guard.issue_pass(PassKind::Ticket, &caller).map_err(no_pass)?;
    let body = json!({ "ticket": ticket.text, "expires_at": ticket.ends_at });
    Ok(json_page(StatusCode::CREATED, &body))
}

/// Scripts cannot read the cookie, and browsers send it with requests of this site's pages only.
fn cookie(
    headers: &HeaderMap,
    peer: Peer,
    value: &str,
    seconds: u64,
) -> Result<HeaderValue, Problem> {
    let is_encrypted =
        headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if is_encrypted { "; Secure" } else { "" };
    let name = login_cookie_name(peer);
    let text =
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).map_err(|_| Problem::internal())
}

fn no_pass(error: PassError) -> Problem {
    match error {
        PassError::TooMany => Problem::too_busy("logins and tickets"),
        PassError::Entropy(error) => {
            tracing::error!(%error, "no login or ticket could be made");
            Problem::internal()
        }
    }
}
