use async_trait::async_trait;
use bough_session::{BranchHead, Delta, EntryId, Incarnation, SessionId};

use super::FsStore;
use super::slot::Slot;
use crate::changes::{ChangeWatch, SessionWatch};
use crate::image::Image;
use crate::listing;
use crate::memory::{check_batch, check_first};
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, ListPage, ListQuery, PathPage,
    PathQuery, RecordPage, Snapshot, StoredEntry, Trashed,
};
use crate::{Store, StoreError};
use bough_record::{Head, Position};

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

    async fn create(&self, session: &SessionId, batch: Batch) -> Result<Appended, StoreError> {
        let records = batch.records;
        check_first(&records)?;
        let session = session.clone();
        self.run(move |shared| shared.create(&session, &records)).await
    }

    async fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError> {
        let records = batch.records;
        check_batch(&records)?;
        let (session, expected) = (session.clone(), *expected);
        self.run(move |shared| {
            shared.write(&session, |slot| {
                if slot.image().is_none() {
                    return Err(slot.not_found());
                }
                slot.append(shared.platform.disk.as_ref(), Some(&expected), records)
            })
        })
        .await
    }

    async fn append_delta(
        &self,
        session: &SessionId,
        delta: Delta,
    ) -> Result<Appended, StoreError> {
        let session = session.clone();
        self.run(move |shared| {
            shared.write(&session, |slot| {
                if slot.image().is_none() {
                    return Err(slot.not_found());
                }
                slot.append_delta(shared.platform.disk.as_ref(), delta)
            })
        })
        .await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        self.read(session, |slot| Ok(slot.snapshot())).await
    }

    async fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let entry = entry.clone();
        self.read(session, move |slot| Ok(slot.entry(&entry))).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let query = query.clone();
        self.read(session, move |slot| slot.path(&query)).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        self.read(session, move |slot| slot.records(after, limit)).await
    }

    async fn trashed_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.trashed_records(&session, incarnation, after, limit)).await
    }

    async fn trashed_entry(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let (session, entry) = (session.clone(), entry.clone());
        self.run(move |shared| shared.trashed_entry(&session, incarnation, &entry)).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let before = before.cloned();
        self.read(session, move |slot| {
            let image: &Image = slot.image().ok_or_else(|| slot.not_found())?;
            image.branch_heads(before.as_ref(), limit)
        })
        .await
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
    ) -> Result<bool, StoreError> {
        let session = session.clone();
        self.run(move |shared| shared.purge(&session, incarnation)).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        let session = session.cloned();
        self.run(move |shared| shared.trash(session.as_ref())).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let query = query.clone();
        self.run(move |shared| {
            // The cursor is read first: what changes after it counts as changed since.
            let now = shared.hub.cursor();
            listing::list(&shared.items()?, &query, now)
        })
        .await
    }

    async fn count(&self, query: &ListQuery) -> Result<u64, StoreError> {
        let query = query.clone();
        self.run(move |shared| Ok(listing::count(&shared.items()?, &query))).await
    }

    fn watch(&self) -> ChangeWatch {
        self.shared.hub.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.shared.hub.watch_session(session)
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        Ok(self.shared.hub.cursor())
    }

    async fn changes_after(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        Ok(self.shared.hub.changes_after(cursor, limit))
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.clone();
        self.run(move |shared| {
            let slot = shared.slot(&session)?;
            super::guard(&slot).forget();
            shared.with(&session, |_| Ok(()))
        })
        .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.run(|shared| shared.close()).await
    }
}
