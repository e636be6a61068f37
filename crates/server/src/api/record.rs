//! `POST /v1/record`: the events of an agent, one a line, recorded while they arrive.
//!
//! The response is lines too: after each piece of the body, the answer of `session::record` for its events, which are
//! durable then. A caller whose connection broke asks for the state of the recording (`GET /v1/record/{recording_id}`)
//! and continues from there.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use bough_service::api::{RecordRequest, RecordResponse};
use bough_service::{Request as CallRequest, ServiceError};
use bough_session::RawJson;
use serde::Serialize;
use serde_json::{Value, json};

use super::body::{NDJSON, check_content_type, too_large};
use super::body_lines::{BodyLines, LineError, lines_of};
use super::calls::take_stream;
use super::conditions::{refuse_conditions, refuse_key};
use super::delta_lines::NOT_JSON;
use super::fields::{Field, fields, from_query};
use super::plain_words::{NOT_AN_EVENT, plain};
use super::problem::{Problem, with_whole_place};
use super::streamed::streamed;
use crate::app::{App, Permit};
use crate::guard::{Caller, Refusal};
use crate::limits::RECORDED_LINES_PER_CALL;

/// The parameters, for the reader and for the document.
pub(crate) fn record_fields() -> Vec<Field> {
    let mut known = bough_service::function("session::record").map(fields).unwrap_or_default();
    known.retain(|field| field.name != "events");
    known
}

pub(crate) async fn record(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let caller = Caller::of(&parts)?;
    // Check before the body is read: the server does not wait for a caller without the right.
    let function = bough_service::function("session::record").ok_or_else(Problem::internal)?;
    caller.scope.may_call(function)?;
    let hint = "Send `recording_id`: events that were recorded are not recorded again.";
    refuse_key(&parts.headers, hint)?;
    refuse_conditions(&parts.headers, hint)?;
    check_is_lines(&parts.headers)?;
    let asked = from_query(parts.uri.query().unwrap_or_default(), &record_fields())?;
    let mut next: RecordRequest = CallRequest::from(with_events(asked)).parse()?;
    // A recording without a name cannot be continued, so it ends with the body.
    let finish = next.finish.take().unwrap_or(next.recording_id.is_empty());
    let limits = app.limits();
    let permit = take_stream(&app)?;
    let lines = BodyLines::new(body, limits.body_bytes);
    let mut recording =
        Recording { app, caller, lines, next, finish, ended: false, taken: 0, _permit: permit };
    // The first answer decides the status: a request that is refused at once fails like any other.
    let first = recording.step().await?;
    Ok(recording.into_response(first))
}

/// The request needs its events, which are in the body.
fn with_events(mut asked: serde_json::Map<String, Value>) -> Value {
    asked.insert("events".to_owned(), Value::Array(Vec::new()));
    Value::Object(asked)
}

/// A recording whose events arrive.
struct Recording {
    app: App,
    caller: Caller,
    lines: BodyLines,
    /// The next call, without its events.
    next: RecordRequest,
    finish: bool,
    ended: bool,
    /// How many events of the body were recorded.
    taken: usize,
    _permit: Permit,
}

impl Recording {
    fn into_response(self, first: Option<RecordResponse>) -> Response {
        streamed(NDJSON, (self, first), |(mut recording, first)| async {
            let answer = match first {
                Some(first) => Ok(Some(first)),
                None => recording.step().await,
            };
            let line = match answer {
                Ok(answer) => line_of(&answer?),
                Err(problem) => {
                    recording.ended = true;
                    line_of(&json!({ "error": problem.body() }))
                }
            };
            Some((Bytes::from(line), (recording, None)))
        })
    }

    /// Records the next events; `None` when everything is recorded.
    async fn step(&mut self) -> Result<Option<RecordResponse>, Problem> {
        let shutdown = self.app.shutdown.clone();
        while !self.ended {
            let arrived = tokio::select! {
                biased;
                // What arrived is durable. The caller can continue with the next server.
                () = shutdown.begun() => return Ok(None),
                arrived = self.lines.next() => arrived.map_err(line_problem)?,
            };
            if !self.app.guard.may_stay(&self.caller) {
                return Err(Refusal::TokenNotGood.into());
            }
            let answer = match arrived {
                Some(piece) => self.record(&piece).await?,
                None => {
                    self.ended = true;
                    if self.finish { Some(self.call(Vec::new(), true).await?) } else { None }
                }
            };
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Records the events of a piece; `None` if it has none.
    async fn record(&mut self, piece: &[u8]) -> Result<Option<RecordResponse>, Problem> {
        let mut answer = None;
        let lines: Vec<&[u8]> = lines_of(piece).collect();
        for some in lines.chunks(RECORDED_LINES_PER_CALL) {
            let numbered = (self.taken + 1..).zip(some);
            let events =
                numbered.map(|(number, line)| event_of(number, line)).collect::<Result<_, _>>()?;
            answer = Some(self.call(events, false).await?);
            self.taken += some.len();
        }
        Ok(answer)
    }

    /// A refusal in the terms of a request with lines.
    fn refused(&self, error: ServiceError) -> Problem {
        let ServiceError::Malformed { detail, path } = &error else { return error.into() };
        let place = path.strip_prefix("/events/").and_then(|place| place.split('/').next());
        let index = place.and_then(|index| index.parse::<usize>().ok());
        let Some(index) = index else { return error.into() };
        let why = detail.split_once(NOT_AN_EVENT).map_or(detail.as_str(), |(_, why)| why);
        not_an_event(self.taken + index + 1, &plain(&with_whole_place(why, path)))
    }

    async fn call(
        &mut self,
        events: Vec<RawJson>,
        finish: bool,
    ) -> Result<RecordResponse, Problem> {
        let request = RecordRequest { events, finish: Some(finish), ..self.next.clone() };
        let count = request.events.len() as u64;
        let answer = self.app.service.record(&self.caller.scope, request).await;
        let answer = answer.map_err(|error| self.refused(error))?;
        self.next.recording_id.clone_from(&answer.recording_id);
        // Lines that the recording already had count too.
        self.next.after = self.next.after.map(|after| after.saturating_add(count));
        Ok(answer)
    }
}

fn event_of(number: usize, line: &[u8]) -> Result<RawJson, Problem> {
    let text = std::str::from_utf8(line).map_err(|_| not_an_event(number, "it is not UTF-8"))?;
    RawJson::parse(text).map_err(|_| not_an_event(number, NOT_JSON))
}

/// Events are counted over the whole body: in which pieces it arrived is nothing that its sender knows.
fn not_an_event(number: usize, why: &str) -> Problem {
    Problem::bad_request(
        format!("line {number} of the body, empty ones not counted,{NOT_AN_EVENT}{why}"),
        "Send one event a line; GET /v1/record/{recording_id} says which are recorded.",
    )
}

fn line_problem(error: LineError) -> Problem {
    match error {
        LineError::TooLong(most) => too_large(most),
        LineError::Broken => {
            Problem::bad_request("the body ended before it was complete", "Send the rest again.")
        }
    }
}

fn check_is_lines(headers: &http::HeaderMap) -> Result<(), Problem> {
    let hint = "Send `Content-Type: application/x-ndjson`, one event a line.";
    let refusal = ("http/not_ndjson", "the body must be lines of JSON", hint);
    check_content_type(headers, |kind| kind == NDJSON, refusal)
}

fn line_of<T: Serialize>(answer: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}
