//! Reading the sessions of a remote store, over any transport.

use async_trait::async_trait;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId};
use serde::de::DeserializeOwned;

use super::protocol::{ReadRequest, StoreAnswer, UNCHANGED};
use crate::changes::{ChangeHub, ChangeWatch, SessionWatch};
use crate::store::Draft;
use crate::types::{
    Appended, Capabilities, ChangeCursor, ChangePage, EntryQuery, ListPage, ListQuery, Loaded,
    PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry, Trashed, UsageQuery,
    UsageReport, Write,
};
use crate::{Store, StoreError};
use bough_record::Head;

/// A transport for reads of the store protocol.
#[async_trait]
pub trait Asked: std::fmt::Debug + Send + Sync {
    /// What comes of one read.
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError>;
}

/// The answer, as the requested type.
pub(super) fn understood<T: DeserializeOwned>(answer: StoreAnswer) -> Result<T, StoreError> {
    let misread = |error: serde_json::Error| StoreError::Unavailable {
        reason: format!("the other side's answer cannot be read: {error}"),
    };
    match answer.error {
        Some(error) => Err(error.into()),
        None => serde_json::from_value(answer.ok.unwrap_or_default()).map_err(misread),
    }
}

/// The result of one read, as the requested type.
pub(super) async fn ask<T: DeserializeOwned>(
    asked: &dyn Asked,
    request: &ReadRequest,
) -> Result<T, StoreError> {
    understood(asked.ask(request).await?)
}

pub(super) async fn load(
    asked: &dyn Asked,
    session: &SessionId,
    known: Option<&Head>,
) -> Result<Loaded, StoreError> {
    let answer = asked.ask(&ReadRequest::state(session, known)).await?;
    if answer.ok.as_ref().is_some_and(|answer| answer == UNCHANGED) {
        return Ok(Loaded::Unchanged);
    }
    Ok(Loaded::found(understood(answer)?))
}

/// The sessions of a remote store, one at a time and for reading only: lists and writes are refused.
#[derive(Debug)]
pub struct ReadOnlyStore<A> {
    asked: A,
    hub: ChangeHub,
}

impl<A: Asked> ReadOnlyStore<A> {
    /// Reads through a transport.
    pub fn through(asked: A) -> Self {
        // It never announces anything, so its cursors need no epoch of their own.
        Self { asked, hub: ChangeHub::new(Incarnation::new([0; 16])) }
    }
}

fn refused<T>() -> Result<T, StoreError> {
    Err(StoreError::invalid(
        "this store can only read single sessions of a remote store; call the remote store to write or list",
    ))
}

#[async_trait]
impl<A: Asked> Store for ReadOnlyStore<A> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "read-only",
            survives_restart: true,
            other_processes: true,
            keeps_change_cursor: false,
            keeps_unknown_records: true,
        }
    }

    async fn write(&self, _: &SessionId, _: Write) -> Result<Appended, StoreError> {
        refused()
    }

    async fn draft(&self, _: &SessionId) -> Result<Box<dyn Draft>, StoreError> {
        refused()
    }

    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        load(&self.asked, session, known).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        ask(&self.asked, &ReadRequest::entry(session, query)).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        ask(&self.asked, &ReadRequest::records(session, query)).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        ask(&self.asked, &ReadRequest::path(session, query)).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        ask(&self.asked, &ReadRequest::branch_heads(session, before, limit)).await
    }

    async fn delete(&self, _: &SessionId, _: i64) -> Result<Option<Trashed>, StoreError> {
        refused()
    }

    async fn undelete(
        &self,
        _: &SessionId,
        _: Incarnation,
        _: i64,
    ) -> Result<Snapshot, StoreError> {
        refused()
    }

    async fn purge(
        &self,
        _: &SessionId,
        _: Incarnation,
        _: Option<i64>,
    ) -> Result<bool, StoreError> {
        refused()
    }

    async fn trash(&self, _: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        refused()
    }

    async fn list(&self, _: &ListQuery) -> Result<ListPage, StoreError> {
        refused()
    }

    async fn usage(&self, _: &UsageQuery) -> Result<UsageReport, StoreError> {
        refused()
    }

    fn watch(&self) -> ChangeWatch {
        self.hub.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.hub.watch_session(session)
    }

    async fn changes(&self, _: Option<&ChangeCursor>, _: usize) -> Result<ChangePage, StoreError> {
        refused()
    }

    async fn reopen(&self, _: &SessionId) -> Result<(), StoreError> {
        refused()
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
