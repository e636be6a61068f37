//! The deltas of a message as one request that stays open.
//!
//! Each line of the body is a delta, `{"block", "text", "kind"?, "function_call_id"?, "function_id"?}`, or the end of
//! the message, `{"finish": {...}}`. Each is answered by a line `{"revision"}`, in order, once it is durable; lines
//! that arrive together become durable together. An error is a last line `{"error": {...}}`. If a request ends before
//! it finished its message, the server closes the message as aborted after a short pause, in which another request may
//! continue it.

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bough_service::api::{AppendDeltaRequest, FinishMessageRequest};
use bough_service::{Request as CallRequest, ServiceError};
use bough_session::{EntryId, SessionId};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::{NDJSON, check_content_type};
use super::calls::{check_in_path, take_stream};
use super::conditions::{refuse_conditions, refuse_key};
use super::delta_lines::{BadLine, DeltaLine, DeltaLines, NoMore};
use super::fields::from_query;
use super::problem::Problem;
use super::streamed::streamed;
use crate::app::{App, Permit};
use crate::guard::Caller;
use crate::limits::{DELTA_ACKNOWLEDGEMENTS_WAITING, DELTA_STREAM_IDLE, STREAM_END_GRACE};

/// Takes the deltas of one message, line by line.
pub(crate) async fn append_deltas(
    State(app): State<App>,
    Path((session_id, entry_id)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let caller = Caller::of(&parts)?;
    check_in_path("session_id", &session_id)?;
    check_in_path("entry_id", &entry_id)?;
    let hint = "Read the message's revision, and go on from there.";
    refuse_key(&parts.headers, hint)?;
    refuse_conditions(&parts.headers, hint)?;
    from_query(parts.uri.query().unwrap_or_default(), &[])?;
    let session_id = SessionId::from_stored(session_id);
    let entry_id = EntryId::from_stored(entry_id);
    let revision = app.service.streaming_revision(&caller.scope, &session_id, &entry_id).await?;
    check_is_lines(&parts.headers)?;
    let permit = take_stream(&app)?;
    let (acknowledge, answers) = mpsc::channel(DELTA_ACKNOWLEDGEMENTS_WAITING);
    let lines = DeltaLines::new(body, DELTA_STREAM_IDLE);
    let feed = Feed { app, caller, session_id, entry_id, revision, acknowledge, _permit: permit };
    tokio::spawn(feed.run(lines));
    Ok(streamed(NDJSON, answers, |mut answers: mpsc::Receiver<Bytes>| async {
        let answer = answers.recv().await?;
        Some((answer, answers))
    }))
}

fn check_is_lines(headers: &HeaderMap) -> Result<(), Problem> {
    const KNOWN: [&str; 4] =
        [NDJSON, "application/ndjson", "application/jsonl", "application/json"];
    let hint = "Send `Content-Type: application/x-ndjson`.";
    let refusal = ("http/not_json", "the body must be lines of JSON", hint);
    check_content_type(headers, |kind| KNOWN.contains(&kind), refusal)
}

/// A request that feeds a message.
struct Feed {
    app: App,
    caller: Caller,
    session_id: SessionId,
    entry_id: EntryId,
    /// The message's revision, as far as this request knows.
    revision: u64,
    acknowledge: mpsc::Sender<Bytes>,
    _permit: Permit,
}

/// How a request ends.
enum End {
    /// The message is finished, by this request or by another.
    Finished,
    /// This server shuts down. The writer can continue the message through the next one.
    Closing,
    /// The writer disconnected, or ended its body without finishing the message.
    Unfinished,
}

impl Feed {
    async fn run(mut self, mut lines: DeltaLines) {
        let held = self.app.service.hold_stream(&self.session_id, &self.entry_id);
        let end = self.take_all(&mut lines).await;
        drop(held);
        if matches!(end, End::Unfinished) {
            let Self { app, caller, session_id, entry_id, revision, acknowledge, _permit } = self;
            // The response ends here; the rest happens in the background.
            drop((acknowledge, _permit, lines));
            abort_after_grace(&app, &caller, (&session_id, &entry_id), revision).await;
        }
    }

    async fn take_all(&mut self, lines: &mut DeltaLines) -> End {
        loop {
            let shutdown = self.app.shutdown.clone();
            let batch = match lines.next(&shutdown).await {
                Ok(batch) => batch,
                Err(NoMore::Closing) => return End::Closing,
                Err(no_more) => {
                    self.send_reason(no_more).await;
                    return End::Unfinished;
                }
            };
            match self.take_batch(batch).await {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(error) => return self.refuse(error).await,
            }
        }
    }

    /// Makes lines durable and acknowledges them.
    async fn take_batch(&mut self, batch: Vec<DeltaLine>) -> Result<Option<End>, ServiceError> {
        let mut lines = joined(batch).into_iter();
        while let Some((line, count)) = lines.next() {
            let (answer, is_end) = self.take_line(line).await?;
            let text = format!("{answer}\n").repeat(count);
            if self.acknowledge.send(Bytes::from(text)).await.is_err() {
                return Ok(Some(if is_end { End::Finished } else { End::Unfinished }));
            }
            if is_end && lines.len() > 0 {
                // A line after the end is refused as any delta of a finished message.
                let (entry, revision) = (self.entry_id.to_string(), self.revision);
                return Err(ServiceError::NotStreaming { entry, revision });
            }
            if is_end {
                return Ok(Some(End::Finished));
            }
        }
        Ok(None)
    }

    async fn take_line(&mut self, line: DeltaLine) -> Result<(Value, bool), ServiceError> {
        let scope = &self.caller.scope;
        if let Some(mut words) = line.finish {
            words.insert("session_id".to_owned(), json!(self.session_id));
            words.insert("entry_id".to_owned(), json!(self.entry_id));
            let words = CallRequest::from(Value::Object(words));
            let request: FinishMessageRequest = words.parse().map_err(below_finish)?;
            let done = self.app.service.finish_message(scope, request).await?;
            self.revision = done.revision;
            return Ok((
                json!({ "revision": done.revision, "stop_reason": done.stop_reason }),
                true,
            ));
        }
        let request = AppendDeltaRequest {
            session_id: self.session_id.clone(),
            entry_id: self.entry_id.clone(),
            block: line.block.unwrap_or_default(),
            text: line.text.unwrap_or_default(),
            kind: line.kind,
            function_call_id: line.function_call_id,
            function_id: line.function_id,
            expected_revision: None,
            origin: None,
        };
        self.revision = self.app.service.append_delta(scope, request).await?.revision;
        Ok((json!({ "revision": self.revision }), false))
    }

    async fn refuse(&self, error: ServiceError) -> End {
        let is_finished = matches!(error, ServiceError::NotStreaming { .. });
        self.send_problem(&Problem::from(error)).await;
        if is_finished { End::Finished } else { End::Unfinished }
    }

    async fn send_reason(&self, no_more: NoMore) {
        let hint = "Go on with another request, or finish the message.";
        match no_more {
            NoMore::End | NoMore::Broken | NoMore::Closing => {}
            NoMore::Idle => {
                let seconds = DELTA_STREAM_IDLE.as_secs();
                let detail = format!("nothing came for {seconds} seconds");
                let status = StatusCode::REQUEST_TIMEOUT;
                self.send_problem(&Problem::new(status, "http/timeout", detail, hint)).await;
            }
            NoMore::Bad(line, BadLine { code, detail, place }) => {
                let hint = "Send one JSON object a line, with `block` and `text`, or `finish`.";
                let whole = format!("line {line} is not a delta: {detail}");
                let mut problem = Problem::bad_request(whole, hint).with_code(code);
                if let Some(place) = place {
                    problem = problem.at_place(place, detail);
                }
                self.send_problem(&problem).await;
            }
        }
    }

    async fn send_problem(&self, problem: &Problem) {
        let line = format!("{}\n", json!({ "error": problem.body() }));
        // If the reader is gone, the acknowledgement is dropped.
        drop(self.acknowledge.send(Bytes::from(line)).await);
    }
}

/// The error of the end of a message, with its place in the line.
fn below_finish(error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Malformed { detail, path } => {
            ServiceError::Malformed { detail, path: format!("/finish{path}") }
        }
        other => other,
    }
}

