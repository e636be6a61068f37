//! Updates and queries the search index.

mod follow;
mod gather;
mod session_end;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bough_platform::Clock;
use bough_search::{IndexCounts, SearchError, SearchIndex};
use bough_store::{ChangeCursor, Store, StoreExt};
use tokio::sync::OwnedMutexGuard;

use crate::api::IndexStatus;
use crate::error::ServiceError;
use crate::limits::{
    INDEX_IDLE, INDEX_POLL, INDEX_REST, INDEX_REST_MAX, INDEX_REST_OF_WRITERS, INDEX_RETRY,
};
use crate::lock::Replaceable;
use crate::service::Service;
use follow::{Follower, Round};
pub(crate) use gather::agent_of_state;
pub(crate) use session_end::SessionEnd;

/// An index and the task that updates it from the store.
pub(crate) struct Search {
    pub(crate) index: Arc<dyn SearchIndex>,
    /// One round at a time in this process; between processes the index has a lock.
    follower: Arc<tokio::sync::Mutex<Follower>>,
    /// Whether this process updates the index permanently. Otherwise it does so for a search, and releases the lock.
    is_kept: AtomicBool,
    /// Whether another process had the lock in the last round.
    is_elsewhere: AtomicBool,
}

/// The index that a service has now, if it has one.
pub(crate) type SearchSlot = Replaceable<Option<Arc<Search>>>;

impl Search {
    fn new(index: Arc<dyn SearchIndex>, clock: Arc<dyn Clock>) -> Self {
        let follower = Follower::new(index.clone(), clock);
        let follower = Arc::new(tokio::sync::Mutex::new(follower));
        let (is_kept, is_elsewhere) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { index, follower, is_kept, is_elsewhere }
    }

    /// Indexes the present content of the store, and waits for it for at most `most`. Longer work continues in the
    /// background.
    pub(crate) async fn catch_up(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        most: Duration,
    ) -> Result<(), ServiceError> {
        let there = async {
            let target = store.change_cursor().await?;
            while !self.has(&target).await? {
                match self.follower.clone().try_lock_owned() {
                    Ok(follower) => {
                        let rounds = self.clone().rounds(follower, store.clone(), target.clone());
                        let done = tokio::spawn(rounds).await;
                        done.unwrap_or_else(|error| Err(ServiceError::storage(error.to_string())))?;
                        if !self.has(&target).await? {
                            // Another process indexes, or what is left has to wait.
                            tokio::time::sleep(INDEX_RETRY).await;
                        }
                    }
                    Err(_) => tokio::time::sleep(INDEX_POLL).await,
                }
            }
            Ok(())
        };
        tokio::time::timeout(most, there).await.unwrap_or(Ok(()))
    }

    async fn rounds(
        self: Arc<Self>,
        mut follower: OwnedMutexGuard<Follower>,
        store: Arc<dyn Store>,
        target: ChangeCursor,
    ) -> Result<(), ServiceError> {
        while !self.has(&target).await? {
            let round = follower.round(&*store, true).await?;
            self.is_elsewhere.store(round == Round::Elsewhere, Ordering::Relaxed);
            if !matches!(round, Round::Worked { .. }) {
                break;
            }
        }
        if !self.is_kept.load(Ordering::Relaxed) {
            follower.unlock();
        }
        Ok(())
    }

    /// Where the index is in the feed of all sessions; `None` for an empty one.
    pub(crate) async fn place(&self) -> Result<Option<ChangeCursor>, ServiceError> {
        let known = self.index.cursor().await.map_err(failed)?;
        Ok(known.and_then(|text| text.parse().ok()))
    }

    /// Whether the index was made anew since it was at a place in the feed.
    pub(crate) async fn has_lost(
        &self,
        place: Option<&ChangeCursor>,
    ) -> Result<bool, ServiceError> {
        let Some(before) = place else { return Ok(false) };
        let now = self.place().await?;
        Ok(now.is_none_or(|now| now.epoch != before.epoch || now.number < before.number))
    }

    /// Whether everything up to a cursor of the feed is indexed.
    async fn has(&self, target: &ChangeCursor) -> Result<bool, ServiceError> {
        let known = self.place().await?;
        let is_there =
            known.is_some_and(|at| at.epoch == target.epoch && at.number >= target.number);
        Ok(is_there && self.index.stale(1).await.map_err(failed)?.is_empty())
    }

