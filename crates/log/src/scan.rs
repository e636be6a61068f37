//! Reading a segment line by line. Scanning never writes and never decides: it says what it found.

use std::sync::Arc;

use bough_platform::File;

use crate::error::Result;
use crate::limits;

/// Bytes asked for first; each further read asks for twice as many, up to the largest.
const CHUNK_BYTES_FIRST: usize = 8 * 1024;
const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// One line of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its line break.
    Whole {
        /// The byte where it begins.
        at: u64,
        /// Its text.
        bytes: Vec<u8>,
    },
    /// Bytes after the last line break, or a line longer than any frame.
    Partial {
        /// The byte where it begins.
        at: u64,
    },
}

/// Walks the lines of a file from a place.
#[derive(Debug)]
pub(crate) struct LineScan {
    file: Arc<dyn File>,
    /// The byte in the file that `buffer[start]` is.
    at: u64,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    chunk: usize,
}

impl LineScan {
    pub(crate) fn new(file: Arc<dyn File>, at: u64) -> Self {
        Self { file, at, buffer: Vec::new(), start: 0, ended: false, chunk: CHUNK_BYTES_FIRST }
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line>> {
        let mut searched = 0;
        loop {
            let pending = self.buffer.get(self.start..).unwrap_or_default();
            let fresh = pending.get(searched..).unwrap_or_default();
            if let Some(found) = memchr::memchr(b'\n', fresh) {
                return Ok(Some(self.take(searched + found)));
            }
            searched = pending.len();
            if searched > limits::FRAME_BYTES_MAX {
                return Ok(Some(Line::Partial { at: self.at }));
            }
            if self.ended {
                return Ok((searched > 0).then_some(Line::Partial { at: self.at }));
            }
            self.fill()?;
        }
    }

    fn take(&mut self, len: usize) -> Line {
        let at = self.at;
        self.at += len as u64 + 1;
        if self.start == 0 && len > CHUNK_BYTES_MAX {
            // A long line is given away instead of being copied.
            let rest = self.buffer.split_off(len + 1);
            let mut bytes = std::mem::replace(&mut self.buffer, rest);
            bytes.truncate(len);
            return Line::Whole { at, bytes };
        }
        let bytes = self.buffer.get(self.start..self.start + len).unwrap_or_default().to_vec();
        self.start += len + 1;
        Line::Whole { at, bytes }
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let have = self.buffer.len();
        self.buffer.resize(have + self.chunk, 0);
        let space = self.buffer.get_mut(have..).unwrap_or_default();
        let read = self.file.read_at(self.at + have as u64, space)?;
        self.buffer.truncate(have + read);
        self.ended = read < self.chunk;
        self.chunk = (self.chunk * 2).min(CHUNK_BYTES_MAX);
        Ok(())
    }
}
