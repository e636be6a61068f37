//! Updates the index from the feed of all sessions.
//!
//! A round reads what changed, makes documents of it, and applies them together with the cursor in the feed. Work that
//! is too much for one round is marked in the index as stale, so nothing is lost if the process ends between two
//! rounds.

use bough_platform::Clock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bough_search::{
    IndexBatch, IndexLock, IndexedSession, SearchError, SearchIndex, SessionUpdate,
};
use bough_session::SessionId;
use bough_store::{ChangeCursor, ChangePage, ListQuery, Store, StoreExt};

use super::failed;
use super::gather::{Budget, Gathered, gather};
use crate::error::ServiceError;
use crate::limits::{
    INDEX_BYTES_PER_ROUND, INDEX_CHANGES_PER_ROUND, INDEX_KNOWN_MAX, INDEX_LIST_PAGE,
    INDEX_STREAM_REST,
};

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// There was nothing to do.
    Idle,
    /// There was, and there may be more.
    Worked {
        /// How long it took.
        took: Duration,
        /// Whether there were writes since the round before.
        is_written: bool,
    },
    /// Another process keeps the index.
    Elsewhere,
}

pub(super) struct Follower {
    index: Arc<dyn SearchIndex>,
    clock: Arc<dyn Clock>,
    lock: Option<IndexLock>,
    /// The positions up to which sessions are indexed, as long as the lock is held.
    known: HashMap<SessionId, IndexedSession>,
    /// What will be known once the current batch is applied.
    pending: Vec<IndexedSession>,
    /// Sessions with a streaming message, and when they may be indexed again: a long message is not indexed anew for
    /// each added word.
    resting: HashMap<SessionId, Duration>,
    /// How much text a round indexes, in bytes.
    bytes_per_round: usize,
}

impl Follower {
    pub(super) fn new(index: Arc<dyn SearchIndex>, clock: Arc<dyn Clock>) -> Self {
        Self {
            index,
            clock,
            lock: None,
            known: HashMap::new(),
            pending: Vec::new(),
            resting: HashMap::new(),
            bytes_per_round: INDEX_BYTES_PER_ROUND,
        }
    }

    /// Lets another process index.
    pub(super) fn unlock(&mut self) {
        self.lock = None;
    }

    /// Indexes a part of what is not indexed yet. `is_eager` also indexes messages that are
    /// streaming.
    pub(super) async fn round(
        &mut self,
        store: &dyn Store,
        is_eager: bool,
    ) -> Result<Round, ServiceError> {
        if self.lock.is_none() {
            self.lock = self.index.lock().await.map_err(failed)?;
            self.known.clear();
        }
        if self.lock.is_none() {
            return Ok(Round::Elsewhere);
        }
        let began = self.clock.monotonic();
        self.pending.clear();
        let batch = self.batch(store, is_eager).await;
        let Some(batch) = batch? else { return Ok(Round::Idle) };
        let is_written = batch.expected_cursor != batch.cursor;
        match self.index.apply(batch).await {
            Ok(()) => self.remember(),
            // Another process cleared the index, so the cached positions are wrong.
            Err(SearchError::Conflict) => self.known.clear(),
            Err(error) => {
                self.known.clear();
                return Err(failed(error));
            }
        }
        Ok(Round::Worked { took: self.clock.monotonic().saturating_sub(began), is_written })
    }

    /// The next batch; `None` when there is nothing to do.
    async fn batch(
        &mut self,
        store: &dyn Store,
        is_eager: bool,
    ) -> Result<Option<IndexBatch>, ServiceError> {
        let expected_cursor = self.index.cursor().await.map_err(failed)?;
        let cursor = expected_cursor.as_ref().and_then(|text| text.parse::<ChangeCursor>().ok());
        let page = match &cursor {
            Some(cursor) => store.changes(Some(cursor), INDEX_CHANGES_PER_ROUND).await?,
            None => {
                let next = store.change_cursor().await?;
                ChangePage { changes: Vec::new(), next, gap: true }
            }
        };
        let next = Some(page.next.to_string());
        let updates = if page.gap {
            self.known.clear();
            self.compare_all(store).await?
        } else {
            self.updates(store, &page, is_eager).await?
        };
        let is_idle = updates.is_empty() && expected_cursor == next;
        let is_waited_for = is_eager;
        let batch = IndexBatch { expected_cursor, cursor: next, updates, is_waited_for };
        Ok((!is_idle).then_some(batch))
    }

