//! The SQLite form of a V1 session: a list of JSON texts in a database.
//!
//! ```sql
//! pi_session_header (id TEXT PRIMARY KEY, json TEXT)
//! pi_session_entries(seq INTEGER PRIMARY KEY, json TEXT)
//! pi_session_meta   (key TEXT PRIMARY KEY, value TEXT)   -- message_count, name
//! ```
//!
//! A database is read from bytes in memory and written to bytes in memory: the file itself is read and
//! replaced like every other.

use std::io::Read;

use bough_session::JsonMap;
use rusqlite::{Connection, MAIN_DB, params};
use serde_json::Value;

use crate::error::Result;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS pi_session_header (id TEXT PRIMARY KEY, json TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS pi_session_entries (seq INTEGER PRIMARY KEY, json TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS pi_session_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
";

/// A session database in memory.
#[derive(Debug)]
pub(crate) struct SqliteSession {
    database: Connection,
}

impl SqliteSession {
    /// An empty one.
    pub(crate) fn new() -> rusqlite::Result<Self> {
        let database = Connection::open_in_memory()?;
        database.execute_batch(SCHEMA)?;
        Ok(Self { database })
    }

    /// Reads the bytes of a database; an error when it is not a session's.
    pub(crate) fn read(bytes: impl Read, len: usize) -> rusqlite::Result<Self> {
        let mut database = Connection::open_in_memory()?;
        database.deserialize_read_exact(MAIN_DB, bytes, len, false)?;
        for table in ["pi_session_header", "pi_session_entries"] {
            database.prepare(&format!("SELECT json FROM {table} LIMIT 0"))?;
        }
        Ok(Self { database })
    }

    /// The header as line 1, then the entries in order, as lines from 2 on.
    pub(crate) fn rows(&self, visit: &mut dyn FnMut(u64, &str) -> Result<()>) -> Result<()> {
        let mut number = 0;
        for query in [
            "SELECT json FROM pi_session_header ORDER BY rowid",
            "SELECT json FROM pi_session_entries ORDER BY seq",
        ] {
            let mut statement = self.database.prepare(query)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                number += 1;
                match row.get_ref(0)? {
                    rusqlite::types::ValueRef::Text(text)
                    | rusqlite::types::ValueRef::Blob(text) => {
                        visit(number, &String::from_utf8_lossy(text))?;
                    }
                    other => visit(number, &format!("{other:?}"))?,
                }
            }
        }
        Ok(())
    }

    /// The side table.
    pub(crate) fn meta(&self) -> rusqlite::Result<JsonMap> {
        let mut meta = JsonMap::new();
        let Ok(mut statement) = self.database.prepare("SELECT key, value FROM pi_session_meta")
        else {
            return Ok(meta);
        };
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let value: Option<String> = row.get(1).ok();
            meta.insert(row.get(0)?, value.map_or(Value::Null, Value::from));
        }
        Ok(meta)
    }

    /// Sets the header.
    pub(crate) fn set_header(&self, id: &str, json: &str) -> rusqlite::Result<()> {
        self.database.execute("DELETE FROM pi_session_header", [])?;
        let insert = "INSERT INTO pi_session_header (id, json) VALUES (?1, ?2)";
        self.database.execute(insert, params![id, json]).map(drop)
    }

    /// Adds an entry at the end.
    pub(crate) fn push(&self, json: &str) -> rusqlite::Result<()> {
        let insert = "INSERT INTO pi_session_entries (seq, json)
            SELECT COALESCE(MAX(seq), 0) + 1, ?1 FROM pi_session_entries";
        self.database.prepare_cached(insert)?.execute([json]).map(drop)
    }

    /// Keeps the first rows, the header's being the first of them, and drops the entries after.
    pub(crate) fn keep_rows(&self, rows: u64) -> rusqlite::Result<()> {
        let delete = "DELETE FROM pi_session_entries WHERE seq NOT IN (
            SELECT seq FROM pi_session_entries ORDER BY seq
            LIMIT max(0, ?1 - (SELECT count(*) FROM pi_session_header)))";
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.database.execute(delete, [rows]).map(drop)
    }

    /// Writes down how many entries are messages, as the side table has it.
    pub(crate) fn count_messages(&self) -> rusqlite::Result<()> {
        let count = "SELECT count(*) FROM pi_session_entries
            WHERE json_valid(json) AND json_extract(json, '$.type') = 'message'";
        let messages: u64 = self.database.query_row(count, [], |row| row.get(0))?;
        self.set_meta("message_count", &messages.to_string())
    }

    /// Sets one key of the side table.
    pub(crate) fn set_meta(&self, key: &str, value: &str) -> rusqlite::Result<()> {
        self.database.execute_batch(SCHEMA)?;
        let insert = "INSERT OR REPLACE INTO pi_session_meta (key, value) VALUES (?1, ?2)";
        self.database.execute(insert, [key, value]).map(drop)
    }

    /// The database as bytes.
    pub(crate) fn bytes(&self) -> rusqlite::Result<Vec<u8>> {
        Ok(self.database.serialize(MAIN_DB)?.to_vec())
    }
}
