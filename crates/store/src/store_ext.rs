//! Operations that are built on [`ReadStore`] and [`Store`], once for all adapters.

use std::future::Future;

use bough_record::{Head, Incarnation, Position};
use bough_session::{Delta, EntryId, SessionId, SessionState};

use crate::changes::{ChangeWatch, SessionWatch};
use crate::limits::FOLD_RECORDS_PER_READ;
use crate::types::{
    Appended, Batch, ChangeCursor, EntryQuery, Loaded, RecordPage, RecordQuery, Snapshot,
    StoredEntry, Write,
};
use crate::{ReadStore, Store, StoreError};

type Answer<T> = Result<T, StoreError>;

/// Calls that every store has because they are built on those of [`ReadStore`] and [`Store`].
pub trait StoreExt: ReadStore {
    /// Begins a session; see [`Write::Create`].
    fn create(
        &self,
        session: &SessionId,
        batch: Batch,
    ) -> impl Future<Output = Answer<Appended>> + Send
    where
        Self: Store,
    {
        async move { self.write(session, Write::Create(batch)).await }
    }

    /// Appends a batch; see [`Write::Append`].
    fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> impl Future<Output = Answer<Appended>> + Send
    where
        Self: Store,
    {
        let write = Write::Append { expected: *expected, batch };
        async move { self.write(session, write).await }
    }

    /// Adds one step of a stream; see [`Write::Step`].
    fn append_delta(
        &self,
        session: &SessionId,
        delta: Delta,
    ) -> impl Future<Output = Answer<Appended>> + Send
    where
        Self: Store,
    {
        async move { self.write(session, Write::Step(delta)).await }
    }

    /// The state of a session; `None` if there is none, or it was deleted.
    fn state(&self, session: &SessionId) -> impl Future<Output = Answer<Option<Snapshot>>> + Send {
        async move {
            match self.load(session, None).await? {
                Loaded::Changed(snapshot) => Ok(Some(*snapshot)),
                Loaded::Absent | Loaded::Unchanged => Ok(None),
            }
        }
    }

    /// Whether the last accepted write left the session at `head`.
    fn is_newest(
        &self,
        session: &SessionId,
        head: &Head,
    ) -> impl Future<Output = Answer<bool>> + Send {
        async move { Ok(matches!(self.load(session, Some(head)).await?, Loaded::Unchanged)) }
    }

    /// An entry at its newest durable revision; `None` when the session or the entry does not exist.
    fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> impl Future<Output = Answer<Option<StoredEntry>>> + Send {
        async move { self.read_entry(session, &EntryQuery::newest(entry)).await }
    }

    /// An entry as it was at a revision, in an incarnation of the session that is there or in the trash.
    fn entry_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
        revision: u64,
    ) -> impl Future<Output = Answer<Option<StoredEntry>>> + Send {
        async move {
            let (id, incarnation) = (entry.clone(), Some(incarnation));
            let query = EntryQuery { id, incarnation, revision: Some(revision) };
            self.read_entry(session, &query).await
        }
    }

    /// The records of the session after a position, oldest first. `NotFound` for an unknown session.
    fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> impl Future<Output = Answer<RecordPage>> + Send {
        async move { self.read_records(session, &RecordQuery::after(after, limit)).await }
    }

    /// The records of one incarnation of a session, which may be in the trash; `None` when they are no longer kept.
    fn records_of(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> impl Future<Output = Answer<Option<RecordPage>>> + Send {
        async move {
            let query = RecordQuery::after(after, limit).of(incarnation);
            if_there(self.read_records(session, &query).await)
        }
    }

    /// The session's own fields after the records of an incarnation up to number `seq`: names, status, metadata,
    /// origin. Entries are left out. `None` if that incarnation neither exists nor is in the trash.
    fn state_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        seq: u64,
    ) -> impl Future<Output = Answer<Option<SessionState>>> + Send {
        async move {
            let mut state = SessionState::new(session.clone());
            let query = RecordQuery::after(Position::default(), FOLD_RECORDS_PER_READ);
            let mut query = query.of(incarnation).without_entries(seq);
            loop {
                let page = if_there(self.read_records(session, &query).await)?;
                let Some(page) = page else { return Ok(None) };
                for stored in &page.records {
                    state.apply(&stored.record, stored.seq, stored.at_ms);
                }
                if !page.more {
                    return Ok(Some(state));
                }
                query.after = page.position_after(query.after);
            }
        }
    }

    /// The present cursor of the feed of all sessions.
    fn change_cursor(&self) -> impl Future<Output = Answer<ChangeCursor>> + Send
    where
        Self: Store,
    {
        async move { Ok(self.changes(None, 1).await?.next) }
    }

    /// A watch over all sessions: it wakes when anything became durable. Wake-ups run together.
    fn watch(&self) -> ChangeWatch
    where
        Self: Store,
    {
        self.hub().watch()
    }

    /// A watch over one session, whether or not it exists yet.
    fn watch_session(&self, session: &SessionId) -> SessionWatch
    where
        Self: Store,
    {
        self.hub().watch_session(session)
    }
}

impl<S: ReadStore + ?Sized> StoreExt for S {}

/// Turns "not found" into `None`.
pub(crate) fn if_there<T>(found: Answer<T>) -> Answer<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
