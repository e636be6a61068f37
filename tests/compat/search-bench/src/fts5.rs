//! FTS5 as it comes: the text in the table, SQLite's own tokenizer, ranked by its own function.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use crate::{Made, Outcome, corpus, entries, processor_seconds};

/// Entries of one transaction.
const BATCH: usize = 4_000;

pub(crate) fn made(folder: &Path) -> Outcome<Made> {
    if let Some(made) = Made::kept(folder, "fts5") {
        return Ok(made);
    }
    let mut connection = open(folder)?;
    connection.execute_batch("CREATE VIRTUAL TABLE entries USING fts5(text)")?;
    let count = entries()?;
    let (mut processor, mut seconds, mut bytes) = (0.0, 0.0, 0);
    for first in (0..count).step_by(BATCH) {
        let texts: Vec<String> =
            (first..count.min(first + BATCH)).map(|n| corpus::entry(n, count).text).collect();
        let (began, before) = (Instant::now(), processor_seconds()?);
        let transaction = connection.transaction()?;
        for (number, text) in (first..).zip(&texts) {
            let mut insert =
                transaction.prepare_cached("INSERT INTO entries (rowid, text) VALUES (?, ?)")?;
            insert.execute(params![i64::try_from(number + 1)?, text])?;
            bytes += text.len();
        }
        transaction.commit()?;
        processor += processor_seconds()? - before;
        seconds += began.elapsed().as_secs_f64();
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    let made = Made {
        text_bytes: crate::measure::as_f64(bytes),
        index_bytes: crate::bytes_of(folder, "plain.sqlite")?,
        processor_seconds: processor,
        seconds,
    };
    made.keep(folder, "fts5")?;
    Ok(made)
}

pub(crate) fn open(folder: &Path) -> Outcome<Connection> {
    let connection = Connection::open(folder.join("plain.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Milliseconds for the best `limit` of all that fit, with snippets.
pub(crate) fn first_rows(connection: &Connection, pattern: &str, limit: usize) -> Outcome<f64> {
    let began = Instant::now();
    let quoted = format!("\"{}\"", pattern.replace('"', ""));
    let mut find = connection.prepare_cached(
        "SELECT rowid, snippet(entries, 0, '[', ']', '', 16) FROM entries WHERE entries MATCH ? ORDER BY rank LIMIT ?",
    )?;
    let rows =
        find.query_map(params![quoted, i64::try_from(limit)?], |row| row.get::<_, i64>(0))?;
    rows.collect::<Result<Vec<_>, _>>()?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}
