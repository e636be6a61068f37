//! The lines of a file, one at a time.
//!
//! A line inside one chunk is lent from the chunk; a longer one is measured first and then read into a
//! buffer of exactly its size, so that memory is one chunk and one line, never a multiple of either.

use std::fmt;
use std::io;
use std::ops::Range;

use bough_platform::File;
use bough_session::hex;
use sha2::{Digest as _, Sha256};

use crate::limits::{CHUNK_BYTES, LINE_BYTES_MAX};

/// One line without its line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// What it says.
    pub content: Content<'a>,
    /// Whether a line break follows: the last line of a file that a crash cut has none.
    pub ended: bool,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// It is longer than a record may be; only its length is known.
    TooLong(u64),
}

/// Identifies the bytes of a file: their digest and how many they are, so that a file that only grew can
/// be distinguished from one that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// SHA-256.
    pub digest: [u8; 32],
    /// Bytes.
    pub len: u64,
}

impl Snapshot {
    /// The snapshot of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Sha256::digest(bytes).into(), len: bytes.len() as u64 }
    }

    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (digest, len) = text.strip_prefix("sha256:")?.split_once(':')?;
        Some(Self { digest: bough_session::unhex(digest)?, len: len.parse().ok()? })
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}:{}", hex(&self.digest), self.len)
    }
}

/// Reads the lines of a file up to the length that it had when the reading began. From the beginning of a file, it takes
/// the digest of all bytes on the way.
pub struct Lines<'a> {
    file: &'a dyn File,
    end: u64,
    /// Where the next line begins.
    at: u64,
    number: u64,
    chunk: Vec<u8>,
    chunk_at: u64,
    long: Vec<u8>,
    /// `None` where nobody asks for the digest: it costs more than finding the lines.
    hasher: Option<Sha256>,
    /// Take a snapshot when so many bytes were given out.
    stop: u64,
    beginning: Option<Snapshot>,
}

impl fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("at", &self.at)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl<'a> Lines<'a> {
    /// The lines of a file from its beginning.
    pub fn new(file: &'a dyn File) -> io::Result<Self> {
        Ok(Self { hasher: Some(Sha256::new()), ..Self::resume(file, 0, 0)? })
    }

    /// The lines from an offset on at which a line begins, `number` lines being before it, without a digest.
    pub(crate) fn resume(file: &'a dyn File, at: u64, number: u64) -> io::Result<Self> {
        let end = file.len()?;
        Ok(Self {
            file,
            end,
            at,
            number,
            chunk: Vec::new(),
            chunk_at: 0,
            long: Vec::new(),
            hasher: None,
            stop: u64::MAX,
            beginning: None,
        })
    }

    /// The lines of a file from its beginning, with a snapshot of the first `stop` bytes on the way.
    pub(crate) fn stopping_at(file: &'a dyn File, stop: u64) -> io::Result<Self> {
        Ok(Self { stop, ..Self::new(file)? })
    }

    /// The snapshot of the first bytes, once they were given out; see [`Lines::stopping_at`].
    pub(crate) fn beginning(&self) -> Option<&Snapshot> {
        self.beginning.as_ref()
    }

    /// Bytes of lines that were given out.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Bytes in all.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Gives back the memory of a long line that was given out.
    pub(crate) fn forget_line(&mut self) {
        self.long = Vec::new();
    }

    /// The snapshot of what was read; of the whole file once there are no more lines.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let digest = self.hasher.clone().unwrap_or_default().finalize().into();
        Snapshot { digest, len: self.at }
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.forget_line();
        if self.at >= self.end {
            return Ok(None);
        }
        self.number += 1;
        if self.unread().is_empty() {
            self.fill(self.at)?;
        }
        if self.break_in_unread().is_none() && self.at > self.chunk_at && !self.covers_end() {
            self.fill(self.at)?;
        }
        match self.break_in_unread() {
            Some(len) => Ok(Some(self.short_line(len, true))),
            None if self.covers_end() => {
                let len = self.unread().len();
                Ok(Some(self.short_line(len, false)))
            }
            None => self.long_line().map(Some),
        }
    }

    /// What of the chunk is not given out yet.
    fn unread(&self) -> &[u8] {
        let from = usize::try_from(self.at.saturating_sub(self.chunk_at)).unwrap_or(usize::MAX);
        self.chunk.get(from..).unwrap_or_default()
    }

    fn break_in_unread(&self) -> Option<usize> {
        memchr::memchr(b'\n', self.unread())
    }

    fn covers_end(&self) -> bool {
        self.chunk_at + self.chunk.len() as u64 >= self.end
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        let wanted = usize::try_from(self.end - at).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        self.chunk.resize(wanted, 0);
        let read = self.file.read_at(at, &mut self.chunk)?;
        self.chunk_at = at;
        if read < wanted {
            self.chunk.truncate(read);
            let text = "the file became shorter while it was read";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(())
    }

    fn short_line(&mut self, len: usize, ended: bool) -> Line<'_> {
        let from = usize::try_from(self.at - self.chunk_at).unwrap_or(usize::MAX);
        let whole = len + usize::from(ended);
        let end = self.at + whole as u64;
        self.hash(from..from + whole, end);
        self.at = end;
        let bytes = self.chunk.get(from..from + len).unwrap_or_default();
        Line { number: self.number, content: Content::Bytes(bytes), ended }
    }

    /// Adds a part of the chunk to the digest; `end` is where it ends in the file.
    fn hash(&mut self, part: Range<usize>, end: u64) {
        let Some(hasher) = &mut self.hasher else { return };
        let given = self.chunk.get(part).unwrap_or_default();
        // The file may have been migrated in the middle of what is one line by now.
        let head = usize::try_from(self.stop.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let (head, tail) = given.split_at(head.min(given.len()));
        hasher.update(head);
        if self.stop > self.at && self.stop <= end {
            let digest = hasher.clone().finalize().into();
            self.beginning = Some(Snapshot { digest, len: self.stop });
        }
        hasher.update(tail);
    }

    /// A line that does not end in the chunk that begins with it: found first, then read whole.
    fn long_line(&mut self) -> io::Result<Line<'_>> {
        let start = self.at;
        let mut len = 0;
        let ended = loop {
            let found = self.break_in_unread();
            let piece = found.unwrap_or(self.unread().len());
            len += piece as u64;
            let taken = piece + usize::from(found.is_some());
            self.short_line(piece, found.is_some());
            debug_assert!(taken > 0, "every step goes on");
            if found.is_some() {
                break true;
            }
            if self.at >= self.end {
                break false;
            }
            self.fill(self.at)?;
        };
        if len > LINE_BYTES_MAX {
            return Ok(Line { number: self.number, content: Content::TooLong(len), ended });
        }
        self.long = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let read = self.file.read_at(start, &mut self.long)?;
        if read < self.long.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Line { number: self.number, content: Content::Bytes(&self.long), ended })
    }
}

/// The digest of the first `len` bytes of a file.
pub(crate) fn digest_of_prefix(file: &dyn File, len: u64) -> io::Result<Snapshot> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < len {
        let wanted = usize::try_from(len - at).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let read = file.read_at(at, chunk.get_mut(..wanted).unwrap_or_default())?;
        if read == 0 {
            break;
        }
        hasher.update(chunk.get(..read).unwrap_or_default());
        at += read as u64;
    }
    Ok(Snapshot { digest: hasher.finalize().into(), len: at })
}
