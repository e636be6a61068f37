//! Steps of streams, beside the session file until they become one entry line.
//!
//! session-manager writes a streamed message anew for every step. Here a step is one short line in a file of its own.
//! The next batch of the session begins with one revision for each streamed message, which has the number of the last
//! step that it replaces, and the steps are dropped. A step that the session file already has is skipped, so a crash
//! between the two does no harm.
//!
//! A line is a checksum of eight hex digits, a space, and the step. The checksum is over the incarnation of the
//! session, the place in the file and the step, so neither a torn line nor an older content of the file is taken for a
//! step.

use std::collections::HashMap;

use bough_platform::{Disk, File, RelPath, if_there};
use bough_session::codec::{decode_delta, encode_delta};
use bough_session::{Delta, Entry, EntryId, Incarnation, NewRecord, Record, hex, settle};
use sha2::{Digest, Sha256};

use super::file::open;
use crate::StoreError;
use crate::memory_session::MemorySession;
use crate::types::{Steps, StoredRecord};
use bough_record::Position;

/// Steps become records when they take more than this.
const STREAM_BYTES_SETTLE: u64 = 1024 * 1024;
/// A stream file larger than this is not ours.
const STREAM_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The steps that are not yet in the session file.
#[derive(Debug, Default)]
pub(super) struct Stream {
    deltas: Vec<Delta>,
    /// The number of the step before the first of them.
    before: u64,
    /// The streamed messages as they are now.
    pub(super) entries: HashMap<EntryId, Entry>,
    /// Where the last whole line ends.
    end: u64,
    /// How long the file was when it was read.
    read: u64,
}

impl Stream {
    /// Reads the steps of a session that follow its file.
    pub(super) fn load(
        disk: &dyn Disk,
        path: &RelPath,
        image: &MemorySession,
    ) -> std::io::Result<Self> {
        let bytes = if_there(disk.read_all(path, STREAM_BYTES_MAX))?.unwrap_or_default();
        let mut stream =
            Self { read: bytes.len() as u64, before: image.last_step, ..Self::default() };
        stream.read_lines(&bytes, image);
        Ok(stream)
    }

