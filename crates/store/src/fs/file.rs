//! One session file: reading on, appending, repairing its end.

use bough_platform::{Access, Disk, File, RelPath, if_there};
use bough_session::SessionId;

use super::batch::{Gathered, Gathering, Mark, split};
use super::line;
use super::replay::Replay;

/// How much is read at a time.
const CHUNK_BYTES: usize = 256 * 1024;
/// Longest line that is read; a longer one is skipped.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How many bytes before the end are compared, to detect that a file was replaced.
const PROBE_BYTES: usize = 64;

/// A session file, and how far it was read.
#[derive(Debug)]
pub(super) struct SessionFile {
    pub(super) replay: Replay,
    /// Where the last whole batch ends.
    pub(super) end: u64,
    /// What stands before that place.
    probe: Vec<u8>,
    tail: Tail,
    unreadable: usize,
}

/// What follows the last whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// Nothing.
    Clean,
    /// A valid line without a line break yet.
    NoLineBreak,
    /// The beginning of a line.
    TornLine,
    /// The beginning of a batch of ours: it was never acknowledged.
    TornBatch,
}

impl Tail {
    /// The tail when the file ends where the last whole batch ends.
    const fn without_bytes(self) -> Self {
        match self {
            Self::NoLineBreak => Self::NoLineBreak,
            _ => Self::Clean,
        }
    }
}

impl SessionFile {
    /// A file of which nothing was read yet.
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            replay: Replay::new(session),
            end: 0,
            probe: Vec::new(),
            tail: Tail::Clean,
            unreadable: 0,
        }
    }

    /// Lines that cannot be read. A torn line after others is not one of them: the next append repairs it.
    pub(super) fn unreadable_lines(&self) -> usize {
        let is_nothing_else = self.end == 0 && self.tail == Tail::TornLine;
        self.unreadable + usize::from(is_nothing_else)
    }

    /// Whether the file still begins with what was read of it.
    pub(super) fn is_same(&self, file: &dyn File) -> std::io::Result<bool> {
        if file.len()? < self.end {
            return Ok(false);
        }
        let mut found = vec![0; self.probe.len()];
        let start = self.end.saturating_sub(self.probe.len() as u64);
        let read = file.read_at(start, &mut found)?;
        found.truncate(read);
        Ok(found == self.probe)
    }

    /// Reads what was appended since.
    pub(super) fn read_on(&mut self, file: &dyn File) -> std::io::Result<()> {
        let new = file.len()?.saturating_sub(self.end);
        if new == 0 {
            self.tail = self.tail.without_bytes();
            return Ok(());
        }
        let mut reading = Reading::from(self.end);
        let size = usize::try_from(new).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let mut chunk = vec![0; size];
        loop {
            let read = file.read_at(reading.offset, &mut chunk)?;
            let bytes = chunk.get(..read).unwrap_or_default();
            reading.take(bytes, &mut self.replay);
            if read < size {
                break;
            }
        }
        self.tail = reading.finish(&mut self.replay);
        self.unreadable += reading.unreadable;
        if reading.end > self.end {
            self.end = reading.end;
            self.probe = probe_at(file, self.end)?;
        }
        Ok(())
    }

    /// Appends whole batches in one write, after repairing the end of the file, and makes them durable. What is cut off
    /// is moved to `aside`, so nothing is ever lost.
    pub(super) fn append(
        &mut self,
        file: &dyn File,
        bytes: &[u8],
        aside: impl FnOnce(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut place = file.len()?;
        let mut batch = Vec::with_capacity(bytes.len() + 1);
        match self.tail {
            Tail::Clean => {}
            Tail::NoLineBreak | Tail::TornLine => batch.push(b'\n'),
            Tail::TornBatch => {
                aside(&read_range(file, self.end, place)?)?;
                file.set_len(self.end)?;
                place = self.end;
            }
        }
        batch.extend_from_slice(bytes);
        file.write_at(place, &batch)?;
        file.sync()?;
        self.read_on(file)
    }
}

