//! The body of a request: one JSON object, within the server's bound.

use axum::body::{Body, Bytes};
use bough_service::Request;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::problem::Problem;

/// The type of bodies that are lines of JSON.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// Reads the JSON object in a body of at most `most` bytes; an empty body is an empty object.
pub(crate) async fn read_request(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Request, Problem> {
    let bytes = read_json(headers, body, most).await?;
    Request::from_body(&bytes).map_err(|error| {
        let detail = match error.classify() {
            serde_json::error::Category::Data => "the body is not a JSON object".to_owned(),
            _ => format!("the body is not JSON: {error}"),
        };
        Problem::bad_request(detail, "Send one JSON object.")
    })
}

/// Reads a body of at most `most` bytes whose content type is JSON. An empty body may have any content type.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Bytes, Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    let bytes = read_body(body, most).await?;
    if !bytes.is_empty() {
        check_content_type(headers)?;
    }
    Ok(bytes)
}

async fn read_body(body: Body, most: usize) -> Result<Bytes, Problem> {
    let collected = Limited::new(body, most).collect().await;
    collected.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            return too_large(most);
        }
        Problem::bad_request("the body ended before it was complete", "Send it again.")
    })
}

pub(super) fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes");
    let hint = "Send less at once, or raise limits.body_bytes.";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "http/too_large", detail, hint)
}

/// The content type of the body, in lower case and without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Accepts only JSON content types: a page of another origin can send other types without a
/// preflight.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = media_type(headers);
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    let detail = "the body must be JSON";
    let hint = "Send `Content-Type: application/json`.";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http/not_json", detail, hint))
}
