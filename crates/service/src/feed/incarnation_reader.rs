//! Reads on in the records of one incarnation of a session, for the feed of that session and for the feed of all sessions.

use bough_session::{Incarnation, SessionId};
use bough_store::{Position, RecordPage, Steps, Store, StoreError, StoreExt, StoredRecord};

use super::cursor::{FeedPosition, SessionCursor};
use super::deletions::Deletion;
use super::event::FeedEvent;
use super::event_table::EventKind;
use super::point_in_time::projector_at;
use super::projector::EventProjector;
use super::reader::ReadItem;
use crate::limits::FEED_COLD_PAGE_BYTES_MAX;

/// A position in the records of an incarnation, and what it takes to turn the next ones into events.
///
/// Its caller fetches pages of records after `next` and passes them to [`take_page`](Self::take_page). A call that
/// fails or is dropped loses nothing: the events that it found are returned by the next [`take_items`](Self::take_items).
pub(super) struct IncarnationReader {
    session: SessionId,
    /// After the last event that was found.
    pub(super) cursor: SessionCursor,
    /// After the last record that was read.
    pub(super) position: Position,
    /// After the last record of the last page. Records that belong to a later change are read, and left for that change.
    pub(super) next: Position,
    /// Whether the next page may come from the recent writes in memory.
    pub(super) uses_memory: bool,
    /// Made with the first page.
    projector: Option<Box<EventProjector>>,
    /// The events that were found, each with the cursor after it.
    found: Vec<(FeedEvent, SessionCursor)>,
}

/// What follows a page.
pub(super) enum AfterPage {
    /// Nothing: the reader is at the end.
    End,
    /// More records.
    More,
    /// More records, and the reader must not stop before them.
    ReadOn,
    /// The store no longer knows the session as it was at the reader's position.
    NotKept,
}

impl IncarnationReader {
    pub(super) fn at(session: SessionId, cursor: SessionCursor) -> Self {
        let position = cursor.read_after();
        let (next, projector) = (position, None);
        Self { session, cursor, position, next, uses_memory: true, projector, found: Vec::new() }
    }

    /// A reader whose session is known at the cursor.
    pub(super) fn with(cursor: SessionCursor, projector: EventProjector) -> Self {
        let reader = Self::at(projector.session().clone(), cursor);
        Self { projector: Some(Box::new(projector)), ..reader }
    }

    /// The same reader at a cursor, if its next record is the one after that cursor.
    pub(super) fn resumed_at(self, cursor: SessionCursor) -> Option<Self> {
        (self.position == cursor.read_after()).then_some(Self { cursor, ..self })
    }

    /// Whether it has read a page.
    pub(super) const fn has_begun(&self) -> bool {
        self.projector.is_some()
    }

    /// The next page from the store, also of a deleted session; `None` when its records are no longer kept.
    pub(super) async fn stored_page(
        &self,
        store: &dyn Store,
        limit: usize,
    ) -> Result<Option<RecordPage>, StoreError> {
        store.records_of(&self.session, self.cursor.incarnation, self.next, limit).await
    }

    /// Takes the records of a page up to `end`, and returns what follows them.
    ///
    /// A record beyond `end` may hold steps that come before it, so `end` has the records that a reader there knows.
    pub(super) async fn take_page(
        &mut self,
        store: &dyn Store,
        page: RecordPage,
        end: Option<Position>,
    ) -> Result<AfterPage, StoreError> {
        if self.projector.is_none() {
            let at = (self.cursor.incarnation, self.position);
            let projector = projector_at(store, &self.session, at).await?;
            self.projector = projector.map(Box::new);
        }
        let (mut more, mut weight) = (page.more, 0);
        for stored in page.records {
            let Some(projector) = &mut self.projector else { break };
            let position = stored.position();
            if end.is_none_or(|end| stored.is_known_at(end)) {
                let Some(events) = project(projector, self.position, store, &stored).await? else {
                    // Only the store has the record that the step became part of.
                    (self.next, self.uses_memory) = (self.position, false);
                    return Ok(AfterPage::ReadOn);
                };
                self.position = self.position.join(position);
                weight += events.iter().map(FeedEvent::weight).sum::<usize>();
                self.add(events);
            }
            self.next = self.next.join(position);
            if weight >= FEED_COLD_PAGE_BYTES_MAX && !self.is_copying() {
                more = true;
                break;
            }
        }
        if self.projector.is_none() {
            return Ok(AfterPage::NotKept);
        }
        if !more || end.is_some_and(|end| self.position.covers(end)) {
            self.end_at(end.unwrap_or_else(|| self.position.join(page.end)));
            return Ok(AfterPage::End);
        }
        let is_beyond_end = end.is_some_and(|end| self.next.seq > end.seq);
        let must_read_on = is_beyond_end || self.is_copying();
        Ok(if must_read_on { AfterPage::ReadOn } else { AfterPage::More })
    }

