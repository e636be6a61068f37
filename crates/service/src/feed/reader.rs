//! Reading on in the records of one incarnation of a session.

use bough_store::{Position, Store, StoreError, StoredRecord};

use super::event::FeedEvent;
use super::projector::EventProjector;

/// A position in the records of a session, and what it takes to turn the next ones into events.
pub(super) struct FeedReader {
    pub(super) projector: Box<EventProjector>,
    pub(super) position: Position,
}

impl FeedReader {
    /// At a position, with a projector for it.
    pub(super) fn at(position: Position, projector: impl Into<Box<EventProjector>>) -> Self {
        Self { projector: projector.into(), position }
    }

    /// Goes on over a record and returns its events. A record that the position covers has none: the reader delivered its
    /// steps one by one.
    ///
    /// `None` when the record is a step that became part of another record since: what comes after the position has to be
    /// read again. A call that fails or is dropped in the middle leaves the reader as it was.
    pub(super) async fn take(
        &mut self,
        store: &dyn Store,
        stored: StoredRecord,
    ) -> Result<Option<Vec<FeedEvent>>, StoreError> {
        let after = stored.position();
        let events = if stored.is_known_at(self.position) {
            Vec::new()
        } else {
            match self.projector.project(store, stored).await? {
                Some(events) => events,
                None => return Ok(None),
            }
        };
        self.position = self.position.join(after);
        Ok(Some(events))
    }
}
