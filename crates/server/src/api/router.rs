//! Which request goes where, and what every request passes first.

use std::any::Any;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use bough_service::{Method, functions};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, ORIGIN, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use tower_http::catch_panic::CatchPanicLayer;

use super::calls::{Call, answer_by_name, answer_call};
use super::problem::Problem;
use super::{delta_stream, events, pages, record};
use crate::app::App;
use crate::net::Peer;

/// Every route of the HTTP API.
pub(crate) fn http_router(app: &App) -> Router {
    let mut router = Router::new();
    for function in functions() {
        let Some(route) = function.route else { continue };
        let call = Call::new(function, route.path);
        let handler = move |State(app): State<App>, request: Request| async move {
            answer_call(&app, call, request).await
        };
        router = router.route(route.path, on(method(route.method), handler));
    }
    let router = router
        .route("/v1/call/{function_id}", post(answer_by_name))
        .route("/v1/record", post(record::record))
        .route(
            "/v1/sessions/{session_id}/entries/{entry_id}/deltas",
            post(delta_stream::append_deltas),
        )
        .route("/v1/events", get(events::of_all))
        .route("/v1/sessions/{session_id}/events", get(events::of_session))
        .merge(pages::router())
        .fallback(no_such_page)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app.clone());
    with_guard(router, app)
}

const fn method(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// Puts the guard before a router, and a net below it.
pub(crate) fn with_guard(router: Router, app: &App) -> Router {
    let counting = app.clone();
    router.layer(from_fn_with_state(app.clone(), guard)).layer(CatchPanicLayer::custom(
        move |_: Box<dyn Any + Send>| {
            counting.metrics.panics.add(1);
            tracing::error!("a handler panicked; the request was answered with 500");
            Problem::internal().into_response()
        },
    ))
}

/// The first thing that looks at a request.
async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match let_in(&app, &request) {
        Ok(true) => preflight(),
        Ok(false) => enter(&app, request, next).await,
        Err(problem) => {
            app.metrics.refused.add(1);
            return problem.into_response();
        }
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let Some(origin) = origin {
        // It passed the door, so it is one of the list, or our own.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(VARY, HeaderValue::from_static("origin"));
        let exposed = HeaderValue::from_static("etag, location, retry-after");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

/// Compares host and origin; says whether this is a browser that only asks what it may send.
fn let_in(app: &App, request: &Request) -> Result<bool, Problem> {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_else(Peer::nobody);
    app.guard.check_door(request.headers(), peer.local)?;
    let asks = request.method() == http::Method::OPTIONS
        && request.headers().contains_key("access-control-request-method")
        && request.headers().contains_key(ORIGIN);
    Ok(asks)
}

async fn enter(app: &App, mut request: Request, next: Next) -> Response {
    if !pages::is_public(request.uri().path()) {
        let peer = request.extensions().get::<Peer>().copied().unwrap_or_else(Peer::nobody);
        match app.guard.identify(request.headers(), peer) {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
            }
            Err(refusal) => {
                app.metrics.refused.add(1);
                return Problem::from(refusal).into_response();
            }
        }
    }
    next.run(request).await
}

fn preflight() -> Response {
    let mut headers = HeaderMap::new();
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
    let names =
        "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id";
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(names));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn no_such_page() -> Problem {
    let hint = "See /openapi.json for what there is.";
    Problem::new(StatusCode::NOT_FOUND, "http/not_found", "there is nothing at this path", hint)
}

async fn no_such_method() -> Problem {
    let hint = "See the Allow header, or /openapi.json.";
    let detail = "this path does not take this method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "http/method_not_allowed", detail, hint)
}
