//! The entries with the same parent as an entry of a page: the ones that a reader can switch to.

use bough_session::{EntryId, Forks, SessionId};
use bough_store::{PathQuery, PathStart, Store, StoreError};

use super::reading::visible_entry;
use crate::api::EntryItem;
use crate::error::ServiceError;

/// Adds to each entry of a page its siblings, where it has any.
pub(crate) async fn add_siblings(
    store: &dyn Store,
    session: &SessionId,
    forks: Option<&Forks>,
    items: &mut [EntryItem],
) -> Result<(), ServiceError> {
    let Some(forks) = forks.filter(|forks| !forks.is_empty()) else { return Ok(()) };
    for item in items {
        let parent = item.parent_id.as_ref();
        let mut children: Vec<EntryId> =
            forks.below(parent).map(|fork| fork.entry.clone()).collect();
        if children.is_empty() {
            continue;
        }
        if let Some(first) = first_child(store, session, forks, parent, &children).await? {
            children.insert(0, first);
        }
        let children = visible(store, session, children).await?;
        if children.len() > 1 && children.contains(&item.entry_id) {
            item.siblings = children;
        }
    }
    Ok(())
}

/// Those of some entries that were not hidden.
async fn visible(
    store: &dyn Store,
    session: &SessionId,
    entries: Vec<EntryId>,
) -> Result<Vec<EntryId>, ServiceError> {
    let mut visible = Vec::with_capacity(entries.len());
    for entry in entries {
        if visible_entry(store, session, &entry).await?.is_some() {
            visible.push(entry);
        }
    }
    Ok(visible)
}

/// The child of an entry from before branches began below it: the path to the end of some branch goes through it.
async fn first_child(
    store: &dyn Store,
    session: &SessionId,
    forks: &Forks,
    parent: Option<&EntryId>,
    others: &[EntryId],
) -> Result<Option<EntryId>, ServiceError> {
    for tip in forks.tips() {
        let start = parent.cloned().map_or(PathStart::Root, PathStart::After);
        let query = PathQuery { leaf: Some(tip.clone()), start, limit: 1 };
        let child = match store.path(session, &query).await {
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
