//! The end of the feed of all sessions, shared by all who watch it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bough_session::{Incarnation, Record, SessionId};
use bough_store::{
    ChangeCursor, ChangePage, ListOrder, ListQuery, Position, SessionChange, Store, StoreError,
    StoredRecord,
};

use super::cursor::{AllCursor, SessionCursor};
use super::event::FeedEvent;
use super::hub::{Deletion, FeedHub};
use super::lens::{Lens, Told};
use super::ring::{Read, Ring};
use super::session::lens_at;
use crate::limits::{
    ALL_LENSES_MAX, ALL_RING_BYTES_MAX, ALL_RING_EVENTS_MAX, FEED_CHANGES_PER_READ,
    FEED_RECORDS_PER_READ, SNAPSHOT_SESSIONS,
};

/// Something in the feed of all sessions, and where a reader is after it.
#[derive(Clone, Debug)]
pub(super) struct AllItem {
    /// `None` tells of a gap: changes before this place are not known.
    pub(super) event: Option<Arc<FeedEvent>>,
    pub(super) cursor: AllCursor,
}

/// Reads on when something happened, once for all subscribers.
pub(super) struct AllTail {
    edge: tokio::sync::Mutex<Reader>,
    ring: Mutex<Shared>,
}

struct Shared {
    ring: Ring<AllItem>,
    /// Where the count began that is being read, and the number of its first item in the ring.
    start: (ChangeCursor, u64),
    /// How often the tail was read to its end.
    rounds: u64,
}

impl AllTail {
    pub(super) async fn begin(
        store: Arc<dyn Store>,
        hub: Weak<FeedHub>,
    ) -> Result<Self, StoreError> {
        let reader = Reader::begin(store, hub).await?;
        let now = reader.cursor.change.clone();
        let shared = Shared {
            ring: Ring::new(ALL_RING_EVENTS_MAX, ALL_RING_BYTES_MAX),
            start: (now, 0),
            rounds: 0,
        };
        Ok(Self { edge: tokio::sync::Mutex::new(reader), ring: Mutex::new(shared) })
    }

    /// Counts rounds of reading, for [`advance`](Self::advance).
    pub(super) fn rounds(&self) -> u64 {
        self.lock().rounds
    }

    /// Reads on to the end, unless somebody began to after `seen` rounds were counted: that round has seen
    /// what woke the caller.
    pub(super) async fn advance(&self, seen: u64) -> Result<(), StoreError> {
        let mut edge = self.edge.lock().await;
        if self.rounds() > seen.saturating_add(1) {
            return Ok(());
        }
        self.read_on(&mut edge).await
    }

