//! A draft in memory, for stores that have no place to build a session out of sight.

use async_trait::async_trait;
use bough_record::Head;
use bough_session::limits::check_at_most;
use bough_session::{NewRecord, SessionId};

use crate::limits::BUFFERED_DRAFT_RECORDS_MAX;
use crate::store::Draft;
use crate::types::{Appended, Durable, Write};
use crate::{Store, StoreError, StoreExt};

/// Records that wait in memory, and are written with one [`create`](StoreExt::create) at the end.
pub(crate) struct BufferedDraft<S> {
    store: S,
    session: SessionId,
    records: Vec<NewRecord>,
}

impl<S: Store + 'static> BufferedDraft<S> {
    pub(crate) fn begin(store: S, session: &SessionId) -> Box<dyn Draft> {
        Box::new(Self { store, session: session.clone(), records: Vec::new() })
    }
}

#[async_trait]
impl<S: Store> Draft for BufferedDraft<S> {
    async fn add(&mut self, records: Vec<NewRecord>) -> Result<(), StoreError> {
        let count = self.records.len().saturating_add(records.len());
        check_at_most("session", "records", count, BUFFERED_DRAFT_RECORDS_MAX)?;
        self.records.extend(records);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<Appended, StoreError> {
        let Appended { head, position, durable } =
            self.store.create(&self.session, self.records.into()).await?;
        durable.await?;
        Ok(Appended { head, position, durable: Durable::ready() })
    }

    async fn replace(self: Box<Self>, expected: &Head) -> Result<Appended, StoreError> {
        let write = Write::Replace { expected: *expected, batch: self.records.into() };
        let Appended { head, position, durable } = self.store.write(&self.session, write).await?;
        durable.await?;
        Ok(Appended { head, position, durable: Durable::ready() })
    }
}
