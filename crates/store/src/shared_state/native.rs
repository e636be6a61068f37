//! Shared documents in the data directory: a SQLite file of their own, which several processes may open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bough_platform::{Disk, RelPath};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{
    Change, Document, Persistence, SharedState, SharedStateError, check, limits::KEY_BYTES_MAX,
};
use crate::sync::lock;

/// The file of the documents in a data directory.
pub const SHARED_FILE: &str = "shared.sqlite";
/// The version of the tables, kept in the file's header.
const TABLES_VERSION: i64 = 1;
/// How long a call waits for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Shared documents in a data directory.
#[derive(Debug)]
pub struct NativeSharedState {
    file: Arc<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl NativeSharedState {
    /// Opens the documents of a data directory; creates the file if it is missing. `disk` is rooted at `directory`.
    pub fn open(disk: &dyn Disk, directory: &Path) -> Result<Self, SharedStateError> {
        let path = directory.join(SHARED_FILE);
        let name = RelPath::parse(SHARED_FILE).map_err(|error| unavailable(&error))?;
        // Create it here, so that only its owner can read it; SQLite gives its side files the same rights.
        match disk.create(&name) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unavailable(&error)),
        }
        let mut connection = connect(&path).map_err(|error| sqlite_error(&path, &error))?;
        prepare(&mut connection).map_err(|error| sqlite_error(&path, &error))?;
        let version: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|error| sqlite_error(&path, &error))?;
        if version != TABLES_VERSION {
            let reason = format!("it has version {version}, this program reads {TABLES_VERSION}");
            return Err(SharedStateError::Corrupt { path: path.display().to_string(), reason });
        }
        Ok(Self { file: Arc::new(File { path, connection: Mutex::new(connection) }) })
    }

    /// Runs work with the connection on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&File) -> Result<T, SharedStateError> + Send + 'static,
    ) -> Result<T, SharedStateError> {
        let file = self.file.clone();
        let done = tokio::task::spawn_blocking(move || work(&file)).await;
        done.map_err(|error| unavailable(&error))?
    }
}

impl File {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic interrupted is rolled back when it is dropped.
        lock(&self.connection)
    }

    fn error(&self, error: &rusqlite::Error) -> SharedStateError {
        sqlite_error(&self.path, error)
    }

    fn get(&self, key: &str) -> Result<Option<Document>, SharedStateError> {
        let connection = self.lock();
        let found = connection
            .prepare_cached("SELECT version, value FROM documents WHERE key = ?")
            .and_then(|mut select| select.query_row([key], version_and_text).optional());
        match found.map_err(|error| self.error(&error))? {
            Some((version, text)) => Ok(Some(self.document(version, &text)?)),
            None => Ok(None),
        }
    }

    fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Document)>, SharedStateError> {
        // Keys are ASCII, so this ends after every key with the prefix.
        let end = format!("{prefix}\u{7f}");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = "SELECT key, version, value FROM documents \
                      WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key LIMIT ?4";
        let connection = self.lock();
        let rows: Vec<(String, (u64, String))> = connection
            .prepare_cached(select)
            .and_then(|mut select| {
                let row = |row: &rusqlite::Row<'_>| {
                    Ok((row.get(0)?, (row.get::<_, i64>(1)?.unsigned_abs(), row.get(2)?)))
                };
                select.query_map(params![prefix, end, after, limit], row)?.collect()
            })
            .map_err(|error| self.error(&error))?;
        drop(connection);
        let document = |(key, (version, text)): (String, (u64, String))| {
            Ok((key, self.document(version, &text)?))
        };
        rows.into_iter().map(document).collect()
    }

    fn apply(
        &self,
        changes: &[Change],
        texts: &[Option<String>],
        persistence: Persistence,
    ) -> Result<Vec<u64>, SharedStateError> {
        let mut connection = self.lock();
        let synchronous = match persistence {
            Persistence::Synced => "FULL",
            // The write-ahead log is written and not synced: the system keeps it when the process ends.
            Persistence::ProcessExit => "NORMAL",
        };
        connection
            .pragma_update(None, "synchronous", synchronous)
            .map_err(|error| self.error(&error))?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| self.error(&error))?;
        let versions = self.write(&transaction, changes, texts)?;
        transaction.commit().map_err(|error| self.error(&error))?;
        Ok(versions)
    }

    fn write(
        &self,
        transaction: &Transaction<'_>,
        changes: &[Change],
        texts: &[Option<String>],
    ) -> Result<Vec<u64>, SharedStateError> {
        let mut versions = Vec::with_capacity(changes.len());
        for (change, text) in changes.iter().zip(texts) {
            let current = current_version(transaction, &change.key);
            let current = current.map_err(|error| self.error(&error))?;
            if !change.expected.holds(current) {
                let key = change.key.clone();
                return Err(SharedStateError::Conflict { key, current });
            }
            let written = put(transaction, &change.key, text.as_deref());
            versions.push(written.map_err(|error| self.error(&error))?);
        }
        Ok(versions)
    }

    fn document(&self, version: u64, text: &str) -> Result<Document, SharedStateError> {
        let value = serde_json::from_str(text).map_err(|error| SharedStateError::Corrupt {
            path: self.path.display().to_string(),
            reason: format!("a document is not JSON ({error})"),
        })?;
        Ok(Document { version, value })
    }
}

