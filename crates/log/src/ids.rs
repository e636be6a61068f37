use std::collections::HashMap;

use bough_platform::{Access, Disk, File};

use crate::container::Container;
use crate::error::{Damage, DamageKind, Result};
use crate::format::{IdTableRef, OffsetRow, PAGE_BYTES, hash_id, search_page};
use crate::rows::Rows;

/// Which record added which entry: sorted tables for the part that does not change any more, a map for
/// the rest.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Newest first.
    tables: Vec<OpenTable>,
    /// Records up to this one are in the tables.
    end: u64,
    tail: HashMap<String, u64>,
}

#[derive(Debug)]
struct OpenTable {
    entry: IdTableRef,
    file: Box<dyn File>,
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
            open.push(OpenTable { entry: entry.clone(), file });
        }
        Ok(Self { tables: open, end, tail: HashMap::new() })
    }

    /// Records up to this one are in the tables.
    pub(crate) fn tables_end(&self) -> u64 {
        self.end
    }

    pub(crate) fn refs(&self) -> Vec<IdTableRef> {
        self.tables.iter().map(|table| table.entry.clone()).collect()
    }

    /// Adds an entry, by the id that its row has.
    pub(crate) fn insert(&mut self, row_id: String, seq: u64) {
        self.tail.insert(row_id, seq);
    }

    /// The record that added an entry.
    pub(crate) fn find(&self, id: &str, rows: &Rows) -> Result<Option<u64>> {
        let row_id = OffsetRow::id_field(id);
        if let Some(seq) = self.tail.get(&*row_id) {
            return Ok(Some(*seq));
        }
        let hash = hash_id(&row_id);
        for table in &self.tables {
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

    /// The entries that no table has, up to record `head`, as a table files them.
    pub(crate) fn after_tables(&self, head: u64) -> Vec<(u64, u64)> {
        let until = self.tail.iter().filter(|(_, seq)| **seq <= head);
        until.map(|(row_id, seq)| (hash_id(row_id), *seq)).collect()
    }

    /// Puts new tables in place of the old ones; entries up to `end` leave the map.
    pub(crate) fn replace_tables(&mut self, newer: Self) {
        self.tables = newer.tables;
        self.end = newer.end;
        self.tail.retain(|_, seq| *seq > newer.end);
    }
}

impl OpenTable {
    fn read(&self, page: u64, out: &mut [u8; PAGE_BYTES]) -> bool {
        self.file.read_at(page * PAGE_BYTES as u64, out).is_ok_and(|read| read == PAGE_BYTES)
    }
}

pub(crate) fn table_damage(number: u64, detail: &str) -> Damage {
    Damage::new(DamageKind::IdTable, format!("index/ids-{number:016}.tbl"), 0, detail)
}