/// Opens a file for writing; `None` when there is none.
pub(super) fn open(disk: &dyn Disk, path: &RelPath) -> std::io::Result<Option<Box<dyn File>>> {
    if_there(disk.open(path, Access::ReadWrite))
}

/// Opens a session file for reading; `None` when there is none.
pub(super) fn open_to_read(
    disk: &dyn Disk,
    path: &RelPath,
) -> std::io::Result<Option<Box<dyn File>>> {
    if_there(disk.open(path, Access::Read))
}

fn probe_at(file: &dyn File, end: u64) -> std::io::Result<Vec<u8>> {
    let start = end.saturating_sub(PROBE_BYTES as u64);
    read_range(file, start, end)
}

fn read_range(file: &dyn File, start: u64, end: u64) -> std::io::Result<Vec<u8>> {
    let length = usize::try_from(end.saturating_sub(start)).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; length];
    let read = file.read_at(start, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Lines being put together from chunks, and batches from lines.
struct Reading {
    /// The next byte to read.
    offset: u64,
    /// The end of the last whole batch.
    end: u64,
    /// A line that has begun.
    line: Vec<u8>,
    /// How much of a line that is too long was skipped.
    skipped: usize,
    gathering: Gathering,
    /// Whether a batch of ours since the last whole one is damaged.
    torn: bool,
    /// Lines that cannot be read.
    unreadable: usize,
}

impl Reading {
    fn from(offset: u64) -> Self {
        Self {
            offset,
            end: offset,
            line: Vec::new(),
            skipped: 0,
            gathering: Gathering::default(),
            torn: false,
            unreadable: 0,
        }
    }

    fn take(&mut self, bytes: &[u8], replay: &mut Replay) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(at);
            self.add(line);
            self.offset += (at + 1) as u64;
            rest = after.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            self.skipped = 0;
            self.end_line(&line, replay);
        }
        self.add(rest);
        self.offset += rest.len() as u64;
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > LINE_BYTES_MAX {
            self.skipped += self.line.len() + bytes.len();
            self.line.clear();
        } else if self.skipped == 0 {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, line: &[u8], replay: &mut Replay) {
        match self.gathering.add(line) {
            Gathered::Open => {}
            Gathered::Torn => self.torn = true,
            Gathered::Whole(batch) => {
                if batch.items.is_empty() && !line.trim_ascii().is_empty() {
                    self.unreadable += 1;
                }
                replay.apply(batch.items, &batch.first_line);
                self.torn = false;
                self.end = self.offset;
            }
        }
    }

    /// What the end of the file means.
    fn finish(&mut self, replay: &mut Replay) -> Tail {
        let line = std::mem::take(&mut self.line);
        let (mark, json) = split(&line);
        let readable = !line::parse(json).is_empty();
        if readable && mark != Mark::GoesOn {
            self.end_line(&line, replay);
            return if self.torn { Tail::TornBatch } else { Tail::NoLineBreak };
        }
        if self.torn || self.gathering.is_open() || mark != Mark::Alone {
            return Tail::TornBatch;
        }
        if line.is_empty() && self.skipped == 0 { Tail::Clean } else { Tail::TornLine }
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::{Access, Platform, RelPath};

    use super::*;

    #[test]
    fn what_cannot_be_read_is_counted_whether_or_not_its_line_ends() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Platform::system(folder.path()).unwrap().disk;
        let name = RelPath::parse("s.jsonl").unwrap();
        disk.create(&name).unwrap();
        let file = disk.open(&name, Access::ReadWrite).unwrap();
        let check = |bytes: &[u8], expected| {
            file.set_len(0).unwrap();
            file.write_at(0, bytes).unwrap();
            let mut read = SessionFile::new(SessionId::from_stored("s"));
            read.read_on(&*file).unwrap();
            assert_eq!(read.unreadable_lines(), expected, "{:?}", bytes.escape_ascii().to_string());
        };
        check(b"\xff\xfe\n", 1);
        check(b"{\"nonsense", 1);
        check(b"", 0);
        check(b"nonsense\n{\"nonsense", 1);
    }
}
