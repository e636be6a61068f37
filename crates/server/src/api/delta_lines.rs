//! Lines of JSON out of the body of a request that stays open.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bough_service::Request;
use bough_service::api::DeltaBlock;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fields::fields;
use super::names::{UNKNOWN_MEMBER, check_names, with_nearest};
use super::plain_words::plain;
use crate::limits::{DELTA_BATCH_BYTES, DELTA_LINE_BYTES_MAX};
use crate::shutdown::Shutdown;

/// What is said of a line that no JSON reader takes.
pub(super) const NOT_JSON: &str = "it is not JSON; each line is one JSON object";

/// One line: text for a block, or the end of the message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeltaLine {
    pub(super) block: Option<u32>,
    #[serde(default)]
    pub(super) text: String,
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
    Bad {
        /// Which line.
        line: u64,
        /// The error.
        detail: String,
        /// The code of the problem.
        code: &'static str,
    },
}

/// Reads lines as they come.
pub(super) struct DeltaLines {
    body: BodyDataStream,
    /// Bytes that arrived and are not parsed yet.
    buffer: Vec<u8>,
    /// How many lines were read.
    count: u64,
    /// Why nothing more will be added to the buffer.
    ended: Option<NoMore>,
    idle: Duration,
}

impl DeltaLines {
    pub(super) fn new(body: Body, idle: Duration) -> Self {
        Self { body: body.into_data_stream(), buffer: Vec::new(), count: 0, ended: None, idle }
    }

    /// The lines that have arrived, at least one; waits for it.
    pub(super) async fn next(&mut self, shutdown: &Shutdown) -> Result<Vec<DeltaLine>, NoMore> {
        loop {
            self.fill_at_hand();
            let lines = self.take_lines()?;
            if !lines.is_empty() {
                return Ok(lines);
            }
            if let Some(ended) = self.ended.take() {
                return Err(ended);
            }
            self.wait(shutdown).await?;
        }
    }

    /// Reads what has arrived, up to the size of one batch.
    fn fill_at_hand(&mut self) {
        while self.ended.is_none() && self.buffer.len() < DELTA_BATCH_BYTES {
            let Some(came) = self.body.next().now_or_never() else { return };
            self.take_in(came);
        }
    }

    async fn wait(&mut self, shutdown: &Shutdown) -> Result<(), NoMore> {
        let came = tokio::select! {
            biased;
            () = shutdown.begun() => return Err(NoMore::Closing),
            came = tokio::time::timeout(self.idle, self.body.next()) => came,
        };
        self.take_in(came.map_err(|_| NoMore::Idle)?);
        Ok(())
    }

    fn take_in(&mut self, came: Option<Result<axum::body::Bytes, axum::Error>>) {
        match came {
            Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
            Some(Err(_)) => self.ended = Some(NoMore::Broken),
            None => self.end(),
        }
    }

    /// Ends the last line. A body that ends well is whole, also where its last line has no line break; one that was cut off is an
    /// error before that.
    fn end(&mut self) {
        if !is_blank(&self.buffer) {
            self.buffer.push(b'\n');
        }
        self.ended = Some(NoMore::End);
    }

    /// The whole lines in the buffer. Empty ones only show that the writer is alive.
    fn take_lines(&mut self) -> Result<Vec<DeltaLine>, NoMore> {
        let Some(end) = self.buffer.iter().rposition(|byte| *byte == b'\n') else {
            return self.check_length().map(|()| Vec::new());
        };
        let rest = self.buffer.split_off(end + 1);
        let whole = std::mem::replace(&mut self.buffer, rest);
        let mut lines = Vec::new();
        for text in whole.split(|byte| *byte == b'\n').filter(|text| !is_blank(text)) {
            match self.parse(text) {
                Ok(line) => lines.push(line),
                // The lines before it count: it is refused at the next call.
                Err(bad) if lines.is_empty() => return Err(bad),
                Err(bad) => {
                    self.ended = Some(bad);
                    self.buffer.clear();
                    break;
                }
            }
        }
        Ok(lines)
    }

    fn parse(&mut self, text: &[u8]) -> Result<DeltaLine, NoMore> {
        self.count += 1;
        if text.len() > DELTA_LINE_BYTES_MAX {
            return Err(self.too_long());
        }
        read_line(text).map_err(|(code, detail)| NoMore::Bad { line: self.count, detail, code })
    }

    fn check_length(&mut self) -> Result<(), NoMore> {
        if self.buffer.len() <= DELTA_LINE_BYTES_MAX {
            return Ok(());
        }
        self.count += 1;
        Err(self.too_long())
    }

    fn too_long(&self) -> NoMore {
        let detail = format!("it is longer than {DELTA_LINE_BYTES_MAX} bytes");
        NoMore::Bad { line: self.count, detail, code: "http/bad_request" }
    }
}

/// Refuses members of `finish` that finishing does not have.
fn check_finish(line: DeltaLine) -> Result<DeltaLine, (&'static str, String)> {
    let Some(finish) = &line.finish else { return Ok(line) };
    let known = bough_service::function("session::finish-message").map(fields).unwrap_or_default();
    let finish = Request::from(Value::Object(finish.clone()));
    check_names(&finish, &known, &[]).map_err(|problem| (problem.code, problem.detail))?;
    Ok(line)
}

/// A line, or the code and the words of its error.
fn read_line(text: &[u8]) -> Result<DeltaLine, (&'static str, String)> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut json);
    let ended = json.end();
    match read {
        Ok(_) if ended.is_err() => Err(("http/bad_request", NOT_JSON.to_owned())),
        Ok(line) => check_finish(line),
        Err(error) if !error.inner().is_data() => Err(("http/bad_request", NOT_JSON.to_owned())),
        Err(error) => {
            let (words, place) = (plain(&error.inner().to_string()), error.path().to_string());
            if let Some(named) = with_nearest(&words) {
                return Err((UNKNOWN_MEMBER, named));
            }
            let of_member = words.strip_prefix("it ").filter(|_| !place.starts_with(['.', '?']));
            let words = of_member.map(|rest| format!("`{place}` {rest}")).unwrap_or(words);
            Err(("http/bad_request", words))
        }
    }
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}
