//! The end of one session's feed, shared by all who watch that session.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bough_session::{Incarnation, Record, SessionId, SessionState};
use bough_store::{Position, RecordPage, Store, StoreError};

use super::cursor::SessionCursor;
use super::event::FeedEvent;
use super::hub::FeedHub;
use super::lens::{Lens, Told};
use super::ring::{Read, Ring};
use crate::limits::{
    FEED_FOLD_RECORDS_MAX, FEED_RECORDS_PER_READ, SESSION_RING_BYTES_MAX, SESSION_RING_EVENTS_MAX,
};

/// Reads on when something happened, once for all subscribers, and keeps the newest events for them.
pub(super) struct SessionTail {
    session: SessionId,
    store: Arc<dyn Store>,
    hub: Weak<FeedHub>,
    edge: tokio::sync::Mutex<Edge>,
    shared: Mutex<Shared>,
}

/// Where the tail has read to.
struct Edge {
    /// `None` while there is no such session.
    lens: Option<Lens>,
    position: Position,
    told: Told,
    /// The life that was deleted last and where it ended, in case it is brought back.
    gone: Option<SessionCursor>,
}

struct Shared {
    ring: Ring<Arc<FeedEvent>>,
    /// The newest wake-up that the ring is known to hold.
    covers: u64,
    /// Where the first event of the ring follows; `None` when that is not known, or a life began since.
    start: Option<SessionCursor>,
}

impl SessionTail {
    /// A tail that begins where the session is now.
    pub(super) async fn begin(
        session: SessionId,
        store: Arc<dyn Store>,
        hub: Weak<FeedHub>,
    ) -> Result<Self, StoreError> {
        let snapshot = store.state(&session).await?;
        let position = snapshot.as_ref().map_or_else(Position::default, |now| now.position);
        let start =
            snapshot.as_ref().map(|now| SessionCursor::at(now.head.incarnation, now.position));
        let edge = Edge {
            lens: snapshot.map(|now| Lens::with(now.head.incarnation, now.state)),
            position,
            told: Told::up_to(position),
            gone: None,
        };
        let shared = Shared {
            ring: Ring::new(SESSION_RING_EVENTS_MAX, SESSION_RING_BYTES_MAX),
            covers: 0,
            start,
        };
        Ok(Self {
            session,
            store,
            hub,
            edge: tokio::sync::Mutex::new(edge),
            shared: Mutex::new(shared),
        })
    }

    /// Reads on, unless somebody already did for this wake-up.
    pub(super) async fn advance(&self, wake: u64) -> Result<(), StoreError> {
        if self.lock().covers >= wake {
            return Ok(());
        }
        let mut edge = self.edge.lock().await;
        if self.lock().covers >= wake {
            return Ok(());
        }
        self.read_on(&mut edge).await?;
        let mut shared = self.lock();
        shared.covers = shared.covers.max(wake);
        Ok(())
    }

