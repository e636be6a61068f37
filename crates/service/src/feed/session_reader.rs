//! Reads the feed of one session: the records of an incarnation, its end, and the incarnation after it.

use std::sync::Arc;

use bough_session::{Incarnation, Record};
use bough_store::{Position, RecordPage, Snapshot, StoreError, StoreExt, StoredRecord};

use super::cursor::{FeedPosition, SessionCursor};
use super::event::FeedEvent;
use super::incarnation_reader::IncarnationReader;
use super::point_in_time::projector_at;
use super::projector::EventProjector;
use super::reader::{ReadItem, ReadPage};
use super::subscription::GapReason;
use crate::limits::{FEED_COLD_PAGE_BYTES_MAX, FEED_RECORDS_PER_READ};
use crate::open_session::OpenSession;

/// Reads the records of a session in order and makes their events.
pub(super) struct SessionFeedReader {
    open: Arc<OpenSession>,
    /// After the last event that was found; `None` while there is no such session.
    cursor: Option<SessionCursor>,
    /// The records of the cursor's incarnation, once some of them were read.
    records: Option<IncarnationReader>,
    /// The end of the incarnation that was deleted last, in case it is brought back.
    deleted: Option<SessionCursor>,
    /// What was found and not yet returned.
    found: Vec<ReadItem>,
}

/// What there is to read after a position.
enum Next {
    Page(RecordPage),
    /// The incarnation is over.
    Over {
        /// Whether all of it was read.
        is_whole: bool,
        /// The incarnation that the session has now.
        next: Option<Incarnation>,
    },
}

impl SessionFeedReader {
    /// A reader that begins at a cursor. Without one, at the beginning of the incarnation that comes first.
    pub(super) const fn at(open: Arc<OpenSession>, cursor: Option<SessionCursor>) -> Self {
        Self { open, cursor, records: None, deleted: None, found: Vec::new() }
    }

    /// A reader that begins where the session is now.
    pub(super) async fn now(open: Arc<OpenSession>) -> Result<Self, StoreError> {
        let now = open.store().state(open.id()).await?;
        let mut reader = Self::at(open, None);
        if let Some(Snapshot { head, position, state }) = now {
            let projector = EventProjector::with(head.incarnation, state);
            reader.cursor = Some(SessionCursor::at(head.incarnation, position));
            reader.records = Some(IncarnationReader::at(position, projector));
        }
        Ok(reader)
    }

    pub(super) const fn cursor(&self) -> Option<SessionCursor> {
        self.cursor
    }

    /// The events after the cursor, up to a bounded number of records and bytes. What the store has announced, up to
    /// `announced`, is durable.
    ///
    /// A cursor of an incarnation that is over is a gap, unless only the end is missing: its last records may be in the trash
    /// or not. A reader that has read some of them reads the others there.
    pub(super) async fn read(
        &mut self,
        announced: Option<SessionCursor>,
    ) -> Result<ReadPage, StoreError> {
        let mut uses_memory = true;
        let more = loop {
            let before = self.position();
            match self.next(announced, uses_memory).await? {
                Next::Page(page) => match self.take_page(page).await? {
                    Some(more) => break more,
                    // A step that cannot be shown any more is part of a record that only the store has.
                    None => uses_memory &= self.position() != before,
                },
                Next::Over { is_whole, next } => {
                    self.end_incarnation(is_whole).await?;
                    self.begin_incarnation(next);
                    break next.is_some();
                }
            }
        };
        Ok(ReadPage { items: std::mem::take(&mut self.found), more })
    }

    /// Forgets the messages that it keeps to show the next steps of streams.
    pub(super) fn forget_messages(&mut self) {
        if let Some(records) = &mut self.records {
            records.projector.forget_messages();
        }
    }

    /// The position after the last record that was read.
    fn position(&self) -> Position {
        let begin = || self.cursor.map_or_else(Position::default, |cursor| cursor.read_after());
        self.records.as_ref().map_or_else(begin, |records| records.position)
    }

