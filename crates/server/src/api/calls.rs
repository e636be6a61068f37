//! One HTTP request, one call of a function.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, RawPathParams, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use bough_service::{
    Answer, Function, Method, Request, Right, ServiceError, SessionVersion, Tag, TagKind, function,
    functions, percent_encode,
};
use bough_session::{Incarnation, SessionId};
use http::header::{CONTENT_TYPE, ETAG, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use super::body::{read_request, refuse_fields};
use super::bounds::check_length;
use super::conditions::{Conditions, entry_tag, is_known_to_caller, tag};
use super::fields::{Field, fields, from_query, path_names};
use super::names::check_names;
use super::problem::Problem;
use crate::app::{App, Permit, Permits};
use crate::config::ends;
use crate::guard::Caller;
use crate::limits::REQUEST_TIMEOUT;

/// A function, and how its request is found in an HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Call(Arc<CallPlan>);

#[derive(Debug)]
struct CallPlan {
    function: &'static Function,
    takes_body: bool,
    /// Fields that may be in the query or the body; those in the path may be in the body too.
    fields: Vec<Field>,
    /// The names in the path.
    in_path: Vec<&'static str>,
}

impl Call {
    pub(crate) fn new(function: &'static Function, path: &'static str) -> Self {
        let in_path = path_names(path);
        let mut fields = fields(function);
        fields.retain(|field| !in_path.contains(&field.name.as_str()));
        let takes_body = takes_body(function.route.map(|route| route.method));
        Self(Arc::new(CallPlan { function, takes_body, fields, in_path }))
    }
}

/// Whether requests of this method have their fields in the body.
pub(crate) fn takes_body(method: Option<Method>) -> bool {
    matches!(method, Some(Method::Post | Method::Put | Method::Patch))
}

/// Handles one request, within the server's bounds.
pub(crate) async fn answer_call(app: &App, call: Call, request: HttpRequest) -> Response {
    let answer = within(app, answer(app, &call, request)).await;
    answer.unwrap_or_else(Problem::into_response)
}

/// Takes the right to work on a request. Taken once its body is there, so that slow callers keep nobody out.
pub(crate) fn take_request(app: &App) -> Result<Permit, Problem> {
    permitted(app, &app.requests, app.limits().requests, "requests")
}

/// Takes the right to hold a stream open.
pub(crate) fn take_stream(app: &App) -> Result<Permit, Problem> {
    permitted(app, &app.streams, app.limits().streams, "streams")
}

fn permitted(app: &App, permits: &Permits, most: usize, what: &str) -> Result<Permit, Problem> {
    permits.take(most).ok_or_else(|| {
        app.metrics.limited.add(1);
        Problem::too_busy(what)
    })
}

/// Calls a function by its name: the body is the request, and the response is the function's answer, `null` included.
pub(crate) async fn answer_by_name(
    State(app): State<App>,
    Path(function_id): Path<String>,
    request: HttpRequest,
) -> Response {
    let Some(function) = function(&function_id) else {
        return Problem::from(ServiceError::UnknownFunction { function: function_id })
            .into_response();
    };
    let (parts, body) = request.into_parts();
    let answer = within(&app, call_by_name(&app, function, &parts, body)).await;
    answer.unwrap_or_else(Problem::into_response)
}

async fn call_by_name(
    app: &App,
    function: &'static Function,
    parts: &Parts,
    body: Body,
) -> Result<Response, Problem> {
    let caller = Caller::of(parts)?;
    caller.scope.may_call(function)?;
    from_query(parts.uri.query().unwrap_or_default(), &[])?;
    let mut request = read_request(app, &parts.headers, body).await?;
    let _permit = take_request(app)?;
    if let Some(fields) = fields_by_name(function) {
        check_names(&request, fields, &[])?;
    }
    let conditions = Conditions::of(function, &parts.headers, &caller, &mut request)?;
    let begun = app.clock.monotonic();
    let answer = app.call_on_terms(&caller.scope, function, request, conditions.terms()).await;
    let answer = answer.map_err(|error| conditions.problem(error)).and_then(|answer| {
        conditions.check(&answer)?;
        Ok(answer)
    });
    app.count_call(function, begun, answer.is_ok());
    let answer = answer?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(replay_header(&answer));
    Ok((headers, answer.to_json()?).into_response())
}

/// The fields of a function that is called by its name. `None` for the protocol of stores, whose requests have several
/// forms.
fn fields_by_name(function: &Function) -> Option<&'static [Field]> {
    static FIELDS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
        let known = functions().iter().filter(|function| function.right != Right::Bridge);
        known.map(|function| (function.id, fields(function))).collect()
    });
    FIELDS.get(function.id).map(Vec::as_slice)
}

