//! `/docs`: the reference of the API, made from the OpenAPI document and the list of error codes. Its pages have no script and need nothing from
//! elsewhere.

mod client_samples;
mod errors;
mod html;
mod page;
mod samples;

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};

use super::openapi;
use super::router::no_such_page;
use crate::app::App;
use crate::error_codes::error_code;

const STYLE: &str = include_str!("style.css");
const STYLE_PATH: &str = "/docs/style.css";

/// What a browser may do with a page: show it, with its own style.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/docs", get(async || file("text/html; charset=utf-8", page())))
        .route("/docs/errors/{*code}", get(error_page))
        .route(STYLE_PATH, get(async || file("text/css; charset=utf-8", STYLE)))
}

/// Whether a path is part of the reference, which holds no data and needs no token.
pub(crate) fn is_reference(path: &str) -> bool {
    path == "/docs" || path.starts_with("/docs/")
}

fn page() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| page::build(openapi::document()));
    &PAGE
}

async fn error_page(Path(code): Path<String>) -> Response {
    match error_code(&code) {
        Some(known) => file("text/html; charset=utf-8", errors::build(known)),
        None => no_such_page().await.into_response(),
    }
}

fn file(kind: &'static str, text: impl Into<axum::body::Body>) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text.into()).into_response()
}
