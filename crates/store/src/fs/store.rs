//! The operations of a store on session-manager's files.

use async_trait::async_trait;
use bough_record::{Head, Incarnation};
use bough_session::{BranchHead, EntryId, SessionId};

use super::FsStore;
use super::slot::Slot;
use crate::buffered_draft::BufferedDraft;
use crate::changes::ChangeHub;
use crate::listing;
use crate::memory_session::MemorySession;
use crate::store::Draft;
use crate::sync::lock;
use crate::types::{
    Appended, Capabilities, ChangeCursor, ChangePage, EntryQuery, ListPage, ListQuery, Loaded,
    PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry, Trashed, UsageQuery,
    UsageReport, Write,
};
use crate::{ReadStore, Store, StoreError};

impl FsStore {
    /// Reads of a session what `read` asks for.
    async fn read<T: Send + 'static>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&Slot) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.with(&session, |slot| read(slot))).await
    }
}

#[async_trait]
impl ReadStore for FsStore {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        let known = known.copied();
        self.read(session, move |slot| Ok(Loaded::unless(known.as_ref(), slot.snapshot()))).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, query) = (session.clone(), query.clone());
        self.run(move |shared| {
            let read = |slot: &Slot, image: &MemorySession| slot.read_entry(image, &query);
            Ok(shared.read_incarnation(&session, query.incarnation, read)?.flatten())
        })
        .await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        let (session, query) = (session.clone(), query.clone());
        self.run(move |shared| {
            let read = |slot: &Slot, image: &MemorySession| slot.records(image, &query);
            let page = shared.read_incarnation(&session, query.incarnation, read)?;
            page.ok_or_else(|| StoreError::not_found(&session))
        })
        .await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let query = query.clone();
        self.read(session, move |slot| slot.path(&query)).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let before = before.cloned();
        self.read(session, move |slot| {
            let image: &MemorySession = slot.image().ok_or_else(|| slot.not_found())?;
            image.branch_heads(before.as_ref(), limit)
        })
        .await
    }
}

#[async_trait]
impl Store for FsStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "fs",
            survives_restart: true,
            other_processes: false,
            keeps_change_cursor: false,
            keeps_unknown_records: true,
        }
    }

    async fn write(&self, session: &SessionId, write: Write) -> Result<Appended, StoreError> {
        write.check()?;
        let session = session.clone();
        self.run(move |shared| match write {
            Write::Create(batch) => shared.create(&session, &batch.records),
            Write::Append { expected, batch } => shared
                .append(&session, |disk, slot| slot.append(disk, Some(&expected), batch.records)),
            Write::Replace { .. } => Err(StoreError::Unsupported { capability: "replace another" }),
            Write::Step(delta) => {
                shared.append(&session, |disk, slot| slot.append_delta(disk, delta))
            }
        })
        .await
    }

    async fn draft(&self, session: &SessionId) -> Result<Box<dyn Draft>, StoreError> {
        Ok(BufferedDraft::begin(self.clone(), session))
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.delete(&session, at_ms)).await
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.undelete(&session, incarnation, at_ms)).await
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.purge(&session, incarnation, deleted_at)).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        let session = session.cloned();
        self.run(move |shared| shared.trash(session.as_ref())).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let query = query.clone();
        self.run(move |shared| {
            // Read the cursor first: what changes after it counts as changed since.
            let now = shared.hub.cursor();
            listing::list(&shared.items()?, &query, now)
        })
        .await
    }

    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        let query = query.clone();
        self.run(move |shared| {
            Ok(listing::sums(shared.items()?.iter().map(|item| &item.listed), &query))
        })
        .await
    }

    fn hub(&self) -> &ChangeHub {
        &self.shared.hub
    }

    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        Ok(self.shared.hub.changes(after, limit))
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.clone();
        self.run(move |shared| {
            let slot = shared.slot(&session)?;
            lock(&slot).forget();
            shared.with(&session, |_| Ok(()))
        })
        .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.run(|shared| shared.close()).await
    }
}
