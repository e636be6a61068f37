use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bough_platform::File;

use crate::error::{LogError, Result};
use crate::files::row_damage;
use crate::format::{OffsetRow, ROW_BYTES};
use crate::rebuild::Segments;
use crate::sync::lock;

/// The offset rows of a log: those in the file, then those that are only in memory.
///
/// The file is derived. Where a row of it cannot be read, all rows are made again from the segments and kept in memory
/// until a writer puts a new file in the place of the damaged one.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    file: Option<Arc<dyn File>>,
    /// Where rows are made again from; `None` for a log that has no file of rows to lose.
    segments: Option<Arc<Segments>>,
    /// The first rows of the file, made again because the file is damaged.
    rebuilt: Mutex<Option<Arc<Vec<OffsetRow>>>>,
    /// The file is not to be believed at all: its next content takes its place as a whole.
    distrusted: bool,
    /// Rows in the file that are believed.
    on_disk: u64,
    /// The rows after them that are on their way to the file and do not change any more.
    leaving: Arc<Vec<OffsetRow>>,
    /// The rows after those.
    memory: Vec<OffsetRow>,
    /// Newest revisions of entries whose rows are in the file, or on their way, and do not say so yet.
    revised: BTreeMap<u64, u64>,
}

impl Rows {
    /// The first `on_disk` rows of a file are believed as long as they can be read.
    pub(crate) fn new(
        file: Option<Arc<dyn File>>,
        on_disk: u64,
        segments: Option<Arc<Segments>>,
    ) -> Self {
        Self { file, on_disk, segments, ..Self::default() }
    }

    /// No row of the file is believed.
    pub(crate) fn distrusting(file: Option<Arc<dyn File>>, segments: Arc<Segments>) -> Self {
        let distrusted = file.is_some();
        Self { file, distrusted, segments: Some(segments), ..Self::default() }
    }

    /// Whether the file has to be replaced.
    pub(crate) fn is_damaged(&self) -> bool {
        self.distrusted || self.rebuilt().is_some()
    }

    fn rebuilt(&self) -> Option<Arc<Vec<OffsetRow>>> {
        lock(&self.rebuilt).clone()
    }

    /// Makes the rows of the file again from the segments. Says whether that was new.
    pub(crate) fn rebuild(&self) -> Result<bool> {
        let Some(segments) = self.segments.as_ref().filter(|_| self.on_disk > 0) else {
            return Ok(false);
        };
        let mut rebuilt = lock(&self.rebuilt);
        if rebuilt.as_ref().is_some_and(|rows| rows.len() as u64 >= self.on_disk) {
            return Ok(false);
        }
        *rebuilt = Some(Arc::new(segments.rows(self.on_disk)?));
        Ok(true)
    }

