//! Reading a log: what is durable, and nothing else. Nothing here reads more than it was asked for.

use crate::error::Result;
use crate::files::Files;
use crate::format::{BranchHead, BranchHeads, OffsetRow, RowId, StreamLine};
use crate::limits::{PAGE_BYTES_MAX, RECORDS_PAGE_BYTES_MAX};
use crate::state::LogState;
use bough_record::{Fold, PathStart, StoredEnvelope, kind};

/// An entry: the record that added it, the newest one that revised it, the deltas since. Records are as the caller decoded
/// them.
#[derive(Clone, Debug)]
pub struct EntryRecord<T> {
    /// The record that added it.
    pub added: T,
    /// The records that revised it, oldest first.
    pub revisions: Vec<T>,
    /// Deltas that no revision has taken the place of yet, oldest first.
    pub deltas: Vec<StreamLine>,
    /// How many entries the path from the root to it has.
    pub depth: u64,
}

/// Records that neither add nor change an entry.
#[derive(Clone, Debug)]
pub struct Others<T> {
    /// The records, in order.
    pub records: Vec<T>,
    /// The last record that was looked at.
    pub looked_at: u64,
}

/// A page of a path.
#[derive(Clone, Debug)]
pub struct PathPage<T> {
    /// The entries, in the order that was asked for.
    pub entries: Vec<EntryRecord<T>>,
    /// There are more in that direction.
    pub more: bool,
}

/// A stretch of a path: the entries from record `first` to record `last` are each other's parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    last: u64,
}

/// A log's durable content at one moment.
#[derive(Debug)]
pub(crate) struct View<'a, F: Fold> {
    pub(crate) state: &'a LogState<F>,
    pub(crate) files: &'a Files,
}

// Derived, these would ask the same of the fold.
impl<F: Fold> Clone for View<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Fold> Copy for View<'_, F> {}

