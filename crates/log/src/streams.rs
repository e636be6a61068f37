//! `stream.log`: the deltas of messages that are still streaming.

use std::collections::BTreeMap;
use std::sync::Arc;

use bough_platform::{Access, File};

use crate::error::{Damage, DamageKind, Result};
use crate::files::Files;
use crate::format::{OpenStream, STREAM_HEADER_BYTES, StreamHeader, StreamLine};
use crate::limits;
use crate::queue::Streamed;
use bough_record::Incarnation;

/// The streams that are open, with their deltas.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: BTreeMap<String, Stream>,
    /// The newest step's number. It never starts again within an incarnation: a reader that knows a step by
    /// its number knows every record that took the place of steps up to it.
    pub(crate) number: u64,
    /// Where the deltas end that were in the file when the log was opened.
    pub(crate) found_end: u64,
}

#[derive(Debug)]
struct Stream {
    seq: u64,
    base: u64,
    deltas: Vec<StreamLine>,
}

impl Streams {
    pub(crate) fn opened(streams: &[OpenStream], last_step: u64) -> Self {
        let mut open = BTreeMap::new();
        for stream in streams {
            let value = Stream { seq: stream.seq, base: stream.base, deltas: Vec::new() };
            open.insert(stream.entry_id.clone(), value);
        }
        Self { open, number: last_step, found_end: 0 }
    }

    pub(crate) fn refs(&self) -> Vec<OpenStream> {
        let one = |(id, stream): (&String, &Stream)| OpenStream {
            entry_id: id.clone(),
            seq: stream.seq,
            base: stream.base,
        };
        self.open.iter().map(one).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Where the deltas end that were in the file when the log was opened, while one of them is not settled.
    pub(crate) fn unsettled_end(&self) -> Option<u64> {
        let has_lines = self.found_end > STREAM_HEADER_BYTES as u64;
        (has_lines && !self.is_empty()).then_some(self.found_end)
    }

    /// How far a message has streamed; `None` when no stream is open for it.
    pub(crate) fn newest(&self, target: &str) -> Option<Streamed> {
        let stream = self.open.get(target)?;
        let number = stream.deltas.last().map_or(0, |delta| delta.number);
        Some(Streamed { revision: stream.last(), number })
    }

    pub(crate) fn open(&mut self, target: &str, seq: u64, base: u64) {
        self.open.insert(target.to_owned(), Stream { seq, base, deltas: Vec::new() });
    }

    /// A revision took the place of the deltas up to it.
    pub(crate) fn settle(&mut self, target: &str, revision: u64) {
        if self.open.get(target).is_some_and(|stream| stream.last() <= revision) {
            self.open.remove(target);
        } else if let Some(stream) = self.open.get_mut(target) {
            stream.base = revision;
            stream.deltas.retain(|delta| delta.revision > revision);
        }
    }

    /// Adds a durable delta. One that was settled before is ignored.
    pub(crate) fn push(&mut self, delta: StreamLine) {
        self.number = self.number.max(delta.number);
        if let Some(stream) = self.open.get_mut(&delta.target)
            && delta.revision > stream.base
        {
            stream.deltas.push(delta);
        }
    }

    /// The deltas of an entry that are not settled yet, oldest first.
    pub(crate) fn deltas(&self, target: &str) -> &[StreamLine] {
        self.open.get(target).map_or(&[], |stream| stream.deltas.as_slice())
    }

    /// The steps that are not settled and come after one, in order.
    pub(crate) fn after(&self, number: u64) -> Vec<StreamLine> {
        let mut lines = Vec::new();
        for stream in self.open.values() {
            let first = stream.deltas.partition_point(|line| line.number <= number);
            lines.extend(stream.deltas.iter().skip(first).cloned());
        }
        lines.sort_by_key(|line| line.number);
        lines
    }

    /// The newest delta that is not settled.
    pub(crate) fn last_delta(&self) -> Option<&StreamLine> {
        let last = self.open.values().filter_map(|stream| stream.deltas.last());
        last.max_by_key(|line| line.number)
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }
}

impl Stream {
    fn last(&self) -> u64 {
        self.deltas.last().map_or(self.base, |delta| delta.revision)
    }
}

/// What was found in `stream.log`.
#[derive(Debug, Default)]
pub(crate) struct StreamReport {
    /// Bytes after the last whole delta. They were not acknowledged.
    pub(crate) torn_bytes: u64,
    /// Acknowledged deltas that are not there.
    pub(crate) damage: Option<Damage>,
}

/// Reads `stream.log` into the open streams. With none open, the file's content is of no interest.
pub(crate) fn load(
    files: &Files,
    incarnation: Incarnation,
    streams: &mut Streams,
) -> Result<StreamReport> {
    let mut report = StreamReport::default();
    let path = files.container.stream()?;
    if files.disk.stat(&path)?.is_none() {
        if !streams.is_empty() {
            report.damage = Some(lost(0, "a message was streaming and the file is missing"));
        }
        return Ok(report);
    }
    let bytes = files.disk.read_all(&path, 4 * limits::STREAM_BYTES_MAX)?;
    let header = StreamHeader::decode(&bytes).filter(|header| header.incarnation == incarnation);
    let end = read_lines(&bytes, streams);
    let has_lines = end > STREAM_HEADER_BYTES as u64;
    if header.is_none() && !has_lines && !streams.is_empty() {
        // A header is written over only after a line is durable; a crash that tears it leaves the line.
        report.damage = Some(lost(0, "a message was streaming and nothing of it can be read"));
        return Ok(report);
    }
    let known = header.map_or(0, |header| header.end);
    if end < known && !streams.is_empty() {
        let text = format!("deltas up to byte {known} were acknowledged and cannot all be read");
        report.damage = Some(lost(end, &text));
    }
    // With neither header nor line there is nothing to go on from: the file is made again.
    streams.found_end = if header.is_some() || has_lines { end } else { 0 };
    streams.number = streams.number.max(header.map_or(0, |header| header.acked));
    report.torn_bytes = (bytes.len() as u64).saturating_sub(end);
    Ok(report)
}

/// Takes in every whole line, in order; returns the byte after the last one.
fn read_lines(bytes: &[u8], streams: &mut Streams) -> u64 {
    let mut at = STREAM_HEADER_BYTES;
    let mut previous = None;
    while let Some(rest) = bytes.get(at..) {
        let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
            break;
        };
        let Some(delta) = rest.get(..len).and_then(StreamLine::decode) else {
            break;
        };
        if previous.is_some_and(|number| delta.number != number + 1) {
            break;
        }
        previous = Some(delta.number);
        streams.push(delta);
        at += len + 1;
    }
    at as u64
}

