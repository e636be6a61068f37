//! Errors as `application/problem+json` (RFC 9457), with a stable code and the next step.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bough_service::ServiceError;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::names::{UNKNOWN_HINT, UNKNOWN_MEMBER, escaped, place_of, with_nearest};
use super::plain_words::plain;
use crate::error_codes::{error_code, page_of};
use crate::guard::Refusal;

/// The smallest message, for callers that have not sent one yet.
macro_rules! example_message {
    () => {
        r#"{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":0}"#
    };
}

/// The smallest message.
pub(crate) const EXAMPLE_MESSAGE: &str = example_message!();

const MESSAGE_HINT: &str =
    concat!("A message is ", example_message!(), "; see /docs for the rest.");

/// An error, for a program (status and code) and for a person (detail and hint).
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    pub(crate) hint: &'static str,
    pub(crate) data: Option<Value>,
    /// The error of one part of the request.
    field: Option<Box<FieldError>>,
    /// The holder of a locked session, as written in its lock.
    pub(crate) holder: Option<Box<str>>,
}

/// The error of one part of a request.
#[derive(Clone, Debug)]
struct FieldError {
    /// The part, as a JSON pointer into the body.
    path: String,
    detail: String,
}

/// The problem code of a response, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProblemCode(pub(crate) &'static str);

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        let detail = detail.into();
        Self { status, code, detail, hint, data: None, field: None, holder: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>, hint: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "http/bad_request", detail, hint)
    }

    pub(crate) fn too_busy(what: &str) -> Self {
        let detail = format!("the server has as many {what} as it takes");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "http/too_busy",
            detail,
            "Try again in a moment.",
        )
    }

    pub(crate) fn internal() -> Self {
        let detail = "the server failed while it worked on this request";
        let hint = "Repeat the request; if it fails again, read the server's log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "http/internal", detail, hint)
    }

    /// The same problem under another code.
    pub(crate) const fn with_code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// The same problem, about a field of the request.
    pub(crate) fn at(self, field: &str, detail: &str) -> Self {
        self.at_place(format!("/{}", escaped(field)), detail.to_owned())
    }

    /// The same problem, about a part of the request.
    pub(super) fn at_place(mut self, path: String, detail: String) -> Self {
        self.field = Some(FieldError { path, detail }.into());
        self
    }

    /// The same problem with the status of a failed precondition, if the caller set the condition by a header.
    pub(crate) fn into_failed_precondition(mut self) -> Self {
        self.status = StatusCode::PRECONDITION_FAILED;
        self
    }

    /// The document.
    pub(crate) fn body(&self) -> Value {
        let status = self.status.as_u16();
        let is_described =
            error_code(self.code).is_some_and(|known| known.statuses.contains(&status));
        debug_assert!(is_described, "error_codes.rs does not describe {} with {status}", self.code);
        let mut body = json!({
            "type": page_of(self.code),
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": status,
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
        });
        if let Some(map) = body.as_object_mut() {
            map.extend(self.data.clone().map(|data| ("data".to_owned(), data)));
            if let Some(field) = &self.field {
                let error = json!({ "path": field.path, "detail": field.detail });
                map.insert("errors".to_owned(), json!([error]));
            }
            let holder = self.holder.as_deref().map(Value::from);
            map.extend(holder.map(|holder| ("holder".to_owned(), holder)));
        }
        body
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::Malformed { detail, path } = &error {
            return malformed(detail, path);
        }
        let status = StatusCode::from_u16(error.http_status());
        let holder = match &error {
            ServiceError::Locked { holder } => Some(holder.as_str().into()),
            _ => None,
        };
        Self {
            holder,
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: error.code(),
            detail: detail(&error),
            hint: error.hint(),
            data: error.data(),
            field: None,
        }
    }
}

/// The message in the words of HTTP: clients of the bus match on some messages that name its functions.
fn detail(error: &ServiceError) -> String {
    match error {
        ServiceError::InvalidEntryKind { entry } => {
            format!("entry {entry} is a custom entry; only messages can be changed")
        }
        ServiceError::EmptyBatch => "a batch must have at least one entry".to_owned(),
        other => other.to_string(),
    }
}

/// A request that is not of its type.
fn malformed(detail: &str, path: &str) -> Problem {
    if let Some((name, detail)) = with_nearest(detail) {
        let problem = Problem::bad_request(&*detail, UNKNOWN_HINT).with_code(UNKNOWN_MEMBER);
        return problem.at_place(place_of(name, path), detail);
    }
    let is_message = ["/message", "/entries"].iter().any(|field| path.starts_with(field));
    let missing = detail.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let path = match missing {
        Some(name) => format!("{path}/{name}"),
        None => path.to_owned(),
    };
    let is_message = is_message || path.starts_with("/message");
    let detail = plain(&with_whole_place(detail, &path));
    let hint = if is_message { MESSAGE_HINT } else { "See /docs for the fields." };
    let mut problem =
        Problem::new(StatusCode::BAD_REQUEST, "session/malformed_request", detail.clone(), hint);
    if !path.is_empty() {
        problem = problem.at_place(path, detail);
    }
    problem
}

/// The decoder's message, which ends with the member that it is about, with all that is known of the place: `usage.input` and
/// not only `usage`.
pub(super) fn with_whole_place(detail: &str, path: &str) -> String {
    let Some((main, member)) = detail.strip_suffix('`').and_then(|text| text.rsplit_once(", in `"))
    else {
        return detail.to_owned();
    };
    let mut steps = path.split('/').skip_while(|step| *step != member).skip(1).peekable();
    if steps.peek().is_none() {
        return detail.to_owned();
    }
    let steps = steps.map(|step| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    });
    format!("{main}, in `{member}{}`", steps.collect::<String>())
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::FORBIDDEN);
        Self::new(status, refusal.code(), refusal.to_string(), refusal.hint())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.status;
        response.extensions_mut().insert(ProblemCode(self.code));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"bough\""));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
