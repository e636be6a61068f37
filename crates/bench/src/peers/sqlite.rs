//! SQLite in WAL mode: one database, one row an entry, one transaction an append.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};

use super::{Peer, Writer};
use crate::Outcome;
use crate::entries::Entry;

/// How long a writer waits for the one that holds the database.
const BUSY: Duration = Duration::from_secs(60);

/// What `PRAGMA synchronous` is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Synchronous {
    /// Every commit is durable.
    Full,
    /// Commits survive the process; the newest may be lost with the machine.
    Normal,
    /// Nothing is synced.
    Off,
}

/// One database for all sessions, with the index that reading by id needs.
pub(crate) struct Sqlite {
    path: PathBuf,
    synchronous: Synchronous,
}

impl Sqlite {
    pub(crate) fn new(folder: PathBuf, synchronous: Synchronous) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        let made = Self { path: folder.join("entries.sqlite"), synchronous };
        made.connect()?.execute_batch(
            "CREATE TABLE IF NOT EXISTS entries (
                 session INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL,
                 parent TEXT, body TEXT NOT NULL,
                 PRIMARY KEY (session, seq)) WITHOUT ROWID;
             CREATE UNIQUE INDEX IF NOT EXISTS by_id ON entries (session, id);",
        )?;
        Ok(made)
    }

    fn connect(&self) -> Outcome<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match self.synchronous {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
            Synchronous::Off => "OFF",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(connection)
    }

    /// How many entries a session has.
    #[cfg(test)]
    pub(crate) fn count(&self, session: usize) -> Outcome<usize> {
        let sql = "SELECT count(*) FROM entries WHERE session = ?1";
        let count: i64 =
            self.connect()?.query_row(sql, [i64::try_from(session)?], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    }

    /// Opens the database afresh and reads the newest entries of a session.
    pub(crate) fn open_and_read_last(&self, session: usize, count: usize) -> Outcome<Vec<String>> {
        let connection = self.connect()?;
        let sql = "SELECT body FROM entries WHERE session = ?1 ORDER BY seq DESC LIMIT ?2";
        let mut statement = connection.prepare(sql)?;
        let arguments = params![i64::try_from(session)?, i64::try_from(count)?];
        let rows = statement.query_map(arguments, |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Opens the database afresh and reads one entry by its id.
    pub(crate) fn open_and_read_one(&self, session: usize, id: &str) -> Outcome<String> {
        let sql = "SELECT body FROM entries WHERE session = ?1 AND id = ?2";
        let arguments = params![i64::try_from(session)?, id];
        Ok(self.connect()?.query_row(sql, arguments, |row| row.get(0))?)
    }
}

impl Peer for Sqlite {
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>> {
        Ok(Box::new(SqliteWriter { connection: self.connect()?, session: i64::try_from(session)? }))
    }
}

struct SqliteWriter {
    connection: Connection,
    session: i64,
}

impl Writer for SqliteWriter {
    /// The place of an entry comes from the table, as it must when several writers share a session.
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO entries (session, seq, id, parent, body) VALUES (?1,
                 (SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE session = ?1), ?2, ?3, ?4)",
            )?;
            for entry in &entries {
                insert.execute(params![self.session, entry.id, entry.parent, entry.line])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}
