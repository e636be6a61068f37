//! The trait that every adapter implements.

use async_trait::async_trait;
use bough_session::{BranchHead, Delta, EntryId, Incarnation, NewRecord, SessionId, SessionState};

use crate::changes::{ChangeWatch, SessionWatch};
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, ListPage, ListQuery, PathPage,
    PathQuery, RecordPage, Snapshot, StoredEntry, Trashed,
};
use crate::{StoreError, as_of};
use bough_record::{Head, Position};

/// A session that is being built out of sight. It appears whole, or not at all; dropped, it leaves nothing behind.
#[async_trait]
pub trait Draft: Send {
    /// Adds records; the very first of them is a [`Record::Meta`](bough_session::Record::Meta). After an error the draft is
    /// good for nothing but to be dropped.
    async fn add(&mut self, records: Vec<NewRecord>) -> Result<(), StoreError>;

    /// Shows the session. Durable when the call returns. `Exists` when its id is in use.
    async fn finish(self: Box<Self>) -> Result<Appended, StoreError>;
}

/// Sessions as logs of records: compare-and-append, read, list, delete.
///
/// The one write is [`append`](Self::append): a batch of records, checked against the head of the
/// session's log. A batch is accepted (it has its place, and the next append may build on it) when the
/// call returns, and acknowledged when its [`Durable`](crate::Durable) resolves, so that a caller can
/// have several batches of one session on their way in one disk write.
///
/// Reads show whole batches, and only what is durable. What a watch wakes for is durable too.
///
/// A store knows no rules: it does not check parents, roles or statuses. It believes the records that
/// it is given, and folds them.
#[async_trait]
pub trait Store: Send + Sync {
    /// What this store can do beyond the core.
    fn capabilities(&self) -> Capabilities;

    /// Begins a session with its first records, the first of which is a
    /// [`Record::Meta`](bough_session::Record::Meta). All of them are one batch, however many:
    /// after a crash there is the whole session or none.
    ///
    /// `Exists` when the id is in use; the id of a deleted session is free and begins a new life.
    async fn create(&self, session: &SessionId, batch: Batch) -> Result<Appended, StoreError>;

    /// Begins a session that is too large to be made at once. `None` when the store cannot build one out of sight.
    async fn draft(&self, _session: &SessionId) -> Result<Option<Box<dyn Draft>>, StoreError> {
        Ok(None)
    }

    /// Appends a batch, if `expected` is the head that the last accepted batch left.
    ///
    /// `Conflict` with that head otherwise, and nothing is written. A store may put the steps of a
    /// stream together into a record by itself, which moves the head: a caller that meets a conflict
    /// looks again and retries.
    async fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError>;

    /// Adds one step of a stream to a message, if the message is at the revision before it, counting
    /// the steps that were accepted and are not yet durable. `RevisionConflict` otherwise.
    ///
    /// The step is acknowledged, kept and shown like a record, in space proportional to what it
    /// changes. Whether and when steps become one record is the store's business.
    async fn append_delta(&self, session: &SessionId, delta: Delta)
    -> Result<Appended, StoreError>;

    /// What is known of a session; `None` when there is none, or it was deleted.
    async fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError>;

    /// Whether `head` is what the last accepted batch left, and nobody but this store can have written since: what is known of
    /// the session then needs no reading. Answers from memory; `false` where it would have to look.
    fn is_newest(&self, _session: &SessionId, _head: &Head) -> bool {
        false
    }

    /// An entry at its newest durable revision; `None` when the session or the entry does not exist.
    async fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError>;

    /// A part of the path that leads to a leaf.
    ///
    /// `NotFound` for an unknown session, `EntryNotFound` for an unknown leaf, `NotOnPath` for a start
    /// that is not on the path, `Corrupt` where a parent is missing.
    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError>;

    /// The records after a position, oldest first. `NotFound` for an unknown session.
    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError>;

    /// The records of a deleted session that is still there, as [`records`](Self::records) has those of others.
    /// `NotFound` when that life is not in the trash, or the store cannot look into it.
    async fn trashed_records(
        &self,
        session: &SessionId,
        _incarnation: Incarnation,
        _after: Position,
        _limit: usize,
    ) -> Result<RecordPage, StoreError> {
        Err(StoreError::NotFound { session: session.clone() })
    }

    /// An entry of a deleted session that is still there; `None` when that life is not in the trash, has no such entry,
    /// or the store cannot look into it.
    async fn trashed_entry(
        &self,
        _session: &SessionId,
        _incarnation: Incarnation,
        _entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        Ok(None)
    }

    /// An entry as it was at a revision, in a life of the session that is there or in the trash.
    ///
    /// `None` when the entry does not exist, or has not come there, or that revision is one of the steps that became one
    /// record since: what it said then is no longer known.
    async fn entry_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
        revision: u64,
    ) -> Result<Option<StoredEntry>, StoreError> {
        as_of::entry_at(self, (session, incarnation), entry, revision).await
    }

    /// What the records of a life up to number `seq` say of the session itself: what it is called and described as, its
    /// status, its metadata, where it comes from. What they say of its entries may be left out. `None` when that life is
    /// neither there nor in the trash.
    ///
    /// It may cost as much as reading all those records, in pages.
    async fn state_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        seq: u64,
    ) -> Result<Option<SessionState>, StoreError> {
        as_of::state_at(self, (session, incarnation), seq).await
    }

    /// The ends of the session's branches, the newest first, at most `limit` of them; with `before`, those that are older than
    /// that entry. `NotFound` for an unknown session, `EntryNotFound` for an unknown entry.
    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError>;

    /// Deletes a session: it gets a tombstone, leaves every list, and waits in the trash. Durable when
    /// the call returns. `None` when there is no such session.
    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError>;

    /// Brings a deleted session back as it was. Durable when the call returns. `NotFound` when that
    /// life is not in the trash, `Exists` when its id is in use again.
    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError>;

    /// Removes a deleted session for good; says whether it was there.
    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<bool, StoreError>;

    /// Removes a session for good whose retention has ended, unless it was brought back since, or deleted at another
    /// time than `deleted_at`; says whether it did. For stores that several processes use.
    async fn purge_expired(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: i64,
    ) -> Result<bool, StoreError> {
        let _ = deleted_at;
        self.purge(session, incarnation).await
    }

    /// Deleted sessions that are still there, the first deleted first; only lives of `session` if one is
    /// given.
    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError>;

    /// A page of sessions. A session that was there at the first page is returned at least once by the
    /// time the pages end, also when it changes in between; it may then be returned twice.
    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError>;

    /// How many sessions a query matches, its limit and cursor aside.
    async fn count(&self, query: &ListQuery) -> Result<u64, StoreError>;

    /// A watch over all sessions: it wakes when anything became durable. Wake-ups run together; what
    /// changed is read with [`changes_after`](Self::changes_after).
    fn watch(&self) -> ChangeWatch;

    /// A watch over one session, whether or not it exists yet.
    fn watch_session(&self, session: &SessionId) -> SessionWatch;

    /// Where the feed of all sessions is now.
    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError>;

    /// The changes since a cursor, in order. Those of one life of a session follow each other without a hole, also
    /// when several processes made them; what is no longer kept is a gap.
    async fn changes_after(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<ChangePage, StoreError>;

    /// Clears the latch of a session whose write failed, by reading it again from the disk. Harmless
    /// on a session that is well.
    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError>;

    /// Finishes what can be finished and lets go of locks. Reads and writes may follow; they open
    /// again what they need.
    async fn close(&self) -> Result<(), StoreError>;
}
