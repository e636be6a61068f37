//! The entries of a replayed session as they are now, from the records that were read: asking the store for each entry
//! would be a round trip for each where the store is elsewhere.

use std::collections::HashMap;

use bough_session::{Entry, EntryId, Record};
use bough_store::{Position, StoredRecord};

use crate::limits::REPLAY_CHANGED_ENTRIES_MAX;

/// An entry that a page of records adds.
pub(super) struct AddedEntry<'a> {
    /// The record that adds it.
    pub(super) stored: &'a StoredRecord,
    /// The entry as the page leaves it.
    pub(super) entry: Entry,
    /// Whether every change of it in the page was applied.
    pub(super) is_whole: bool,
}

/// The entries that a page of records adds, in order, as the page leaves them.
pub(super) fn added_entries(records: &[StoredRecord]) -> Vec<AddedEntry<'_>> {
    let mut found: Vec<AddedEntry<'_>> = Vec::new();
    let mut index: HashMap<&EntryId, usize> = HashMap::new();
    for stored in records {
        if let Some(entry) = stored.record.as_entry() {
            index.insert(&entry.id, found.len());
            found.push(AddedEntry { stored, entry: entry.clone(), is_whole: true });
            continue;
        }
        let changed = stored.record.changed_entry().and_then(|id| index.get(id));
        let Some(added) = changed.and_then(|index| found.get_mut(*index)) else { continue };
        match stored.record.known() {
            Record::Revision(revision) => {
                added.is_whole &= revision.apply(&mut added.entry).is_ok();
            }
            Record::Removed(_) => added.entry.hide(),
            _ => added.is_whole = false,
        }
    }
    found
}

/// Where entries of a session are changed last, after a position.
#[derive(Default)]
pub(super) struct LaterChanges {
    by_entry: HashMap<EntryId, Position>,
    /// There are more than are kept.
    is_cut: bool,
}

impl LaterChanges {
    /// Takes in the next records; returns whether there is space for more.
    pub(super) fn add(&mut self, records: &[StoredRecord]) -> bool {
        for stored in records.iter().filter(|stored| stored.record.as_entry().is_none()) {
            let Some(id) = stored.record.changed_entry() else { continue };
            let known = self.by_entry.entry(id.clone()).or_default();
            *known = known.join(stored.position());
        }
        self.is_cut = self.by_entry.len() > REPLAY_CHANGED_ENTRIES_MAX;
        !self.is_cut
    }

    /// Whether an entry may be changed after a position.
    pub(super) fn has(&self, id: &EntryId, position: Position) -> bool {
        self.is_cut || self.by_entry.get(id).is_some_and(|changed| !position.covers(*changed))
    }
}
