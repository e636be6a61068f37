use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::push_bounded;
use crate::limits::{STATE_CLOSED_STREAMS_MAX, STATE_OPEN_STREAMS_MAX};
use crate::{EntryId, Record};

/// The messages of a session that were begun as streams: those that may still grow, and those that ended last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamTally {
    /// Messages that are not finished, the oldest first; at most [`STATE_OPEN_STREAMS_MAX`].
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    open: VecDeque<EntryId>,
    /// Messages that were finished or aborted last; at most [`STATE_CLOSED_STREAMS_MAX`].
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    closed: VecDeque<EntryId>,
}

impl StreamTally {
    /// Whether no stream is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// How many streams are open.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Whether an entry is a stream that is not finished.
    #[must_use]
    pub fn is_open(&self, entry: &EntryId) -> bool {
        self.open.contains(entry)
    }

    /// Whether an entry is a stream that was finished or aborted, among those that ended last.
    #[must_use]
    pub fn is_closed(&self, entry: &EntryId) -> bool {
        self.closed.contains(entry)
    }

    /// Applies one more record.
    pub fn apply(&mut self, record: &Record) {
        match record.known() {
            Record::Streaming(entry) => self.open(entry),
            Record::Revision(revision) if revision.finish.is_some() => {
                self.close(&revision.entry_id);
            }
            Record::Removed(removal) => self.close(&removal.entry_id),
            _ => {}
        }
    }

    /// Reverts a record, for going from newer records to older ones.
    pub fn revert(&mut self, record: &Record) {
        match record.known() {
            Record::Streaming(entry) => {
                self.open.retain(|known| known != entry);
                self.closed.retain(|known| known != entry);
            }
            Record::Revision(revision) if revision.finish.is_some() => {
                let entry = &revision.entry_id;
                let before = self.closed.len();
                self.closed.retain(|known| known != entry);
                if self.closed.len() < before {
                    self.open(entry);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, entry: &EntryId) {
        self.open.retain(|known| known != entry);
        push_bounded(&mut self.open, entry.clone(), STATE_OPEN_STREAMS_MAX);
    }

    fn close(&mut self, entry: &EntryId) {
        let before = self.open.len();
        self.open.retain(|known| known != entry);
        if self.open.len() < before {
            push_bounded(&mut self.closed, entry.clone(), STATE_CLOSED_STREAMS_MAX);
        }
    }
}
