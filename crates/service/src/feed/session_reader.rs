//! Reads the feed of one session: the records of an incarnation, its end, and the incarnation after it.

use std::sync::Arc;

use bough_session::{Incarnation, Record};
use bough_store::{RecordPage, Snapshot, StoreError, StoreExt, StoredRecord};

use super::cursor::{FeedPosition, SessionCursor};
use super::event::FeedEvent;
use super::incarnation_reader::{AfterPage, IncarnationReader};
use super::projector::EventProjector;
use super::reader::{ReadItem, ReadPage};
use super::subscription::GapReason;
use crate::limits::FEED_RECORDS_PER_READ;
use crate::open_session::OpenSession;

/// Reads the records of a session in order and makes their events.
pub(super) struct SessionFeedReader {
    open: Arc<OpenSession>,
    /// The incarnation that is being read; `None` while there is no such session.
    current: Option<IncarnationReader>,
    /// The end of the incarnation that was deleted last, in case it is brought back.
    deleted: Option<SessionCursor>,
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
    pub(super) fn at(open: Arc<OpenSession>, cursor: Option<SessionCursor>) -> Self {
        let current = cursor.map(|cursor| IncarnationReader::at(open.id().clone(), cursor));
        Self { open, current, deleted: None }
    }

    /// A reader that begins where the session is now.
    pub(super) async fn now(open: Arc<OpenSession>) -> Result<Self, StoreError> {
        let now = open.store().state(open.id()).await?;
        let current = now.map(|Snapshot { head, position, state }| {
            let cursor = SessionCursor::at(head.incarnation, position);
            let (meta, streams) = (state.meta.clone(), state.streams.clone());
            IncarnationReader::with(cursor, EventProjector::with(head.incarnation, meta, streams))
        });
        Ok(Self { open, current, deleted: None })
    }

    pub(super) fn cursor(&self) -> Option<SessionCursor> {
        self.current.as_ref().map(|reader| reader.cursor)
    }

    /// Forgets the messages that it keeps to show the next steps of streams.
    pub(super) fn forget_messages(&mut self) {
        self.current.iter_mut().for_each(IncarnationReader::forget_messages);
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
        loop {
            let page = match self.next(announced).await? {
                Next::Page(page) => page,
                Next::Over { is_whole, next } => {
                    let items = self.end_incarnation(is_whole).await?;
                    self.begin_incarnation(next);
                    return Ok(ReadPage { items, more: next.is_some() });
                }
            };
            let Some(reader) = &mut self.current else { continue };
            let more = match reader.take_page(self.open.store(), page, None).await? {
                AfterPage::More => true,
                // A session that was removed since the page was read is found by the next read.
                AfterPage::End | AfterPage::NotKept => false,
                AfterPage::ReadOn => continue,
            };
            return Ok(ReadPage { items: reader.take_items(FeedPosition::Session), more });
        }
    }

    /// The records after the position. Those that this process wrote itself are in memory; the rest is read from the store.
    async fn next(&self, announced: Option<SessionCursor>) -> Result<Next, StoreError> {
        let (open, reader) = (&self.open, self.current.as_ref());
        let recent = reader.filter(|reader| reader.uses_memory).and_then(|reader| {
            let announced =
                announced.filter(|announced| announced.incarnation == reader.cursor.incarnation);
            let announced = announced.map(|announced| announced.position);
            open.recent_records(reader.cursor.incarnation, reader.next, announced)
        });
        if let Some(page) = recent {
            return Ok(Next::Page(page));
        }
        let from = reader.map(|reader| reader.next).unwrap_or_default();
        let read = open.store().records(open.id(), from, FEED_RECORDS_PER_READ).await;
        let next = match read {
            Ok(page)
                if reader.is_some_and(|reader| reader.cursor.incarnation == page.incarnation) =>
            {
                return Ok(Next::Page(page));
            }
            Ok(page) => Some(page.incarnation),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let rest = match reader.filter(|reader| reader.has_begun()) {
            Some(reader) => self.rest(reader).await?,
            None => None,
        };
        Ok(match rest {
            Some(page) if !page.records.is_empty() => Next::Page(page),
            rest => Next::Over { is_whole: rest.is_some(), next },
        })
    }

    /// The records between the last read and the deletion: another process may have written them and deleted the session.
    /// `None` when they are lost, because the session was removed for good.
    async fn rest(&self, reader: &IncarnationReader) -> Result<Option<RecordPage>, StoreError> {
        let read = reader.stored_page(self.open.store(), FEED_RECORDS_PER_READ).await?;
        Ok(read.map(|mut page| {
            // The end of the incarnation is an event of its own.
            let end = page.end.seq;
            page.records.pop_if(|last: &mut StoredRecord| {
                matches!(last.record.known(), Record::Tombstone) && last.seq >= end
            });
            RecordPage { more: true, ..page }
        }))
    }

    /// The last events of the incarnation, which is over: its deletion, after a gap if something before it may be missing.
    async fn end_incarnation(&mut self, is_whole: bool) -> Result<Vec<ReadItem>, StoreError> {
        let Some(reader) = &mut self.current else { return Ok(Vec::new()) };
        let cursor = reader.cursor;
        let last = cursor.position.join(reader.position);
        let last_cursor = SessionCursor::at(cursor.incarnation, last);
        let (deletions, session) = (self.open.deletions(), self.open.id());
        let deletion = deletions.event(session, last_cursor, reader.last_known()).await?;
        // Nothing waits from here on, so that the items cannot be lost.
        let follows = |event: &FeedEvent| event.seq <= last.seq.saturating_add(1);
        if is_whole {
            reader.end_at(last);
        }
        let mut items = reader.take_items(FeedPosition::Session);
        if !is_whole && !deletion.as_ref().is_some_and(follows) {
            let position = FeedPosition::Session(cursor);
            items.push(ReadItem { event: Err(GapReason::OtherIncarnation), position });
        }
        let is_known = deletion.is_some();
        reader.add(deletion);
        items.extend(reader.take_items(FeedPosition::Session));
        self.deleted = Some(reader.cursor).filter(|_| is_known);
        self.current = None;
        Ok(items)
    }

    /// Goes on with an incarnation that has begun, or that was brought back.
    fn begin_incarnation(&mut self, incarnation: Option<Incarnation>) {
        let Some(incarnation) = incarnation else { return };
        let back = self.deleted.take().filter(|deleted| deleted.incarnation == incarnation);
        let cursor = back.unwrap_or_else(|| SessionCursor::start(incarnation));
        self.current = Some(IncarnationReader::at(self.open.id().clone(), cursor));
    }
}
