//! Reading a session page by page.

use std::collections::HashSet;

use bough_session::{Entry, EntryId, Record, SessionId};
use bough_store::{PathQuery, PathStart, Position, Store, StoreError, StoreExt, StoredRecord};

use crate::error::Result;
use crate::limits::PAGE_RECORDS;

/// Records of one page.
fn page() -> usize {
    usize::try_from(PAGE_RECORDS).unwrap_or(usize::MAX)
}

/// The records of a session in order.
pub(super) struct Records<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    after: Position,
    done: bool,
}

impl<'a> Records<'a> {
    pub(super) fn new(store: &'a dyn Store, session: &'a SessionId) -> Self {
        Self { store, session, after: Position::default(), done: false }
    }

    /// The next page; empty at the end.
    pub(super) async fn next(&mut self) -> Result<Vec<StoredRecord>> {
        if self.done {
            return Ok(Vec::new());
        }
        let found = self.store.records(self.session, self.after, page()).await?;
        self.after = found.position_after(self.after);
        self.done = !found.more;
        Ok(found.records)
    }
}

/// The entries of a path, from the root to its leaf, each at its newest.
pub(super) struct Path<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    leaf: EntryId,
    start: PathStart<EntryId>,
    done: bool,
}

impl<'a> Path<'a> {
    pub(super) fn new(store: &'a dyn Store, session: &'a SessionId, leaf: EntryId) -> Self {
        Self { store, session, leaf, start: PathStart::Root, done: false }
    }

    /// The next page; empty at the end.
    pub(super) async fn next(&mut self) -> Result<Vec<Entry>> {
        if self.done {
            return Ok(Vec::new());
        }
        let query =
            PathQuery { leaf: Some(self.leaf.clone()), start: self.start.clone(), limit: page() };
        let found = self.store.path(self.session, &query).await?;
        self.done = !found.more;
        if let Some(last) = found.entries.last() {
            self.start = PathStart::After(last.entry.id.clone());
        }
        Ok(found.entries.into_iter().map(|stored| stored.entry).collect())
    }
}

/// Entries whose content was changed after they were added; of all others the record itself is the newest.
pub(super) async fn revised(store: &dyn Store, session: &SessionId) -> Result<HashSet<EntryId>> {
    let mut found = HashSet::new();
    let mut records = Records::new(store, session);
    loop {
        let page = records.next().await?;
        if page.is_empty() {
            return Ok(found);
        }
        for stored in page {
            if let Record::Revision(revision) = stored.record.known() {
                found.insert(revision.entry_id.clone());
            }
        }
    }
}

/// The entry that a record adds, at its newest.
pub(super) async fn newest(
    store: &dyn Store,
    session: &SessionId,
    entry: &Entry,
    revised: &HashSet<EntryId>,
) -> Result<Entry> {
    if !revised.contains(&entry.id) {
        return Ok(entry.clone());
    }
    let gone = || StoreError::EntryNotFound { entry: entry.id.clone() };
    Ok(store.entry(session, &entry.id).await?.ok_or_else(gone)?.entry)
}