/// Joins consecutive lines of the same block; each with the number of its lines.
fn joined(batch: Vec<DeltaLine>) -> Vec<(DeltaLine, usize)> {
    let mut joined: Vec<(DeltaLine, usize)> = Vec::new();
    for line in batch {
        let goes_on = |(before, _): &&mut (DeltaLine, usize)| {
            let is_text = before.finish.is_none() && line.finish.is_none();
            let is_same = before.block == line.block;
            is_text
                && is_same
                && line.function_call_id.is_none()
                && (line.kind.is_none() || line.kind == before.kind)
        };
        match (joined.last_mut().filter(goes_on), &line.text) {
            (Some((before, count)), Some(text)) => {
                before.text.get_or_insert_default().push_str(text);
                *count += 1;
            }
            _ => joined.push((line, 1)),
        }
    }
    joined
}

/// Closes a message as aborted if its request did not finish it and no other request continues it.
async fn abort_after_grace(
    app: &App,
    caller: &Caller,
    (session_id, entry_id): (&SessionId, &EntryId),
    revision: u64,
) {
    tokio::select! {
        () = tokio::time::sleep(STREAM_END_GRACE) => {}
        () = app.shutdown.begun() => return,
    }
    let aborted = app.service.abort_stream(&caller.scope, session_id, entry_id, revision).await;
    if let Err(error) = aborted {
        tracing::warn!(code = error.code(), "a stream that was given up could not be closed");
    }
}
