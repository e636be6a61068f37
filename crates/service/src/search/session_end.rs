//! The end of a session, read once for all candidates in it.
//!
//! A store may have to read a short session whole to answer anything about it. So the entries of such a session,
//! whether they were changed since, and which are on the active path are all taken from one read.

use std::collections::{HashMap, HashSet};

use bough_session::{Entry, EntryId};
use bough_store::{Position, RecordPage, Snapshot, Store, StoreError, StoreExt, StoredEntry};

use crate::error::ServiceError;
use crate::limits::SEARCH_END_RECORDS;

/// The content of a session's newest records.
#[derive(Debug, Default)]
pub(crate) struct SessionEnd {
    /// Entries by the numbers of the records that added them.
    entries: HashMap<u64, Entry>,
    /// Entries that a later record changes or hides, so that these records do not have their
    /// present form.
    changed: HashSet<EntryId>,
    /// Whether each entry is on the active path.
    is_active: HashMap<EntryId, bool>,
}

impl SessionEnd {
    /// Reads from the record with the number `first` to the end; `None` if that is too much, or if the session was
    /// replaced.
    pub(crate) async fn read(
        store: &dyn Store,
        snapshot: &Snapshot,
        first: u64,
    ) -> Result<Option<Self>, ServiceError> {
        let most = u64::try_from(SEARCH_END_RECORDS).unwrap_or(u64::MAX);
        if snapshot.head.seq.saturating_sub(first) >= most {
            return Ok(None);
        }
        let after = Position::at(first.saturating_sub(1));
        let session = &snapshot.state.meta.session_id;
        let page = match store.records(session, after, SEARCH_END_RECORDS).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            page => page?,
        };
        let is_whole = !page.more && page.incarnation == snapshot.head.incarnation;
        Ok(is_whole.then(|| Self::of(page, snapshot.state.leaf.as_ref())))
    }

    fn of(page: RecordPage, leaf: Option<&EntryId>) -> Self {
        let mut end = Self::default();
        for stored in page.records {
            match stored.record.as_entry().filter(|_| !stored.is_step()) {
                Some(entry) => {
                    end.is_active.insert(entry.id.clone(), false);
                    end.entries.insert(stored.seq, entry.clone());
                }
                None => end.changed.extend(stored.record.changed_entry().cloned()),
            }
        }
        end.mark_active(leaf);
        end
    }

    fn mark_active(&mut self, leaf: Option<&EntryId>) {
        let by_id: HashMap<&EntryId, &Entry> =
            self.entries.values().map(|entry| (&entry.id, entry)).collect();
        let mut at = leaf;
        while let Some(entry) = at.and_then(|id| by_id.get(id)) {
            if let Some(is_active) = self.is_active.get_mut(&entry.id) {
                *is_active = true;
            }
            at = entry.parent_id.as_ref();
        }
    }

    /// The present form of an entry, if these records have it.
    pub(crate) fn entry(&self, seq: u64) -> Option<StoredEntry> {
        let entry = self.entries.get(&seq)?;
        let is_so = !self.changed.contains(&entry.id);
        is_so.then(|| StoredEntry { seq, entry: entry.clone() })
    }

    /// Whether an entry is on the active path; `None` for one that was added before these records.
    pub(crate) fn is_active(&self, entry: &EntryId) -> Option<bool> {
        self.is_active.get(entry).copied()
    }
}
