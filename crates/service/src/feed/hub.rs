//! Where the subscribers of one store meet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bough_session::{Incarnation, JsonMap, SessionId};
use bough_store::{Steps, Store, StoreError, Trashed};

use super::cursor::SessionCursor;
use super::event::{EventPayload, FeedEvent};
use super::events::DeletedEvent;
use super::global_tail::GlobalFeedTail;
use super::session_tail::SessionTail;
use crate::limits::DELETIONS_REMEMBERED_MAX;

/// The tails that somebody watches, and what is remembered of sessions that are gone.
pub(crate) struct FeedHub {
    store: Arc<dyn Store>,
    sessions: Mutex<HashMap<SessionId, Weak<SessionTail>>>,
    all: Mutex<Weak<GlobalFeedTail>>,
    deletions: Mutex<VecDeque<(Incarnation, Deletion)>>,
}

/// What the feed tells of a deletion.
#[derive(Clone, Debug)]
pub(super) struct Deletion {
    pub(super) deleted_at: i64,
    /// The number of the record that says so, or would; `None` when that is not known.
    pub(super) seq: Option<u64>,
    pub(super) metadata: Option<Arc<JsonMap>>,
}

impl FeedHub {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            sessions: Mutex::default(),
            all: Mutex::default(),
            deletions: Mutex::default(),
        }
    }

    /// The tail of a session: the one that others share, or a new one that begins now.
    pub(super) async fn session_tail(
        self: &Arc<Self>,
        session: &SessionId,
    ) -> Result<Arc<SessionTail>, StoreError> {
        if let Some(tail) = lock(&self.sessions).get(session).and_then(Weak::upgrade) {
            return Ok(tail);
        }
        let hub = Arc::downgrade(self);
        let begun = SessionTail::begin(session.clone(), self.store.clone(), hub).await?;
        let begun = Arc::new(begun);
        let mut sessions = lock(&self.sessions);
        // Somebody else may have begun one meanwhile; theirs is as good. Ours is dropped outside of the lock,
        // which its drop takes.
        match sessions.get(session).and_then(Weak::upgrade) {
            Some(theirs) => {
                drop(sessions);
                Ok(theirs)
            }
            None => {
                sessions.insert(session.clone(), Arc::downgrade(&begun));
                Ok(begun)
            }
        }
    }

    /// The tail of all sessions.
    pub(super) async fn all_tail(self: &Arc<Self>) -> Result<Arc<GlobalFeedTail>, StoreError> {
        if let Some(tail) = lock(&self.all).upgrade() {
            return Ok(tail);
        }
        let begun = GlobalFeedTail::begin(self.store.clone(), Arc::downgrade(self)).await?;
        let mut all = lock(&self.all);
        if let Some(theirs) = all.upgrade() {
            return Ok(theirs);
        }
        let begun = Arc::new(begun);
        *all = Arc::downgrade(&begun);
        Ok(begun)
    }

    pub(super) fn forget_tail(&self, session: &SessionId) {
        let mut sessions = lock(&self.sessions);
        if sessions.get(session).is_some_and(|tail| tail.strong_count() == 0) {
            sessions.remove(session);
        }
    }

    /// Reads the feeds that watch a session up to now, before its log goes away.
    pub(crate) async fn catch_up(&self, session: &SessionId) {
        let tail = lock(&self.sessions).get(session).and_then(Weak::upgrade);
        if let Some(tail) = tail {
            // A feed that cannot read now says so to its own subscribers.
            drop(tail.advance_to_end().await);
        }
        let all = lock(&self.all).upgrade();
        if let Some(all) = all {
            drop(all.advance_to_end().await);
        }
    }

    /// Remembers what the feed must tell of a session that was just deleted.
    pub(crate) fn remember_deletion(&self, trashed: &Trashed) {
        let mut deletions = lock(&self.deletions);
        deletions.push_back((trashed.incarnation, Deletion::of(trashed)));
        if deletions.len() > DELETIONS_REMEMBERED_MAX {
            deletions.pop_front();
        }
    }

    /// The event that tells of the end of a incarnation.
    pub(super) async fn deletion(
        &self,
        session: &SessionId,
        last: SessionCursor,
        last_known: Deletion,
    ) -> Result<FeedEvent, StoreError> {
        let remembered = self.remembered(last.incarnation);
        let told = match remembered {
            Some(deletion) => deletion,
            None => self.in_trash(session, last.incarnation).await?.unwrap_or(last_known),
        };
        Ok(told.event(session, last))
    }

    /// The same, when anything is known of it.
    pub(super) async fn end_of_life(
        &self,
        session: &SessionId,
        last: SessionCursor,
    ) -> Result<Option<FeedEvent>, StoreError> {
        let known = match self.remembered(last.incarnation) {
            Some(deletion) => Some(deletion),
            None => self.in_trash(session, last.incarnation).await?,
        };
        Ok(known.map(|deletion| deletion.event(session, last)))
    }

    fn remembered(&self, incarnation: Incarnation) -> Option<Deletion> {
        let deletions = lock(&self.deletions);
        let found = deletions.iter().rev().find(|(of, _)| *of == incarnation);
        found.map(|(_, deletion)| deletion.clone())
    }

    async fn in_trash(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<Option<Deletion>, StoreError> {
        let trash = self.store.trash(Some(session)).await?;
        let found = trash.iter().find(|trashed| trashed.incarnation == incarnation);
        Ok(found.map(Deletion::of))
    }
}

impl Deletion {
    fn of(trashed: &Trashed) -> Self {
        Self {
            deleted_at: trashed.deleted_at.unwrap_or(trashed.state.updated_at),
            seq: Some(trashed.state.seq + u64::from(!trashed.state.deleted)),
            metadata: trashed.state.metadata.clone().map(Arc::new),
        }
    }

    fn event(self, session: &SessionId, last: SessionCursor) -> FeedEvent {
        let seq = self.seq.unwrap_or_else(|| last.position.seq.saturating_add(1));
        let payload = EventPayload::Deleted(DeletedEvent {
            session_id: session.clone(),
            timestamp: self.deleted_at,
        });
        let whose = (session.clone(), last.incarnation);
        FeedEvent::new(whose, (seq, Steps::None), self.metadata, payload)
    }

    /// Nothing is known of it.
    pub(super) const fn unknown() -> Self {
        Self { deleted_at: 0, seq: None, metadata: None }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
