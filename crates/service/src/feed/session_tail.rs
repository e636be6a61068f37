//! The end of one session's feed, shared by all who follow that session.

use std::sync::{Arc, Mutex, PoisonError};

use bough_session::{Incarnation, Record};
use bough_store::{Position, RecordPage, StoreError, StoreExt, StoredRecord, Wake};

use super::cursor::SessionCursor;
use super::event::FeedEvent;
use super::point_in_time::projector_at;
use super::projector::EventProjector;
use super::reader::FeedReader;
use super::ring::{Read, Ring};
use crate::limits::{FEED_RECORDS_PER_READ, SESSION_RING_BYTES_MAX, SESSION_RING_EVENTS_MAX};
use crate::open_session::OpenSession;

/// Reads on when something happened, once for all subscribers, and keeps the newest events for them.
pub(crate) struct SessionTail {
    open: Arc<OpenSession>,
    edge: tokio::sync::Mutex<Edge>,
    shared: Mutex<Shared>,
}

/// Where the tail has read to.
struct Edge {
    /// `None` while there is no such session.
    reader: Option<FeedReader>,
    /// The end of the incarnation that was deleted last, in case it is brought back.
    deleted: Option<SessionCursor>,
}

struct Shared {
    ring: Ring<Arc<FeedEvent>>,
    /// The newest wake-up that the ring is known to hold.
    covers: u64,
    /// Where the first event of the ring follows; `None` when that is not known, or an incarnation began since.
    start: Option<SessionCursor>,
}

impl Edge {
    fn incarnation(&self) -> Option<Incarnation> {
        self.reader.as_ref().map(|reader| reader.projector.incarnation())
    }

    fn position(&self) -> Position {
        self.reader.as_ref().map_or_else(Position::default, |reader| reader.position)
    }

    /// How far the incarnation is durable, if a wake-up says that and nothing else happened.
    fn announced(&self, wake: Wake) -> Option<Position> {
        let end =
            wake.end.filter(|end| !end.deleted && self.incarnation() == Some(end.incarnation));
        end.map(|end| end.position)
    }
}

impl SessionTail {
    /// A tail that begins where the session is now.
    pub(crate) async fn begin(open: Arc<OpenSession>) -> Result<Self, StoreError> {
        let snapshot = open.store().state(open.id()).await?;
        let start =
            snapshot.as_ref().map(|now| SessionCursor::at(now.head.incarnation, now.position));
        let reader = snapshot.map(|now| {
            FeedReader::at(now.position, EventProjector::with(now.head.incarnation, now.state))
        });
        let edge = Edge { reader, deleted: None };
        let shared = Shared {
            ring: Ring::new(SESSION_RING_EVENTS_MAX, SESSION_RING_BYTES_MAX),
            covers: 0,
            start,
        };
        Ok(Self { open, edge: tokio::sync::Mutex::new(edge), shared: Mutex::new(shared) })
    }

    /// Reads on, unless somebody already did for this wake-up.
    pub(super) async fn advance(&self, wake: Wake) -> Result<(), StoreError> {
        if self.lock().covers >= wake.count {
            return Ok(());
        }
        let mut edge = self.edge.lock().await;
        if self.lock().covers >= wake.count {
            return Ok(());
        }
        let announced = edge.announced(wake);
        if announced.is_none_or(|announced| !edge.position().covers(announced)) {
            self.read_on(&mut edge, announced).await?;
        }
        let mut shared = self.lock();
        shared.covers = shared.covers.max(wake.count);
        Ok(())
    }

    /// Reads on to the end, whatever was woken; says where that is, and the number that the ring's next event will have.
    pub(super) async fn advance_to_end(&self) -> Result<(Option<SessionCursor>, u64), StoreError> {
        let mut edge = self.edge.lock().await;
        self.read_on(&mut edge, None).await?;
        Ok((edge.reader.as_ref().map(cursor_of), self.lock().ring.next()))
    }

