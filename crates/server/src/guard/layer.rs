//! The layer that every request passes first, on every listener: the guard, and the log of refused
//! requests.

use std::any::Any;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, ORIGIN, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use tower_http::catch_panic::CatchPanicLayer;

use super::Refusal;
use crate::api::{Problem, ProblemCode};
use crate::app::App;
use crate::limits::HEADER_BYTES_MAX;
use crate::net::Peer;

/// Names a request in its answer and in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Which paths of a listener need no token.
pub(crate) type IsPublic = fn(&str) -> bool;

/// Puts the guard in front of a router, and catches panics of its handlers.
pub(crate) fn with_guard(router: Router, app: &App, is_public: IsPublic) -> Router {
    let counting = app.clone();
    let net = CatchPanicLayer::custom(move |_: Box<dyn Any + Send>| {
        counting.metrics.panics.add(1);
        tracing::error!("a handler panicked; the request was answered with 500");
        Problem::internal().into_response()
    });
    router.layer(net).layer(from_fn_with_state((app.clone(), is_public), guard))
}

/// Checks a request before anything else reads it.
async fn guard(
    State((app, is_public)): State<(App, IsPublic)>,
    request: Request,
    next: Next,
) -> Response {
    let mut line = RefusalLine::of(&app, &request);
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_else(Peer::unknown);
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match app.guard.check_host_and_origin(request.headers(), peer.local) {
        Ok(()) if head_bytes(&request) <= HEADER_BYTES_MAX => {
            let mut response = if is_public(request.uri().path()) && !is_preflight(&request) {
                next.run(request).await
            } else {
                enter(&app, request, peer, &mut line, next).await
            };
            // The guard accepted the origin, so it is on the list, or our own.
            if let Some(origin) = origin {
                allow_origin(response.headers_mut(), origin);
            }
            response
        }
        Ok(()) => {
            app.metrics.refused.add(1);
            head_too_large().into_response()
        }
        Err(refusal) => refuse(&app, refusal),
    };
    line.write(&response);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let Ok(id) = HeaderValue::from_str(&line.request) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// Identifies the caller, and passes the request on.
async fn enter(
    app: &App,
    request: Request,
    peer: Peer,
    line: &mut RefusalLine,
    next: Next,
) -> Response {
    if is_preflight(&request) {
        return preflight();
    }
    let (mut parts, body) = request.into_parts();
    let ticket = take_ticket(&mut parts);
    match app.guard.identify(&parts, peer, ticket.as_deref()) {
        Ok(caller) => {
            line.who.clone_from(&caller.id);
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refuse(app, refusal),
    }
}

/// The bytes of the address and the headers.
fn head_bytes(request: &Request) -> usize {
    let headers = request.headers().iter();
    let headers: usize = headers.map(|(name, value)| name.as_str().len() + value.len()).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    headers + target
}

fn head_too_large() -> Problem {
    let detail =
        format!("the address and the headers are larger than {HEADER_BYTES_MAX} bytes together");
    let hint =
        "Shorten the address, or send the request in the body of POST /v1/call/{function_id}.";
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Problem::new(status, "http/head_too_large", detail, hint)
}

fn refuse(app: &App, refusal: Refusal) -> Response {
    app.metrics.refused.add(1);
    Problem::from(refusal).into_response()
}

/// Whether a browser only asks what it may send (a preflight).
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key("access-control-request-method")
        && request.headers().contains_key(ORIGIN)
}

fn preflight() -> Response {
    let mut headers = HeaderMap::new();
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
    let names = "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, \
                 mcp-protocol-version, mcp-method, mcp-name";
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(names));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    let exposed =
        HeaderValue::from_static("etag, location, retry-after, idempotency-replayed, x-request-id");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// Takes the ticket out of the address of a stream. Other requests can send headers and need none.
fn take_ticket(parts: &mut Parts) -> Option<String> {
    let is_stream = route_of(parts.extensions.get::<MatchedPath>()).ends_with("/events");
    let (ticket, uri) = without_ticket(&parts.uri).filter(|_| is_stream)?;
    parts.uri = uri;
    Some(ticket)
}

/// The first `ticket=` of a query, and the address without it.
fn without_ticket(uri: &Uri) -> Option<(String, Uri)> {
    let mut pairs: Vec<&str> = uri.query()?.split('&').collect();
    let at = pairs.iter().position(|pair| pair.starts_with("ticket="))?;
    let ticket = pairs.remove(at).trim_start_matches("ticket=").to_owned();
    let mark = if pairs.is_empty() { "" } else { "?" };
    let target = format!("{}{mark}{}", uri.path(), pairs.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse::<PathAndQuery>().ok()?);
    Some((ticket, Uri::from_parts(parts).ok()?))
}

fn route_of(matched: Option<&MatchedPath>) -> &str {
    matched.map_or("", MatchedPath::as_str)
}

/// The log line of a refused request. It contains nothing that its sender wrote.
struct RefusalLine {
    request: String,
    method: &'static str,
    /// The route with the names of its fields instead of their values; empty if there is none.
    route: String,
    who: Option<String>,
}

impl RefusalLine {
    fn of(app: &App, request: &Request) -> Self {
        Self {
            request: app.next_request_id(),
            method: known_method(request.method()),
            route: route_of(request.extensions().get::<MatchedPath>()).to_owned(),
            who: None,
        }
    }

    /// Writes the line, unless the request succeeded.
    fn write(&self, response: &Response) {
        let Self { request, method, route, who } = self;
        let (status, who) = (response.status(), who.as_deref().unwrap_or_default());
        let code = response.extensions().get().map_or("", |ProblemCode(code)| code);
        let number = status.as_u16();
        if status.is_server_error() {
            tracing::warn!(request, method, route, who, status = number, code, "request failed");
        } else if status.is_client_error() {
            tracing::info!(request, method, route, who, status = number, code, "request refused");
        }
    }
}

fn known_method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_taken_out_of_the_query() {
        let check = |uri: &str, expected: Option<(&str, &str)>| {
            let taken = without_ticket(&uri.parse().unwrap());
            let taken = taken.map(|(ticket, uri)| (ticket, uri.to_string()));
            let expected = expected.map(|(ticket, uri)| (ticket.to_owned(), uri.to_owned()));
            assert_eq!(taken, expected, "{uri}");
        };
        check("/v1/events?ticket=abc", Some(("abc", "/v1/events")));
        check("/v1/events?after=x&ticket=abc&types=y", Some(("abc", "/v1/events?after=x&types=y")));
        check("/v1/events?tickets=abc", None);
        check("/v1/events", None);
    }
}
