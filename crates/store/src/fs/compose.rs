//! From records to lines.

use std::collections::HashMap;

use bough_session::{Entry, EntryBody, EntryId, Incarnation, NewRecord, Record, SessionState};

use super::line::{entry_line, incarnation_line, is_reserved, leaf_line, meta_line, record_line};
use crate::StoreError;
use crate::memory_session::MemorySession;

/// The lines of a batch of records for an existing session; the first of them replace steps of streams, up to these.
pub(super) fn lines(
    image: &MemorySession,
    records: &[NewRecord],
    last_steps: &[u64],
) -> Result<Vec<String>, StoreError> {
    let mut composer = Composer::new(image, image.state.clone());
    composer.add_all(records, last_steps)?;
    Ok(composer.finish(false))
}

/// The lines of a new session.
pub(super) fn first_lines(
    image: &MemorySession,
    incarnation: Incarnation,
    records: &[NewRecord],
) -> Result<Vec<String>, StoreError> {
    let at_ms = records.first().map_or(0, |new| new.at_ms);
    let mut composer = Composer::new(image, image.state.clone());
    composer.lines.push(incarnation_line(incarnation, at_ms));
    composer.add_all(records, &[])?;
    Ok(composer.finish(true))
}

struct Composer<'a> {
    image: &'a MemorySession,
    /// The fold with the records so far.
    state: SessionState,
    /// Entries that these records add or change.
    changed: HashMap<EntryId, Entry>,
    lines: Vec<String>,
}

impl<'a> Composer<'a> {
    fn new(image: &'a MemorySession, state: SessionState) -> Self {
        Self { image, state, changed: HashMap::new(), lines: Vec::new() }
    }

    fn add_all(&mut self, records: &[NewRecord], last_steps: &[u64]) -> Result<(), StoreError> {
        let last_steps = last_steps.iter().copied().map(Some).chain(std::iter::repeat(None));
        for (new, last_step) in records.iter().zip(last_steps) {
            self.add(new, last_step)?;
            let seq = self.state.seq + 1;
            self.state.apply(&new.record, seq, new.at_ms);
        }
        Ok(())
    }

    fn add(&mut self, new: &NewRecord, last_step: Option<u64>) -> Result<(), StoreError> {
        let plain = matches!(&new.record, Record::Entry(entry) if is_plain(entry, new.at_ms));
        if !plain {
            self.carry(new, last_step)?;
        }
        match new.record.known() {
            Record::Entry(entry) => self.show(entry.clone()),
            Record::Revision(revision) => {
                let known = self.changed.remove(&revision.entry_id);
                let known = known.or_else(|| self.image.entry_ref(&revision.entry_id).cloned());
                // The caller has checked that the entry exists and the revision fits.
                if let Some(mut entry) = known {
                    let applied = revision.apply(&mut entry);
                    applied.map_err(|error| StoreError::invalid(error.to_string()))?;
                    self.show(entry);
                }
            }
            Record::Removed(removal) => {
                let known = self.changed.remove(&removal.entry_id);
                let known = known.or_else(|| self.image.entry_ref(&removal.entry_id).cloned());
                if let Some(mut entry) = known {
                    entry.hide();
                    self.show(entry);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The record itself, for us.
    fn carry(&mut self, new: &NewRecord, last_step: Option<u64>) -> Result<(), StoreError> {
        let line = record_line(&new.record, new.at_ms, (self.state.seq + 1, last_step));
        let line = line.ok_or_else(|| StoreError::invalid("a record's payload must be JSON"))?;
        self.lines.push(line);
        Ok(())
    }

    /// The present form of an entry, for readers of plain lines.
    fn show(&mut self, entry: Entry) {
        if !has_reserved_type(&entry) {
            self.lines.push(entry_line(&entry));
        }
        self.changed.insert(entry.id.clone(), entry);
    }

    /// The leaf and the metadata, for readers of plain lines.
    fn finish(mut self, first: bool) -> Vec<String> {
        let before = &self.image.state;
        let has_entries = self.changed.keys().any(|id| self.image.entry_ref(id).is_none());
        if has_entries || self.state.leaf != before.leaf {
            self.lines.push(leaf_line(self.state.leaf.as_ref()));
        }
        if first || self.state.meta != before.meta {
            self.lines.push(meta_line(&self.state.meta));
        }
        self.lines
    }
}

/// Whether an `entry` line alone expresses an entry completely.
fn is_plain(entry: &Entry, at_ms: i64) -> bool {
    let plain_body = match &entry.body {
        EntryBody::Message(_) => true,
        EntryBody::Custom(custom) => !is_reserved(&custom.custom_type),
        EntryBody::Foreign(_) | EntryBody::Opaque(_) => false,
    };
    plain_body && entry.timestamp == at_ms
}

fn has_reserved_type(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::Custom(custom) if is_reserved(&custom.custom_type))
}