    /// Checks every session again: existing ones may have newer records, the others are gone.
    async fn compare_all(&self, store: &dyn Store) -> Result<Vec<SessionUpdate>, ServiceError> {
        let mut there = BTreeSet::new();
        let mut query = ListQuery { limit: INDEX_LIST_PAGE, ..ListQuery::default() };
        loop {
            let page = store.list(&query).await?;
            there.extend(page.sessions.into_iter().map(|listed| listed.meta.session_id));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        let mut updates = Vec::new();
        let mut after: Option<SessionId> = None;
        loop {
            let known =
                self.index.sessions(after.as_ref(), INDEX_LIST_PAGE).await.map_err(failed)?;
            let Some(last) = known.last() else { break };
            after = Some(last.session_id.clone());
            let gone = known.into_iter().filter(|known| !there.contains(&known.session_id));
            updates.extend(gone.map(|known| removed(known.session_id)));
        }
        updates.extend(there.into_iter().map(|session_id| SessionUpdate::Stale { session_id }));
        Ok(updates)
    }

    async fn updates(
        &mut self,
        store: &dyn Store,
        page: &ChangePage,
        is_eager: bool,
    ) -> Result<Vec<SessionUpdate>, ServiceError> {
        // The last change of a session says whether it exists.
        let mut touched: BTreeMap<&SessionId, bool> = BTreeMap::new();
        for change in &page.changes {
            touched.insert(&change.session_id, change.deleted);
        }
        let mut budget = Budget::of(self.bytes_per_round);
        let mut updates = Vec::new();
        for (session, is_deleted) in touched {
            let update = match is_deleted {
                true => self.forget(session),
                false => self.update(store, session, &mut budget, is_eager).await?,
            };
            updates.extend(update);
        }
        if budget.is_spent() {
            return Ok(updates);
        }
        for stale in self.index.stale(INDEX_CHANGES_PER_ROUND).await.map_err(failed)? {
            let is_named = page.changes.iter().any(|change| change.session_id == stale.session_id);
            if !is_named && !budget.is_spent() {
                // The row says that it is stale, which the position in memory may not.
                let session = stale.session_id.clone();
                self.known.insert(session.clone(), stale);
                let update = self.update(store, &session, &mut budget, is_eager).await?;
                updates
                    .extend(update.filter(|update| !matches!(update, SessionUpdate::Stale { .. })));
            }
        }
        Ok(updates)
    }

    fn forget(&mut self, session: &SessionId) -> Option<SessionUpdate> {
        self.known.remove(session);
        self.resting.remove(session);
        Some(removed(session.clone()))
    }

    async fn update(
        &mut self,
        store: &dyn Store,
        session: &SessionId,
        budget: &mut Budget,
        is_eager: bool,
    ) -> Result<Option<SessionUpdate>, ServiceError> {
        let now = self.clock.monotonic();
        let rests = self.resting.get(session).is_some_and(|until| now < *until);
        if budget.is_spent() || (rests && !is_eager) {
            return Ok(Some(self.stale(session)));
        }
        let known = self.known(session).await?;
        match gather(store, session, known.as_ref(), budget).await? {
            Gathered::Nothing => Ok(None),
            Gathered::Later => Ok(Some(self.stale(session))),
            Gathered::Gone => Ok(self.forget(session)),
            Gathered::Put { put, indexed, is_streaming } => {
                self.rest(session, is_streaming);
                self.pending.push(indexed);
                Ok(Some(SessionUpdate::Put(put)))
            }
        }
    }

    /// Leaves a session for a later round. Its row is about to be marked, so the position in memory is wrong.
    fn stale(&mut self, session: &SessionId) -> SessionUpdate {
        self.known.remove(session);
        SessionUpdate::Stale { session_id: session.clone() }
    }

    fn rest(&mut self, session: &SessionId, is_streaming: bool) {
        if is_streaming {
            let until = self.clock.monotonic() + INDEX_STREAM_REST;
            self.resting.insert(session.clone(), until);
        } else {
            self.resting.remove(session);
        }
    }

    async fn known(&self, session: &SessionId) -> Result<Option<IndexedSession>, ServiceError> {
        match self.known.get(session) {
            Some(known) => Ok(Some(known.clone())),
            None => self.index.session(session).await.map_err(failed),
        }
    }

    /// Caches the positions of a batch, once it is applied.
    fn remember(&mut self) {
        if self.known.len() >= INDEX_KNOWN_MAX {
            self.known.clear();
        }
        let pending = self.pending.drain(..);
        self.known.extend(pending.map(|indexed| (indexed.session_id.clone(), indexed)));
    }
}

const fn removed(session_id: SessionId) -> SessionUpdate {
    SessionUpdate::Remove { session_id, incarnation: None }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{indexed, say};
    use super::*;

    /// A page of changes may name a session again whose records an earlier round has read.
    #[tokio::test]
    async fn a_session_that_is_named_again_does_not_stay_stale() {
        let (service, index) = indexed();
        let store = service.store();
        let mut follower = Follower::new(index.clone(), service.clock());
        follower.bytes_per_round = 1;
        let until_idle = async |follower: &mut Follower| {
            while follower.round(&*store, true).await.unwrap() != Round::Idle {}
        };
        say(&service, "a", "one").await;
        until_idle(&mut follower).await;
        let before = index.cursor().await.unwrap();
        say(&service, "z", "two").await;
        until_idle(&mut follower).await;
        // The first session spends the budget of the round that reads the second one's change again.
        say(&service, "a", "three").await;
        let expected_cursor = index.cursor().await.unwrap();
        let again = IndexBatch { expected_cursor, cursor: before, ..IndexBatch::default() };
        index.apply(again).await.unwrap();
        until_idle(&mut follower).await;
        assert_eq!(index.stale(9).await.unwrap(), []);
    }
}
