//! A session made of many records, with only a part of them in memory at a time.

use std::sync::Arc;

use bough_session::{
    Entry, EntryBody, EntryId, NewRecord, Record, SessionId, SessionMeta, SessionState,
};
use bough_store::{Batch, Draft, StoreExt};

use super::command::fold;
use super::run_to_completion::run_to_completion;
use crate::error::ServiceError;
use crate::limits::{BUILD_BATCH_BYTES, BUILD_BATCH_RECORDS};
use crate::runtime::Runtime;
use crate::service::Service;

/// A session that is being built. It appears whole, at the end, unless its id is in use by then.
pub(crate) struct SessionBuilder {
    runtime: Arc<Runtime>,
    session: SessionId,
    now_ms: i64,
    state: Arc<SessionState>,
    waiting: Vec<NewRecord>,
    /// Records and bytes since the last attempt to write.
    news: (usize, usize),
    draft: Option<Box<dyn Draft>>,
}

impl SessionBuilder {
    pub(crate) fn begin(service: &Service, session: &SessionId) -> Self {
        Self {
            runtime: service.runtime(),
            session: session.clone(),
            now_ms: service.now_ms(),
            state: Arc::new(SessionState::new(session.clone())),
            waiting: Vec::new(),
            news: (0, 0),
            draft: None,
        }
    }

    /// Adds a record.
    pub(crate) async fn add(&mut self, record: Record) -> Result<(), ServiceError> {
        let new = record.at(self.now_ms);
        fold(Arc::make_mut(&mut self.state), std::slice::from_ref(&new));
        let bytes = new.record.as_entry().map_or(0, Entry::bytes);
        self.news = (self.news.0 + 1, self.news.1.saturating_add(bytes));
        self.waiting.push(new);
        if self.news.0 >= BUILD_BATCH_RECORDS || self.news.1 >= BUILD_BATCH_BYTES {
            self.news = (0, 0);
            self.write_waiting().await?;
        }
        Ok(())
    }

    /// The newest entry so far with the custom type of this body: a new one of the type links to it.
    pub(crate) fn newest_of_type(&self, body: &EntryBody) -> Option<EntryId> {
        let custom_type = body.own_custom_type()?;
        self.state.custom_types.as_ref()?.newest_entry(custom_type).cloned()
    }

    /// Writes what waits, out of sight.
    async fn write_waiting(&mut self) -> Result<(), ServiceError> {
        let draft = match &mut self.draft {
            Some(draft) => draft,
            none => none.insert(self.runtime.store.draft(&self.session).await?),
        };
        let records = std::mem::take(&mut self.waiting);
        Ok(draft.add(Batch { records, state: Some(self.state.clone()) }).await?)
    }

    /// Publishes the session, even if the caller stops waiting for it.
    pub(crate) async fn finish(mut self) -> Result<SessionMeta, ServiceError> {
        let task = async move {
            let records = std::mem::take(&mut self.waiting);
            let rest = Batch { records, state: Some(self.state.clone()) };
            let appended = match self.draft.take() {
                Some(mut draft) => {
                    if !rest.records.is_empty() {
                        draft.add(rest).await?;
                    }
                    draft.finish().await?
                }
                None => self.runtime.store.create(&self.session, rest).await?,
            };
            appended.durable.await?;
            Ok(self.state.meta.clone())
        };
        run_to_completion(task).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use bough_platform::{OsEntropy, SystemClock};
    use bough_session::MetaChange;
    use bough_store::MemoryStore;

    use super::*;

    /// On a store that cannot build a session out of sight.
    async fn build(records: usize) -> Result<SessionMeta, ServiceError> {
        let entropy = Arc::new(OsEntropy);
        let store = Arc::new(MemoryStore::new(entropy.clone()).unwrap());
        let service = Service::new(store, Arc::new(SystemClock::new()), entropy);
        let mut builder = SessionBuilder::begin(&service, &SessionId::from_stored("s"));
        builder.add(Record::Meta(MetaChange::default())).await?;
        for _ in 1..records {
            builder.add(Record::Leaf(None)).await?;
        }
        builder.finish().await
    }

    #[tokio::test]
    async fn what_is_held_in_memory_has_a_bound() {
        let most = bough_store::limits::BUFFERED_DRAFT_RECORDS_MAX;
        for (records, taken) in [(most - 1, true), (most, true), (most + 1, false)] {
            match build(records).await {
                Ok(_) => assert!(taken, "{records} were taken"),
                Err(error) => {
                    assert!(!taken, "{records}: {error}");
                    assert_eq!(error.code(), "session/too_large");
                }
            }
        }
    }
}
