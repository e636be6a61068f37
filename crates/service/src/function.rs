//! A row of the function table: what every surface needs to know of a function.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::answer::{Answer, Precondition, Repeat, TagKind};
use crate::error::ServiceError;
use crate::request::Request;
use crate::scope::{Right, Scope};
use crate::service::Service;

/// One function that callers can name.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name, such as `session::create`.
    pub id: &'static str,
    /// The name of its operation in generated clients, which have no namespace that gives the context: `create_session`.
    pub operation: &'static str,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// What a caller needs to be allowed to call it.
    pub right: Right,
    /// Where it is served over HTTP; `None` for functions that only instances call.
    pub route: Option<Route>,
    /// What `If-Match` asks of it; `None` where nothing can be asked.
    pub precondition: Option<Precondition>,
    /// What repeating a call with the same key means.
    pub repeat: Repeat,
    /// What the `ETag` of its answers names.
    pub tag: Option<TagKind>,
    /// Whether it makes a session, and its answer names it.
    pub makes_session: bool,
    pub(crate) request_schema: fn() -> Value,
    pub(crate) response_schema: fn() -> Value,
    pub(crate) handler: Handler,
}

/// An HTTP method and a path whose `{names}` are fields of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, such as `/v1/sessions/{session_id}`.
    pub path: &'static str,
}

/// An HTTP method. `Get` and `Delete` take the request from the query, the others from the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Adds.
    Post,
    /// Replaces.
    Put,
    /// Changes some fields.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Answer, ServiceError>> + Send>>;
pub(crate) type Handler = fn(Service, Scope, Request) -> Answering;

impl Function {
    /// The JSON Schema (draft 07) of the request.
    #[must_use]
    pub fn request_schema(&self) -> Value {
        (self.request_schema)()
    }

    /// The JSON Schema (draft 07) of the response.
    #[must_use]
    pub fn response_schema(&self) -> Value {
        (self.response_schema)()
    }

    /// Calls it, whether or not it was called before.
    pub(crate) async fn run(
        &self,
        service: &Service,
        scope: &Scope,
        request: Request,
    ) -> Result<Answer, ServiceError> {
        (self.handler)(service.clone(), scope.clone(), request).await
    }

    /// Whether the function only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.right == Right::Read
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("id", &self.id).finish()
    }
}
