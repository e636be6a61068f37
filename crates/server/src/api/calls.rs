//! One HTTP request, one call of a function.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, RawPathParams, Request, State};
use axum::response::{IntoResponse, Response};
use bough_service::{CallTerms, Function, Method, ServiceError, SessionCursor};
use bough_session::{Incarnation, SessionId};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};

use super::conditions::{
    Precondition, apply_if_match, entry_tag, idempotency_key, is_known_to_caller, tag,
};
use super::fields::{Field, fields, from_query, path_names};
use super::problem::Problem;
use crate::app::App;
use crate::config::{LimitsConfig, ends};
use crate::guard::Caller;
use crate::limits::REQUEST_TIMEOUT;

/// A function, and how its request is found in an HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Call(Arc<CallPlan>);

#[derive(Debug)]
struct CallPlan {
    function: &'static Function,
    takes_body: bool,
    /// Fields that may be in the query; those in the path are not.
    query: Vec<Field>,
    /// Whether the function makes a session, and says where it is.
    makes_session: bool,
}

impl Call {
    pub(crate) fn new(function: &'static Function, path: &str) -> Self {
        let in_path = path_names(path);
        let mut query = fields(function);
        query.retain(|field| !in_path.contains(&field.name.as_str()));
        let method = function.route.map(|route| route.method);
        Self(Arc::new(CallPlan {
            function,
            takes_body: takes_body(method),
            query,
            makes_session: makes_session(function),
        }))
    }
}

/// Whether requests of this method have their fields in the body.
pub(crate) fn takes_body(method: Option<Method>) -> bool {
    matches!(method, Some(Method::Post | Method::Put | Method::Patch))
}

/// Whether a function answers a `POST` with a session that was not there before.
pub(crate) fn makes_session(function: &Function) -> bool {
    let is_post = function.route.is_some_and(|route| route.method == Method::Post);
    let schema = function.response_schema();
    let has = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    is_post && has("session_id") && has("meta")
}

/// Works on one request, within the server's bounds.
pub(crate) async fn answer_call(app: &App, call: Call, request: Request) -> Response {
    let limits = app.limits();
    let Some(place) = app.requests.take(limits.requests) else {
        app.metrics.limited.add(1);
        return Problem::too_busy("requests").into_response();
    };
    let answer = within(app, &limits, answer(app, &call, request)).await;
    drop(place);
    answer.unwrap_or_else(Problem::into_response)
}

/// Calls a function by its name: the request is the body, and the answer is what the function says, `null` included.
pub(crate) async fn answer_by_name(
    State(app): State<App>,
    Path(function_id): Path<String>,
    request: Request,
) -> Response {
    let function = bough_service::function(&function_id);
    let Some(function) = function else {
        return Problem::from(ServiceError::UnknownFunction { function: function_id })
            .into_response();
    };
    let limits = app.limits();
    let Some(place) = app.requests.take(limits.requests) else {
        app.metrics.limited.add(1);
        return Problem::too_busy("requests").into_response();
    };
    let (parts, body) = request.into_parts();
    let work = call_by_name(&app, function, &parts, body);
    let answer = within(&app, &limits, work).await;
    drop(place);
    answer.unwrap_or_else(Problem::into_response)
}

async fn call_by_name(
    app: &App,
    function: &'static Function,
    parts: &Parts,
    body: Body,
) -> Result<Response, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let mut fields = body_fields(&parts.headers, body, app.limits().body_bytes).await?;
    let conditions = Conditions::of(function, parts, &caller, &mut fields)?;
    let request = Value::Object(fields);
    let answer = app.call_on_terms(&caller.scope, function, request, conditions.terms()).await;
    let answer = answer.map_err(|error| conditions.problem(error))?;
    conditions.check(&answer)?;
    let kind = HeaderValue::from_static("application/json");
    Ok(([(CONTENT_TYPE, kind)], body_of(&answer)?).into_response())
}

/// An answer as text. Not through its `Display`, which writes each part of it by itself.
fn body_of(answer: &Value) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(answer).map_err(|_| Problem::internal())
}

/// Does something, unless it takes too long.
async fn within(
    app: &App,
    limits: &LimitsConfig,
    work: impl Future<Output = Result<Response, Problem>>,
) -> Result<Response, Problem> {
    let most = ends(limits.request_timeout, REQUEST_TIMEOUT);
    let Ok(answer) = tokio::time::timeout(most, work).await else {
        app.metrics.limited.add(1);
        let hint = "Repeat the request with the same Idempotency-Key or entry_id.";
        let detail = "the request took too long";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http/timeout", detail, hint));
    };
    answer
}

