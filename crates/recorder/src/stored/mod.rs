//! Sessions in a store of logs: recorded as they happen, or saved whole.

use std::sync::Arc;

use async_trait::async_trait;
use bough_session::{MetaChange, NewRecord, Record, SessionId};
use bough_store::{Head, Position, Store, StoreError};
use serde_json::Value;

use crate::durable::RecordSink;
use crate::limits::{LOG_APPEND_TRIES, LOG_PAGE_RECORDS};

mod sessions;

pub use sessions::LogSessionStore;

/// A store as recording sees it.
#[derive(Clone)]
pub struct StoreSink {
    store: Arc<dyn Store>,
}

impl StoreSink {
    /// Records into a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Appends records after `head`, or begins the session with them if it has none; durable when this
    /// returns.
    async fn append_after(
        &self,
        session: &SessionId,
        head: Option<&Head>,
        records: Vec<NewRecord>,
    ) -> Result<Head, StoreError> {
        let appended = match head {
            Some(head) => self.store.append(session, head, records.into()).await?,
            None => self.store.create(session, with_first_meta(records).into()).await?,
        };
        appended.durable.await?;
        Ok(appended.head)
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

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, StoreError> {
        let session = SessionId::from_stored(session_id);
        let mut records = Vec::new();
        let mut after = Position::default();
        loop {
            let page = match self.store.records(&session, after, LOG_PAGE_RECORDS).await {
                Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
                page => page?,
            };
            let Some(last) = page.records.last().map(bough_store::StoredRecord::position) else {
                return Ok(records);
            };
            records.extend(page.records.into_iter().map(|stored| stored.record));
            if last >= page.end {
                return Ok(records);
            }
            after = last;
        }
    }

    /// Whoever else appends to the session (a label, a status) does not stop the recording.
    async fn append(&self, session_id: &str, records: Vec<NewRecord>) -> Result<(), StoreError> {
        let session = SessionId::parse(session_id)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let head = self.store.state(&session).await?.map(|snapshot| snapshot.head);
            match self.append_after(&session, head.as_ref(), records.clone()).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict { .. } | StoreError::Exists { .. })
                    if tries < LOG_APPEND_TRIES => {}
                Err(StoreError::Locked { holder }) => {
                    return Err(StoreError::Locked { holder: in_words(&holder) });
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Who holds a lock, for a person. What the holder wrote into it is for programs.
fn in_words(holder: &str) -> String {
    let written: Value = serde_json::from_str(holder).unwrap_or_default();
    let server = written.get("address").and_then(Value::as_str).unwrap_or_default();
    match written.get("pid").and_then(Value::as_u64) {
        Some(pid) if server.is_empty() => format!("process {pid}"),
        Some(pid) => format!("process {pid}, which serves {server}"),
        None => holder.to_owned(),
    }
}

/// The first record of every session says something about it.
fn with_first_meta(mut records: Vec<NewRecord>) -> Vec<NewRecord> {
    let begins = records.first().is_some_and(|first| matches!(first.record, Record::Meta(_)));
    if !begins {
        let at_ms = records.first().map_or(0, |first| first.at_ms);
        records.insert(0, Record::Meta(MetaChange::default()).at(at_ms));
    }
    records
}
