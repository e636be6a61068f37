//! The messages beside an entry of a page: the ones that a reader can switch to.
//!
//! Labels and other bookkeeping are entries of the tree too. A reader does not see them, so the siblings of a message are
//! the messages that follow the same message, whatever bookkeeping is between.

use std::collections::BTreeSet;

use bough_session::{EntryId, Forks, SessionId};
use bough_store::{PathQuery, PathStart, Store, StoreError, StoreExt, StoredEntry};

use super::reading::visible_entry;
use crate::api::EntryItem;
use crate::error::ServiceError;
use crate::limits::SIBLING_BOOKKEEPING_MAX;

/// Adds to each entry of a page its siblings, where it has any.
pub(crate) async fn add_siblings(
    store: &dyn Store,
    session: &SessionId,
    forks: Option<&Forks>,
    items: &mut [EntryItem],
) -> Result<(), ServiceError> {
    let Some(forks) = forks.filter(|forks| !forks.is_empty()) else { return Ok(()) };
    let tree = Tree { store, session, forks };
    let messages = items.iter().filter(|item| item.custom.is_none());
    let shown: BTreeSet<EntryId> = messages.map(|item| item.entry_id.clone()).collect();
    for item in items {
        let above = tree.above(item.parent_id.clone(), &shown).await?;
        if !above.iter().any(|parent| tree.has_forks(parent.as_ref())) {
            continue;
        }
        let Some(parent) = above.last() else { continue };
        let mut siblings = tree.messages_below(parent.as_ref()).await?;
        if !siblings.contains(&item.entry_id) {
            // It is bookkeeping itself, or behind more of it than is looked through.
            siblings = tree.visible_children(item.parent_id.as_ref()).await?;
        }
        if siblings.len() > 1 && siblings.contains(&item.entry_id) {
            item.siblings = siblings;
        }
    }
    Ok(())
}

/// Whether an entry says nothing in the conversation. Hidden entries are left out with what follows them.
fn is_bookkeeping(stored: &StoredEntry) -> bool {
    stored.entry.role().is_none() && !stored.entry.is_hidden()
}

/// The tree of a session, as far as siblings need it.
struct Tree<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    forks: &'a Forks,
}

impl Tree<'_> {
    fn has_forks(&self, parent: Option<&EntryId>) -> bool {
        self.forks.below(parent).next().is_some()
    }

    /// A parent and the ones above it, up to the first that is a message; the last is `None` at a root. `shown` are
    /// messages of the same page, which need not be looked up.
    async fn above(
        &self,
        parent: Option<EntryId>,
        shown: &BTreeSet<EntryId>,
    ) -> Result<Vec<Option<EntryId>>, ServiceError> {
        let mut above = vec![parent.clone()];
        let mut next = parent;
        while let Some(entry) = next.take().filter(|entry| !shown.contains(entry)) {
            let stored = self.store.entry(self.session, &entry).await?;
            let Some(stored) = stored.filter(is_bookkeeping) else { break };
            above.push(stored.entry.parent_id.clone());
            if above.len() > SIBLING_BOOKKEEPING_MAX {
                break;
            }
            next = stored.entry.parent_id;
        }
        Ok(above)
    }

    /// The messages that follow an entry, also through bookkeeping. Where there is very much of it, the bookkeeping entry
    /// itself is named.
    async fn messages_below(&self, parent: Option<&EntryId>) -> Result<Vec<EntryId>, ServiceError> {
        let mut messages = Vec::new();
        let mut passed = 0;
        let mut waiting = self.children(parent).await?;
        waiting.reverse();
        while let Some(child) = waiting.pop() {
            let Some(stored) = visible_entry(self.store, self.session, &child).await? else {
                continue;
            };
            if !is_bookkeeping(&stored) || passed == SIBLING_BOOKKEEPING_MAX {
                messages.push(child);
                continue;
            }
            passed += 1;
            let below = self.children(Some(&child)).await?;
            waiting.extend(below.into_iter().rev());
        }
        Ok(messages)
    }

    async fn visible_children(
        &self,
        parent: Option<&EntryId>,
    ) -> Result<Vec<EntryId>, ServiceError> {
        let mut visible = Vec::new();
        for child in self.children(parent).await? {
            if visible_entry(self.store, self.session, &child).await?.is_some() {
                visible.push(child);
            }
        }
        Ok(visible)
    }

    /// The entries below an entry, the oldest first.
    async fn children(&self, parent: Option<&EntryId>) -> Result<Vec<EntryId>, ServiceError> {
        let mut children: Vec<EntryId> =
            self.forks.below(parent).map(|fork| fork.entry.clone()).collect();
        if let Some(first) = self.first_child(parent, &children).await? {
            children.insert(0, first);
        }
        Ok(children)
    }

    /// The child of an entry from before branches began below it: the path to the end of some branch goes through it.
    async fn first_child(
        &self,
        parent: Option<&EntryId>,
        others: &[EntryId],
    ) -> Result<Option<EntryId>, ServiceError> {
        for tip in self.forks.tips() {
            let start = parent.cloned().map_or(PathStart::Root, PathStart::After);
            let query = PathQuery { leaf: Some(tip.clone()), start, limit: 1 };
            let child = match self.store.path(self.session, &query).await {
                Ok(page) => page.entries.into_iter().next().map(|stored| stored.entry.id),
                Err(StoreError::NotOnPath { .. } | StoreError::EntryNotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            if let Some(child) = child.filter(|child| !others.contains(child)) {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }
}
