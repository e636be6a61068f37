//! Hides entries from every read.
//!
//! The log keeps them, with a mark that they are hidden. Their children stay, and paths lead through them.

use std::collections::HashSet;

use async_trait::async_trait;
use bough_session::limits::check_at_most;
use bough_session::{EntryId, Record, Removal, SessionId};
use bough_store::{Store, StoreExt};

use super::reading::{Direction, Walk};
use crate::api::{HideEntriesRequest, HideEntriesResponse};
use crate::error::ServiceError;
use crate::limits::{HIDE_ENTRIES_MAX, SCAN_ENTRIES};
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn hide_entries(
    service: &Service,
    scope: &Scope,
    request: HideEntriesRequest,
) -> Result<HideEntriesResponse, ServiceError> {
    check_at_most("entry_ids", "entries", request.entry_ids.len(), HIDE_ENTRIES_MAX)?;
    let change = HideEntries { scope: scope.clone(), entry_ids: request.entry_ids };
    writing::run(service, &request.session_id, change).await
}

struct HideEntries {
    scope: Scope,
    entry_ids: Vec<EntryId>,
}

#[async_trait]
impl Command for HideEntries {
    type Answer = HideEntriesResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?.clone();
        context.flush().await?;
        let (store, session) = (context.store(), context.session());
        let (mut records, mut hidden) = (Vec::new(), HashSet::new());
        for id in &self.entry_ids {
            let stored = store.entry(session, id).await?;
            let stored = stored.ok_or_else(|| ServiceError::entry_not_found(session, id))?;
            if stored.entry.is_hidden() || !hidden.insert(id.clone()) {
                continue;
            }
            records.push(Record::Removed(Removal {
                entry_id: id.clone(),
                is_message: stored.entry.is_message(),
                is_preview: state.is_preview_of(&stored.entry),
            }));
        }
        let answer = HideEntriesResponse { hidden: hidden.len() };
        if records.is_empty() {
            return Ok(Decision::Nothing(answer));
        }
        if state.leaf.as_ref().is_some_and(|leaf| hidden.contains(leaf)) {
            records.push(Record::Leaf(newest_left(store, session, &hidden).await?));
        }
        Ok(Decision::Append(records, answer))
    }
}

/// The end of the active path without these entries.
async fn newest_left(
    store: &dyn Store,
    session: &SessionId,
    hidden: &HashSet<EntryId>,
) -> Result<Option<EntryId>, ServiceError> {
    let mut walk = Walk::new(store, session, Direction::NewestFirst);
    while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
        let left = entries.into_iter().find(|stored| !hidden.contains(&stored.entry.id));
        if let Some(left) = left {
            return Ok(Some(left.entry.id));
        }
    }
    Ok(None)
}
