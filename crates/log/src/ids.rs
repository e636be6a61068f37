use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bough_platform::{Access, Disk, File};

use crate::bloom::BloomFilter;
use crate::container::Container;
use crate::error::{Damage, DamageKind, LogError, Result};
use crate::format::{IdTableRef, PAGE_BYTES, RowId, decode_page, hash_id, search_page};
use crate::rows::{Rows, part_of_turn};
use crate::sync::lock;

/// What is known of an entry without reading its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) seq: u64,
    pub(crate) run: u64,
    pub(crate) depth: u64,
}

/// Which record added which entry: sorted tables for the part that does not change any more, a map for
/// the rest.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Newest first.
    tables: Vec<OpenTable>,
    /// Records up to this one are in the tables.
    end: u64,
    tail: HashMap<RowId, Known>,
    /// What the tables have, made again from the rows because a table is damaged.
    rebuilt: Mutex<Option<Arc<HashMap<RowId, u64>>>>,
}

#[derive(Debug)]
struct OpenTable {
    entry: IdTableRef,
    file: Box<dyn File>,
    /// For a table that this process wrote: what is certainly not in it.
    bloom: Option<Arc<BloomFilter>>,
}

impl Ids {
    pub(crate) fn open(
        disk: &dyn Disk,
        container: &Container,
        tables: &[IdTableRef],
        end: u64,
    ) -> Result<Self> {
        let mut open = Vec::with_capacity(tables.len());
        for entry in tables {
            let path = container.id_table(entry.number)?;
            let file = disk
                .open(&path, Access::Read)
                .map_err(|error| table_damage(entry.number, &error.to_string()))?;
            open.push(OpenTable { entry: entry.clone(), file, bloom: None });
        }
        Ok(Self { tables: open, end, ..Self::default() })
    }

    /// Records up to this one are in the tables.
    pub(crate) fn tables_end(&self) -> u64 {
        self.end
    }

    pub(crate) fn refs(&self) -> Vec<IdTableRef> {
        self.tables.iter().map(|table| table.entry.clone()).collect()
    }

    /// Adds an entry, by the id that its row has.
    pub(crate) fn insert(&mut self, row_id: RowId, known: Known) {
        self.tail.insert(row_id, known);
    }

    /// An entry that no table has yet.
    pub(crate) fn recent(&self, id: &str) -> Option<Known> {
        self.tail.get(&RowId::of(id)).copied()
    }

    /// The record that added an entry.
    pub(crate) fn find(&self, id: &str, rows: &Rows) -> Result<Option<u64>> {
        let row_id = RowId::of(id);
        if let Some(known) = self.tail.get(&row_id) {
            return Ok(Some(known.seq));
        }
        if self.tables.is_empty() {
            return Ok(None);
        }
        if self.rebuilt().is_none() {
            match self.search(row_id, rows) {
                Err(LogError::Corrupt(damage)) if damage.kind.is_derived() => self.rebuild(rows)?,
                other => return other,
            }
        }
        Ok(self.rebuilt().and_then(|rebuilt| rebuilt.get(&row_id).copied()))
    }

    fn search(&self, row_id: RowId, rows: &Rows) -> Result<Option<u64>> {
        let hash = hash_id(&row_id);
        for table in self.tables.iter().filter(|table| table.may_have(hash)) {
            let found = search_page(hash, table.entry.pages, |page, out| table.read(page, out))
                .ok_or_else(|| table_damage(table.entry.number, "a page is unreadable"))?;
            for seq in found {
                if rows.get(seq)?.id == row_id {
                    return Ok(Some(seq));
                }
            }
        }
        Ok(None)
    }

    /// Whether the tables have to be written anew.
    pub(crate) fn is_damaged(&self) -> bool {
        self.rebuilt().is_some()
    }

    fn rebuilt(&self) -> Option<Arc<HashMap<RowId, u64>>> {
        lock(&self.rebuilt).clone()
    }

    /// Makes what the tables have again from the rows.
    pub(crate) fn rebuild(&self, rows: &Rows) -> Result<()> {
        const ROWS_AT_A_TIME: u64 = 1024;
        let mut rebuilt = HashMap::new();
        let mut next = 1;
        while next <= self.end {
            let count = ROWS_AT_A_TIME.min(self.end + 1 - next);
            let entries = rows.range(next, count)?.into_iter().filter(|row| !row.id.is_empty());
            rebuilt.extend(entries.map(|row| (row.id, row.seq)));
            next += count;
        }
        *lock(&self.rebuilt) = Some(Arc::new(rebuilt));
        Ok(())
    }

    /// Looks at one part of each table, and rebuilds if a page of it cannot be read. Turns that follow each other look at
    /// all of them.
    pub(crate) fn check_in_turn(&self, rows: &Rows, turn: u64, part_bytes: u64) -> Result<()> {
        let pages = part_bytes / PAGE_BYTES as u64;
        let is_whole = |table: &OpenTable| table.is_whole_in_turn(turn, pages);
        if self.is_damaged() || self.tables.iter().all(is_whole) {
            return Ok(());
        }
        self.rebuild(rows)
    }

    /// The entries that no readable table has, up to record `head`, as a table files them.
    pub(crate) fn after_tables(&self, head: u64) -> Vec<(u64, u64)> {
        let until = self.tail.iter().filter(|(_, known)| known.seq <= head);
        let tail = until.map(|(row_id, known)| (hash_id(row_id), known.seq));
        let rebuilt = self.rebuilt().unwrap_or_default();
        let again = rebuilt.iter().map(|(row_id, seq)| (hash_id(row_id), *seq));
        tail.chain(again).collect()
    }

    /// Puts new tables in place of the old ones; entries up to `end` leave the map. `bloom` is of the newest
    /// table; the others keep what they have.
    pub(crate) fn replace_tables(&mut self, newer: Self, bloom: Option<BloomFilter>) {
        let older = std::mem::replace(&mut self.tables, newer.tables);
        for table in &mut self.tables {
            let same = older.iter().find(|old| old.entry.number == table.entry.number);
            table.bloom = same.and_then(|old| old.bloom.clone());
        }
        if let Some(newest) = self.tables.first_mut() {
            newest.bloom = bloom.map(Arc::new);
        }
        self.end = newer.end;
        self.rebuilt = Mutex::default();
        self.tail.retain(|_, known| known.seq > newer.end);
    }
}

impl OpenTable {
    fn is_whole_in_turn(&self, turn: u64, part_pages: u64) -> bool {
        let first = part_of_turn(turn, self.entry.pages, part_pages) * part_pages;
        let mut page = [0; PAGE_BYTES];
        (first..self.entry.pages.min(first + part_pages))
            .all(|number| self.read(number, &mut page) && decode_page(&page).is_some())
    }

    fn may_have(&self, hash: u64) -> bool {
        self.bloom.as_ref().is_none_or(|bloom| bloom.may_have(hash))
    }

    fn read(&self, page: u64, out: &mut [u8; PAGE_BYTES]) -> bool {
        self.file.read_at(page * PAGE_BYTES as u64, out).is_ok_and(|read| read == PAGE_BYTES)
    }
}

pub(crate) fn table_damage(number: u64, detail: &str) -> Damage {
    Damage::new(DamageKind::IdTable, format!("index/ids-{number:016}.tbl"), 0, detail)
}