    /// Reads on to the end; says where that is, and the number that the ring's next item will have.
    pub(super) async fn advance_to_end(&self) -> Result<(AllCursor, u64), StoreError> {
        let mut edge = self.edge.lock().await;
        self.read_on(&mut edge).await?;
        Ok((edge.cursor.clone(), self.lock().ring.next()))
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<AllItem> {
        self.lock().ring.read(from, limit)
    }

    /// The number of the first item after a place; `None` when the ring does not reach back to it.
    pub(super) fn find(&self, cursor: &AllCursor) -> Option<u64> {
        let shared = self.lock();
        let (start, start_number) = &shared.start;
        if cursor.change.epoch != start.epoch {
            return None;
        }
        let place = (cursor.change.number, cursor.part);
        let at = |item: &AllItem| (item.cursor.change.number, item.cursor.part);
        let items = || shared.ring.iter().filter(|(number, _)| number >= start_number);
        let whole = shared.ring.first() <= *start_number && start.number <= place.0;
        let reaches = whole || items().any(|(_, item)| at(item) <= place);
        let first = items().find(|(_, item)| at(item) > place);
        reaches.then(|| first.map_or_else(|| shared.ring.next(), |(number, _)| number))
    }

    async fn read_on(&self, edge: &mut Reader) -> Result<(), StoreError> {
        loop {
            let items = edge.next().await?;
            let mut shared = self.lock();
            if items.is_empty() {
                shared.rounds += 1;
                return Ok(());
            }
            for item in items {
                let weight = item.event.as_ref().map_or(1, |event| event.weight());
                if item.event.is_none() {
                    shared.start = (item.cursor.change.clone(), shared.ring.next());
                }
                shared.ring.push(item, weight);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the changes of all sessions in order and tells the events that they are.
pub(super) struct Reader {
    store: Arc<dyn Store>,
    hub: Weak<FeedHub>,
    cursor: AllCursor,
    /// The sessions that changed last, at the back, each as of the position that was read.
    lenses: VecDeque<(Lens, Position)>,
    /// How far each session was read: a change says where a session is, not where it was.
    known: HashMap<SessionId, Known>,
}

/// How far a session was read.
#[derive(Clone, Copy)]
struct Known {
    life: Incarnation,
    position: Position,
    gone: bool,
}

impl Reader {
    /// A reader that begins now.
    async fn begin(store: Arc<dyn Store>, hub: Weak<FeedHub>) -> Result<Self, StoreError> {
        let change = store.change_cursor().await?;
        let mut reader = Self {
            store,
            hub,
            cursor: AllCursor { change, part: 0 },
            lenses: VecDeque::new(),
            known: HashMap::new(),
        };
        reader.look_around().await?;
        Ok(reader)
    }

    /// Notes where every session is, until nothing changes while looking.
    async fn look_around(&mut self) -> Result<(), StoreError> {
        let mut query = ListQuery {
            order: ListOrder::CreatedAsc,
            limit: SNAPSHOT_SESSIONS,
            ..ListQuery::default()
        };
        loop {
            let page = self.store.list(&query).await?;
            for listed in page.sessions {
                self.look_at(&listed.meta.session_id).await?;
            }
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        loop {
            let page = self.store.changes_after(&self.cursor.change, FEED_CHANGES_PER_READ).await?;
            self.cursor.change = page.next;
            if page.changes.is_empty() {
                return Ok(());
            }
            for change in page.changes {
                self.look_at(&change.session_id).await?;
            }
        }
    }

    async fn look_at(&mut self, session: &SessionId) -> Result<(), StoreError> {
        if let Some(now) = self.store.state(session).await? {
            let known = Known { life: now.head.incarnation, position: now.position, gone: false };
            self.known.insert(session.clone(), known);
        }
        Ok(())
    }

    /// The next items; none when nothing more happened. Changes that tell nothing are passed over.
    pub(super) async fn next(&mut self) -> Result<Vec<AllItem>, StoreError> {
        loop {
            let page = self.store.changes_after(&self.cursor.change, FEED_CHANGES_PER_READ).await?;
            let mut items = Vec::new();
            if page.gap {
                items.push(self.enter_gap(&page));
            }
            let ended = page.changes.is_empty();
            for change in page.changes {
                items.extend(self.change(&page.next, change).await?);
            }
            self.cursor = AllCursor { change: page.next, part: 0 };
            if !items.is_empty() || ended {
                return Ok(items);
            }
        }
    }

    /// Goes to the first change that is known; what was before it is not.
    fn enter_gap(&mut self, page: &ChangePage) -> AllItem {
        let first = page.changes.first().map(|change| change.number);
        let number = first.map_or(page.next.number, |first| first.saturating_sub(1));
        self.lenses.clear();
        self.cursor =
            AllCursor { change: ChangeCursor { epoch: page.next.epoch, number }, part: 0 };
        AllItem { event: None, cursor: self.cursor.clone() }
    }

    /// The items of one change, after the part of it that was already read.
    async fn change(
        &mut self,
        next: &ChangeCursor,
        change: SessionChange,
    ) -> Result<Vec<AllItem>, StoreError> {
        let done = ChangeCursor { epoch: next.epoch, number: change.number };
        let events = self.events(change).await?;
        let skip = usize::try_from(self.cursor.part).unwrap_or(usize::MAX);
        let count = events.len();
        let before = self.cursor.change.clone();
        let items = events.into_iter().enumerate().skip(skip).map(|(index, event)| {
            let cursor = if index + 1 == count {
                AllCursor { change: done.clone(), part: 0 }
            } else {
                AllCursor {
                    change: before.clone(),
                    part: u32::try_from(index + 1).unwrap_or(u32::MAX),
                }
            };
            AllItem { event: Some(Arc::new(event)), cursor }
        });
        let items = items.collect();
        self.cursor = AllCursor { change: done, part: 0 };
        Ok(items)
    }

    async fn events(&mut self, change: SessionChange) -> Result<Vec<FeedEvent>, StoreError> {
        if change.deleted {
            return self.deletion(&change).await;
        }
        let mut events = self.end_of_other_life(&change).await?;
        let was_gone = self.known.get(&change.session_id).is_some_and(|known| known.gone);
        let mut position = self.after_of(&change);
        let Some(mut lens) = self.lens(&change, position).await? else {
            // Deleted since; the change that says so comes later.
            return Ok(events);
        };
        let mut told = Told::up_to(position);
        while position < change.position {
            let page =
                self.store.records(&change.session_id, position, FEED_RECORDS_PER_READ).await;
            let page = match page {
                Ok(page) if page.incarnation == change.incarnation => page,
                Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(events),
                Err(error) => return Err(error),
            };
            let Some(last) = page.records.last().map(|stored| stored.position) else {
                break;
            };
            for stored in page.records {
                // Steps that were put together since are gone; the record that took their place, beyond this
                // change, is told here, and again nowhere: the lens remembers the revision.
                let in_place = change.position.revision > 0 && stored.settles.is_some();
                if stored.position > change.position && !in_place {
                    break;
                }
                if told.knows(&stored) || (was_gone && is_end_of_life(&stored)) {
                    continue;
                }
                events.extend(lens.look(&*self.store, stored).await?);
            }
            position = last;
        }
        events.extend(lens.at_end(change.position));
        self.keep(lens, change.position);
        self.note(&change);
        Ok(events)
    }

    /// Where the session was when it was last read; its beginning when it, or this life of it, is new.
    fn after_of(&self, change: &SessionChange) -> Position {
        let known = self.known.get(&change.session_id);
        let same_life = known.filter(|known| known.life == change.incarnation);
        same_life.map_or_else(Position::default, |known| known.position)
    }

    fn note(&mut self, change: &SessionChange) {
        let known =
            Known { life: change.incarnation, position: change.position, gone: change.deleted };
        self.known.insert(change.session_id.clone(), known);
    }

    /// A life that ended between two looks, when another has begun since: only the newest change of a session is to be
    /// had.
    async fn end_of_other_life(
        &mut self,
        change: &SessionChange,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        let known = self.known.get(&change.session_id).copied();
        match known.filter(|known| known.life != change.incarnation && !known.gone) {
            Some(known) => {
                let ended = SessionChange {
                    incarnation: known.life,
                    position: known.position,
                    deleted: true,
                    ..change.clone()
                };
                self.deletion(&ended).await
            }
            None => Ok(Vec::new()),
        }
    }

    /// The lens that stopped where the change begins, or another.
    async fn lens(
        &mut self,
        change: &SessionChange,
        after: Position,
    ) -> Result<Option<Lens>, StoreError> {
        let kept = self
            .lenses
            .iter()
            .position(|(lens, position)| lens.life() == change.incarnation && *position == after);
        if let Some((lens, _)) = kept.and_then(|at| self.lenses.remove(at)) {
            return Ok(Some(lens));
        }
        let (session, life) = (&change.session_id, change.incarnation);
        lens_at(&*self.store, session, life, after).await
    }

    fn keep(&mut self, lens: Lens, position: Position) {
        self.lenses.retain(|(old, _)| old.life() != lens.life());
        self.lenses.push_back((lens, position));
        if self.lenses.len() > ALL_LENSES_MAX {
            self.lenses.pop_front();
        }
    }

    async fn deletion(&mut self, change: &SessionChange) -> Result<Vec<FeedEvent>, StoreError> {
        let kept = self.lenses.iter().position(|(lens, _)| lens.life() == change.incarnation);
        let last_known = match kept.and_then(|at| self.lenses.remove(at)) {
            Some((lens, _)) => lens.last_known(),
            None => Deletion::unknown(),
        };
        let Some(hub) = self.hub.upgrade() else {
            return Ok(Vec::new());
        };
        let last = SessionCursor::at(change.incarnation, change.position);
        let event = hub.deletion(&change.session_id, last, last_known).await?;
        self.note(change);
        Ok(vec![event])
    }
}

/// A deletion is told with the change that says so, while the log is not to be read; not a second time when the session
/// was brought back and its log with it.
fn is_end_of_life(stored: &StoredRecord) -> bool {
    matches!(stored.record.known(), Record::Tombstone)
}
