//! Reading the sessions of a remote store, over any transport.

use async_trait::async_trait;
use bough_session::{BranchHead, EntryId, SessionId};
use serde::de::DeserializeOwned;

use super::protocol::{ReadRequest, StoreAnswer, UNCHANGED};
use crate::types::{EntryQuery, Loaded, PathPage, PathQuery, RecordPage, RecordQuery, StoredEntry};
use crate::{ReadStore, StoreError};
use bough_record::Head;

/// A transport for reads of the store protocol.
#[async_trait]
pub trait ReadTransport: std::fmt::Debug + Send + Sync {
    /// What comes of one read.
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError>;
}

/// The answer, as the requested type.
pub(super) fn parse_answer<T: DeserializeOwned>(answer: StoreAnswer) -> Result<T, StoreError> {
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
    transport: &dyn ReadTransport,
    request: &ReadRequest,
) -> Result<T, StoreError> {
    parse_answer(transport.ask(request).await?)
}

/// The sessions of a remote store.
#[derive(Debug)]
pub struct RemoteReads<T> {
    transport: T,
}

impl<T: ReadTransport> RemoteReads<T> {
    /// Reads through a transport.
    pub const fn through(transport: T) -> Self {
        Self { transport }
    }
}

#[async_trait]
impl<T: ReadTransport> ReadStore for RemoteReads<T> {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        let request = ReadRequest::State { session_id: session.clone(), known: known.copied() };
        let answer = self.transport.ask(&request).await?;
        if answer.ok.as_ref().is_some_and(|answer| answer == UNCHANGED) {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::found(parse_answer(answer)?))
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session_id, query) = (session.clone(), query.clone());
        ask(&self.transport, &ReadRequest::Entry { session_id, query }).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        let (session_id, query) = (session.clone(), query.clone());
        ask(&self.transport, &ReadRequest::Records { session_id, query }).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let (session_id, query) = (session.clone(), query.clone());
        ask(&self.transport, &ReadRequest::Path { session_id, query }).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let (session_id, before) = (session.clone(), before.cloned());
        ask(&self.transport, &ReadRequest::BranchHeads { session_id, before, limit }).await
    }
}