async fn answer(app: &App, call: &Call, request: Request) -> Result<Response, Problem> {
    let plan = &call.0;
    let (mut parts, body) = request.into_parts();
    let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let in_path = path_fields(&mut parts).await?;
    let query = parts.uri.query().unwrap_or_default();
    let mut fields = if plan.takes_body {
        from_query(query, &[]).map_err(bad_query)?;
        body_fields(&parts.headers, body, app.limits().body_bytes).await?
    } else {
        from_query(query, &plan.query).map_err(bad_query)?
    };
    put_path_fields(&mut fields, in_path)?;
    let conditions = Conditions::of(plan.function, &parts, &caller, &mut fields)?;
    let asked = Asked { plan, caller: &caller, headers: &parts.headers, conditions };
    asked.answer(app, fields).await
}

/// What the headers of a request ask of its call.
#[derive(Clone, Copy)]
struct Conditions {
    precondition: Precondition,
    key: Option<[u8; 32]>,
}

impl Conditions {
    fn of(
        function: &Function,
        parts: &Parts,
        caller: &Caller,
        fields: &mut Map<String, Value>,
    ) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let precondition = apply_if_match(function.id, headers, fields)?;
        let key = idempotency_key(function.id, headers, caller.scope.who(), fields)?;
        Ok(Self { precondition, key })
    }

    const fn terms(self) -> CallTerms {
        CallTerms { key: self.key, life: self.precondition.life }
    }

    /// A conflict with what a header asked for is a failed precondition.
    fn problem(self, error: ServiceError) -> Problem {
        let is_conflict =
            matches!(error, ServiceError::LeafConflict { .. } | ServiceError::OtherLife { .. });
        let problem = Problem::from(error);
        let failed = is_conflict && self.precondition.is_there;
        if failed { problem.into_failed_precondition() } else { problem }
    }

    /// Refuses an answer that says that the precondition was not met.
    fn check(self, answer: &Value) -> Result<(), Problem> {
        if self.precondition.is_there && answer.get("updated") == Some(&Value::Bool(false)) {
            return Err(changed_meanwhile(answer));
        }
        Ok(())
    }
}

fn bad_query(error: super::fields::QueryError) -> Problem {
    Problem::bad_request(error.to_string(), "See /openapi.json for the parameters.")
}

/// The parts of the path that are fields of the request.
async fn path_fields(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|_| {
        Problem::bad_request(
            "the path is not UTF-8",
            "Encode ids in paths as UTF-8 and percent-encode them.",
        )
    })?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn put_path_fields(
    fields: &mut Map<String, Value>,
    in_path: Vec<(String, String)>,
) -> Result<(), Problem> {
    for (name, text) in in_path {
        let value = Value::String(text);
        match fields.insert(name.clone(), value.clone()) {
            Some(said) if said != value && !said.is_null() => {
                let detail = format!("`{name}` in the body is not the one in the path");
                return Err(Problem::bad_request(detail, "Leave it out of the body."));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The JSON object in the body; an empty body is an empty object.
async fn body_fields(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Map<String, Value>, Problem> {
    let said =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    let bytes = read_body(body, most).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    check_content_type(headers)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!("the body is not JSON: {error}");
        Problem::bad_request(detail, "Send one JSON object.")
    })?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Problem::bad_request("the body is not a JSON object", "Send one JSON object.")),
    }
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

fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes");
    let hint = "Send less at once, or raise limits.body_bytes.";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "http/too_large", detail, hint)
}

/// Only JSON is taken as JSON: a page of another origin can send other types without asking first.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    let detail = "the body must be JSON";
    let hint = "Send `Content-Type: application/json`.";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http/not_json", detail, hint))
}

/// A request whose fields are known.
struct Asked<'a> {
    plan: &'a CallPlan,
    caller: &'a Caller,
    headers: &'a HeaderMap,
    conditions: Conditions,
}

/// What is known of a session before the call: it is never newer than the answer.
#[derive(Default)]
struct Before {
    /// The session's own tag.
    tag: Option<String>,
    /// Its life, for the tags of its entries.
    life: Option<Incarnation>,
}

