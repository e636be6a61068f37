//! The tree of a session: its nodes in pages, and two branches beside each other.

use std::collections::HashMap;

use bough_session::text::preview;
use bough_session::{Canonical, Entry, EntryId, Record, SessionId, SessionState};
use bough_store::{Position, Store, StoreExt, StoredEntry};

use super::entries::ItemShape;
use super::reading::{Direction, Walk, check_visible, visible_entry};
use crate::api::{
    BranchSide, CompareRequest, CompareResponse, TreeNode, TreeRequest, TreeResponse,
};
use crate::cursor;
use crate::error::ServiceError;
use crate::limits::{
    COMPARED_ENTRIES_MAX, SCAN_ENTRIES, TREE_PREVIEW_CHARS_MAX, TREE_RECORDS_PER_PAGE_MAX,
};
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn tree(
    service: &Service,
    scope: &Scope,
    request: TreeRequest,
) -> Result<TreeResponse, ServiceError> {
    let runtime = service.runtime();
    let session = &request.session_id;
    let state = runtime.need(scope, session).await?.state;
    let limit = service.settings().page(request.limit);
    let after = request.cursor.as_deref().map(cursor::decode::<u64>).transpose()?;
    let mut at = Position::at(after.unwrap_or_default());
    let (mut nodes, mut read, mut more) = (Vec::new(), 0, true);
    // Most records are entries; those that are not must not make a page of nothing.
    while more && nodes.len() < limit && read < TREE_RECORDS_PER_PAGE_MAX {
        let wanted = (limit - nodes.len()).min(SCAN_ENTRIES);
        let page = runtime.store.records(session, at, wanted).await?;
        for stored in &page.records {
            let Record::Entry(added) = stored.record.known() else { continue };
            nodes.extend(node_of(&*runtime.store, &state, &added.id).await?);
        }
        read += page.records.len();
        more = page.more;
        at = page.position_after(at);
    }
    let next_cursor = more.then(|| cursor::encode(&at.seq)).transpose()?;
    Ok(TreeResponse { nodes, active_leaf: state.leaf.clone(), next_cursor })
}

/// An entry as a node, with what it says now: a reply that was streamed began empty. `None` for one that is hidden.
async fn node_of(
    store: &dyn Store,
    state: &SessionState,
    entry_id: &EntryId,
) -> Result<Option<TreeNode>, ServiceError> {
    let session = &state.meta.session_id;
    let Some(StoredEntry { mut entry, .. }) = visible_entry(store, session, entry_id).await? else {
        return Ok(None);
    };
    if state.hidden_count > 0 {
        entry.parent_id = visible_parent(store, session, &entry).await?;
    }
    Ok(Some(node(&entry, state)))
}

/// The nearest entry above that was not hidden.
async fn visible_parent(
    store: &dyn Store,
    session: &SessionId,
    entry: &Entry,
) -> Result<Option<EntryId>, ServiceError> {
    let mut parent = entry.parent_id.clone();
    while let Some(above) = &parent {
        let found = store.entry(session, above).await?;
        match found.filter(|stored| stored.entry.is_hidden()) {
            Some(hidden) => parent = hidden.entry.parent_id,
            None => break,
        }
    }
    Ok(parent)
}

fn node(entry: &Entry, state: &SessionState) -> TreeNode {
    let (role, custom_type, text) = match entry.canonical() {
        Canonical::Message(message) => (Some(message.role()), None, message.text()),
        Canonical::Custom(custom) => (None, Some(custom.custom_type.clone()), String::new()),
    };
    TreeNode {
        entry_id: entry.id.clone(),
        parent_id: entry.parent_id.clone(),
        timestamp: entry.timestamp,
        role,
        custom_type,
        preview: preview(&text, TREE_PREVIEW_CHARS_MAX),
        label: state.labels.get(&entry.id).map(str::to_owned),
    }
}

pub(crate) async fn compare(
    service: &Service,
    scope: &Scope,
    request: CompareRequest,
) -> Result<CompareResponse, ServiceError> {
    let runtime = service.runtime();
    let session = &request.session_id;
    let state = runtime.need(scope, session).await?.state;
    for end in [&request.left, &request.right] {
        check_visible(&*runtime.store, &state, end).await?;
    }
    let limit = service.settings().page(request.limit);
    let walk = |end: EntryId| {
        Walk::new(&*runtime.store, session, Direction::NewestFirst).ending_at(Some(end))
    };
    let mut left = Side::new(walk(request.left));
    let mut right = Side::new(walk(request.right));
    // In turns, so that the cost follows the distance to where they part, not the length of the history.
    let common = loop {
        if let Some(found) = left.read(&right).await? {
            break Some(found);
        }
        if let Some(found) = right.read(&left).await? {
            break Some(found);
        }
        if left.ended && right.ended {
            break None;
        }
    };
    let shape = ItemShape { format: None, streams: &[&state.streams] };
    Ok(CompareResponse {
        left: left.after(common.as_ref(), limit, shape),
        right: right.after(common.as_ref(), limit, shape),
        common_entry_id: common,
    })
}

/// One path, read from its end towards where it parts from the other.
struct Side<'a> {
    walk: Walk<'a>,
    entries: Vec<Entry>,
    places: HashMap<EntryId, usize>,
    ended: bool,
}

impl<'a> Side<'a> {
    fn new(walk: Walk<'a>) -> Self {
        Self { walk, entries: Vec::new(), places: HashMap::new(), ended: false }
    }

    /// Reads on, and says which entry is the first that the other side has too.
    async fn read(&mut self, other: &Side<'_>) -> Result<Option<EntryId>, ServiceError> {
        if self.ended {
            return Ok(None);
        }
        if self.entries.len() >= COMPARED_ENTRIES_MAX {
            return Err(ServiceError::invalid(format!(
                "the branches part more than {COMPARED_ENTRIES_MAX} entries before their ends"
            )));
        }
        let Some(entries) = self.walk.next(SCAN_ENTRIES).await? else {
            self.ended = true;
            return Ok(None);
        };
        for stored in entries {
            let id = stored.entry.id.clone();
            self.places.insert(id.clone(), self.entries.len());
            self.entries.push(stored.entry);
            if other.places.contains_key(&id) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// What follows the entry that both have.
    fn after(&self, common: Option<&EntryId>, limit: usize, shape: ItemShape<'_>) -> BranchSide {
        let place = common.and_then(|common| self.places.get(common));
        let own = self.entries.get(..place.copied().unwrap_or(self.entries.len()));
        let own = own.unwrap_or_default();
        let entries = own.iter().rev().take(limit).map(|entry| shape.item(entry)).collect();
        BranchSide { entries, count: own.len() as u64 }
    }
}
