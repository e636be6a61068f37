use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::EntryId;
use crate::limits::{CUSTOM_TYPE_BYTES_MAX, ENTRY_ID_BYTES_MAX, STATE_CUSTOM_TYPES_MAX};

/// The newest entry of each custom type, of the [`STATE_CUSTOM_TYPES_MAX`] types that were used last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomTypes {
    types: VecDeque<NewestEntry>,
    /// Whether a type was dropped, so that a type that is not listed may still have entries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_forgotten: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NewestEntry {
    custom_type: String,
    entry_id: EntryId,
    /// Whether every entry of the type names the one before it.
    linked: bool,
}

/// What is known of the entries of a custom type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestOf {
    /// There are none.
    None,
    /// The newest one. Each names the one before it, down to the first.
    Linked(EntryId),
    /// They have to be looked for.
    Unknown,
}

impl CustomTypes {
    /// What is known of a type.
    #[must_use]
    pub fn newest(&self, custom_type: &str) -> NewestOf {
        match self.types.iter().find(|newest| newest.custom_type == custom_type) {
            Some(newest) if newest.linked => NewestOf::Linked(newest.entry_id.clone()),
            None if !self.has_forgotten => NewestOf::None,
            _ => NewestOf::Unknown,
        }
    }

    /// The newest entry of a type, linked or not.
    #[must_use]
    pub fn newest_entry(&self, custom_type: &str) -> Option<&EntryId> {
        let found = self.types.iter().find(|newest| newest.custom_type == custom_type);
        found.map(|newest| &newest.entry_id)
    }

    /// Takes one more entry into account.
    pub(super) fn note(&mut self, custom_type: &str, entry: &EntryId, previous: Option<&EntryId>) {
        if custom_type.len() > CUSTOM_TYPE_BYTES_MAX || entry.as_str().len() > ENTRY_ID_BYTES_MAX {
            // No entry of ours has such a name; a caller that asks for one reads the log.
            self.has_forgotten = true;
            return;
        }
        let index = self.types.iter().position(|newest| newest.custom_type == custom_type);
        let before = index.and_then(|index| self.types.remove(index));
        let linked = match &before {
            Some(before) => before.linked && previous == Some(&before.entry_id),
            None => !self.has_forgotten && previous.is_none(),
        };
        let custom_type = custom_type.to_owned();
        self.types.push_back(NewestEntry { custom_type, entry_id: entry.clone(), linked });
        if self.types.len() > STATE_CUSTOM_TYPES_MAX {
            self.types.pop_front();
            self.has_forgotten = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> EntryId {
        EntryId::from_stored(text)
    }

    #[test]
    fn a_type_is_linked_while_each_entry_names_the_one_before() {
        let mut types = CustomTypes::default();
        assert_eq!(types.newest("t"), NewestOf::None);
        types.note("t", &id("a"), None);
        types.note("u", &id("x"), None);
        types.note("t", &id("b"), Some(&id("a")));
        assert_eq!(types.newest("t"), NewestOf::Linked(id("b")));
        types.note("t", &id("c"), None);
        types.note("t", &id("d"), Some(&id("c")));
        assert_eq!(types.newest("t"), NewestOf::Unknown, "a link is missing below");
        assert_eq!(types.newest_entry("t"), Some(&id("d")));
        assert_eq!(types.newest("u"), NewestOf::Linked(id("x")));
    }

    #[test]
    fn types_beyond_the_bound_have_to_be_looked_for() {
        let mut types = CustomTypes::default();
        for n in 0..=STATE_CUSTOM_TYPES_MAX {
            types.note(&format!("t{n}"), &id("e"), None);
        }
        assert_eq!(types.types.len(), STATE_CUSTOM_TYPES_MAX);
        assert_eq!(types.newest("t0"), NewestOf::Unknown);
        assert_eq!(types.newest("t1"), NewestOf::Linked(id("e")));
        types.note("t0", &id("f"), None);
        assert_eq!(types.newest("t0"), NewestOf::Unknown, "older ones may be there");
    }
}
