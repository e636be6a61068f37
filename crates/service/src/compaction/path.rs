use bough_session::{AgentMessage, Bookkeeping, Canonical, Compaction, Entry, EntryId};

use crate::api::MessageItem;

/// One entry of a path, root first, with what compaction needs of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathItem {
    /// The entry.
    pub id: EntryId,
    /// What it says.
    pub said: Canonical,
}

/// A compaction that is already on a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Previous {
    /// Where it is on the path.
    pub(super) at: usize,
    /// Its entry.
    pub(super) id: EntryId,
    /// What it says.
    pub(super) compaction: Compaction,
    /// Where on the path the entries that it kept begin; its own place when it kept none.
    pub(super) kept_from: usize,
}

impl PathItem {
    pub(crate) fn of_entry(entry: &Entry) -> Self {
        Self { id: entry.id.clone(), said: entry.canonical() }
    }

    /// An item of a path as `session::messages` returns it; `None` if it is empty.
    #[must_use]
    pub fn of_message(item: MessageItem) -> Option<Self> {
        let said = item.message.map(Canonical::Message);
        let said = said.or_else(|| item.custom.map(Canonical::Custom))?;
        Some(Self { id: item.entry_id, said })
    }

    /// The message, if the entry is one.
    #[must_use]
    pub fn message(&self) -> Option<&AgentMessage> {
        match &self.said {
            Canonical::Message(message) => Some(message),
            Canonical::Custom(_) => None,
        }
    }

    /// The bookkeeping, if the entry is of a known kind.
    #[must_use]
    pub fn bookkeeping(&self) -> Option<Bookkeeping> {
        match &self.said {
            Canonical::Message(_) => None,
            Canonical::Custom(custom) => Bookkeeping::from_payload(custom),
        }
    }
}

/// The newest compaction of a path.
pub(super) fn newest_compaction(path: &[PathItem]) -> Option<Previous> {
    path.iter().enumerate().rev().find_map(|(at, item)| {
        let Some(Bookkeeping::Compaction(compaction)) = item.bookkeeping() else {
            return None;
        };
        let first_kept = &compaction.first_kept_entry_id;
        let kept_from = path.iter().take(at).position(|item| item.id == *first_kept);
        Some(Previous { at, id: item.id.clone(), kept_from: kept_from.unwrap_or(at), compaction })
    })
}
