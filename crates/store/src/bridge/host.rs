//! The main's side of reading: answers instances that store through it. The service carries out their writes.

use std::time::Duration;

use serde_json::Value;

use super::protocol::{ReadRequest, StoreAnswer, UNCHANGED, to_json};
use crate::types::{ChangeCursor, ChangePage, Loaded};
use crate::{Store, StoreError, StoreExt};

/// Longest wait for a change.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Most records, entries or changes of one answer.
const PAGE_MAX: usize = 10_000;

/// Does one read.
pub async fn read(store: &dyn Store, request: ReadRequest) -> StoreAnswer {
    try_read(store, request).await.into()
}

async fn try_read(store: &dyn Store, request: ReadRequest) -> Result<Value, StoreError> {
    match request {
        ReadRequest::State { session_id, known } => {
            match store.load(&session_id, known.as_ref()).await? {
                Loaded::Unchanged => to_json(&UNCHANGED),
                Loaded::Absent => Ok(Value::Null),
                Loaded::Changed(snapshot) => to_json(&snapshot),
            }
        }
        ReadRequest::Entry { session_id, query } => {
            to_json(&store.read_entry(&session_id, &query).await?)
        }
        ReadRequest::Path { session_id, mut query } => {
            query.limit = query.limit.min(PAGE_MAX);
            to_json(&store.path(&session_id, &query).await?)
        }
        ReadRequest::Records { session_id, mut query } => {
            query.limit = query.limit.min(PAGE_MAX);
            to_json(&store.read_records(&session_id, &query).await?)
        }
        ReadRequest::BranchHeads { session_id, before, limit } => {
            let limit = limit.min(PAGE_MAX);
            to_json(&store.branch_heads(&session_id, before.as_ref(), limit).await?)
        }
        ReadRequest::Trash { session_id } => to_json(&store.trash(session_id.as_ref()).await?),
        ReadRequest::Usage { query } => to_json(&store.usage(&query).await?),
        ReadRequest::List { query } => to_json(&store.list(&query).await?),
        ReadRequest::Changes { after, limit, wait_ms } => {
            let wait = Duration::from_millis(wait_ms.unwrap_or(0)).min(WAIT_MAX);
            to_json(&changes(store, after.as_ref(), limit.min(PAGE_MAX), wait).await?)
        }
        ReadRequest::Reopen { session_id } => to_json(&store.reopen(&session_id).await?),
    }
}

/// Changes after a cursor; waits for one when there is none.
async fn changes(
    store: &dyn Store,
    after: Option<&ChangeCursor>,
    limit: usize,
    wait: Duration,
) -> Result<ChangePage, StoreError> {
    // Create the watch before the first read, so that no change is missed in between.
    let mut watch = store.watch();
    let page = store.changes(after, limit).await?;
    if after.is_none() || page.gap || !page.changes.is_empty() || wait.is_zero() {
        return Ok(page);
    }
    if tokio::time::timeout(wait, watch.changed()).await.is_err() {
        return Ok(page);
    }
    store.changes(after, limit).await
}