impl Asked<'_> {
    async fn answer(&self, app: &App, fields: Map<String, Value>) -> Result<Response, Problem> {
        let request = Value::Object(fields);
        // Compared with what the caller has only after the call: that knows who may read.
        let before = self.before(app, &request).await?;
        let named = Named::of(&request);
        let (scope, function) = (&self.caller.scope, self.plan.function);
        let answer = app.call_on_terms(scope, function, request, self.conditions.terms()).await;
        let answer = answer.map_err(|error| self.problem(error))?;
        self.respond(named, &answer, &before)
    }

    fn problem(&self, error: ServiceError) -> Problem {
        let is_malformed = matches!(error, ServiceError::Malformed { .. });
        let problem = self.conditions.problem(error);
        if is_malformed { problem.with_fields_of(self.plan.function) } else { problem }
    }

    /// Looks at the session, where a tag will be told.
    async fn before(&self, app: &App, request: &Value) -> Result<Before, Problem> {
        let life = self.conditions.precondition.life;
        let tells_tag = match self.plan.function.id {
            "session::get" | "session::get-message" => true,
            "session::update-message" => life.is_none(),
            _ => false,
        };
        if !tells_tag {
            return Ok(Before { tag: None, life });
        }
        let id = request.get("session_id").and_then(Value::as_str).unwrap_or_default();
        let store = app.service.store();
        let state = store.state(&SessionId::from_stored(id)).await.map_err(ServiceError::from)?;
        let Some(now) = state.filter(|now| self.caller.scope.sees(now.state.metadata.as_ref()))
        else {
            return Ok(Before::default());
        };
        let place = SessionCursor::at(now.head.incarnation, now.position);
        let is_session = self.plan.function.id == "session::get";
        let tag = is_session.then(|| tag(&place.to_string()));
        Ok(Before { tag, life: Some(now.head.incarnation) })
    }

    fn respond(&self, named: Named, answer: &Value, before: &Before) -> Result<Response, Problem> {
        if answer.is_null() {
            return Err(named.not_there());
        }
        self.conditions.check(answer)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(tag) = self.tag(answer, before) {
            if is_known_to_caller(self.headers, &tag) && !self.plan.takes_body {
                return Ok((StatusCode::NOT_MODIFIED, tag_header(&tag)).into_response());
            }
            headers.extend(tag_header(&tag));
        }
        let mut status = StatusCode::OK;
        if self.plan.makes_session {
            status = StatusCode::CREATED;
            headers.extend(location(answer));
        }
        Ok((status, headers, body_of(answer)?).into_response())
    }

    /// The tag of what was read or written. Only such are told as `If-Match` takes back, or `If-None-Match`.
    fn tag(&self, answer: &Value, before: &Before) -> Option<String> {
        let of_entry = |place: &str| {
            let revision = answer.pointer(place).and_then(Value::as_u64)?;
            Some(entry_tag(before.life?, revision))
        };
        match self.plan.function.id {
            "session::get" => before.tag.clone(),
            "session::get-message" => of_entry("/entry/revision"),
            "session::update-message" | "session::append-delta" => of_entry("/revision"),
            "session::append" => answer.get("entry_id").and_then(Value::as_str).map(tag),
            "session::append-many" => answer.get("last_entry_id").and_then(Value::as_str).map(tag),
            _ => None,
        }
    }
}

/// What a request is about, for saying that it is not there.
struct Named {
    session: String,
    entry: Option<String>,
}

impl Named {
    fn of(request: &Value) -> Self {
        let field =
            |name: &str| request.get(name).map(|id| id.as_str().unwrap_or_default().to_owned());
        Self { session: field("session_id").unwrap_or_default(), entry: field("entry_id") }
    }

    /// Over HTTP, what is not there is a 404.
    fn not_there(self) -> Problem {
        match self.entry {
            Some(entry) => ServiceError::EntryNotFound { session: self.session, entry }.into(),
            None => ServiceError::NotFound { session: self.session }.into(),
        }
    }
}

fn changed_meanwhile(answer: &Value) -> Problem {
    let detail = "the message is at another revision than If-Match says";
    let hint = "Read it again, then send the update with its new ETag.";
    let mut problem =
        Problem::new(StatusCode::PRECONDITION_FAILED, "session/revision_conflict", detail, hint);
    problem.data = Some(answer.clone());
    problem
}

fn tag_header(tag: &str) -> HeaderMap {
    header(ETAG, tag)
}

/// Where the new session is; its id may have any characters.
fn location(answer: &Value) -> HeaderMap {
    let id = answer.get("session_id").and_then(Value::as_str).unwrap_or_default();
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    header(LOCATION, &format!("/v1/sessions/{}", id.replace('+', "%20")))
}

fn header(name: http::HeaderName, text: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
    headers
}
