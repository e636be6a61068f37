//! Sums and views over a path: usage, context.

use bough_session::{Bookkeeping, Entry, EntryId, SessionId, UsageByModel, context_view};
use bough_store::{Store, StoredEntry};

use super::reading::{Direction, Walk};
use crate::api::{ContextItem, ContextRequest, ContextResponse, UsageRequest, UsageResponse};
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn usage(
    service: &Service,
    scope: &Scope,
    request: UsageRequest,
) -> Result<UsageResponse, ServiceError> {
    let runtime = service.runtime();
    let state = runtime.need(scope, &request.session_id).await?.state;
    let mut branch = UsageByModel::default();
    let mut walk = Walk::new(&*runtime.store, &request.session_id, Direction::NewestFirst)
        .ending_at(request.from_entry_id);
    while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
        entries.iter().for_each(|stored| branch.add_entry(&stored.entry));
    }
    Ok(UsageResponse { session: state.usage, branch })
}

pub(crate) async fn context(
    service: &Service,
    scope: &Scope,
    request: ContextRequest,
) -> Result<ContextResponse, ServiceError> {
    let runtime = service.runtime();
    runtime.need(scope, &request.session_id).await?;
    let path =
        path_that_counts(&*runtime.store, &request.session_id, request.from_entry_id).await?;
    let budget = request.max_tokens.map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
    let view = context_view(&path, budget);
    let messages = view
        .items
        .into_iter()
        .map(|item| ContextItem { entry_id: item.entry_id, message: item.message });
    Ok(ContextResponse {
        messages: messages.collect(),
        estimated_tokens: view.tokens as u64,
        left_out: view.left_out as u64,
    })
}

/// The end of a path, back to the first entry that the newest compaction keeps; all of it without one. What is before
/// that no model is sent, so a session of a million entries that is compacted now and then reads only its last part.
async fn path_that_counts(
    store: &dyn Store,
    session: &SessionId,
    leaf: Option<EntryId>,
) -> Result<Vec<Entry>, ServiceError> {
    let mut newest_first = Vec::new();
    let mut kept_from = None;
    let mut walk = Walk::new(store, session, Direction::NewestFirst).ending_at(leaf);
    'walk: while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
        for StoredEntry { entry, .. } in entries {
            if kept_from.is_none()
                && let Some(Bookkeeping::Compaction(compaction)) = entry.bookkeeping()
            {
                kept_from = Some(compaction.first_kept_entry_id);
            }
            let is_first_kept = kept_from.as_ref() == Some(&entry.id);
            newest_first.push(entry);
            if is_first_kept {
                break 'walk;
            }
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}
