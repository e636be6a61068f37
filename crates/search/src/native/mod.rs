//! An index in SQLite, shared by the processes of a data directory.
//!
//! The words are in a table of FTS5 that holds no text (`content=''`). A document's terms, made by our tokenizer, are
//! joined by spaces, and SQLite's plainest tokenizer splits them again. Filters are terms of
//! the first column too: a column of their own would cost two bytes more for each of them.
//!
//! Tables:
//! - `words`: the terms of each document;
//! - `docs`: the entry of a document, and its time. Documents are numbered in the order in which they were indexed;
//! - `sessions`: the position up to which each session is indexed;
//! - `months`: the months that documents are of;
//! - `metadata`: the pairs of sessions, for the scope of a caller;
//! - `facts`: the cursor in the feed of all sessions, and the next document's number.

mod background;
mod expression;
mod files;
mod narrow;
mod phrase;
mod rank;
mod read;
mod schema;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::{Clock, Disk, RelPath};
use bough_session::SessionId;
use rusqlite::Connection;

use crate::SearchError;
use crate::index::{
    CandidatePage, IndexBatch, IndexCounts, IndexLock, IndexedSession, SearchAsk, SearchIndex,
};
use files::{Connections, open_in_memory};

/// The file of the index in a data directory.
pub const INDEX_FILE: &str = "search.sqlite";

/// The location of an index.
#[derive(Clone, Debug)]
pub struct IndexFile {
    /// The disk that the file is on; for making it private, for removing it, and for the lock beside it.
    pub disk: Arc<dyn Disk>,
    /// The file on that disk.
    pub name: RelPath,
    /// The same file as a path of the operating system; SQLite opens it by itself.
    pub path: PathBuf,
    /// For waiting while another process holds the file.
    pub clock: Arc<dyn Clock>,
}

/// An index in SQLite. Cheap to clone; clones are the same index.
#[derive(Clone, Debug)]
pub struct NativeIndex {
    inner: Arc<Connections>,
}

impl NativeIndex {
    /// An index in a file. The file is opened at the first use; it is created if it is missing, and created anew if it
    /// is damaged or of another version. If it cannot be written, the index is one in memory.
    #[must_use]
    pub fn new(file: IndexFile) -> Self {
        Self::with(Some(file), None)
    }

    /// The index of a data directory.
    pub fn in_folder(
        disk: Arc<dyn Disk>,
        folder: &std::path::Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SearchError> {
        Ok(Self::new(file_in(disk, folder, clock)?))
    }

    /// The index of a data directory, for a process that ends after one command. If the disk becomes full while it is
    /// written, it goes on in memory, so that the command can answer.
    pub fn for_one_command(
        disk: Arc<dyn Disk>,
        folder: &std::path::Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SearchError> {
        let file = file_in(disk, folder, clock)?;
        Ok(Self { inner: Arc::new(Connections::for_one_command(file)) })
    }

    /// An index that lasts as long as the process.
    pub fn in_memory() -> Result<Self, SearchError> {
        Ok(Self::with(None, Some(open_in_memory()?)))
    }

    fn with(file: Option<IndexFile>, writer: Option<Connection>) -> Self {
        Self { inner: Arc::new(Connections::new(file, writer)) }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Connection) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || inner.with_writer(work)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || inner.with_reader(work)).await
    }
}

fn file_in(
    disk: Arc<dyn Disk>,
    folder: &std::path::Path,
    clock: Arc<dyn Clock>,
) -> Result<IndexFile, SearchError> {
    let name = RelPath::parse(INDEX_FILE).map_err(std::io::Error::from)?;
    Ok(IndexFile { disk, name, path: folder.join(INDEX_FILE), clock })
}

#[async_trait]
impl SearchIndex for NativeIndex {
    async fn cursor(&self) -> Result<Option<String>, SearchError> {
        self.read(|connection| Ok(read::cursor(connection)?)).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<IndexedSession>, SearchError> {
        let session = session.clone();
        self.read(move |connection| Ok(read::session(connection, &session)?)).await
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<IndexedSession>, SearchError> {
        let after = after.map_or(String::new(), |after| after.as_str().to_owned());
        self.read(move |connection| Ok(read::sessions(connection, &after, limit)?)).await
    }

    async fn stale(&self, limit: usize) -> Result<Vec<IndexedSession>, SearchError> {
        self.read(move |connection| Ok(read::stale(connection, limit)?)).await
    }

    async fn counts(&self) -> Result<IndexCounts, SearchError> {
        self.read(|connection| Ok(read::counts(connection)?)).await
    }

    async fn apply(&self, batch: IndexBatch) -> Result<(), SearchError> {
        let inner = self.inner.clone();
        let is_waited_for = batch.is_waited_for;
        let work = move || {
            inner.with_writer(|connection| write::apply(connection, &batch))?;
            inner.note_written();
            Ok(())
        };
        match is_waited_for {
            true => off_worker(work).await,
            false => background::run(work).await,
        }
    }

    async fn search(&self, ask: &SearchAsk<'_>) -> Result<CandidatePage, SearchError> {
        let ask = read::Ask::of(ask)?;
        self.read(move |connection| Ok(read::search(connection, &ask)?)).await
    }

    async fn clear(&self) -> Result<(), SearchError> {
        match self.write(|connection| Ok(schema::clear(connection)?)).await {
            // It stays damaged while another process has the lock; that one notices that its file is gone.
            Err(SearchError::Corrupt { .. }) => {
                let inner = self.inner.clone();
                off_worker(move || inner.remove()).await
            }
            other => other,
        }
    }

    async fn lock(&self) -> Result<Option<IndexLock>, SearchError> {
        let inner = self.inner.clone();
        off_worker(move || inner.lock()).await
    }
}

/// Runs on a blocking thread: SQLite waits for the disk and for other processes, which a worker of
/// the runtime must not.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
) -> Result<T, SearchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(SearchError::Unavailable { reason: error.to_string() }))
}

#[cfg(test)]
mod tests {
    use bough_platform::Platform;

    use super::*;

    /// An index that was written, on a disk that is full then.
    async fn on_a_disk_that_became_full(index: &NativeIndex) -> Result<(), SearchError> {
        let batch = |cursor: String| IndexBatch { cursor: Some(cursor), ..IndexBatch::default() };
        index.apply(batch("first".to_owned())).await?;
        index.write(|writer| Ok(writer.pragma_update(None, "max_page_count", 1)?)).await?;
        let expected_cursor = Some("first".to_owned());
        index.apply(IndexBatch { expected_cursor, ..batch("x".repeat(1_000_000)) }).await
    }

    #[tokio::test]
    async fn a_command_searches_a_disk_that_becomes_full_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let Platform { disk, clock, .. } = Platform::system(folder.path()).unwrap();
        let index =
            NativeIndex::for_one_command(disk.clone(), folder.path(), clock.clone()).unwrap();
        let full = on_a_disk_that_became_full(&index).await;
        assert!(matches!(full, Err(SearchError::Conflict)), "{full:?}");
        assert_eq!(index.cursor().await.unwrap(), None, "everything is to be indexed again");
        // A server keeps the file, and tries again later.
        let index = NativeIndex::in_folder(disk, folder.path(), clock).unwrap();
        index.clear().await.unwrap();
        let full = on_a_disk_that_became_full(&index).await;
        assert!(matches!(full, Err(SearchError::Unwritable { .. })), "{full:?}");
        assert_eq!(index.cursor().await.unwrap().as_deref(), Some("first"));
    }
}
