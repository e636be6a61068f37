use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::push_bounded;
use crate::EntryId;
use crate::limits::{ENTRY_ID_BYTES_MAX, LABEL_BYTES_MAX, STATE_LABELS_MAX};
use crate::text::cut_bytes;

/// Labels of entries, the newest [`STATE_LABELS_MAX`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(VecDeque<(EntryId, String)>);

impl Labels {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The label of an entry.
    #[must_use]
    pub fn get(&self, entry: &EntryId) -> Option<&str> {
        let found = self.0.iter().find(|(target, _)| target == entry);
        found.map(|(_, label)| label.as_str())
    }

    /// All labels, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&EntryId, &str)> {
        self.0.iter().map(|(target, label)| (target, label.as_str()))
    }

    /// Sets or removes the label of an entry. An id that no entry of ours can have is ignored.
    pub fn set(&mut self, entry: &EntryId, label: Option<&str>) {
        self.0.retain(|(target, _)| target != entry);
        if let Some(label) = label
            && entry.as_str().len() <= ENTRY_ID_BYTES_MAX
        {
            let label = cut_bytes(label, LABEL_BYTES_MAX).to_owned();
            push_bounded(&mut self.0, (entry.clone(), label), STATE_LABELS_MAX);
        }
    }
}