impl<'a, F: Fold> View<'a, F> {
    /// Up to `limit` records after number `after`, in order.
    pub(crate) fn records<T>(
        self,
        after: u64,
        limit: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Vec<T>> {
        let mut rows = self.state.rows.range(after + 1, limit)?;
        rows.truncate(within_page(&rows));
        self.files.frames(&rows, |frame| decode(frame.stored()))
    }

    /// The next records after number `after` and up to number `last` that neither add nor change an entry. Only the rows
    /// of the other records are read.
    pub(crate) fn others<T>(
        self,
        after: u64,
        last: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Others<T>> {
        const ROWS_AT_A_TIME: u64 = 1024;
        let count = last.saturating_sub(after).min(ROWS_AT_A_TIME);
        let mut rows = self.state.rows.range(after + 1, count)?;
        let mut looked_at = rows.last().map_or(after, |row| row.seq);
        rows.retain(|row| row.id.is_empty() && row.depth == 0);
        let fitting = within_page(&rows);
        if fitting < rows.len() {
            rows.truncate(fitting);
            looked_at = rows.last().map_or(looked_at, |row| row.seq);
        }
        Ok(Others { records: self.files.frames(&rows, |frame| decode(frame.stored()))?, looked_at })
    }

    pub(crate) fn entry<T>(
        self,
        id: &str,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Option<EntryRecord<T>>> {
        let Some(seq) = self.state.find(id)? else {
            return Ok(None);
        };
        let row = self.state.rows.get(seq)?;
        let mut entries = self.entries(&[row], decode)?;
        Ok(entries.pop())
    }

    /// Whether an entry was hidden. Nothing changes an entry after that, so that only the newest record about it is read.
    pub(crate) fn is_removed(self, id: &str) -> Result<bool> {
        let Some(seq) = self.state.find(id)? else { return Ok(false) };
        let newest = self.state.rows.get(seq)?.revised;
        if newest == 0 {
            return Ok(false);
        }
        let row = self.state.rows.get(newest)?;
        self.files.frame(&row, |frame| kind::hides_target(&frame.header.kind))
    }

    /// Reads entries with their newest revisions.
    fn entries<T>(
        self,
        rows: &[OffsetRow],
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Vec<EntryRecord<T>>> {
        let streams = &self.state.streams;
        let added = self.files.frames(rows, |frame| {
            let id = frame.header.id.as_deref().unwrap_or_default();
            (streams.deltas(id).to_vec(), decode(frame.stored()))
        })?;
        let mut entries = Vec::with_capacity(rows.len());
        for ((deltas, added), row) in added.into_iter().zip(rows) {
            let revisions = self.revisions(row, &decode)?;
            entries.push(EntryRecord { added, revisions, deltas, depth: row.depth });
        }
        Ok(entries)
    }

    /// The revisions of an entry that have to be read together. A row that names a record of something
    /// else is damage.
    fn revisions<T>(
        self,
        row: &OffsetRow,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let mut next = row.revised;
        while next > 0 {
            let revision_row = self.state.rows.get(next)?;
            let (target, record) = self.files.frame(&revision_row, |frame| {
                (frame.header.target.as_deref().map(RowId::of), decode(frame.stored()))
            })?;
            if target != Some(row.id) || revision_row.parent >= next {
                let damage = crate::files::row_damage(row.seq, "its revision is another entry's");
                return Err(damage.into());
            }
            found.push(record);
            next = revision_row.parent;
        }
        found.reverse();
        Ok(found)
    }

    /// A page of the path that leads to `leaf`. `None` when the leaf, or the entry where the page begins,
    /// is not there or not on that path.
    pub(crate) fn path<T>(
        self,
        leaf: &str,
        start: PathStart<&str>,
        limit: usize,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Option<PathPage<T>>> {
        let Some(leaf) = self.state.find(leaf)? else {
            return Ok(None);
        };
        let from = match start {
            PathStart::Root | PathStart::Leaf => None,
            PathStart::After(id) | PathStart::Before(id) => match self.state.find(id)? {
                Some(seq) => Some(seq),
                None => return Ok(None),
            },
        };
        let forward = matches!(start, PathStart::Root | PathStart::After(_));
        // Backwards from the leaf only the newest runs matter; the others are walked as needed.
        let mut walk = Walk { view: self, limit: limit + 1, rows: Vec::new(), bytes: 0 };
        let found = if forward { walk.forward(leaf, from)? } else { walk.backward(leaf, from)? };
        if !found {
            return Ok(None);
        }
        let mut rows = walk.rows;
        let fitting = limit.min(self.within_page(&rows)?);
        let more = rows.len() > fitting;
        rows.truncate(fitting);
        Ok(Some(PathPage { entries: self.entries(&rows, decode)?, more }))
    }

    /// How many entries fit into a page's bytes, with the revisions that are read for them; at least one.
    fn within_page(self, rows: &[OffsetRow]) -> Result<usize> {
        let mut bytes = 0;
        for (count, row) in rows.iter().enumerate() {
            bytes += row.len + self.revision_bytes(row)?;
            if bytes > PAGE_BYTES_MAX {
                return Ok(count.max(1));
            }
        }
        Ok(rows.len())
    }

    fn revision_bytes(self, row: &OffsetRow) -> Result<u64> {
        let (mut bytes, mut next) = (0, row.revised);
        while next > 0 {
            let revision = self.state.rows.get(next)?;
            bytes += revision.len;
            // Damage would lead on or in a circle; reading the revisions reports it.
            next = if revision.parent < next { revision.parent } else { 0 };
        }
        Ok(bytes)
    }

    /// The run that an entry is in, up to that entry, and the entry that the run hangs from (0: none).
    fn run_of(self, seq: u64) -> Result<(Run, u64)> {
        let row = self.state.rows.get(seq)?;
        let first = if row.run == seq { row.parent } else { self.state.rows.get(row.run)?.parent };
        Ok((Run { first: row.run, last: seq }, first))
    }

    /// Entries without children, by record.
    pub(crate) fn branch_heads(self) -> Result<Vec<BranchHead>> {
        match self.state.branch_heads() {
            BranchHeads::All { heads } => Ok(heads),
            BranchHeads::TooMany => self.branch_heads_by_reading(),
        }
    }

    fn branch_heads_by_reading(self) -> Result<Vec<BranchHead>> {
        const ROWS_AT_A_TIME: u64 = 1024;
        let mut heads = std::collections::BTreeSet::new();
        let mut next = 1;
        while next <= self.state.head.seq {
            for row in self.state.rows.range(next, ROWS_AT_A_TIME)? {
                if !row.id.is_empty() {
                    heads.remove(&row.parent);
                    heads.insert(row.seq);
                }
            }
            next += ROWS_AT_A_TIME;
        }
        let mut found = Vec::with_capacity(heads.len());
        for seq in heads {
            let row = self.state.rows.get(seq)?;
            let entry_id = self
                .files
                .frame(&row, |frame| frame.header.id.as_deref().unwrap_or_default().to_owned())?;
            found.push(BranchHead { entry_id, seq });
        }
        Ok(found)
    }
}

/// How many of the rows fit into a page of records; at least one.
fn within_page(rows: &[OffsetRow]) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += row.len;
        bytes <= RECORDS_PAGE_BYTES_MAX
    });
    fitting.count().max(1)
}

/// Collects rows along a path until the limit.
struct Walk<'a, F: Fold> {
    view: View<'a, F>,
    limit: usize,
    rows: Vec<OffsetRow>,
    bytes: u64,
}

impl<F: Fold> Walk<'_, F> {
    /// Whether there are more rows than the page will have: the one beyond says that the path goes on.
    fn full(&self) -> bool {
        self.rows.len() >= self.limit || self.bytes > PAGE_BYTES_MAX && self.rows.len() > 1
    }

