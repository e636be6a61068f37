//! The body of a request: one JSON object, within the server's bound.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request as HttpRequest;
use bough_service::Request;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::fields::from_query;
use super::names::UNKNOWN_MEMBER;
use super::problem::Problem;
use crate::app::App;
use crate::limits::BODY_STALL_TIMEOUT;
use crate::net::RequestBody;

/// The type of bodies that are lines of JSON.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// Reads the JSON object in a body; an empty body is an empty object.
pub(crate) async fn read_request(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<Request, Problem> {
    let bytes = read_json(app, headers, body).await?;
    Request::from_body(&bytes).map_err(|error| {
        let detail = match error.classify() {
            serde_json::error::Category::Data => "the body is not a JSON object".to_owned(),
            _ => format!("the body is not JSON: {error}"),
        };
        Problem::bad_request(detail, "Send one JSON object.")
    })
}

/// Refuses fields in the body of a request that takes none there. A condition among them would otherwise not be a condition.
pub(super) async fn refuse_fields(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    hint: &'static str,
) -> Result<(), Problem> {
    if body.is_end_stream() {
        return Ok(());
    }
    let request = read_request(app, headers, body).await?;
    let Some(name) = request.names().next() else { return Ok(()) };
    let detail = format!("there is no field `{name}` in the body of this request");
    Err(Problem::bad_request(&*detail, hint).with_code(UNKNOWN_MEMBER).at(name, &detail))
}

/// Refuses whatever a request says that has no fields at all.
pub(super) async fn refuse_any_field(app: &App, request: HttpRequest) -> Result<(), Problem> {
    let (parts, body) = request.into_parts();
    from_query(parts.uri.query().unwrap_or_default(), &[])?;
    refuse_fields(app, &parts.headers, body, "This request has no fields: leave it out.").await
}

/// Reads a body within the server's bound whose content type is JSON. An empty body may have any content type.
pub(crate) async fn read_json(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, Problem> {
    let most = app.limits().body_bytes;
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    let bytes = read_body(app, body, most).await?;
    if !bytes.is_empty() {
        let hint = "Send `Content-Type: application/json`.";
        check_content_type(headers, is_json, ("http/not_json", "the body must be JSON", hint))?;
    }
    Ok(bytes)
}

/// Reads a body to its end, unless it stops growing, or has waited longest when too many are read at once.
async fn read_body(app: &App, body: Body, most: usize) -> Result<Bytes, Problem> {
    let Some(open) = app.bodies.open_waiting(app.limits().requests) else {
        app.metrics.limited.add(1);
        return Err(Problem::too_busy("bodies of requests"));
    };
    let activity = open.activity();
    let body = Limited::new(RequestBody::new(body, activity.clone()), most);
    tokio::select! {
        read = collect(body, most) => read,
        () = activity.gives_way() => {
            app.metrics.limited.add(1);
            Err(stopped())
        }
    }
}

async fn collect(mut body: Limited<RequestBody<Body>>, most: usize) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    loop {
        let frame = tokio::time::timeout(BODY_STALL_TIMEOUT, body.frame()).await;
        let Some(frame) = frame.map_err(|_| stopped())? else { return Ok(bytes.into()) };
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => too_large(most),
            false => {
                Problem::bad_request("the body ended before it was complete", "Send it again.")
            }
        })?;
        if let Ok(piece) = frame.into_data() {
            bytes.extend_from_slice(&piece);
        }
    }
}

fn stopped() -> Problem {
    let detail = "the rest of the body did not come in time";
    let hint = "Send the request again, with its whole body at once.";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "http/timeout", detail, hint)
}

pub(super) fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes");
    let hint = "Send less at once, or raise limits.body_bytes.";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "http/too_large", detail, hint)
}

/// Accepts only bodies of these content types: a page of another origin can send other types without a preflight.
pub(super) fn check_content_type(
    headers: &HeaderMap,
    is_known: impl FnOnce(&str) -> bool,
    (code, detail, hint): (&'static str, &str, &'static str),
) -> Result<(), Problem> {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_known(&kind) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail, hint))
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}