    /// Looks what comes after the position. What this process wrote itself is in memory; the rest is read from the store.
    async fn next(
        &self,
        announced: Option<SessionCursor>,
        uses_memory: bool,
    ) -> Result<Next, StoreError> {
        let (incarnation, from) = (self.cursor.map(|cursor| cursor.incarnation), self.position());
        if let Some(incarnation) = incarnation.filter(|_| uses_memory) {
            let announced = announced.filter(|announced| announced.incarnation == incarnation);
            let announced = announced.map(|announced| announced.position);
            if let Some(page) = self.open.recent_records(incarnation, from, announced) {
                return Ok(Next::Page(page));
            }
        }
        let read = self.open.store().records(self.open.id(), from, FEED_RECORDS_PER_READ).await;
        let next = match read {
            Ok(page) if Some(page.incarnation) == incarnation => return Ok(Next::Page(page)),
            Ok(page) => Some(page.incarnation),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let rest = match incarnation.filter(|_| self.records.is_some()) {
            Some(incarnation) => self.rest(incarnation, from).await?,
            None => None,
        };
        Ok(match rest {
            Some(page) if !page.records.is_empty() => Next::Page(page),
            rest => Next::Over { is_whole: rest.is_some(), next },
        })
    }

    /// What was written between the last read and the deletion: another process may have done both. `None` when it is lost,
    /// because the session was removed for good.
    async fn rest(
        &self,
        incarnation: Incarnation,
        from: Position,
    ) -> Result<Option<RecordPage>, StoreError> {
        let (store, session) = (self.open.store(), self.open.id());
        let read = store.records_of(session, incarnation, from, FEED_RECORDS_PER_READ).await?;
        Ok(read.map(|mut page| {
            // The end of the incarnation is an event of its own.
            let end = page.end.seq;
            page.records.pop_if(|last: &mut StoredRecord| {
                matches!(last.record.known(), Record::Tombstone) && last.seq >= end
            });
            RecordPage { more: true, ..page }
        }))
    }

    /// Takes the records of a page of the cursor's incarnation; says whether there is more. `None` when the reader must not stop
    /// where it is.
    async fn take_page(&mut self, page: RecordPage) -> Result<Option<bool>, StoreError> {
        let open = self.open.clone();
        if self.records.is_none() {
            let from = self.position();
            let projector = projector_at(open.store(), open.id(), page.incarnation, from).await?;
            // Removed since it was read. The next read finds that.
            let Some(projector) = projector else { return Ok(Some(false)) };
            self.records = Some(IncarnationReader::at(from, projector));
        }
        let mut weight = 0;
        for stored in page.records {
            let Some(records) = &mut self.records else { break };
            let Some(events) = records.take(open.store(), stored).await? else {
                return Ok(None);
            };
            weight += events.iter().map(FeedEvent::weight).sum::<usize>();
            self.add(events);
            if weight >= FEED_COLD_PAGE_BYTES_MAX && !self.is_copying() {
                return Ok(Some(true));
            }
        }
        if page.more {
            return Ok((!self.is_copying()).then_some(true));
        }
        self.add_end(page.end);
        Ok(Some(false))
    }

    /// Whether the last record was one of the copies of a fork. Who resumed there would not know that they are copies.
    fn is_copying(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.projector.is_copying())
    }

    fn add_end(&mut self, end: Position) {
        let events = self.records.as_mut().map(|records| records.take_end(end));
        self.add(events.into_iter().flatten());
    }

    /// Adds the events of the record that was read last, but for those that the cursor knows: a record that was delivered in
    /// part is read again. Then all of that record is behind the cursor, also if it has no events.
    fn add(&mut self, events: impl IntoIterator<Item = FeedEvent>) {
        let Some(mut cursor) = self.cursor else { return };
        for event in events {
            if cursor.is_before(&event) {
                cursor = cursor.after(&event);
                let position = FeedPosition::Session(cursor);
                self.found.push(ReadItem { event: Ok(Arc::new(event)), position });
            }
        }
        let position = self.position();
        if !self.is_copying() && position.covers(cursor.position) {
            cursor = SessionCursor::at(cursor.incarnation, position);
        }
        self.cursor = Some(cursor);
    }

    /// The incarnation of the cursor is over: adds its end, after a gap where something before may be missing.
    async fn end_incarnation(&mut self, is_whole: bool) -> Result<(), StoreError> {
        let Some(cursor) = self.cursor else { return Ok(()) };
        let last = SessionCursor::at(cursor.incarnation, cursor.position.join(self.position()));
        let last_known = self.records.as_ref().map(|records| records.projector.last_known());
        let deletion = self.open.deletions().event(self.open.id(), last, last_known).await?;
        let follows = |event: &FeedEvent| event.seq <= last.position.seq.saturating_add(1);
        if is_whole {
            self.add_end(last.position);
        } else if !deletion.as_ref().is_some_and(follows) {
            let position = FeedPosition::Session(cursor);
            self.found.push(ReadItem { event: Err(GapReason::OtherIncarnation), position });
        }
        let is_known = deletion.is_some();
        self.add(deletion);
        self.deleted = self.cursor.take().filter(|_| is_known);
        self.records = None;
        Ok(())
    }

    /// Goes on with an incarnation that has begun, or that was brought back.
    fn begin_incarnation(&mut self, incarnation: Option<Incarnation>) {
        let Some(incarnation) = incarnation else { return };
        let back = self.deleted.take().filter(|deleted| deleted.incarnation == incarnation);
        self.cursor = Some(back.unwrap_or(SessionCursor::start(incarnation)));
    }
}
