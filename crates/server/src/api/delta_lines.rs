//! Lines of JSON out of the body of a request that stays open.

use std::time::Duration;

use axum::body::Body;
use bough_service::Request;
use bough_service::api::DeltaBlock;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body_lines::{BodyLines, LineError, lines_of};
use super::fields::fields;
use super::names::{UNKNOWN_MEMBER, place_of, unknown_name, with_nearest};
use super::plain_words::plain;
use crate::limits::DELTA_LINE_BYTES_MAX;
use crate::shutdown::Shutdown;

/// The reason why a line is refused that is not JSON.
pub(super) const NOT_JSON: &str = "it is not JSON; each line is one JSON object";

/// One line: text for a block, or the end of the message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeltaLine {
    pub(super) block: Option<u32>,
    pub(super) text: Option<String>,
    pub(super) kind: Option<DeltaBlock>,
    pub(super) function_call_id: Option<String>,
    pub(super) function_id: Option<String>,
    pub(super) finish: Option<Map<String, Value>>,
}

/// Why there are no more lines.
#[derive(Debug)]
pub(super) enum NoMore {
    /// The body ended.
    End,
    /// The connection broke.
    Broken,
    /// The server ends.
    Closing,
    /// Nothing came for too long.
    Idle,
    /// This line is invalid, counted from 1.
    Bad(u64, BadLine),
}

/// What is wrong with a line.
#[derive(Debug)]
pub(super) struct BadLine {
    /// The code of the problem.
    pub(super) code: &'static str,
    /// The error.
    pub(super) detail: String,
    /// The part of the line, as a JSON pointer, if the error is about one.
    pub(super) place: Option<String>,
}

impl BadLine {
    fn new(detail: impl Into<String>) -> Self {
        Self { code: "http/bad_request", detail: detail.into(), place: None }
    }

    fn unknown(detail: String, place: String) -> Self {
        Self { code: UNKNOWN_MEMBER, detail, place: Some(place) }
    }
}

/// Reads the deltas of a request.
pub(super) struct DeltaLines {
    lines: BodyLines,
    /// How many lines were read.
    count: u64,
    /// The refusal of a line that came with valid ones, which count.
    refusal: Option<NoMore>,
    idle: Duration,
}

impl DeltaLines {
    pub(super) fn new(body: Body, idle: Duration) -> Self {
        let lines = BodyLines::new(body, DELTA_LINE_BYTES_MAX);
        Self { lines, count: 0, refusal: None, idle }
    }

    /// The lines that have arrived, at least one. An empty line only shows that the writer is alive.
    pub(super) async fn next(&mut self, shutdown: &Shutdown) -> Result<Vec<DeltaLine>, NoMore> {
        loop {
            if let Some(refusal) = self.refusal.take() {
                return Err(refusal);
            }
            let arrived = tokio::select! {
                biased;
                arrived = tokio::time::timeout(self.idle, self.lines.next()) => arrived,
                () = shutdown.begun() => return Err(NoMore::Closing),
            };
            let piece = match arrived.map_err(|_| NoMore::Idle)? {
                Ok(piece) => piece.ok_or(NoMore::End)?,
                Err(LineError::Broken) => return Err(NoMore::Broken),
                Err(LineError::TooLong(_)) => {
                    self.count += 1;
                    return Err(self.too_long());
                }
            };
            let lines = self.parse_all(&piece);
            if !lines.is_empty() {
                return Ok(lines);
            }
        }
    }

    /// The lines of a piece up to one that is refused.
    fn parse_all(&mut self, piece: &[u8]) -> Vec<DeltaLine> {
        let mut lines = Vec::new();
        for text in lines_of(piece) {
            match self.parse(text) {
                Ok(line) => lines.push(line),
                Err(refusal) => {
                    self.refusal = Some(refusal);
                    break;
                }
            }
        }
        lines
    }

    fn parse(&mut self, text: &[u8]) -> Result<DeltaLine, NoMore> {
        self.count += 1;
        if text.len() > DELTA_LINE_BYTES_MAX {
            return Err(self.too_long());
        }
        read_line(text).map_err(|bad| NoMore::Bad(self.count, bad))
    }

    fn too_long(&self) -> NoMore {
        let detail = format!("it is longer than {DELTA_LINE_BYTES_MAX} bytes");
        NoMore::Bad(self.count, BadLine::new(detail))
    }
}

/// Refuses a line that is neither text nor the end, or both: a part of it would be lost without a word. Refuses members of
/// `finish` that finishing does not have.
fn check_line(line: DeltaLine) -> Result<DeltaLine, BadLine> {
    let Some(finish) = &line.finish else {
        let begins_block = line.kind.is_some() || line.function_call_id.is_some();
        let says_something = line.text.is_some() || begins_block;
        return if says_something {
            Ok(line)
        } else {
            Err(BadLine::new("it has neither `text` nor `finish`"))
        };
    };
    let is_alone = line.text.is_none()
        && line.block.is_none()
        && line.kind.is_none()
        && line.function_call_id.is_none()
        && line.function_id.is_none();
    if !is_alone {
        let words = "`finish` stands alone in its line; send the text in the line before";
        return Err(BadLine::new(words));
    }
    let known = bough_service::function("session::finish-message").map(fields).unwrap_or_default();
    let finish = Request::from(Value::Object(finish.clone()));
    match unknown_name(&finish, &known, &[]) {
        Some((name, detail)) => Err(BadLine::unknown(detail, place_of(&name, "/finish"))),
        None => Ok(line),
    }
}

/// A line, or what is wrong with it.
fn read_line(text: &[u8]) -> Result<DeltaLine, BadLine> {
    // A list of the values in their order would be read as the line.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(BadLine::new("it must be an object, not a list"));
    }
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut json);
    let ended = json.end();
    match read {
        Ok(_) if ended.is_err() => Err(BadLine::new(NOT_JSON)),
        Ok(line) => check_line(line),
        Err(error) if !error.inner().is_data() => Err(BadLine::new(NOT_JSON)),
        Err(error) => {
            let (words, member) = (plain(&error.inner().to_string()), error.path().to_string());
            if let Some((name, detail)) = with_nearest(&words) {
                return Err(BadLine::unknown(detail, place_of(name, "")));
            }
            let member = Some(member).filter(|member| !member.starts_with(['.', '?']));
            let place = member.as_ref().map(|member| format!("/{member}"));
            let of_member = words.strip_prefix("it ").zip(member);
            let detail = of_member.map(|(rest, member)| format!("`{member}` {rest}"));
            Err(BadLine { place, ..BadLine::new(detail.unwrap_or(words)) })
        }
    }
}
