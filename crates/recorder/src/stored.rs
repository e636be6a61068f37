//! Recording into a store.

use std::sync::Arc;

use async_trait::async_trait;
use bough_session::{MetaChange, NewRecord, Record, SessionId};
use bough_store::{Head, Position, Store, StoreError, StoreExt, describe_holder};

use crate::durable::RecordSink;
use crate::limits::{LOG_APPEND_TRIES, LOG_APPEND_WAIT, LOG_PAGE_RECORDS};

mod claims;

use claims::{Claims, SessionClaim};

/// A store as recording sees it.
#[derive(Clone)]
pub struct StoreSink {
    store: Arc<dyn Store>,
    claims: Arc<Claims>,
}

/// A session that a recorder records into a store.
#[derive(Debug)]
pub struct StoreClaim {
    claim: SessionClaim,
    /// The head of the log when this recorder last read or wrote it; none before the session exists.
    head: Option<Head>,
}

impl StoreSink {
    /// Records into a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let claims = Claims::of(&store);
        Self { store, claims }
    }

    /// The records of a session after a position, and where the last of them is.
    async fn read_after(
        &self,
        session: &SessionId,
        mut after: Position,
    ) -> Result<(Vec<Record>, Position), StoreError> {
        let mut records = Vec::new();
        loop {
            let page = match self.store.records(session, after, LOG_PAGE_RECORDS).await {
                Err(StoreError::NotFound { .. }) => return Ok((records, after)),
                page => page?,
            };
            after = page.position_after(after);
            let more = page.more;
            records.extend(page.records.into_iter().map(|stored| stored.record));
            if !more {
                return Ok((records, after));
            }
        }
    }

    async fn head_of(&self, session: &SessionId) -> Result<Option<Head>, StoreError> {
        Ok(self.store.state(session).await?.map(|snapshot| snapshot.head))
    }

    /// Waits until an accepted record that may not be durable yet can be read.
    async fn until_readable(&self, session: &SessionId, seq: u64) -> Result<(), StoreError> {
        let mut watch = self.store.watch_session(session);
        while self.head_of(session).await?.is_some_and(|head| head.seq < seq) {
            // If it never becomes durable, the next try reports why.
            if tokio::time::timeout(LOG_APPEND_WAIT, watch.changed()).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Skips records that others appended since the claim was read, such as a title or a label. Returns whether none of
    /// them was a recording: as soon as another recorder writes, this recorder's state of the session is wrong.
    async fn catch_up(
        &self,
        session: &SessionId,
        claim: &mut StoreClaim,
    ) -> Result<bool, StoreError> {
        let Some(current) = self.head_of(session).await? else {
            return Ok(claim.head.is_none());
        };
        let read = claim.head.as_ref();
        if read.is_some_and(|read| read.incarnation != current.incarnation) {
            return Ok(false);
        }
        let after = Position::at(read.map_or(0, |read| read.seq));
        let (records, _) = self.read_after(session, after).await?;
        if records.iter().any(|record| matches!(record.known(), Record::Loop(_))) {
            return Ok(false);
        }
        claim.head = Some(current);
        Ok(true)
    }

    /// One try to append; durable when this returns.
    async fn try_append(
        &self,
        session: &SessionId,
        claim: &mut StoreClaim,
        mut records: Vec<NewRecord>,
    ) -> Result<(), StoreError> {
        let head = match &claim.head {
            Some(head) => *head,
            None => self.create(session, &mut records).await?,
        };
        claim.head = Some(head);
        let appended = self.store.append(session, &head, records.into()).await?;
        appended.durable.await?;
        claim.head = Some(appended.head);
        Ok(())
    }

    /// Creates a session with its metadata only, if they are the first record. The store locks a session at the first
    /// append to it: if the first records were part of the creation, another process could take the session before the
    /// next ones.
    async fn create(
        &self,
        session: &SessionId,
        records: &mut Vec<NewRecord>,
    ) -> Result<Head, StoreError> {
        let says_metadata = |first: &NewRecord| matches!(first.record.known(), Record::Meta(_));
        let first = if records.len() > 1 && records.first().is_some_and(says_metadata) {
            records.remove(0)
        } else {
            let at_ms = records.first().map_or(0, |first| first.at_ms);
            Record::Meta(MetaChange::default()).at(at_ms)
        };
        let created = self.store.create(session, vec![first].into()).await?;
        created.durable.await?;
        Ok(created.head)
    }
}

impl std::fmt::Debug for StoreSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSink").finish_non_exhaustive()
    }
}

#[async_trait]
impl RecordSink for StoreSink {
    type Error = StoreError;
    type Claim = StoreClaim;

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, StoreError> {
        let session = SessionId::from_stored(session_id);
        Ok(self.read_after(&session, Position::default()).await?.0)
    }

    async fn claim(&self, session_id: &str) -> Result<(StoreClaim, Vec<Record>), StoreError> {
        let claim = self.claims.take(session_id).ok_or_else(taken)?;
        let session = SessionId::from_stored(session_id);
        loop {
            let head = self.head_of(&session).await?;
            let (records, last) = self.read_after(&session, Position::default()).await?;
            // Records that others appended between the two would be taken for a recording later.
            if last.seq <= head.as_ref().map_or(0, |head| head.seq) {
                return Ok((StoreClaim { claim, head }, records));
            }
        }
    }

    fn rest(&self, claim: &mut StoreClaim) {
        claim.claim.rest();
    }

    async fn renew(&self, claim: &mut StoreClaim) -> Result<bool, StoreError> {
        let session = SessionId::from_stored(claim.claim.session_id());
        Ok(claim.claim.resume() && self.catch_up(&session, claim).await?)
    }

    async fn append(
        &self,
        claim: &mut StoreClaim,
        records: Vec<NewRecord>,
    ) -> Result<(), StoreError> {
        let session = SessionId::parse(claim.claim.session_id())?;
        let mut tries = 0;
        loop {
            tries += 1;
            let tried = self.try_append(&session, claim, records.clone()).await;
            if let Err(StoreError::Conflict { current }) = &tried {
                self.until_readable(&session, current.seq).await?;
            }
            match tried {
                Err(StoreError::Conflict { .. } | StoreError::Exists { .. })
                    if tries < LOG_APPEND_TRIES =>
                {
                    if !self.catch_up(&session, claim).await? {
                        return Err(taken());
                    }
                }
                Err(StoreError::Locked { holder }) => {
                    return Err(StoreError::Locked { holder: describe_holder(&holder) });
                }
                done => return done,
            }
        }
    }
}

/// Another recorder records the session.
fn taken() -> StoreError {
    StoreError::Locked { holder: "another recorder".to_owned() }
}
