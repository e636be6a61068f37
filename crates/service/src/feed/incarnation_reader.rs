//! Reading on in the records of one incarnation of a session.

use bough_session::{Incarnation, SessionId};
use bough_store::{Position, Steps, Store, StoreError, StoreExt, StoredRecord};

use super::event::FeedEvent;
use super::projector::EventProjector;

/// A position in the records of a session, and what it takes to turn the next ones into events.
pub(super) struct IncarnationReader {
    pub(super) projector: Box<EventProjector>,
    pub(super) position: Position,
}

impl IncarnationReader {
    /// At a position, with a projector for it.
    pub(super) fn at(position: Position, projector: impl Into<Box<EventProjector>>) -> Self {
        Self { projector: projector.into(), position }
    }

    /// Goes on over a record and returns its events. A record that the position covers has none: the reader delivered its
    /// steps one by one.
    ///
    /// `None` when the record is a step that became part of another record since, so that what it said is not known any more:
    /// what comes after the position has to be read again. A call that fails or is dropped in the middle changes nothing.
    pub(super) async fn take(
        &mut self,
        store: &dyn Store,
        stored: StoredRecord,
    ) -> Result<Option<Vec<FeedEvent>>, StoreError> {
        let mut events = Vec::new();
        if !stored.is_known_at(self.position) {
            let mut before = None;
            if let Some(change) = self.projector.message_to_look_up(&stored.record) {
                let (session, incarnation) = self.whose();
                let (id, revision) = (&change.entry_id, change.from);
                before = store.entry_at(session, incarnation, id, revision).await?;
                if before.is_none() && self.is_gone(store, &stored).await? {
                    return Ok(None);
                }
            }
            events = self.projector.project(&stored, before);
        }
        self.position = self.position.join(stored.position());
        Ok(Some(events))
    }

    /// Whether a record is a step of a stream that is no longer there.
    async fn is_gone(&self, store: &dyn Store, stored: &StoredRecord) -> Result<bool, StoreError> {
        let Steps::One(step) = stored.steps else { return Ok(false) };
        let (session, incarnation) = self.whose();
        let before = Position::new(stored.seq, step.saturating_sub(1));
        let page = store.records_of(session, incarnation, before, 1).await?;
        let next = page.as_ref().and_then(|page| page.records.first());
        Ok(next.is_none_or(|next| next.steps != stored.steps))
    }

    const fn whose(&self) -> (&SessionId, Incarnation) {
        (self.projector.session(), self.projector.incarnation())
    }

    /// Goes on to the end of the records and returns what only their end tells.
    pub(super) fn take_end(&mut self, end: Position) -> Vec<FeedEvent> {
        self.position = self.position.join(end);
        self.projector.at_end(self.position.seq)
    }
}