    /// How far the index is behind the store.
    pub(crate) async fn status(&self, store: &dyn Store) -> Result<IndexStatus, ServiceError> {
        let now = store.change_cursor().await?;
        let behind_changes = match self.place().await? {
            Some(known) if known.epoch == now.epoch => now.number.saturating_sub(known.number),
            _ => now.number.max(1),
        };
        let IndexCounts { stale_sessions, documents } =
            self.index.counts().await.map_err(failed)?;
        let is_complete = behind_changes == 0 && stale_sessions == 0;
        Ok(IndexStatus {
            is_complete,
            behind_changes,
            behind_sessions: stale_sessions,
            indexed_documents: documents,
            is_elsewhere: !is_complete && self.is_elsewhere.load(Ordering::Relaxed),
        })
    }
}

impl Service {
    /// Sets the search index; without one, only titles and the like are searched.
    pub fn set_search_index(&self, index: Option<Arc<dyn SearchIndex>>) {
        self.search_slot().set(index.map(|index| Arc::new(Search::new(index, self.clock()))));
    }

    /// Updates the index from the store until it is dropped. A program that runs a service for long runs this beside
    /// it.
    pub async fn keep_indexing(&self) {
        loop {
            let store = self.store();
            let mut watch = store.watch();
            let Some(search) = self.search_slot().get() else {
                tokio::time::sleep(INDEX_RETRY).await;
                continue;
            };
            search.is_kept.store(true, Ordering::Relaxed);
            let round = search.follower.lock().await.round(&*store, false).await;
            let is_elsewhere = matches!(round, Ok(Round::Elsewhere));
            search.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
            match round {
                Ok(Round::Worked { took, is_written }) => {
                    tokio::time::sleep(rest_after(took, is_written)).await;
                }
                Ok(Round::Idle) => {
                    let most = tokio::time::timeout(INDEX_IDLE, watch.changed());
                    drop(most.await);
                    // Records that are written at the same time are indexed together.
                    tokio::time::sleep(INDEX_REST).await;
                }
                Ok(Round::Elsewhere) | Err(_) => tokio::time::sleep(INDEX_RETRY).await,
            }
        }
    }
}

/// The pause after a round. While others write, most of the processor is left to them; an older backlog is indexed
/// faster.
fn rest_after(took: Duration, is_written: bool) -> Duration {
    match is_written {
        true => (took * INDEX_REST_OF_WRITERS).clamp(INDEX_REST, INDEX_REST_MAX),
        false => took.min(INDEX_REST),
    }
}

/// An error of the index, for a caller.
pub(crate) fn failed(error: SearchError) -> ServiceError {
    match error {
        SearchError::InvalidCursor => ServiceError::InvalidCursor { reason: error.to_string() },
        other => ServiceError::storage(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::{OsEntropy, SystemClock};
    use bough_search::NativeIndex;
    use bough_store::MemoryStore;
    use serde_json::json;

    use super::*;
    use crate::scope::Scope;

    /// A service with an index in memory that nobody updates yet.
    pub(super) fn indexed() -> (Service, Arc<dyn SearchIndex>) {
        let entropy = Arc::new(OsEntropy);
        let store = Arc::new(MemoryStore::new(entropy.clone()).unwrap());
        let service = Service::new(store, Arc::new(SystemClock::new()), entropy);
        (service, Arc::new(NativeIndex::in_memory().unwrap()))
    }

    pub(super) async fn say(service: &Service, session: &str, text: &str) {
        let scope = Scope::owner();
        let ensured = json!({"session_id": session});
        service.call(&scope, "session::ensure", ensured).await.unwrap();
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"role": "user", "content": content, "timestamp": 1});
        let request = json!({"session_id": session, "message": message});
        service.call(&scope, "session::append", request).await.unwrap();
    }

    #[tokio::test]
    async fn rounds_end_when_there_is_nothing_left_to_do() {
        let (service, index) = indexed();
        say(&service, "a", "one").await;
        let search = Arc::new(Search::new(index.clone(), service.clock()));
        let store = service.store();
        let mut beyond = store.change_cursor().await.unwrap();
        beyond.number += 1;
        let follower = search.follower.clone().try_lock_owned().unwrap();
        search.clone().rounds(follower, store.clone(), beyond).await.unwrap();
        assert!(search.status(&*store).await.unwrap().is_complete);
    }
}
