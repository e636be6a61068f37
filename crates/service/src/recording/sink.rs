//! The store for a recorder that records for a caller.

use std::sync::Arc;

use async_trait::async_trait;
use bough_recorder::{RecordSink, StoreSink};
use bough_session::{MetaChange, NewRecord, Record, SessionId};
use bough_store::{Store, StoreExt};

use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::Scope;

/// Records only into sessions that exist for the caller, and marks new ones as the caller's.
pub(super) struct ScopedSink {
    inner: StoreSink,
    store: Arc<dyn Store>,
    scope: Scope,
}

impl ScopedSink {
    pub(super) fn new(store: Arc<dyn Store>, scope: Scope) -> Self {
        Self { inner: StoreSink::new(Arc::clone(&store)), store, scope }
    }

    /// Refuses a session of another caller. The answer is the same as for a name that is taken.
    async fn check(&self, session_id: &str) -> Result<(), ServiceError> {
        let there = self.store.state(&SessionId::from_stored(session_id)).await?;
        match there {
            Some(there) if !is_visible(&self.scope, &there.state) => {
                Err(ServiceError::AlreadyExists { session: session_id.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Puts the pairs of the scope into every record that sets the metadata of a session.
    fn stamp(&self, new: NewRecord) -> Result<NewRecord, ServiceError> {
        let NewRecord { at_ms, record } = new;
        let record = match record {
            // The first record of a session has its time of creation.
            Record::Meta(change) if change.metadata.is_some() || change.created_at.is_some() => {
                let metadata = self.scope.stamp(change.metadata.clone())?;
                Record::Meta(MetaChange { metadata, ..change })
            }
            other => other,
        };
        Ok(record.at(at_ms))
    }
}

#[async_trait]
impl RecordSink for ScopedSink {
    type Error = ServiceError;
    type Claim = <StoreSink as RecordSink>::Claim;

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, ServiceError> {
        self.check(session_id).await?;
        Ok(self.inner.load(session_id).await?)
    }

    async fn claim(&self, session_id: &str) -> Result<(Self::Claim, Vec<Record>), ServiceError> {
        self.check(session_id).await?;
        Ok(self.inner.claim(session_id).await?)
    }

    fn rest(&self, claim: &mut Self::Claim) {
        self.inner.rest(claim);
    }

    async fn renew(&self, claim: &mut Self::Claim) -> Result<bool, ServiceError> {
        Ok(self.inner.renew(claim).await?)
    }

    async fn append(
        &self,
        claim: &mut Self::Claim,
        records: Vec<NewRecord>,
    ) -> Result<(), ServiceError> {
        let records: Result<Vec<NewRecord>, ServiceError> =
            records.into_iter().map(|new| self.stamp(new)).collect();
        Ok(self.inner.append(claim, records?).await?)
    }
}
