//! A request body that is read line by line while it arrives.

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::{FutureExt, StreamExt};

use crate::limits::LINES_BATCH_BYTES;

/// The lines of a body, in pieces as they arrive.
pub(crate) struct BodyLines {
    body: BodyDataStream,
    /// The bytes that are not a whole line yet.
    rest: Vec<u8>,
    /// How many of them are known to hold no line break.
    searched: usize,
    line_bytes_max: usize,
    /// How the body ended, once it has.
    end: Option<Result<(), LineError>>,
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
        let body = body.into_data_stream();
        Self { body, rest: Vec::new(), searched: 0, line_bytes_max, end: None }
    }

    /// The whole lines that arrived since the last call; none if only a part of a line did. Waits until something arrives. `None`
    /// at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        if self.rest.len() > self.line_bytes_max {
            return Err(LineError::TooLong(self.line_bytes_max));
        }
        if let Some(end) = self.end {
            return end.map(|()| None);
        }
        let arrived = self.body.next().await;
        self.take(arrived);
        while self.end.is_none() && self.rest.len() < LINES_BATCH_BYTES {
            let Some(arrived) = self.body.next().now_or_never() else { break };
            self.take(arrived);
        }
        Ok(Some(self.take_lines()))
    }

    fn take_lines(&mut self) -> Vec<u8> {
        let new = self.rest.get(self.searched..).unwrap_or_default();
        let found = new.iter().rposition(|byte| *byte == b'\n');
        let mut end = found.map_or(0, |at| self.searched + at + 1);
        // The last line of a complete body needs no line break.
        if self.end == Some(Ok(())) && self.rest.len() - end <= self.line_bytes_max {
            end = self.rest.len();
        }
        self.searched = self.rest.len() - end;
        if end == 0 {
            return Vec::new();
        }
        let rest = self.rest.split_off(end);
        std::mem::replace(&mut self.rest, rest)
    }

    fn take(&mut self, arrived: Option<Result<Bytes, axum::Error>>) {
        match arrived {
            Some(Ok(bytes)) => self.rest.extend_from_slice(&bytes),
            Some(Err(_)) => self.end = Some(Err(LineError::Broken)),
            None => self.end = Some(Ok(())),
        }
    }
}

/// The lines of a piece, without blank ones.
pub(crate) fn lines_of(piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    piece.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
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
        while let Some(piece) = lines.next().await.unwrap() {
            found.extend(lines_of(&piece).map(|line| String::from_utf8(line.to_vec()).unwrap()));
        }
        assert_eq!(found, ["ab", "cd", "e", "fg"]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_has_a_bound() {
        let mut lines = lines(&["ab\n", "cde", "fgh"], 5);
        assert_eq!(lines.next().await, Ok(Some(b"ab\n".to_vec())));
        assert_eq!(lines.next().await, Err(LineError::TooLong(5)));
    }
}
