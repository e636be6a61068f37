//! The trait that every adapter implements. What can be built on it is in [`StoreExt`](crate::StoreExt).

use async_trait::async_trait;
use bough_record::{Head, Incarnation};
use bough_session::{BranchHead, EntryId, SessionId};

use crate::StoreError;
use crate::changes::ChangeHub;
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, EntryQuery, ListPage, ListQuery,
    Loaded, PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry, Trashed,
    UsageQuery, UsageReport, Write,
};

/// A session that is being built out of sight. It appears whole, or not at all; dropped, it leaves nothing behind.
#[async_trait]
pub trait Draft: Send {
    /// Adds a batch. The very first record is a [`Record::Meta`](bough_session::Record::Meta). After an error the draft can
    /// only be dropped.
    async fn add(&mut self, batch: Batch) -> Result<(), StoreError>;

    /// Shows the session. It is durable when the call returns. `Exists` when its id is in use.
    async fn finish(self: Box<Self>) -> Result<Appended, StoreError>;

    /// Replaces the session that ends at `expected`; see [`Write::Replace`].
    async fn replace(self: Box<Self>, expected: &Head) -> Result<Appended, StoreError>;
}

/// Reading sessions, one at a time. It shows whole batches, and only what is durable.
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// What is known of a session, unless the last accepted write left it at `known`: the caller then knows it already, with
    /// what may not be durable yet, and nothing has to be read.
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError>;

    /// An entry of a session, at its newest durable revision or at an older one. `None` when that incarnation of the session
    /// is neither there nor in the trash, when the entry does not exist, and when the revision is no longer known: it
    /// was one of the steps that have become one record.
    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError>;

    /// Records after a position, oldest first. `NotFound` when that incarnation of the session is neither there nor in the trash.
    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError>;

    /// A part of the path that leads to a leaf.
    ///
    /// `NotFound` for an unknown session, `EntryNotFound` for an unknown leaf, `NotOnPath` for a start
    /// that is not on the path, `Corrupt` where a parent is missing.
    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError>;

    /// The ends of the session's branches, the newest first, at most `limit` of them; with `before`, those that are older than
    /// that entry. `NotFound` for an unknown session, `EntryNotFound` for an unknown entry.
    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError>;
}

/// Sessions as logs of records: compare-and-append, list, delete, and what a [`ReadStore`] reads.
///
/// The one way to change a session is [`write`](Self::write). A write is accepted when the call returns: it has its
/// place, and the next write may build on it. It is acknowledged when its [`Durable`](crate::Durable) resolves, so a
/// caller can have several writes of one session on their way in one disk write.
///
/// A store knows no rules: it does not check parents, roles or statuses. It believes the records that
/// it is given, and folds them.
#[async_trait]
pub trait Store: ReadStore {
    /// What this store can do beyond the core.
    fn capabilities(&self) -> Capabilities;

    /// Writes to a session: begins it, appends a batch, or adds a step of a stream. Each is one atomic step; see
    /// [`Write`] for what each compares and refuses.
    async fn write(&self, session: &SessionId, write: Write) -> Result<Appended, StoreError>;

    /// Begins a session that is too large to be made at once.
    async fn draft(&self, session: &SessionId) -> Result<Box<dyn Draft>, StoreError>;

    /// Deletes a session: it gets a tombstone, leaves every list, and waits in the trash. Durable when
    /// the call returns. `None` when there is no such session.
    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError>;

    /// Brings a deleted session back as it was. Durable when the call returns. `NotFound` when that
    /// incarnation is not in the trash, `Exists` when its id is in use again.
    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError>;

    /// Removes a deleted session for good; says whether it did. With `deleted_at`, only if it was deleted at that time:
    /// another process may have brought it back and deleted it again since the caller looked.
    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError>;

    /// Deleted sessions that are still there, the first deleted first; only incarnations of `session` if one is
    /// given.
    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError>;

    /// A page of sessions. A session that was there at the first page is returned at least once by the
    /// time the pages end, also when it changes in between; it may then be returned twice.
    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError>;

    /// Sums of what the sessions used, by day, model, tool or what else they are kept apart by.
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError>;

    /// Where this store announces what became durable, and who waits for it. What changed is read with
    /// [`changes`](Self::changes).
    fn hub(&self) -> &ChangeHub;

    /// The changes of all sessions since a cursor, in order; without a cursor none, and the cursor of now. The changes of one
    /// incarnation of a session follow each other without a hole, also when several processes made them; what is no longer
    /// kept is a gap.
    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError>;

    /// Clears the latch of a session whose write failed, by reading it again from the disk. Harmless
    /// on a session that is well.
    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError>;

    /// Finishes what can be finished and releases locks. Reads and writes may follow; they open
    /// again what they need.
    async fn close(&self) -> Result<(), StoreError>;
}