/// Says that the same call was carried out before.
fn replay_header(answer: &Answer) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_static("idempotency-replayed");
    answer.is_replay.then(|| (name, HeaderValue::from_static("true")))
}

/// Does something, unless it takes too long.
pub(crate) async fn within(
    app: &App,
    work: impl Future<Output = Result<Response, Problem>>,
) -> Result<Response, Problem> {
    let most = ends(app.limits().request_timeout, REQUEST_TIMEOUT);
    let Ok(answer) = tokio::time::timeout(most, work).await else {
        app.metrics.limited.add(1);
        let hint = "Repeat the request with the same Idempotency-Key or entry_id.";
        let detail = "the request took too long";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "http/timeout", detail, hint));
    };
    answer
}

async fn answer(app: &App, call: &Call, request: HttpRequest) -> Result<Response, Problem> {
    let plan = &call.0;
    let (mut parts, body) = request.into_parts();
    let caller = Caller::of(&parts)?;
    // Check before the body is read: the server does not wait for a caller without the right.
    caller.scope.may_call(plan.function)?;
    let in_path = path_fields(&mut parts).await?;
    let query = parts.uri.query().unwrap_or_default();
    let mut request = if plan.takes_body {
        from_query(query, &[])?;
        let request = read_request(app, &parts.headers, body).await?;
        check_names(&request, &plan.fields, &plan.in_path)?;
        request
    } else {
        refuse_fields(app, &parts.headers, body, "Send the fields in the query.").await?;
        Value::Object(from_query(query, &plan.fields)?).into()
    };
    let _permit = take_request(app)?;
    put_path_fields(&mut request, &in_path)?;
    let conditions = Conditions::of(plan.function, &parts.headers, &caller, &mut request)?;
    let asked = Asked { plan, caller: &caller, headers: &parts.headers, in_path, conditions };
    let begun = app.clock.monotonic();
    let answer = asked.answer(app, request).await;
    app.count_call(plan.function, begun, answer.is_ok());
    answer
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

fn put_path_fields(request: &mut Request, in_path: &[(String, String)]) -> Result<(), Problem> {
    for (name, text) in in_path {
        check_in_path(name, text)?;
        check_length(name, text).map_err(ServiceError::from)?;
        if !request.put(name, Value::String(text.clone())) {
            let detail = format!("`{name}` in the body is not the one in the path");
            let problem = Problem::bad_request(&*detail, "Leave it out of the body.");
            return Err(problem.at(name, &detail));
        }
    }
    Ok(())
}

/// Refuses ids that clients and proxies treat as steps in the path.
pub(crate) fn check_in_path(name: &str, text: &str) -> Result<(), Problem> {
    if text != "." && text != ".." {
        return Ok(());
    }
    let detail = format!("`{name}` cannot be `{text}` in a path");
    let hint =
        "Name it in the body of POST /v1/call/{function_id}, or in the query of GET /v1/events.";
    Err(Problem::bad_request(detail, hint))
}

/// A request whose fields are known.
struct Asked<'a> {
    plan: &'a CallPlan,
    caller: &'a Caller,
    headers: &'a HeaderMap,
    /// The fields that are in the path.
    in_path: Vec<(String, String)>,
    conditions: Conditions,
}

/// What is known of a session besides the answer.
#[derive(Default)]
struct Known {
    /// The session's own tag.
    tag: Option<String>,
    /// Its incarnation, for the tags of its entries.
    incarnation: Option<Incarnation>,
}

