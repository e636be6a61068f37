//! Errors as `application/problem+json` (RFC 9457), with a stable code and the next step.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bough_service::{Function, ServiceError};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::guard::Refusal;

/// The smallest message, for those who have not sent one yet.
macro_rules! example_message {
    () => {
        r#"{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":0}"#
    };
}

/// The smallest message.
pub(crate) const EXAMPLE_MESSAGE: &str = example_message!();

const MESSAGE_HINT: &str =
    concat!("A message is ", example_message!(), "; see /openapi.json for the rest.");

/// What went wrong, for a program (status and code) and for a person (detail and hint).
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    pub(crate) hint: &'static str,
    pub(crate) data: Option<Value>,
    /// Who holds a session that is locked, in its own words.
    pub(crate) holder: Option<Box<str>>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self { status, code, detail: detail.into(), hint, data: None, holder: None }
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
        let hint = "Repeat the request; if it fails again, look into the server's log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "http/internal", detail, hint)
    }

    /// The same problem with a hint for who called a function over HTTP, where the fields are wrong.
    pub(crate) fn with_fields_of(mut self, function: &Function) -> Self {
        let takes_message = matches!(function.id, "session::append" | "session::append-many");
        self.hint = if takes_message { MESSAGE_HINT } else { "See /openapi.json for the fields." };
        self
    }

    /// The same problem with the status of a failed precondition, when the caller made one by a header.
    pub(crate) fn into_failed_precondition(mut self) -> Self {
        self.status = StatusCode::PRECONDITION_FAILED;
        self
    }

    /// The document.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
        });
        if let Some(map) = body.as_object_mut() {
            map.extend(self.data.clone().map(|data| ("data".to_owned(), data)));
            let holder = self.holder.as_deref().map(Value::from);
            map.extend(holder.map(|holder| ("holder".to_owned(), holder)));
        }
        body
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let status = StatusCode::from_u16(error.http_status());
        let holder = match &error {
            ServiceError::Locked { holder } => Some(holder.as_str().into()),
            _ => None,
        };
        Self {
            holder,
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: error.code(),
            detail: error.to_string(),
            hint: error.hint(),
            data: error.data(),
        }
    }
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