    /// Looks at up to `limit` rows of the file before number `end`, and makes all of them again if one of them cannot be read.
    pub(crate) fn check(&self, end: u64, limit: u64) -> Result<()> {
        let end = end.min(self.on_disk);
        let first = end.saturating_sub(limit);
        if self.is_damaged() || end == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; usize::try_from(end - first).unwrap_or(0) * ROW_BYTES];
        let read = match &self.file {
            Some(file) => file.read_at(first * ROW_BYTES as u64, &mut bytes)?,
            None => 0,
        };
        let (rows, _) = bytes.as_chunks::<ROW_BYTES>();
        if read < bytes.len() || !rows.iter().all(OffsetRow::is_whole) {
            self.rebuild()?;
        }
        Ok(())
    }

    /// Looks at one part of the rows. Turns that follow each other look at all of them.
    pub(crate) fn check_in_turn(&self, turn: u64, part_rows: u64) -> Result<()> {
        let part = part_of_turn(turn, self.on_disk, part_rows);
        self.check((part + 1) * part_rows, part_rows)
    }

    /// Puts a new file with all rows in the place of a damaged one. `write` makes it durable.
    pub(crate) fn replace(
        &mut self,
        write: impl FnOnce(&[u8]) -> Result<Arc<dyn File>>,
    ) -> Result<()> {
        let rows = self.range(1, self.len())?;
        let mut bytes = Vec::with_capacity(rows.len() * ROW_BYTES);
        rows.iter().for_each(|row| row.encode(&mut bytes));
        let (file, segments) = (Some(write(&bytes)?), self.segments.take());
        *self = Self::new(file, rows.len() as u64, segments);
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.fixed() + self.memory.len() as u64
    }

    /// Rows that do not change any more.
    fn fixed(&self) -> u64 {
        self.on_disk + self.leaving.len() as u64
    }

    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk
    }

    /// The row of a record.
    pub(crate) fn get(&self, seq: u64) -> Result<OffsetRow> {
        let mut rows = self.range(seq, 1)?;
        rows.pop().ok_or_else(|| row_damage(seq, "there is no row").into())
    }

    /// Up to `count` rows from record `from` on.
    pub(crate) fn range(&self, from: u64, count: u64) -> Result<Vec<OffsetRow>> {
        let end = (from + count).min(self.len() + 1);
        let mut rows = Vec::with_capacity(usize::try_from(end.saturating_sub(from)).unwrap_or(0));
        let disk_end = end.min(self.on_disk + 1);
        if from < disk_end {
            self.read(from, disk_end - from, &mut rows)?;
        }
        for seq in from.max(self.on_disk + 1)..end {
            rows.extend(self.in_memory(seq));
        }
        Ok(rows)
    }

    fn in_memory(&self, seq: u64) -> Option<OffsetRow> {
        let index = usize::try_from(seq - self.on_disk - 1).ok()?;
        match index.checked_sub(self.leaving.len()) {
            Some(index) => self.memory.get(index).copied(),
            None => self.leaving.get(index).map(|row| self.with_revision(*row)),
        }
    }

    fn with_revision(&self, row: OffsetRow) -> OffsetRow {
        let revised = self.revised.get(&row.seq).copied().unwrap_or(row.revised);
        OffsetRow { revised, ..row }
    }

    fn read(&self, from: u64, count: u64, rows: &mut Vec<OffsetRow>) -> Result<()> {
        let known = rows.len();
        let damage = match self.read_known(from, count, rows) {
            Err(LogError::Corrupt(damage)) if damage.kind.is_derived() => damage,
            other => return other,
        };
        if !self.rebuild()? {
            return Err(damage.into());
        }
        rows.truncate(known);
        self.read_known(from, count, rows)
    }

    /// Rows from memory where they had to be made again, else from the file.
    fn read_known(&self, from: u64, count: u64, rows: &mut Vec<OffsetRow>) -> Result<()> {
        let Some(rebuilt) = self.rebuilt() else {
            return self.read_file(from, count, rows);
        };
        let start = usize::try_from(from - 1).unwrap_or(usize::MAX);
        let again = rebuilt.iter().skip(start).take(usize::try_from(count).unwrap_or(usize::MAX));
        let before = rows.len();
        rows.extend(again.map(|row| self.with_revision(*row)));
        match count - (rows.len() - before) as u64 {
            0 => Ok(()),
            rest => self.read_file(from + count - rest, rest, rows),
        }
    }

    fn read_file(&self, from: u64, count: u64, rows: &mut Vec<OffsetRow>) -> Result<()> {
        let before = rows.len();
        let file = self.file.as_ref().ok_or_else(|| row_damage(from, "there is no index"))?;
        let size = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(ROW_BYTES);
        let mut bytes = vec![0; size];
        let read = file.read_at((from - 1) * ROW_BYTES as u64, &mut bytes)?;
        bytes.truncate(read);
        for (index, chunk) in bytes.chunks(ROW_BYTES).enumerate() {
            let seq = from + index as u64;
            let row = match OffsetRow::decode(chunk).filter(|row| row.seq == seq) {
                Some(row) => row,
                None => reread(&**file, seq)?,
            };
            rows.push(self.as_of_now(&**file, row)?);
        }
        let found = (rows.len() - before) as u64;
        if found != count {
            return Err(row_damage(from + found, "the row is missing").into());
        }
        Ok(())
    }

    /// The row as it was when the log ended where it does here. The newest revision is noted in place, and may be one
    /// that comes after that: each names the one before it.
    fn as_of_now(&self, file: &dyn File, row: OffsetRow) -> Result<OffsetRow> {
        let mut row = self.with_revision(row);
        while row.revised > self.len() {
            let later = reread(file, row.revised)?;
            if !later.id.is_empty() || later.parent >= later.seq {
                return Err(row_damage(row.seq, "its revision is something else").into());
            }
            row.revised = later.parent;
        }
        Ok(row)
    }

    pub(crate) fn push(&mut self, row: OffsetRow) {
        self.memory.push(row);
    }

    /// Notes that record `by` revises the entry of record `seq`.
    pub(crate) fn revise(&mut self, seq: u64, by: u64) {
        let fixed = self.fixed();
        if seq <= fixed {
            self.revised.insert(seq, by);
            return;
        }
        let index = usize::try_from(seq - fixed - 1).unwrap_or(usize::MAX);
        if let Some(row) = self.memory.get_mut(index) {
            row.revised = by;
        }
    }

    /// Writes what is only in memory to the file. Not synced: the frames are, and rows can be made again.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Some(file) = self.file.clone().filter(|_| !self.distrusted) else {
            return Ok(());
        };
        write_rows(&*file, self.on_disk, &self.leaving)?;
        write_rows(&*file, self.fixed(), &self.memory)?;
        self.on_disk = self.len();
        if !self.leaving.is_empty() {
            self.leaving = Arc::default();
        }
        self.memory.clear();
        if self.can_note_revisions()? {
            write_revised(&*file, &std::mem::take(&mut self.revised))?;
        }
        Ok(())
    }

    /// Whether revisions can be noted in the file. In a damaged one they cannot: they stay in memory until it is replaced.
    fn can_note_revisions(&self) -> Result<bool> {
        for seq in self.revised.keys().filter(|seq| **seq <= self.on_disk) {
            if self.is_damaged() {
                return Ok(false);
            }
            self.get(*seq)?;
        }
        Ok(!self.is_damaged())
    }

    /// What a flush would write now, for the caller to write. For the weaker durability, where rows may
    /// be written only after a sync of their frames that appends do not wait for. One at a time.
    pub(crate) fn prepare(&mut self) -> Result<PreparedRows> {
        let noted = self.can_note_revisions()?;
        let empty = Vec::with_capacity(self.memory.len());
        let mut rows = std::mem::replace(&mut self.memory, empty);
        if !self.leaving.is_empty() {
            // An earlier one was not written.
            rows = self.leaving.iter().copied().chain(rows).collect();
        }
        self.leaving = Arc::new(rows);
        Ok(PreparedRows {
            first: self.on_disk,
            rows: Arc::clone(&self.leaving),
            revised: if noted { self.revised.clone() } else { BTreeMap::new() },
        })
    }

    /// Takes note that the prepared rows are in the file. What was revised meanwhile is left to the next
    /// flush.
    pub(crate) fn written(&mut self, prepared: &PreparedRows) {
        self.on_disk += prepared.rows.len() as u64;
        self.leaving = Arc::default();
        self.revised.retain(|seq, by| prepared.revised.get(seq) != Some(by));
    }

    /// Gives the rows a file to stand in; all of them are written to it by the next flush.
    pub(crate) fn attach(&mut self, file: Arc<dyn File>) {
        self.file = Some(file);
    }

    pub(crate) fn file(&self) -> Option<&Arc<dyn File>> {
        self.file.as_ref()
    }
}

