use std::collections::BTreeMap;
use std::sync::Arc;

use bough_platform::File;

use crate::error::Result;
use crate::files::row_damage;
use crate::format::{OffsetRow, ROW_BYTES};

/// The offset rows of a log: those in the file, then those that are only in memory.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    file: Option<Arc<dyn File>>,
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
    pub(crate) fn new(file: Option<Arc<dyn File>>, on_disk: u64) -> Self {
        Self { file, on_disk, ..Self::default() }
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
        if rows.len() as u64 != count {
            return Err(row_damage(from + rows.len() as u64, "the row is missing").into());
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
        let Some(file) = self.file.as_ref() else {
            return Ok(());
        };
        write_rows(&**file, self.on_disk, &self.leaving)?;
        write_rows(&**file, self.fixed(), &self.memory)?;
        self.on_disk = self.len();
        self.leaving = Arc::default();
        self.memory.clear();
        write_revised(&**file, &std::mem::take(&mut self.revised))
    }

    /// What a flush would write now, to be written by whoever asked. For the weaker durability, where rows may
    /// be written only after a sync of their frames that appends do not wait for. One at a time.
    pub(crate) fn prepare(&mut self) -> PreparedRows {
        let room = Vec::with_capacity(self.memory.len());
        let mut rows = std::mem::replace(&mut self.memory, room);
        if !self.leaving.is_empty() {
            // An earlier one was not written.
            rows = self.leaving.iter().copied().chain(rows).collect();
        }
        self.leaving = Arc::new(rows);
        PreparedRows {
            first: self.on_disk,
            rows: Arc::clone(&self.leaving),
            revised: self.revised.clone(),
        }
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