    fn read_lines(&mut self, bytes: &[u8], image: &MemorySession) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(delta) = read_line(image.incarnation, self.end, line) else {
                return;
            };
            self.end += line.len() as u64;
            self.take(delta, image);
        }
    }

    /// Applies a step; one that does not follow is skipped.
    fn take(&mut self, delta: Delta, image: &MemorySession) {
        let known = self.entries.get(&delta.entry_id).or_else(|| image.entry_ref(&delta.entry_id));
        let Some(mut entry) = known.cloned() else { return };
        if delta.apply(&mut entry).is_ok() {
            self.entries.insert(delta.entry_id.clone(), entry);
            self.deltas.push(delta);
        }
    }

    /// Whether the file has changed since it was read.
    pub(super) fn is_stale(&self, disk: &dyn Disk, path: &RelPath) -> std::io::Result<bool> {
        let len = disk.stat(path)?.map_or(0, |stat| stat.len);
        Ok(len != self.read)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    pub(super) fn is_large(&self) -> bool {
        self.end > STREAM_BYTES_SETTLE
    }

    /// When the last step was made.
    pub(super) fn last_at(&self) -> Option<i64> {
        self.deltas.iter().map(|delta| delta.at_ms).max()
    }

    /// The end of the feed, given the last record of the session file.
    pub(super) fn position(&self, seq: u64) -> Position {
        Position::new(seq, self.before + self.deltas.len() as u64)
    }

    /// The steps after one, in a session file that ends with record `seq`.
    pub(super) fn records_after(&self, seq: u64, after: u64) -> impl Iterator<Item = StoredRecord> {
        let later = self.numbered().skip_while(move |(number, _)| *number <= after);
        later.map(move |(number, delta)| StoredRecord {
            seq,
            steps: Steps::One(number),
            at_ms: delta.at_ms,
            record: Record::Revision(delta.clone().into_revision()),
        })
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &Delta)> {
        (self.before + 1..).zip(&self.deltas)
    }

    /// Checks a step against the message as it is now.
    pub(super) fn check(&self, delta: &Delta, image: &MemorySession) -> Result<(), StoreError> {
        let known = self.entries.get(&delta.entry_id).or_else(|| image.entry_ref(&delta.entry_id));
        let entry =
            known.ok_or_else(|| StoreError::EntryNotFound { entry: delta.entry_id.clone() })?;
        if delta.revision != entry.revision + 1 {
            return Err(StoreError::RevisionConflict {
                entry: delta.entry_id.clone(),
                current: entry.revision,
            });
        }
        let applied = delta.apply(&mut entry.clone());
        applied.map_err(|error| StoreError::invalid(error.to_string()))
    }

    /// Writes a checked step and makes it durable.
    pub(super) fn append(
        &mut self,
        disk: &dyn Disk,
        path: &RelPath,
        delta: Delta,
        image: &MemorySession,
    ) -> std::io::Result<()> {
        let file = open_or_create(disk, path)?;
        let bytes = write_line(image.incarnation, self.end, &delta);
        let end = self.end + bytes.len() as u64;
        file.write_at(self.end, bytes.as_bytes())?;
        // The rest of a torn line, or of another incarnation, must not follow.
        if file.len()? > end {
            file.set_len(end)?;
        }
        file.sync()?;
        (self.end, self.read) = (end, end);
        self.take(delta, image);
        Ok(())
    }

    /// One revision for each streamed message, in the order of their last steps, with the numbers of those: a reader
    /// that knows the steps up to one of them knows the revisions up to it, and not the rest.
    pub(super) fn settled(&self, image: &MemorySession) -> (Vec<NewRecord>, Vec<u64>) {
        let mut last_steps: HashMap<&EntryId, (u64, &Delta)> = HashMap::new();
        for (number, delta) in self.numbered() {
            last_steps.insert(&delta.entry_id, (number, delta));
        }
        let mut last_steps: Vec<(u64, &Delta)> = last_steps.into_values().collect();
        last_steps.sort_unstable_by_key(|(number, _)| *number);
        let settled = last_steps.into_iter().filter_map(|(number, last)| {
            let base = image.entry_ref(&last.entry_id)?;
            let now = self.entries.get(&last.entry_id)?;
            let revision = settle(base, now, last.origin.clone())?;
            Some((Record::Revision(revision).at(last.at_ms), number))
        });
        settled.unzip()
    }

    /// Drops the steps, because the session file has them now. An error is ignored: nothing is lost by it.
    pub(super) fn clear(&mut self, disk: &dyn Disk, path: &RelPath) {
        let before = self.before + self.deltas.len() as u64;
        let emptied = open(disk, path).and_then(|file| match file {
            Some(file) => file.set_len(0),
            None => Ok(()),
        });
        let left = if emptied.is_ok() { 0 } else { self.read };
        *self = Self { read: left, before, ..Self::default() };
    }
}

fn write_line(incarnation: Incarnation, seq: u64, delta: &Delta) -> String {
    let json = encode_delta(delta);
    format!("{} {json}\n", checksum(incarnation, seq, &json))
}

fn read_line(incarnation: Incarnation, seq: u64, line: &[u8]) -> Option<Delta> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, json) = text.split_once(' ')?;
    if sum != checksum(incarnation, seq, json) {
        return None;
    }
    decode_delta(json)
}

fn checksum(incarnation: Incarnation, seq: u64, json: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(incarnation.bytes());
    hash.update(seq.to_le_bytes());
    hash.update(json);
    let digest: [u8; 32] = hash.finalize().into();
    hex(digest.split_at(4).0)
}

fn open_or_create(disk: &dyn Disk, path: &RelPath) -> std::io::Result<Box<dyn File>> {
    if let Some(file) = open(disk, path)? {
        return Ok(file);
    }
    let folder = path.parent();
    if disk.ensure_dir(&folder)? {
        disk.sync_dir(&folder.parent())?;
    }
    let file = disk.create(path)?;
    disk.sync_dir(&folder)?;
    Ok(file)
}
