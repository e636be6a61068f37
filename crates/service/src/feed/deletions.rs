//! The last event of a session: its deletion.

use std::sync::{Arc, Mutex};

use bough_session::{Incarnation, JsonMap, SessionId};
use bough_store::{Steps, Store, StoreError, Trashed};

use super::cursor::SessionCursor;
use super::event::FeedEvent;
use super::event_table::EventPayload;
use super::events::DeletedEvent;
use crate::limits::DELETIONS_REMEMBERED_MAX;
use crate::lock::lock;
use crate::recent_map::RecentMap;

/// The deletions of one store. The newest are kept in memory; older ones are looked up in the trash.
pub(crate) struct Deletions {
    store: Arc<dyn Store>,
    remembered: Mutex<Remembered>,
}

type Remembered = RecentMap<Incarnation, Deletion, DELETIONS_REMEMBERED_MAX>;

/// What the feed shows of a deletion.
#[derive(Clone, Debug)]
pub(super) struct Deletion {
    pub(super) deleted_at: i64,
    /// The number of the tombstone, or the one that it would have; `None` when that is not known.
    pub(super) seq: Option<u64>,
    pub(super) metadata: Option<Arc<JsonMap>>,
}

impl Deletions {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, remembered: Mutex::default() }
    }

    /// Remembers a session that was just deleted.
    pub(crate) fn remember(&self, trashed: &Trashed) {
        lock(&self.remembered).put(trashed.incarnation, Deletion::of(trashed));
    }

    /// The event for the end of an incarnation; `None` when nothing is known of its end.
    pub(super) async fn event(
        &self,
        session: &SessionId,
        last: SessionCursor,
        last_known: Option<Deletion>,
    ) -> Result<Option<FeedEvent>, StoreError> {
        let remembered = lock(&self.remembered).get(&last.incarnation).cloned();
        let known = match remembered {
            Some(deletion) => Some(deletion),
            None => self.in_trash(session, last.incarnation).await?,
        };
        Ok(known.or(last_known).map(|deletion| deletion.event(session, last)))
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
            deleted_at: trashed.deleted_at.unwrap_or(trashed.state.meta.updated_at),
            seq: Some(trashed.state.seq + u64::from(!trashed.state.deleted)),
            metadata: trashed.state.meta.metadata.clone().map(Arc::new),
        }
    }

    /// The event of the deletion; `last` is the end of the incarnation before it.
    pub(super) fn event(self, session: &SessionId, last: SessionCursor) -> FeedEvent {
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