    /// Goes to the end of the records and adds the events that only their end shows.
    pub(super) fn end_at(&mut self, end: Position) {
        (self.position, self.next) = (end, end);
        let events = self.projector.as_mut().map(|projector| projector.at_end(end.seq));
        self.add(events.into_iter().flatten());
    }

    /// Adds the events of the record that was read last, except for those before the cursor: a record that was delivered in
    /// part is read again. Then all of that record is behind the cursor, even if it has no events.
    pub(super) fn add(&mut self, events: impl IntoIterator<Item = FeedEvent>) {
        for event in events {
            if self.cursor.is_before(&event) {
                self.push(event);
            }
        }
        if !self.is_copying() && self.position.covers(self.cursor.position) {
            self.cursor = SessionCursor::at(self.cursor.incarnation, self.position);
        }
    }

    /// Adds an event after the cursor.
    pub(super) fn push(&mut self, event: FeedEvent) {
        self.cursor = self.cursor.after(&event);
        self.found.push((event, self.cursor));
    }

    /// Whether an event of a kind was found and not yet returned.
    pub(super) fn has_found(&self, kind: EventKind) -> bool {
        self.found.iter().any(|(event, _)| event.kind() == kind)
    }

    /// Returns the events that were found, each with its position in the feed.
    pub(super) fn take_items(
        &mut self,
        position: impl Fn(SessionCursor) -> FeedPosition,
    ) -> Vec<ReadItem> {
        let found = std::mem::take(&mut self.found).into_iter();
        let items = found.map(|(event, cursor)| ReadItem::event(event, position(cursor)));
        self.uses_memory = true;
        items.collect()
    }

    /// Whether the last record was one of the copies of a fork. A reader that resumed there would take the next copies for new
    /// entries.
    fn is_copying(&self) -> bool {
        self.projector.as_ref().is_some_and(|projector| projector.is_copying())
    }

    /// What the reader itself knows of the session, for a deletion of which nothing else is known.
    pub(super) fn last_known(&self) -> Option<Deletion> {
        self.projector.as_ref().map(|projector| projector.last_known())
    }

    /// Forgets the messages that it keeps to show the next steps of streams.
    pub(super) fn forget_messages(&mut self) {
        if let Some(projector) = &mut self.projector {
            projector.forget_messages();
        }
    }
}

/// The events of a record for a reader at a position. A record that the position covers has none: the reader delivered its
/// steps one by one.
///
/// `None` when the record is a step that has become part of another record since: the records after the position have to be
/// read again. A call that fails or is dropped changes nothing.
async fn project(
    projector: &mut EventProjector,
    position: Position,
    store: &dyn Store,
    stored: &StoredRecord,
) -> Result<Option<Vec<FeedEvent>>, StoreError> {
    if stored.is_known_at(position) {
        return Ok(Some(Vec::new()));
    }
    let mut before = None;
    if let Some(change) = projector.message_to_look_up(&stored.record) {
        let (session, incarnation) = (projector.session(), projector.incarnation());
        before = store.entry_at(session, incarnation, &change.entry_id, change.from).await?;
        if before.is_none() && is_gone(store, (session, incarnation), stored).await? {
            return Ok(None);
        }
    }
    Ok(Some(projector.project(stored, before)))
}

/// Whether a record is a step of a stream that is no longer there.
async fn is_gone(
    store: &dyn Store,
    (session, incarnation): (&SessionId, Incarnation),
    stored: &StoredRecord,
) -> Result<bool, StoreError> {
    let Steps::One(step) = stored.steps else { return Ok(false) };
    let before = Position::new(stored.seq, step.saturating_sub(1));
    let page = store.records_of(session, incarnation, before, 1).await?;
    let next = page.as_ref().and_then(|page| page.records.first());
    Ok(next.is_none_or(|next| next.steps != stored.steps))
}
