//! Renewing the id tables at a checkpoint: new rows become a table, small tables are merged into larger
//! ones, so that a look-up has few tables to ask and each row is rewritten a bounded number of times.

use bough_record::Fold;

use crate::bloom::BloomFilter;
use crate::container::parse_table_name;
use crate::error::{LogError, Result};
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
    /// The newest table's, when it is new.
    bloom: Option<BloomFilter>,
    changed: bool,
}

/// Writes what the tables lack, where it is worth it. The old ones stay until the manifest is in place.
pub(crate) fn renew<F: Fold>(writer: &Writer<F>, head: u64) -> Result<Renewed> {
    let (refs, end, damaged) = {
        let state = writer.read_state();
        (state.ids.refs(), state.ids.tables_end(), state.ids.is_damaged())
    };
    if head - end <= writer.options.tail_rows_max && !damaged {
        return Ok(Renewed { refs, end, bloom: None, changed: false });
    }
    let mut rows = writer.read_state().ids.after_tables(head);
    // Damaged tables are not read: what they had is among the rows.
    let mut kept = if damaged { Vec::new() } else { refs };
    while let Some(older) = kept.first() {
        if (rows.len() as u64) * MERGE_RATIO < older.rows {
            break;
        }
        match rows_of_table(writer, older) {
            Ok(older) => rows.extend(older),
            Err(LogError::Corrupt(damage)) if damage.kind.is_derived() => {
                let state = writer.read_state();
                state.ids.rebuild(&state.rows)?;
                drop(state);
                return renew(writer, head);
            }
            Err(error) => return Err(error),
        }
        kept.remove(0);
    }
    // A number is used once: until the next manifest is in place, the last one still names its tables.
    let newest = table_numbers(writer)?.into_iter().max().unwrap_or(0);
    let bloom = BloomFilter::of(&rows);
    let table = write_table(writer, newest + 1, rows)?;
    kept.insert(0, table);
    Ok(Renewed { refs: kept, end: head, bloom, changed: true })
}

impl Renewed {
    /// Lets look-ups use the new tables and removes the files of all others: those that were merged, and
    /// those that could not be believed.
    pub(crate) fn install<F: Fold>(self, writer: &Writer<F>) -> Result<()> {
        if !self.changed {
            return Ok(());
        }
        let files = &writer.files;
        let ids = Ids::open(&*files.disk, &files.container, &self.refs, self.end)?;
        writer.write_state().ids.replace_tables(ids, self.bloom);
        for number in table_numbers(writer)? {
            if !self.refs.iter().any(|table| table.number == number) {
                files.disk.remove_file(&files.container.id_table(number)?)?;
            }
        }
        Ok(())
    }
}

/// The tables that have a file, named by a checkpoint or not.
fn table_numbers<F: Fold>(writer: &Writer<F>) -> Result<Vec<u64>> {
    let listed = writer.files.disk.list(&writer.files.container.index()?)?;
    Ok(listed.iter().filter_map(|listed| parse_table_name(&listed.name)).collect())
}

fn rows_of_table<F: Fold>(writer: &Writer<F>, table: &IdTableRef) -> Result<Vec<(u64, u64)>> {
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

fn write_table<F: Fold>(
    writer: &Writer<F>,
    number: u64,
    rows: Vec<(u64, u64)>,
) -> Result<IdTableRef> {
    let disk = &writer.files.disk;
    let path = writer.files.container.id_table(number)?;
    let table = build_table(rows);
    let file = disk.create(&path)?;
    file.write_at(0, &table.bytes)?;
    file.sync()?;
    disk.sync_dir(&writer.files.container.index()?)?;
    Ok(IdTableRef { number, rows: table.rows, pages: table.pages })
}
