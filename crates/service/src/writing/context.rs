use std::sync::Arc;

use bough_session::{EntryId, Incarnation, Record, SessionId, SessionState};
use bough_store::{Head, Position, RecordQuery, Store, StoreError, StoreExt, StoredRecord};

use crate::error::ServiceError;
use crate::limits::{DOCUMENT_INDEX_READ_BYTES, DOCUMENT_INDEX_READ_RECORDS};
use crate::open_session::{Known, OpenSession, StreamingMessage, UncommittedEntry, WriteState};
use crate::rules::documents::{DocumentIndex, KeptRecord};
use crate::rules::reading::visible_entry;
use crate::runtime::is_visible;
use crate::scope::Scope;

/// A session as a command gets it: after the last accepted write.
pub(crate) struct WriteContext<'a> {
    pub(super) open: &'a OpenSession,
    pub(super) write_state: &'a mut WriteState,
    /// When the command runs.
    pub(crate) now_ms: i64,
}

impl WriteContext<'_> {
    pub(crate) const fn session(&self) -> &SessionId {
        self.open.id()
    }

    /// The session's state, if the session exists.
    pub(crate) fn state(&self) -> Option<&SessionState> {
        self.write_state.accepted().map(|accepted| &*accepted.state)
    }

    /// The session's state, if the session exists for the caller.
    pub(crate) fn visible(&self, scope: &Scope) -> Result<&SessionState, ServiceError> {
        self.state()
            .filter(|state| is_visible(scope, state))
            .ok_or_else(|| ServiceError::not_found(self.session()))
    }

    /// An entry, if the session has it. Entries that are accepted but not durable count.
    pub(crate) async fn find(
        &self,
        id: &EntryId,
    ) -> Result<Option<UncommittedEntry>, ServiceError> {
        if let Some(uncommitted) = self.open.uncommitted(id) {
            return Ok(Some(uncommitted));
        }
        let stored = self.open.store().entry(self.session(), id).await?;
        Ok(stored.as_ref().map(|stored| UncommittedEntry::from(&stored.entry)))
    }

    /// The same, for an entry that is not hidden.
    pub(crate) async fn find_visible(
        &self,
        id: &EntryId,
    ) -> Result<Option<UncommittedEntry>, ServiceError> {
        Ok(self.find(id).await?.filter(|found| !found.is_hidden))
    }

    /// Waits until everything that was accepted is durable, so that reading the store shows it.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        match self.write_state.newest.clone() {
            Some(newest) => newest.wait().await,
            None => Ok(()),
        }
    }

    /// The head and the state of the session, if it exists.
    pub(crate) fn accepted(&self) -> Option<(Head, Arc<SessionState>)> {
        self.write_state.accepted().map(|accepted| (accepted.head, accepted.state.clone()))
    }

    /// The index of the session's documents, after the last accepted write.
    pub(crate) async fn documents(&mut self) -> Result<&mut DocumentIndex, ServiceError> {
        let head = self.write_state.accepted().map(|accepted| accepted.head);
        let head = head.ok_or_else(|| ServiceError::not_found(self.session()))?;
        let known = self.write_state.documents.take();
        let known = known.filter(|index| index.incarnation == head.incarnation);
        let mut index = known.unwrap_or_else(|| self.open.new_documents(head.incarnation));
        if index.seq < head.seq {
            // Accepted records are read when they are durable.
            self.flush().await?;
            self.read_documents(&mut index, head).await?;
        }
        Ok(self.write_state.documents.insert(index))
    }

    /// Reads the records that an index does not have, as many at a time as fit in memory.
    async fn read_documents(
        &self,
        index: &mut DocumentIndex,
        head: Head,
    ) -> Result<(), ServiceError> {
        let (mut count, most) = DOCUMENT_INDEX_READ_RECORDS;
        while index.seq < head.seq {
            let after = Position::at(index.seq);
            let query = RecordQuery::after(after, count).of(head.incarnation);
            let page = self.store().read_records(self.session(), &query).await?;
            page.records.iter().for_each(|stored| index.apply(stored));
            if page.records.is_empty() {
                return Err(ServiceError::storage("the records of the documents end too early"));
            }
            let bytes: usize = page.records.iter().map(bytes_of).sum();
            let each = (bytes / page.records.len()).max(1);
            count = (DOCUMENT_INDEX_READ_BYTES / each).clamp(1, most);
        }
        Ok(())
    }

    /// Postpones the compaction of the documents' log.
    pub(crate) fn put_off_compaction(&mut self) {
        if let Some(index) = &mut self.write_state.documents {
            index.put_off_compaction();
        }
    }

    /// Notes that a log with only these records has replaced the session's.
    pub(crate) fn replaced_documents(&mut self, incarnation: Incarnation, kept: &[KeptRecord]) {
        self.write_state.known = Known::Nothing;
        if let Some(index) = &mut self.write_state.documents {
            index.renumber(incarnation, kept);
        }
    }

    /// Where to read what is durable.
    pub(crate) fn store(&self) -> &dyn Store {
        self.open.store()
    }

    /// A message after the last accepted step. It is kept in memory for the next step.
    pub(crate) async fn streaming_message(
        &mut self,
        id: &EntryId,
    ) -> Result<Option<&StreamingMessage>, StoreError> {
        if self.write_state.streams.get(id).is_none() {
            if self.open.uncommitted(id).is_some() {
                self.flush().await?;
            }
            let Some(stored) = visible_entry(self.store(), self.session(), id).await? else {
                return Ok(None);
            };
            self.write_state.streams.put(id.clone(), StreamingMessage::of(stored.entry));
        }
        Ok(self.write_state.streams.get(id))
    }
}

/// The size of a document's record.
fn bytes_of(stored: &StoredRecord) -> usize {
    match stored.record.known() {
        Record::Document(document) => {
            document.key.len() + document.value.as_ref().map_or(0, |value| value.get().len())
        }
        _ => 0,
    }
}
