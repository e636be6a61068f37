use std::sync::{Arc, Mutex};

use bough_platform::{Access, Disk, File, if_there};

use crate::container::Container;
use crate::error::{Damage, DamageKind, Result};
use crate::format::{Frame, FrameError, Manifest, OffsetRow, decode_frame};
use crate::sync::lock;

/// Segment files that one log keeps open for reading.
const OPEN_SEGMENTS_MAX: usize = 8;

/// The open files of one log.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) container: Container,
    segments: Mutex<Vec<(u64, Arc<dyn File>)>>,
}

impl Files {
    pub(crate) fn new(disk: Arc<dyn Disk>, container: Container) -> Self {
        Self { disk, container, segments: Mutex::new(Vec::new()) }
    }

    /// A segment for reading.
    pub(crate) fn segment(&self, number: u64) -> Result<Arc<dyn File>> {
        let mut open = lock(&self.segments);
        if let Some(found) = open.iter().position(|(n, _)| *n == number) {
            let entry = open.remove(found);
            let file = Arc::clone(&entry.1);
            open.push(entry);
            return Ok(file);
        }
        let path = self.container.segment(number)?;
        let file = if_there(self.disk.open(&path, Access::Read))?;
        let file: Arc<dyn File> = file.ok_or_else(|| missing_segment(number))?.into();
        if open.len() == OPEN_SEGMENTS_MAX {
            open.remove(0);
        }
        open.push((number, Arc::clone(&file)));
        Ok(file)
    }

    /// Replaces the manifest. It is durable when the call returns.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        let temp = self.container.temp("manifest.json")?;
        Ok(self.disk.replace(&self.container.manifest()?, &temp, &manifest.encode()?)?)
    }

    /// Reads the frame of a row, believed only if it is what the row says.
    pub(crate) fn frame<T>(
        &self,
        row: &OffsetRow,
        decode: impl FnMut(&Frame<'_>) -> T,
    ) -> Result<T> {
        let mut found = self.frames(std::slice::from_ref(row), decode)?;
        Ok(found.pop().ok_or_else(|| frame_damage(row, "the line is not whole"))?)
    }

    /// Reads the frames of several rows, with one read for each stretch that lies together. A frame is lent to `decode`, so
    /// that nothing of it is copied which the result does not keep.
    pub(crate) fn frames<T>(
        &self,
        rows: &[OffsetRow],
        mut decode: impl FnMut(&Frame<'_>) -> T,
    ) -> Result<Vec<T>> {
        let mut found = Vec::with_capacity(rows.len());
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let (stretch, after) = rest.split_at(stretch_of(first, rest));
            let bytes = self.read_stretch(stretch)?;
            for row in stretch {
                found.push(decode(&frame_of(line_of(&bytes, first, row)?, row)?));
            }
            rest = after;
        }
        Ok(found)
    }

    /// The bytes from the first of the rows to the last; fewer where the file ends before.
    fn read_stretch(&self, rows: &[OffsetRow]) -> Result<Vec<u8>> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Ok(Vec::new());
        };
        let len = usize::try_from(last.offset + last.len - first.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let read = self.segment(first.segment)?.read_at(first.offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// How many of the rows, from the first on, are read at once: their frames lie together.
fn stretch_of(first: &OffsetRow, rows: &[OffsetRow]) -> usize {
    /// Bytes that one read asks for at the most.
    const STRETCH_BYTES_MAX: u64 = 1024 * 1024;
    let mut end = first.offset + first.len;
    let together = rows.iter().skip(1).take_while(|row| {
        let fits = row.segment == first.segment
            && row.offset == end
            && row.offset + row.len - first.offset <= STRETCH_BYTES_MAX;
        end = if fits { row.offset + row.len } else { end };
        fits
    });
    1 + together.count()
}

/// The line of a row in the bytes of its stretch, without its line break.
fn line_of<'a>(bytes: &'a [u8], first: &OffsetRow, row: &OffsetRow) -> Result<&'a [u8]> {
    let start = usize::try_from(row.offset - first.offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(row.len).unwrap_or(usize::MAX));
    let line = bytes.get(start..end).and_then(|line| line.strip_suffix(b"\n"));
    Ok(line.ok_or_else(|| frame_damage(row, "the line is not whole"))?)
}

/// Decodes a line and holds it against its row. A frame that is whole but is not the row's means that the
/// row is wrong; one that is not whole is damage of the segment.
fn frame_of<'a>(line: &'a [u8], row: &OffsetRow) -> Result<Frame<'a>> {
    let frame = decode_frame(line).map_err(|error| match error {
        FrameError::Checksum | FrameError::Members => frame_damage(row, &error.to_string()),
        FrameError::Shape => row_damage(row.seq, "no frame begins where the row says"),
    })?;
    if frame.crc != row.crc || frame.header.seq != row.seq || frame.header.segment != row.segment {
        return Err(row_damage(row.seq, "the row speaks of another frame").into());
    }
    Ok(frame)
}

pub(crate) fn frame_damage(row: &OffsetRow, detail: &str) -> Damage {
    Damage::new(DamageKind::Frame, segment_file(row.segment), row.offset, detail).of(row.seq)
}

pub(crate) fn row_damage(seq: u64, detail: &str) -> Damage {
    let at = seq.saturating_sub(1) * crate::format::ROW_BYTES as u64;
    Damage::new(DamageKind::IndexRow, "index/offsets.jsonl", at, detail).of(seq)
}

pub(crate) fn missing_segment(number: u64) -> Damage {
    Damage::new(DamageKind::MissingSegment, segment_file(number), 0, "the file is missing")
}

/// A segment's file, as damage names it.
pub(crate) fn segment_file(number: u64) -> String {
    format!("segments/{number:016}.seg")
}
