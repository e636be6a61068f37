//! A request body that is read line by line while it arrives.

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;

/// The lines of a body. A line is returned when its end has arrived.
pub(crate) struct BodyLines {
    body: Body,
    /// The bytes that are not a whole line yet.
    rest: Vec<u8>,
    line_bytes_max: usize,
    has_ended: bool,
}

/// Why no more lines can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    /// A line is longer than the bound.
    TooLong(usize),
    /// The connection broke before the body was complete.
    Broken,
}

impl BodyLines {
    pub(crate) fn new(body: Body, line_bytes_max: usize) -> Self {
        Self { body, rest: Vec::new(), line_bytes_max, has_ended: false }
    }

    /// The lines that arrived since the last call, without empty ones. Waits for at least one. `None` at the end of the
    /// body.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, LineError> {
        while !self.has_ended {
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let lines = frame.into_data().map(|data| self.take(&data)).unwrap_or_default();
                    if self.rest.len() > self.line_bytes_max {
                        return Err(LineError::TooLong(self.line_bytes_max));
                    }
                    if !lines.is_empty() {
                        return Ok(Some(lines));
                    }
                }
                Some(Err(_)) => return Err(LineError::Broken),
                None => {
                    self.has_ended = true;
                    let last = std::mem::take(&mut self.rest);
                    if has_words(&last) {
                        return Ok(Some(vec![last]));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Adds the bytes that arrived, and takes out the whole lines.
    fn take(&mut self, data: &Bytes) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut pieces = data.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.rest.extend_from_slice(piece);
            if pieces.peek().is_some() {
                lines.push(std::mem::take(&mut self.rest));
            }
        }
        lines.retain(|line| has_words(line));
        lines
    }
}

fn has_words(line: &[u8]) -> bool {
    !line.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn lines(pieces: &[&'static str], most: usize) -> BodyLines {
        let frames: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes())))
            .collect();
        BodyLines::new(Body::from_stream(futures_util::stream::iter(frames)), most)
    }

    #[tokio::test]
    async fn lines_are_whole_wherever_the_body_is_cut() {
        let mut lines = lines(&["a", "b\nc", "d\n\n  \ne\nf", "g"], 8);
        let mut found = Vec::new();
        while let Some(more) = lines.next().await.unwrap() {
            found.extend(more.into_iter().map(|line| String::from_utf8(line).unwrap()));
        }
        assert_eq!(found, ["ab", "cd", "e", "fg"]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_has_a_bound() {
        let mut lines = lines(&["ab\n", "cde", "fgh"], 4);
        assert_eq!(lines.next().await, Ok(Some(vec![b"ab".to_vec()])));
        assert_eq!(lines.next().await, Err(LineError::TooLong(4)));
    }
}
