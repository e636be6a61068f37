use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Increased whenever the tables, the tokenizer or the content of a document change. An index of another version is
/// created anew.
const VERSION: i64 = 5;

// Batches are small and many: merging eight of a size at a time costs less than the default of four, and a search still reads
// few pieces.
const TABLES: &str = "
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO facts VALUES ('next_doc', 1);
CREATE TABLE sessions (
    no INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    incarnation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    stale INTEGER NOT NULL,
    project TEXT,
    agent TEXT
);
CREATE INDEX sessions_stale ON sessions (stale) WHERE stale;
CREATE TABLE metadata (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (key, value, session)
) WITHOUT ROWID;
CREATE INDEX metadata_by_session ON metadata (session);
CREATE TABLE docs (
    doc INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    old INTEGER,
    at INTEGER NOT NULL,
    weight INTEGER NOT NULL
);
CREATE INDEX docs_by_entry ON docs (session, seq);
CREATE TABLE months (month INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE words USING fts5(
    w, thinking, call, content='', contentless_delete=1, tokenize='ascii'
);
INSERT INTO words(words, rank) VALUES ('automerge', 8);
";

/// Makes the tables where they are missing or of another version.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    // One process at a time: the second finds the tables that the first has made.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == VERSION {
        return Ok(());
    }
    make(&transaction)?;
    transaction.commit()
}

/// Forgets everything.
pub(super) fn clear(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    make(&transaction)?;
    transaction.commit()?;
    // While others read, the file keeps its size, and SQLite reuses its pages.
    drop(connection.execute_batch("VACUUM"));
    Ok(())
}

fn make(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    // The tables behind a virtual table are dropped with it.
    for kind in ["sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite_%'"] {
        let sql = format!("SELECT name FROM sqlite_master WHERE type = 'table' AND {kind}");
        let tables: Vec<String> = transaction
            .prepare(&sql)?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for table in tables {
            let quoted = table.replace('"', "\"\"");
            transaction.execute_batch(&format!("DROP TABLE IF EXISTS \"{quoted}\""))?;
        }
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)
}
