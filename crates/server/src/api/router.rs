//! The routes of the HTTP API.

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{MethodFilter, get, on, post};
use bough_service::{Method, functions};
use http::StatusCode;

use super::calls::{Call, answer_by_name, answer_call};
use super::problem::Problem;
use super::{delta_stream, events, health, logins, pages, record, reference};
use crate::app::App;
use crate::guard::with_guard;

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
        .route("/v1/health", get(health::health))
        .route("/v1/verify", post(health::verify))
        .route("/v1/events", get(events::of_all))
        .route("/v1/sessions/{session_id}/events", get(events::of_session))
        .merge(crate::mcp::router())
        .merge(logins::router())
        .merge(pages::router())
        .merge(crate::console::router())
        .merge(reference::router())
        .fallback(no_such_page)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app.clone());
    with_guard(router, app, pages::is_public)
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

pub(super) async fn no_such_page() -> Problem {
    let hint = "See /docs for the list of paths.";
    Problem::new(StatusCode::NOT_FOUND, "http/not_found", "there is nothing at this path", hint)
}

async fn no_such_method() -> Problem {
    let hint = "See the Allow header, or /docs.";
    let detail = "this path does not take this method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "http/method_not_allowed", detail, hint)
}