/// The part of a whole that is looked at in a turn. The number of parts is odd, so that a log whose openings make two
/// checkpoints each comes to all of them too.
pub(crate) fn part_of_turn(turn: u64, whole: u64, part: u64) -> u64 {
    turn % (whole.div_ceil(part) | 1)
}

/// Rows on their way to the file.
#[derive(Debug)]
pub(crate) struct PreparedRows {
    first: u64,
    rows: Arc<Vec<OffsetRow>>,
    revised: BTreeMap<u64, u64>,
}

impl PreparedRows {
    /// Writes them, once the frames that they know are durable.
    pub(crate) fn write(&self, file: &dyn File) -> Result<()> {
        write_rows(file, self.first, &self.rows)?;
        write_revised(file, &self.revised)
    }
}

fn write_rows(file: &dyn File, on_disk: u64, rows: &[OffsetRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(rows.len() * ROW_BYTES);
    rows.iter().for_each(|row| row.encode(&mut bytes));
    Ok(file.write_at(on_disk * ROW_BYTES as u64, &bytes)?)
}

fn write_revised(file: &dyn File, revised: &BTreeMap<u64, u64>) -> Result<()> {
    for (seq, by) in revised {
        let row = OffsetRow { revised: *by, ..reread(file, *seq)? };
        let (column, part) = row.revision_part();
        file.write_at((seq - 1) * ROW_BYTES as u64 + column, &part)?;
    }
    Ok(())
}

/// Reads one row again: a writer of another process may have been noting a revision in it.
fn reread(file: &dyn File, seq: u64) -> Result<OffsetRow> {
    const TRIES: u32 = 3;
    let mut bytes = [0; ROW_BYTES];
    for _ in 0..TRIES {
        let read = file.read_at((seq - 1) * ROW_BYTES as u64, &mut bytes)?;
        let row = (read == ROW_BYTES).then(|| OffsetRow::decode(&bytes)).flatten();
        if let Some(row) = row.filter(|row| row.seq == seq) {
            return Ok(row);
        }
    }
    Err(row_damage(seq, "the row is unreadable").into())
}