fn lost(at: u64, detail: &str) -> Damage {
    Damage::new(DamageKind::Stream, "stream.log", at, detail)
}

/// The open file, for the writer.
#[derive(Debug)]
pub(crate) struct StreamFile {
    file: Arc<dyn File>,
    incarnation: Incarnation,
    /// Where the next delta goes.
    end: u64,
}

impl StreamFile {
    /// Makes the file ready, durably, so that a stream that the log knows of always has its file. A file that an earlier
    /// opening left is continued only while something in it is not settled; its name was synced when the log was opened.
    pub(crate) fn ready(
        files: &Files,
        incarnation: Incarnation,
        acked: u64,
        unsettled_end: Option<u64>,
    ) -> Result<Self> {
        let path = files.container.stream()?;
        let open = |end| -> Result<Self> {
            let file = files.disk.open(&path, Access::ReadWrite)?.into();
            Ok(Self { file, incarnation, end })
        };
        if let Some(end) = unsettled_end
            && files.disk.stat(&path)?.is_some()
        {
            let opened = open(end)?;
            opened.write_header(acked)?;
            opened.file.sync()?;
            return Ok(opened);
        }
        // Without a line the header is all that the file holds, so it is put in place whole.
        let header = StreamHeader { incarnation, acked, end: STREAM_HEADER_BYTES as u64 };
        files.disk.replace(&path, &files.container.temp("stream.log")?, &header.encode()?)?;
        open(header.end)
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Appends encoded lines and makes them durable.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.end, bytes)?;
        self.file.sync()?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Notes how much is durable. Only after [`StreamFile::append`]: the header never knows more than
    /// the disk.
    pub(crate) fn write_header(&self, acked: u64) -> Result<()> {
        let header = StreamHeader { incarnation: self.incarnation, acked, end: self.end };
        Ok(self.file.write_at(0, &header.encode()?)?)
    }

    /// Empties the file once everything in it is settled. The header goes first and durably: a header
    /// that knows more than the file would be taken for a loss.
    pub(crate) fn empty(&mut self, acked: u64) -> Result<()> {
        self.end = STREAM_HEADER_BYTES as u64;
        self.write_header(acked)?;
        self.file.sync()?;
        Ok(self.file.set_len(self.end)?)
    }
}
