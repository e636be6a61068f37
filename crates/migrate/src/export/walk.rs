//! Reading a session page by page.

use std::collections::{HashMap, HashSet};

use bough_session::{Entry, EntryId, Record, SessionId};
use bough_store::{
    PathPage, PathQuery, PathStart, Position, ReadStore, StoreError, StoreExt, StoredRecord,
};

use crate::error::Result;
use crate::limits::PAGE_RECORDS;

/// Records of one page.
fn page() -> usize {
    usize::try_from(PAGE_RECORDS).unwrap_or(usize::MAX)
}

/// The records of a session in order.
pub(super) struct Records<'a> {
    store: &'a dyn ReadStore,
    session: &'a SessionId,
    after: Position,
    done: bool,
}

impl<'a> Records<'a> {
    pub(super) fn new(store: &'a dyn ReadStore, session: &'a SessionId) -> Self {
        Self { store, session, after: Position::default(), done: false }
    }

    /// The next page; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<StoredRecord>>> {
        if self.done {
            return Ok(None);
        }
        let found = self.store.records(self.session, self.after, page()).await?;
        self.after = found.position_after(self.after);
        self.done = !found.more;
        Ok(Some(found.records))
    }
}

/// The entries of a path, from the root to its leaf, each at its newest.
pub(super) struct Path<'a> {
    store: &'a dyn ReadStore,
    session: &'a SessionId,
    leaf: EntryId,
    start: PathStart<EntryId>,
    /// The last entry that was given out.
    last: Option<EntryId>,
    done: bool,
}

impl<'a> Path<'a> {
    pub(super) fn new(store: &'a dyn ReadStore, session: &'a SessionId, leaf: EntryId) -> Self {
        Self { store, session, leaf, start: PathStart::Root, last: None, done: false }
    }

    /// Begins with the newest entry of the path that is in `known`, if there is one, so that what many branches share is not
    /// read for each.
    pub(super) async fn beginning_at_newest(mut self, known: &HashSet<EntryId>) -> Result<Self> {
        if known.is_empty() {
            return Ok(self);
        }
        let mut start = PathStart::Leaf;
        loop {
            let page = self.page_from(start).await?;
            let found = page.entries.iter().find(|stored| known.contains(&stored.entry.id));
            if let Some(found) = found {
                // Pages begin after an entry, so with the one above it, unless it is the root.
                if let Some(above) = &found.entry.parent_id {
                    self.start = PathStart::After(above.clone());
                }
                return Ok(self);
            }
            match page.entries.last() {
                Some(last) if page.more => start = PathStart::Before(last.entry.id.clone()),
                _ => return Ok(self),
            }
        }
    }

    /// The next page, without hidden entries: each entry follows the one before it. `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Entry>>> {
        let mut entries = Vec::new();
        while entries.is_empty() && !self.done {
            entries = self.next_stored().await?;
            entries.retain(|entry| !entry.is_hidden());
        }
        for entry in &mut entries {
            entry.parent_id = self.last.replace(entry.id.clone());
        }
        Ok(Some(entries).filter(|entries| !entries.is_empty()))
    }

    async fn next_stored(&mut self) -> Result<Vec<Entry>> {
        let found = self.page_from(self.start.clone()).await?;
        self.done = !found.more;
        if let Some(last) = found.entries.last() {
            self.start = PathStart::After(last.entry.id.clone());
        }
        Ok(found.entries.into_iter().map(|stored| stored.entry).collect())
    }

    async fn page_from(&self, start: PathStart<EntryId>) -> Result<PathPage> {
        let query = PathQuery { leaf: Some(self.leaf.clone()), start, limit: page() };
        Ok(self.store.path(self.session, &query).await?)
    }
}

/// Entries that were hidden, with their parents: they are not exported, and what follows them follows their parents.
#[derive(Default)]
pub(super) struct HiddenEntries(HashMap<EntryId, Option<EntryId>>);

impl HiddenEntries {
    /// Takes note of an entry, if it is hidden; says whether it is.
    pub(super) fn note(&mut self, entry: &Entry) -> bool {
        if entry.is_hidden() {
            self.0.insert(entry.id.clone(), entry.parent_id.clone());
        }
        entry.is_hidden()
    }

    pub(super) fn contains(&self, entry: &EntryId) -> bool {
        self.0.contains_key(entry)
    }

    /// The nearest entry above that is not hidden.
    pub(super) fn visible_parent(&self, entry: &Entry) -> Option<EntryId> {
        let mut parent = entry.parent_id.as_ref();
        while let Some(above) = parent.and_then(|parent| self.0.get(parent)) {
            parent = above.as_ref();
        }
        parent.cloned()
    }
}

/// Entries whose content was changed after they were added (of all others the record itself is the newest), and those that
/// were hidden.
pub(super) async fn changed(
    store: &dyn ReadStore,
    session: &SessionId,
) -> Result<(HashSet<EntryId>, HiddenEntries)> {
    let (mut revised, mut hidden) = (HashSet::new(), HiddenEntries::default());
    let mut records = Records::new(store, session);
    while let Some(page) = records.next().await? {
        for stored in page {
            match stored.record.known() {
                Record::Revision(revision) => drop(revised.insert(revision.entry_id.clone())),
                Record::Entry(entry) => _ = hidden.note(entry),
                _ => {}
            }
        }
    }
    Ok((revised, hidden))
}

/// The entry that a record adds, at its newest.
pub(super) async fn newest(
    store: &dyn ReadStore,
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