impl Asked<'_> {
    async fn answer(&self, app: &App, request: Request) -> Result<Response, Problem> {
        // Compare with the caller's tag only after the call, which checks who may read.
        let before = self.before(app).await?;
        let (scope, function) = (&self.caller.scope, self.plan.function);
        let answer = app.call_on_terms(scope, function, request, self.conditions.terms()).await;
        let answer = answer.map_err(|error| self.conditions.problem(error))?;
        let told = match &answer.tag {
            Some(Tag::Change(version)) => self.after(app, version).await?,
            _ => before,
        };
        self.respond(&answer, &told)
    }

    /// Reads the session, if the response has a tag.
    async fn before(&self, app: &App) -> Result<Known, Problem> {
        let incarnation = self.conditions.incarnation();
        let tells_tag = match self.plan.function.tag {
            Some(TagKind::Session) => true,
            Some(TagKind::Entry) => incarnation.is_none(),
            Some(TagKind::Change | TagKind::Step | TagKind::Leaf | TagKind::Document) | None => {
                false
            }
        };
        if !tells_tag {
            return Ok(Known { tag: None, incarnation });
        }
        Ok(Known::of(self.version(app).await?))
    }

    /// Reads the session after a change that gave its fields this version. If another change came after it, there is no
    /// tag: it would name what the caller has not seen.
    async fn after(&self, app: &App, fields: &str) -> Result<Known, Problem> {
        let version = self.version(app).await?;
        Ok(Known::of(version.filter(|version| version.is_of_fields(fields))))
    }

    async fn version(&self, app: &App) -> Result<Option<SessionVersion>, Problem> {
        let id = SessionId::from_stored(self.named("session_id"));
        Ok(app.service.session_version(&self.caller.scope, &id).await?)
    }

    fn respond(&self, answer: &Answer, known: &Known) -> Result<Response, Problem> {
        self.conditions.check(answer)?;
        let body = answer.to_json()?;
        if body == b"null" {
            return Err(self.not_there());
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(tag) = answer.tag.as_ref().and_then(|tag| known.print(tag)) {
            if is_known_to_caller(self.headers, &tag) && !self.plan.takes_body {
                let headers = HeaderMap::from_iter(header(ETAG, &tag));
                return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
            }
            headers.extend(header(ETAG, &tag));
        }
        let mut status = StatusCode::OK;
        if let Some(made) = &answer.made {
            status = StatusCode::CREATED;
            headers.extend(location(made));
        }
        headers.extend(replay_header(answer));
        Ok((status, headers, body).into_response())
    }

    /// Over HTTP, a `null` answer is a 404.
    fn not_there(&self) -> Problem {
        let has = |name: &str| self.in_path.iter().any(|(known, _)| known == name);
        let session = self.named("session_id");
        let error = if has("key") {
            ServiceError::DocumentNotFound { scope: self.named("scope"), key: self.named("key") }
        } else if has("recording_id") {
            ServiceError::RecordingNotOpen { recording_id: self.named("recording_id") }
        } else if has("entry_id") {
            ServiceError::EntryNotFound { session, entry: self.named("entry_id") }
        } else {
            ServiceError::NotFound { session }
        };
        error.into()
    }

    /// A field of the path.
    fn named(&self, name: &str) -> String {
        let found = self.in_path.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

impl Known {
    fn of(version: Option<SessionVersion>) -> Self {
        version.map_or_else(Self::default, |version| Self {
            tag: Some(tag(&version.to_string())),
            incarnation: Some(version.incarnation()),
        })
    }

    /// A tag in the form of a header value, which callers send back in `If-Match` or `If-None-Match`.
    fn print(&self, named: &Tag) -> Option<String> {
        match named {
            Tag::Session | Tag::Change(_) => self.tag.clone(),
            Tag::Entry(revision) => Some(entry_tag(self.incarnation?, *revision)),
            Tag::Leaf(entry) => Some(tag(entry.as_str())),
            Tag::Document(version) => Some(tag(&version.to_string())),
        }
    }
}

/// The address of a new session; its id may have any characters. None if the id cannot be in a path.
fn location(session: &SessionId) -> Option<(HeaderName, HeaderValue)> {
    check_in_path("session_id", session.as_str()).ok()?;
    header(LOCATION, &format!("/v1/sessions/{}", percent_encode(session.as_str())))
}

fn header(name: HeaderName, text: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((name, HeaderValue::from_str(text).ok()?))
}
