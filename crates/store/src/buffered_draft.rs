//! A draft in memory, for stores that have no place to build a session out of sight.

use async_trait::async_trait;
use bough_record::Head;
use bough_session::SessionId;
use bough_session::limits::check_at_most;

use crate::limits::BUFFERED_DRAFT_RECORDS_MAX;
use crate::store::Draft;
use crate::types::{Appended, Batch, Durable, Write};
use crate::{Store, StoreError, StoreExt};

/// A batch that waits in memory, and is written with one [`create`](StoreExt::create) at the end.
pub(crate) struct BufferedDraft<S> {
    store: S,
    session: SessionId,
    batch: Batch,
}

impl<S: Store + 'static> BufferedDraft<S> {
    pub(crate) fn begin(store: S, session: &SessionId) -> Box<dyn Draft> {
        Box::new(Self { store, session: session.clone(), batch: Vec::new().into() })
    }
}

#[async_trait]
impl<S: Store> Draft for BufferedDraft<S> {
    async fn add(&mut self, more: Batch) -> Result<(), StoreError> {
        let count = self.batch.records.len().saturating_add(more.records.len());
        check_at_most("session", "records", count, BUFFERED_DRAFT_RECORDS_MAX)?;
        self.batch.records.extend(more.records);
        self.batch.state = more.state;
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<Appended, StoreError> {
        let Appended { head, position, durable } =
            self.store.create(&self.session, self.batch).await?;
        durable.await?;
        Ok(Appended { head, position, durable: Durable::ready() })
    }

    async fn replace(self: Box<Self>, expected: &Head) -> Result<Appended, StoreError> {
        let write = Write::Replace { expected: *expected, batch: self.batch };
        let Appended { head, position, durable } = self.store.write(&self.session, write).await?;
        durable.await?;
        Ok(Appended { head, position, durable: Durable::ready() })
    }
}
