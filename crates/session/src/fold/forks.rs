use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::push_bounded;
use crate::limits::{STATE_FORKS_MAX, STATE_TIPS_MAX};
use crate::{Entry, EntryId};

/// An entry that does not continue the end of a branch: a new branch begins with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The first entry of the branch.
    pub entry: EntryId,
    /// Its parent; `None` when it is a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<EntryId>,
}

/// Where the branches of a session begin, the newest [`STATE_FORKS_MAX`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Forks {
    forks: VecDeque<Fork>,
    /// The ends of the branches that were added to last, at most [`STATE_TIPS_MAX`]. So two branches that grow in turns
    /// are not counted as new branches with each entry.
    tips: VecDeque<EntryId>,
}

impl Forks {
    /// The branches that begin below an entry, or as roots, the oldest first.
    pub fn below<'a>(&'a self, parent: Option<&'a EntryId>) -> impl Iterator<Item = &'a Fork> {
        self.forks.iter().filter(move |fork| fork.parent.as_ref() == parent)
    }

    /// The ends of branches, the newest first.
    pub fn tips(&self) -> impl Iterator<Item = &EntryId> {
        self.tips.iter().rev()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forks.is_empty()
    }

    pub(super) fn note(&mut self, entry: &Entry) {
        let goes_on = self.tips.iter().rposition(|tip| Some(tip) == entry.parent_id.as_ref());
        if let Some(at) = goes_on {
            self.tips.remove(at);
        } else if !self.tips.is_empty() {
            let fork = Fork { entry: entry.id.clone(), parent: entry.parent_id.clone() };
            push_bounded(&mut self.forks, fork, STATE_FORKS_MAX);
        }
        push_bounded(&mut self.tips, entry.id.clone(), STATE_TIPS_MAX);
    }
}