fn version_and_text(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, String)> {
    Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
}

fn current_version(transaction: &Transaction<'_>, key: &str) -> rusqlite::Result<Option<u64>> {
    let mut select = transaction.prepare_cached("SELECT version FROM documents WHERE key = ?")?;
    let version: Option<i64> = select.query_row([key], |row| row.get(0)).optional()?;
    Ok(version.map(i64::unsigned_abs))
}

/// Writes or removes one document; its new version, or 0.
fn put(transaction: &Transaction<'_>, key: &str, text: Option<&str>) -> rusqlite::Result<u64> {
    let Some(text) = text else {
        transaction.prepare_cached("DELETE FROM documents WHERE key = ?")?.execute([key])?;
        return Ok(0);
    };
    let version: i64 = transaction
        .prepare_cached("UPDATE versions SET last = last + 1 RETURNING last")?
        .query_row([], |row| row.get(0))?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)")?
        .execute(params![key, version, text])?;
    Ok(version.unsigned_abs())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    Ok(connection)
}

/// Creates the tables in a new file. If two processes do so at once, one waits and finds them.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        transaction.execute_batch(
            "CREATE TABLE documents (key TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
             CREATE TABLE versions (last INTEGER NOT NULL);
             INSERT INTO versions VALUES (0);",
        )?;
        transaction.pragma_update(None, "user_version", TABLES_VERSION)?;
    }
    transaction.commit()
}

fn unavailable(error: &dyn std::fmt::Display) -> SharedStateError {
    SharedStateError::Unavailable { reason: error.to_string() }
}

fn sqlite_error(path: &Path, error: &rusqlite::Error) -> SharedStateError {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => SharedStateError::Corrupt {
            path: path.display().to_string(),
            reason: error.to_string(),
        },
        _ => unavailable(error),
    }
}

#[async_trait]
impl SharedState for NativeSharedState {
    async fn get(&self, key: &str) -> Result<Option<Document>, SharedStateError> {
        let key = key.to_owned();
        self.run(move |file| file.get(&key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Document)>, SharedStateError> {
        let (prefix, after) = (prefix.to_owned(), after.unwrap_or_default().to_owned());
        if prefix.len() > KEY_BYTES_MAX {
            return Ok(Vec::new());
        }
        self.run(move |file| file.list(&prefix, &after, limit)).await
    }

    async fn apply(
        &self,
        changes: Vec<Change>,
        persistence: Persistence,
    ) -> Result<Vec<u64>, SharedStateError> {
        let texts = check(&changes)?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.run(move |file| file.apply(&changes, &texts, persistence)).await
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::OsDisk;
    use serde_json::json;

    use super::super::conformance::{Factory, run_all};
    use super::*;

    struct Native(tempfile::TempDir);

    fn open(directory: &Path) -> Result<NativeSharedState, SharedStateError> {
        NativeSharedState::open(&OsDisk::open(directory).unwrap(), directory)
    }

    impl Factory for Native {
        fn fresh(&self) -> Arc<dyn SharedState> {
            for name in [SHARED_FILE, "shared.sqlite-wal", "shared.sqlite-shm"] {
                let disk = OsDisk::open(self.0.path()).unwrap();
                // The first time there is nothing to remove.
                let _ = disk.remove_file(&RelPath::parse(name).unwrap()).is_ok();
            }
            Arc::new(open(self.0.path()).unwrap())
        }

        fn another(&self) -> Option<Arc<dyn SharedState>> {
            Some(Arc::new(open(self.0.path()).unwrap()))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_native_documents_pass_the_suite() {
        run_all(&Native(tempfile::tempdir().unwrap())).await;
    }

    #[tokio::test]
    async fn a_damaged_file_is_named_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::open(dir.path()).unwrap();
        let file = disk.create(&RelPath::parse(SHARED_FILE).unwrap()).unwrap();
        file.write_at(0, &[b'x'; 4096]).unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(
            matches!(&error, SharedStateError::Corrupt { path, .. } if path.ends_with(SHARED_FILE))
        );
    }

    #[tokio::test]
    async fn one_change_does_not_rewrite_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let state = open(dir.path()).unwrap();
        let change = |index: usize| Change {
            key: format!("k/{index}"),
            expected: Expected::Any,
            value: Some(json!("x".repeat(1000))),
        };
        use super::super::Expected;
        let many = (0..1000).map(change).collect();
        state.apply(many, Persistence::Synced).await.unwrap();
        let wal = || {
            let disk = OsDisk::open(dir.path()).unwrap();
            disk.stat(&RelPath::parse("shared.sqlite-wal").unwrap()).unwrap().unwrap().len
        };
        let before = wal();
        state.apply(vec![change(500)], Persistence::ProcessExit).await.unwrap();
        // The log of the file is used again from its start once it was taken over, so it grows or stays.
        assert!(wal().saturating_sub(before) < 64 * 1024, "{} then {}", before, wal());
    }
}