    fn push(&mut self, row: OffsetRow) {
        self.bytes += row.len;
        self.rows.push(row);
    }

    /// From the root, or from after `from`, towards the leaf. False when `from` is not on the path.
    fn forward(&mut self, leaf: u64, from: Option<u64>) -> Result<bool> {
        let mut runs = Vec::new();
        let mut next = leaf;
        loop {
            let (run, above) = self.view.run_of(next)?;
            match from {
                Some(from) if (run.first..=run.last).contains(&from) => {
                    runs.push(Run { first: from + 1, ..run });
                    break;
                }
                Some(from) if from > run.last => return Ok(false),
                _ => runs.push(run),
            }
            if above == 0 {
                if from.is_some() {
                    return Ok(false);
                }
                break;
            }
            next = above;
        }
        while let Some(run) = runs.pop().filter(|_| !self.full()) {
            self.take_forward(run)?;
        }
        Ok(true)
    }

    /// From the leaf, or from before `from`, towards the root. False when `from` is not on the path.
    fn backward(&mut self, leaf: u64, from: Option<u64>) -> Result<bool> {
        let mut next = leaf;
        let mut taking = from.is_none();
        loop {
            let (run, above) = self.view.run_of(next)?;
            match from {
                Some(from) if !taking && (run.first..=run.last).contains(&from) => {
                    taking = true;
                    self.take_backward(Run { last: from - 1, ..run })?;
                }
                Some(from) if !taking && from > run.last => return Ok(false),
                _ if taking => self.take_backward(run)?,
                _ => {}
            }
            if above == 0 || (taking && self.full()) {
                return Ok(taking);
            }
            next = above;
        }
    }

    fn take_forward(&mut self, run: Run) -> Result<()> {
        let mut next = run.first;
        while next <= run.last && !self.full() {
            let count = (run.last - next + 1).min(self.missing());
            for row in self.view.state.rows.range(next, count)? {
                if !row.id.is_empty() && !self.full() {
                    self.push(row);
                }
            }
            next += count;
        }
        Ok(())
    }

    fn take_backward(&mut self, run: Run) -> Result<()> {
        let mut end = run.last + 1;
        while end > run.first && !self.full() {
            let count = (end - run.first).min(self.missing());
            for row in self.view.state.rows.range(end - count, count)?.into_iter().rev() {
                if !row.id.is_empty() && !self.full() {
                    self.push(row);
                }
            }
            end -= count;
        }
        Ok(())
    }

    /// Rows to ask for next.
    fn missing(&self) -> u64 {
        (self.limit.saturating_sub(self.rows.len()) as u64).max(1)
    }
}
