//! A response whose body is made piece by piece while it is sent.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

/// A response of a content type with the pieces that `next` makes, until it makes none. Proxies pass each piece on at once.
pub(crate) fn streamed<S, F>(
    content_type: &'static str,
    state: S,
    next: impl FnMut(S) -> F + Send + 'static,
) -> Response
where
    S: Send + 'static,
    F: Future<Output = Option<(Bytes, S)>> + Send + 'static,
{
    let mut next = next;
    let pieces = futures_util::stream::unfold(state, move |state| {
        let piece = next(state);
        async { piece.await.map(|(piece, state)| (Ok::<_, Infallible>(piece), state)) }
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}