    /// Reads on to the end. A tail that cannot read now tries again when a subscriber asks.
    pub(crate) async fn catch_up(&self) {
        drop(self.advance_to_end().await);
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<Arc<FeedEvent>> {
        self.lock().ring.read(from, limit)
    }

    /// Whether the event with this number has fallen out of the ring.
    pub(super) fn has_lost(&self, number: u64) -> bool {
        number < self.lock().ring.first()
    }

    /// The number of the first event that a subscriber at a cursor does not know; `None` when the ring does not reach back to
    /// it. An event of the same incarnation that the cursor knows proves that it does.
    pub(super) fn find(&self, cursor: &SessionCursor) -> Option<u64> {
        let shared = self.lock();
        let from_start = shared.start.is_some_and(|start| {
            let is_before = cursor.read_after().covers(start.position);
            shared.ring.first() == 0 && start.incarnation == cursor.incarnation && is_before
        });
        let is_known =
            |event: &FeedEvent| event.incarnation == cursor.incarnation && !cursor.is_before(event);
        let reaches = from_start || shared.ring.iter().any(|(_, event)| is_known(event));
        reaches.then(|| first_after(&shared.ring, cursor))
    }

    /// Reads on to the position that the store has announced, or else to the end. What this process wrote itself is in
    /// memory; the rest is read from the store.
    async fn read_on(
        &self,
        edge: &mut Edge,
        announced: Option<Position>,
    ) -> Result<(), StoreError> {
        let mut uses_memory = true;
        loop {
            let (incarnation, position) = (edge.incarnation(), edge.position());
            let recent = incarnation
                .filter(|_| uses_memory)
                .and_then(|incarnation| self.open.recent_records(incarnation, position, announced));
            let page = match recent {
                Some(page) => Ok(page),
                None => {
                    self.open.store().records(self.open.id(), position, FEED_RECORDS_PER_READ).await
                }
            };
            match page {
                Ok(page) if incarnation == Some(page.incarnation) => {
                    if self.take_in(edge, page).await? {
                        return Ok(());
                    }
                    // A step that cannot be shown any more is part of a record that only the store has.
                    uses_memory &= edge.position() != position;
                }
                Ok(page) => {
                    self.push_deletion(edge).await?;
                    self.enter(edge, page.incarnation).await?;
                }
                Err(StoreError::NotFound { .. }) => return self.push_deletion(edge).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with an incarnation that has begun, or that was brought back.
    async fn enter(&self, edge: &mut Edge, incarnation: Incarnation) -> Result<(), StoreError> {
        let back = edge.deleted.take().filter(|deleted| deleted.incarnation == incarnation);
        let from = back.map_or_else(Position::default, |deleted| deleted.position);
        let projector = projector_at(self.open.store(), self.open.id(), incarnation, from).await?;
        edge.reader = projector.map(|projector| FeedReader::at(from, projector));
        Ok(())
    }

    /// Takes a page into the ring; says whether it was the last.
    async fn take_in(&self, edge: &mut Edge, page: RecordPage) -> Result<bool, StoreError> {
        let Some(reader) = edge.reader.as_mut() else {
            return Ok(true);
        };
        for stored in page.records {
            match reader.take(self.open.store(), stored).await? {
                Some(events) => self.push(events),
                None => return Ok(false),
            }
        }
        if !page.more {
            reader.position = reader.position.join(page.end);
            self.push(reader.projector.at_end(reader.position.seq));
        }
        Ok(!page.more)
    }

    /// Pushes what was written between the last read and the deletion: another process may have done both.
    async fn push_rest(&self, edge: &mut Edge) -> Result<(), StoreError> {
        while let Some(reader) = &edge.reader {
            let (incarnation, position) = (reader.projector.incarnation(), reader.position);
            let limit = FEED_RECORDS_PER_READ;
            let (store, session) = (self.open.store(), self.open.id());
            let read = store.records_of(session, incarnation, position, limit);
            // Removed for good: its last records are lost.
            let Some(mut page) = read.await? else { return Ok(()) };
            // The end of the incarnation is an event of its own.
            let end = page.end;
            let is_end = |last: &mut StoredRecord| {
                matches!(last.record.known(), Record::Tombstone) && last.seq >= end.seq
            };
            if page.records.pop_if(is_end).is_some() {
                page.end.seq = end.seq.saturating_sub(1);
            }
            if self.take_in(edge, page).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Pushes the end of the incarnation, if there was one.
    async fn push_deletion(&self, edge: &mut Edge) -> Result<(), StoreError> {
        self.push_rest(edge).await?;
        let Some(reader) = edge.reader.take() else {
            return Ok(());
        };
        let last = cursor_of(&reader);
        let last_known = Some(reader.projector.last_known());
        let event = self.open.deletions().event(self.open.id(), last, last_known).await?;
        edge.deleted = event.as_ref().map(|event| last.after(event));
        self.push(event);
        Ok(())
    }

    fn push(&self, events: impl IntoIterator<Item = FeedEvent>) {
        let mut shared = self.lock();
        for event in events {
            let weight = event.weight();
            shared.ring.push(Arc::new(event), weight);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cursor_of(reader: &FeedReader) -> SessionCursor {
    SessionCursor::at(reader.projector.incarnation(), reader.position)
}

fn first_after(ring: &Ring<Arc<FeedEvent>>, cursor: &SessionCursor) -> u64 {
    let mut has_begun = false;
    for (number, event) in ring.iter() {
        let is_same = event.incarnation == cursor.incarnation;
        has_begun |= is_same;
        // Events of incarnations before the cursor's come before it; events of later ones come after it.
        if (is_same && cursor.is_before(event)) || (has_begun && !is_same) {
            return number;
        }
    }
    ring.next()
}