    /// Reads on to the end, whatever was woken; says where that is, and the number that the ring's next event will have.
    pub(super) async fn advance_to_end(&self) -> Result<(Option<SessionCursor>, u64), StoreError> {
        let mut edge = self.edge.lock().await;
        self.read_on(&mut edge).await?;
        let position = edge.position;
        let end = edge.lens.as_ref().map(|lens| SessionCursor::at(lens.life(), position));
        Ok((end, self.lock().ring.next()))
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<Arc<FeedEvent>> {
        self.lock().ring.read(from, limit)
    }

    /// The number of the first event after a place; `None` when the ring does not reach back to it.
    pub(super) fn find(&self, cursor: &SessionCursor) -> Option<u64> {
        let shared = self.lock();
        if shared.ring.first() == 0
            && let Some(start) = &shared.start
            && start.incarnation == cursor.incarnation
            && start.position <= cursor.read_after()
        {
            return Some(first_after(&shared.ring, cursor));
        }
        // An event of the same life at or before the place proves that the ring reaches back to it.
        let reaches = shared
            .ring
            .iter()
            .any(|(_, event)| event.incarnation == cursor.incarnation && !cursor.is_before(event));
        reaches.then(|| first_after(&shared.ring, cursor))
    }

    async fn read_on(&self, edge: &mut Edge) -> Result<(), StoreError> {
        loop {
            let page =
                self.store.records(&self.session, edge.position, FEED_RECORDS_PER_READ).await;
            match page {
                Ok(page)
                    if edge.lens.as_ref().is_some_and(|lens| lens.life() == page.incarnation) =>
                {
                    if self.take_in(edge, page).await? {
                        return Ok(());
                    }
                }
                Ok(page) => {
                    self.tell_deletion(edge).await?;
                    self.enter(edge, page.incarnation).await?;
                }
                Err(StoreError::NotFound { .. }) => return self.tell_deletion(edge).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with a life that has begun, or that was brought back.
    async fn enter(&self, edge: &mut Edge, life: Incarnation) -> Result<(), StoreError> {
        let back = edge.gone.take().filter(|gone| gone.incarnation == life);
        let from = back.map_or_else(Position::default, |gone| gone.position);
        edge.lens = lens_at(&*self.store, &self.session, life, from).await?;
        edge.position = from;
        edge.told = Told::up_to(from);
        Ok(())
    }

    /// Takes a page of the life at hand into the ring; says whether it was the last.
    async fn take_in(&self, edge: &mut Edge, page: RecordPage) -> Result<bool, StoreError> {
        let Some(lens) = edge.lens.as_mut() else {
            return Ok(true);
        };
        let ended = page.records.is_empty();
        for stored in page.records {
            let position = stored.position;
            if !edge.told.knows(&stored) {
                let events = lens.look(&*self.store, stored).await?;
                self.push(events);
            }
            edge.position = position;
        }
        let at_end = ended || edge.position >= page.end;
        if at_end {
            self.push(lens.at_end(edge.position));
        }
        Ok(at_end)
    }

    /// Tells that the life at hand is over, if there was one.
    async fn tell_deletion(&self, edge: &mut Edge) -> Result<(), StoreError> {
        let Some(lens) = edge.lens.take() else {
            return Ok(());
        };
        let last = SessionCursor::at(lens.life(), edge.position);
        let Some(hub) = self.hub.upgrade() else {
            return Ok(());
        };
        let event = hub.deletion(&self.session, last, lens.last_known()).await?;
        edge.position = Position::default();
        edge.gone = Some(SessionCursor::after(&event));
        self.push(vec![event]);
        Ok(())
    }

    fn push(&self, events: Vec<FeedEvent>) {
        if events.is_empty() {
            return;
        }
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

impl Drop for SessionTail {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.forget_tail(&self.session);
        }
    }
}

fn first_after(ring: &Ring<Arc<FeedEvent>>, cursor: &SessionCursor) -> u64 {
    let mut lives_seen = false;
    for (number, event) in ring.iter() {
        let same_life = event.incarnation == cursor.incarnation;
        lives_seen |= same_life;
        // Events of lives that came before the cursor's are before it; of those after, behind it.
        if (same_life && cursor.is_before(event)) || (lives_seen && !same_life) {
            return number;
        }
    }
    ring.next()
}

/// A page of events read from the log itself, for a reader that the ring does not reach back to.
pub(super) struct ColdPage {
    /// The events, in order.
    pub(super) events: Vec<FeedEvent>,
    /// Where the reader is after them.
    pub(super) cursor: SessionCursor,
    /// Whether there is more to read in the log.
    pub(super) more: bool,
}

/// Why a place cannot be read from.
pub(super) enum Cold {
    /// It can.
    Page(ColdPage),
    /// The session does not exist.
    Gone,
    /// The session is in another life.
    OtherLife(Incarnation),
}

/// Reads a page of events after a place from the log.
pub(super) async fn read_cold(
    store: &dyn Store,
    session: &SessionId,
    cursor: SessionCursor,
) -> Result<Cold, StoreError> {
    let from = cursor.read_after();
    let page = match store.records(session, from, FEED_RECORDS_PER_READ).await {
        Ok(page) => page,
        Err(StoreError::NotFound { .. }) => return Ok(Cold::Gone),
        Err(error) => return Err(error),
    };
    if page.incarnation != cursor.incarnation {
        return Ok(Cold::OtherLife(page.incarnation));
    }
    let Some(mut lens) = lens_at(store, session, cursor.incarnation, from).await? else {
        return Ok(Cold::Gone);
    };
    let mut events = Vec::new();
    let mut position = cursor.position;
    let mut told = Told::up_to(cursor.position);
    let (mut records, mut end) = (page.records, page.end);
    loop {
        for stored in records {
            position = position.max(stored.position);
            if !told.knows(&stored) {
                events.extend(lens.look(store, stored).await?);
            }
        }
        // A reader that stopped among the copies of a fork would take the rest for news.
        if position >= end || !lens.is_copying() {
            break;
        }
        let page = store.records(session, position, FEED_RECORDS_PER_READ).await?;
        (records, end) = (page.records, page.end);
        if records.is_empty() {
            break;
        }
    }
    let more = position < end;
    if !more {
        events.extend(lens.at_end(position));
    }
    events.retain(|event| cursor.is_before(event));
    Ok(Cold::Page(ColdPage {
        events,
        cursor: SessionCursor::at(cursor.incarnation, position),
        more,
    }))
}

/// A lens for reading after a position.
///
/// What is known now serves where the session itself did not change since. Otherwise, near the beginning it is made from the records
/// before, so that it knows the session as it was there; further on, from what is known now all the same, because reading on must
/// not cost more the longer a session is.
pub(super) async fn lens_at(
    store: &dyn Store,
    session: &SessionId,
    life: Incarnation,
    from: Position,
) -> Result<Option<Lens>, StoreError> {
    if from == Position::default() {
        return Ok(Some(Lens::at_start(session.clone(), life)));
    }
    let state = match state_since(store, session, life, from).await? {
        Some(state) => Some(state),
        None if from.seq <= FEED_FOLD_RECORDS_MAX as u64 => {
            state_at(store, session, life, from).await?
        }
        None => state_now(store, session, life).await?,
    };
    Ok(state.map(|state| Lens::with(life, state)))
}

/// What is known now of a session, if that is little more than at a position and nothing of it is what a lens asks for.
async fn state_since(
    store: &dyn Store,
    session: &SessionId,
    life: Incarnation,
    from: Position,
) -> Result<Option<SessionState>, StoreError> {
    let now = store.state(session).await?.filter(|now| now.head.incarnation == life);
    let Some(now) = now else { return Ok(None) };
    let more = now.head.seq.saturating_sub(from.seq);
    if more > FEED_RECORDS_PER_READ as u64 {
        return Ok(None);
    }
    let Some(page) = records_of(store, session, life, from, FEED_RECORDS_PER_READ).await? else {
        return Ok(None);
    };
    let since = page.records.iter().filter(|stored| stored.position.revision == 0);
    let since = since.take_while(|stored| stored.position.seq <= now.head.seq);
    let (mut seen, mut changed) = (0, false);
    for stored in since {
        seen += 1;
        let known = stored.record.known();
        changed |= matches!(known, Record::Meta(_) | Record::Tombstone | Record::Restored);
    }
    Ok((seen == more && !changed).then_some(now.state))
}

/// Records of one life of a session, which may be over; `None` when they are no longer kept.
pub(super) async fn records_of(
    store: &dyn Store,
    session: &SessionId,
    life: Incarnation,
    after: Position,
    limit: usize,
) -> Result<Option<RecordPage>, StoreError> {
    match store.records(session, after, limit).await {
        Ok(page) if page.incarnation == life => return Ok(Some(page)),
        Ok(_) | Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    match store.trashed_records(session, life, after, limit).await {
        Ok(page) => Ok(Some(page)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is known now of one life of a session, which may be over.
async fn state_now(
    store: &dyn Store,
    session: &SessionId,
    life: Incarnation,
) -> Result<Option<SessionState>, StoreError> {
    let live = store.state(session).await?.filter(|now| now.head.incarnation == life);
    if let Some(now) = live {
        return Ok(Some(now.state));
    }
    let trash = store.trash(Some(session)).await?;
    let found = trash.into_iter().find(|trashed| trashed.incarnation == life);
    Ok(found.map(|trashed| trashed.state))
}

/// The fold over the records up to a position.
async fn state_at(
    store: &dyn Store,
    session: &SessionId,
    life: Incarnation,
    from: Position,
) -> Result<Option<SessionState>, StoreError> {
    let start = Position::default();
    let page = records_of(store, session, life, start, FEED_FOLD_RECORDS_MAX).await?;
    let Some(page) = page else {
        return Ok(None);
    };
    let mut state = SessionState::new(session.clone());
    let before = page.records.iter().filter(|stored| stored.position.revision == 0);
    for stored in before.take_while(|stored| stored.position.seq <= from.seq) {
        state.apply(&stored.record, stored.position.seq, stored.at_ms);
    }
    Ok(Some(state))
}
