//! Renewing the id tables at a checkpoint: new rows become a table, small tables are merged into larger
//! ones, so that a look-up has few tables to ask and each row is rewritten a bounded number of times.

use std::sync::PoisonError;

use crate::error::Result;
use crate::format::{IdTableRef, PAGE_BYTES, build_table};
use crate::ids::{Ids, table_damage};
use crate::writer::Writer;

/// A table is merged into the next older one once it has an eighth of its rows.
const MERGE_RATIO: u64 = 8;

/// The tables that the next checkpoint names.
#[derive(Debug)]
pub(crate) struct Renewed {
    pub(crate) refs: Vec<IdTableRef>,
    pub(crate) end: u64,
    changed: bool,
    dropped: Vec<u64>,
}

/// Writes what the tables lack, where it is worth it. The old ones stay until the manifest is in place.
pub(crate) fn renew(writer: &Writer, head: u64) -> Result<Renewed> {
    let (refs, end) = {
        let state = writer.read_state();
        (state.ids.refs(), state.ids.tables_end())
    };
    if head - end <= writer.options.tail_rows_max {
        return Ok(Renewed { refs, end, changed: false, dropped: Vec::new() });
    }
    let mut rows = writer.read_state().ids.after_tables(head);
    let mut kept = refs;
    let mut dropped = Vec::new();
    while let Some(older) = kept.first() {
        if (rows.len() as u64) * MERGE_RATIO < older.rows {
            break;
        }
        rows.extend(rows_of_table(writer, older)?);
        dropped.push(older.number);
        kept.remove(0);
    }
    let number = dropped.iter().chain(kept.iter().map(|table| &table.number)).max();
    let number = number.map_or(1, |number| number + 1);
    let table = write_table(writer, number, rows)?;
    kept.insert(0, table);
    Ok(Renewed { refs: kept, end: head, changed: true, dropped })
}

impl Renewed {
    /// Lets look-ups use the new tables and removes the files of the merged ones.
    pub(crate) fn install(self, writer: &Writer) -> Result<()> {
        if !self.changed {
            return Ok(());
        }
        let files = &writer.files;
        let ids = Ids::open(&*files.disk, &files.container, &self.refs, self.end)?;
        {
            let mut state = writer.state.write().unwrap_or_else(PoisonError::into_inner);
            state.ids.replace_tables(ids);
        }
        for number in self.dropped {
            files.disk.remove_file(&files.container.id_table(number)?)?;
        }
        Ok(())
    }
}

fn rows_of_table(writer: &Writer, table: &IdTableRef) -> Result<Vec<(u64, u64)>> {
    let path = writer.files.container.id_table(table.number)?;
    let bytes = writer.files.disk.read_all(&path, table.pages * PAGE_BYTES as u64)?;
    let mut rows = Vec::new();
    for page in bytes.chunks(PAGE_BYTES) {
        rows.extend(
            crate::format::decode_page(page)
                .ok_or_else(|| table_damage(table.number, "a page is unreadable"))?,
        );
    }
    Ok(rows)
}

fn write_table(writer: &Writer, number: u64, rows: Vec<(u64, u64)>) -> Result<IdTableRef> {
    let disk = &writer.files.disk;
    let path = writer.files.container.id_table(number)?;
    if disk.stat(&path)?.is_some() {
        // Left by a round that never reached its manifest.
        disk.remove_file(&path)?;
    }
    let table = build_table(rows);
    let file = disk.create(&path)?;
    file.write_at(0, &table.bytes)?;
    file.sync()?;
    disk.sync_dir(&writer.files.container.index()?)?;
    Ok(IdTableRef { number, rows: table.rows, pages: table.pages })
}
