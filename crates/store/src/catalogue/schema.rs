use bough_session::Incarnation;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, TransactionBehavior, params};

use super::Found;

/// Raised whenever the tables, or what a row says, change; a catalogue of another version is made anew.
const VERSION: i64 = 6;

const TABLES: &str = "
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sessions (
    row INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    incarnation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    listed TEXT NOT NULL,
    search TEXT NOT NULL,
    container TEXT NOT NULL,
    size INTEGER NOT NULL,
    change INTEGER NOT NULL
);
CREATE INDEX sessions_by_creation ON sessions (archived, created_at, session_id);
CREATE INDEX sessions_by_update ON sessions (archived, updated_at, session_id);
CREATE INDEX sessions_by_change ON sessions (change);
CREATE TABLE facets (
    row INTEGER NOT NULL,
    facet BLOB NOT NULL,
    archived INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (row, facet)
) WITHOUT ROWID;
CREATE INDEX facets_by_creation ON facets (facet, archived, created_at, session_id);
CREATE INDEX facets_by_update ON facets (facet, archived, updated_at, session_id);
CREATE TABLE gone (
    session_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    change INTEGER NOT NULL,
    PRIMARY KEY (session_id, incarnation)
) WITHOUT ROWID;
CREATE INDEX gone_by_change ON gone (change);
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    after_seq INTEGER NOT NULL,
    after_step INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    deleted INTEGER NOT NULL
);
";

/// Makes the tables where they are missing, and says which epoch the catalogue is in.
pub(super) fn prepare(
    connection: &mut Connection,
    fresh_epoch: Incarnation,
) -> rusqlite::Result<(Incarnation, Found)> {
    // One process at a time: the second finds the tables that the first has made.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let epoch = if version == VERSION { read_epoch(&transaction)? } else { None };
    if let Some(epoch) = epoch {
        return Ok((epoch, Found::Known));
    }
    drop_all(&transaction)?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(super::usage::TABLE)?;
    put_fact(&transaction, "epoch", fresh_epoch.to_string())?;
    put_fact(&transaction, "change", 0)?;
    put_fact(&transaction, "forgotten", 0)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok((fresh_epoch, Found::Empty))
}

/// Notes a fact.
pub(super) fn put_fact(
    connection: &Connection,
    name: &str,
    value: impl ToSql,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)")?
        .execute(params![name, value])?;
    Ok(())
}

/// A fact; `None` if it is not noted.
pub(super) fn fact<T: FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    connection
        .prepare_cached("SELECT value FROM facts WHERE name = ?")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// The epoch that the catalogue is in; `None` if it is not noted.
pub(super) fn read_epoch(connection: &Connection) -> rusqlite::Result<Option<Incarnation>> {
    let text: Option<String> = fact(connection, "epoch")?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// A number that every catalogue has noted.
pub(super) fn read_number(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    fact(connection, name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Tables of another version may have any names.
fn drop_all(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let tables: Vec<String> = transaction
        .prepare(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in tables {
        let quoted = table.replace('"', "\"\"");
        transaction.execute_batch(&format!("DROP TABLE \"{quoted}\""))?;
    }
    Ok(())
}
