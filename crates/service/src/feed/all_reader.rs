//! Reads the feed of all sessions from the store: changes, and the records that each of them stands for.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bough_session::Incarnation;
use bough_store::{
    ChangeCursor, ChangePage, Position, RecordPage, SessionChange, Store, StoreError, StoredRecord,
    records_of,
};

use super::all::AllItem;
use super::as_of::lens_at;
use super::cursor::{AllPlace, Inside, SessionCursor};
use super::event::FeedEvent;
use super::filter::EventKind;
use super::hub::{Deletion, FeedHub};
use super::lens::Lens;
use super::short_read::read_whole;
use super::told::{Teller, Told};
use crate::limits::{ALL_LENSES_MAX, FEED_CHANGES_PER_READ};

/// Reads the changes of all sessions in order and tells the events that they are.
///
/// It goes on in small steps. What a step finds takes effect at its end, all at once: one that fails or is given up in the
/// middle changes nothing, and is simply done again.
pub(super) struct AllReader {
    store: Arc<dyn Store>,
    hub: Weak<FeedHub>,
    place: AllPlace,
    /// Changes after the place that were fetched and not yet read, and where the feed is after them.
    changes: VecDeque<SessionChange>,
    fetched: ChangeCursor,
    /// The sessions that changed last, at the back, each as of the position that was read.
    lenses: VecDeque<KeptLens>,
    /// Lives of which records were told that lie beyond the changes that were read, and how far: they took the place of steps
    /// of those changes.
    ahead: Vec<(Incarnation, Position)>,
    records_per_step: usize,
}

/// A lens that is kept, as of a position. Small, because they change places often.
struct KeptLens {
    life: Incarnation,
    position: Position,
    lens: Box<Lens>,
}

/// What came with the changes that were fetched.
pub(super) struct Fetched {
    /// Tells that some before them are not known.
    pub(super) gap: Option<AllItem>,
    /// There may be more behind them already.
    pub(super) more: bool,
}

/// What a step found of a change.
#[derive(Default)]
struct Found {
    events: Vec<FeedEvent>,
    /// Some of it is no longer kept.
    gap: bool,
    /// The place of the last event of it, told now or before.
    last: Option<Position>,
    /// How far it was read; `None` is to its end.
    inside: Option<Inside>,
    /// The session, as of there.
    lens: Option<(Box<Lens>, Position)>,
}

impl AllReader {
    /// A reader that begins at a place.
    pub(super) fn at(
        place: AllPlace,
        store: Arc<dyn Store>,
        hub: Weak<FeedHub>,
        records_per_step: usize,
    ) -> Self {
        let (changes, lenses) = (VecDeque::new(), VecDeque::new());
        let fetched = place.change.clone();
        Self { store, hub, place, changes, fetched, lenses, ahead: Vec::new(), records_per_step }
    }

    /// A reader that begins now.
    pub(super) async fn now(
        store: Arc<dyn Store>,
        hub: Weak<FeedHub>,
        records_per_step: usize,
    ) -> Result<Self, StoreError> {
        let place = AllPlace::after(store.change_cursor().await?);
        Ok(Self::at(place, store, hub, records_per_step))
    }

    pub(super) const fn place(&self) -> &AllPlace {
        &self.place
    }

    /// Whether somebody who was told of the next changes when they came may have been told of places before some that this
    /// reader told.
    pub(super) const fn is_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The next items; none when nothing more happened. Changes that tell nothing are passed over.
    pub(super) async fn next(&mut self) -> Result<Vec<AllItem>, StoreError> {
        loop {
            let (items, ended) = match self.step().await? {
                Some(items) => (items, false),
                None => {
                    let fetched = self.fetch().await?;
                    (fetched.gap.into_iter().collect(), self.changes.is_empty())
                }
            };
            if ended || !items.is_empty() {
                return Ok(items);
            }
        }
    }

    /// Reads on in the changes that were fetched; `None` when there are none left.
    pub(super) async fn step(&mut self) -> Result<Option<Vec<AllItem>>, StoreError> {
        let Some(change) = self.changes.front().cloned() else { return Ok(None) };
        let found = match self.look(&change).await {
            // One damaged session must not keep the news of the others back.
            Err(StoreError::Corrupt { .. }) => Found { gap: true, ..Found::default() },
            found => found?,
        };
        Ok(Some(self.take(&change, found)))
    }

    /// Fetches the changes that come next, once those that were fetched are read.
    pub(super) async fn fetch(&mut self) -> Result<Fetched, StoreError> {
        let from = &self.place.change;
        let page = self.store.changes_after(from, FEED_CHANGES_PER_READ).await?;
        let more = page.changes.len() >= FEED_CHANGES_PER_READ;
        let gap = self.take_in(page);
        if self.changes.is_empty() {
            self.place = AllPlace::after(self.fetched.clone());
        }
        Ok(Fetched { gap, more })
    }

    /// Takes in the changes that come next; says so where some are missing before them.
    fn take_in(&mut self, page: ChangePage) -> Option<AllItem> {
        let first = page.changes.first().map(|change| change.number);
        self.fetched = page.next.clone();
        self.changes = page.changes.into();
        if !page.gap {
            return None;
        }
        // Goes to the first change that is known; what was before it is not.
        let number = first.map_or(page.next.number, |first| first.saturating_sub(1));
        self.lenses.clear();
        self.ahead.clear();
        self.place = AllPlace::after(ChangeCursor { number, ..page.next });
        Some(AllItem { event: None, place: self.place.clone() })
    }

    /// Goes on to where a step came.
    fn take(&mut self, change: &SessionChange, found: Found) -> Vec<AllItem> {
        let before = self.place.change.clone();
        let items = found.events.into_iter().map(|event| AllItem {
            place: AllPlace::after_event(before.clone(), &event),
            event: Some(Arc::new(event)),
        });
        let items: Vec<AllItem> = if found.gap {
            let gap = AllItem { event: None, place: self.place.clone() };
            std::iter::once(gap).chain(items).collect()
        } else {
            items.collect()
        };
        if let Some((lens, position)) = found.lens {
            self.keep(lens, position);
        }
        let life = change.incarnation;
        self.ahead.retain(|(of, position)| *of != life || *position > change.position);
        self.ahead.extend(found.last.filter(|last| *last > change.position).map(|at| (life, at)));
        if found.inside.is_some() {
            self.place.inside = found.inside;
            return items;
        }
        self.changes.pop_front();
        // The last of the page stands for what follows it and tells nothing.
        let number = if self.changes.is_empty() { self.fetched.number } else { change.number };
        self.place = AllPlace::after(ChangeCursor { number, ..before });
        items
    }

    /// Reads on in a change. Leaves everything but the lenses as it is, and those may be missing.
    async fn look(&mut self, change: &SessionChange) -> Result<Found, StoreError> {
        let cursor = self.place.inside.map(|inside| inside.as_cursor(change.incarnation));
        if cursor.is_some_and(|at| at.part.is_none() && has_all(at.position, change)) {
            return Ok(Found::default());
        }
        let from = cursor.map_or(change.after, |at| go_on_from(&at, change).max(change.after));
        let Some(lens) = self.lens(change, from).await? else {
            return self.no_longer_kept(change, from).await;
        };
        let Some(mut found) = self.read(change, from, lens).await? else {
            return self.no_longer_kept(change, from).await;
        };
        found.last = found.events.last().map(|event| event.position);
        if let Some(cursor) = cursor {
            found.events.retain(|event| cursor.is_before(event));
        }
        let is_told = |event: &FeedEvent| event.kind() == EventKind::Deleted;
        if change.deleted && found.inside.is_none() && !found.events.iter().any(is_told) {
            let last_known = found.lens.as_ref().map(|(lens, _)| lens.last_known());
            found.events.extend(self.deletion(change, last_known).await?);
        }
        Ok(found)
    }

    /// The events of a change after a position, as far as one step goes; `None` when its records are not kept.
    async fn read(
        &self,
        change: &SessionChange,
        from: Position,
        lens: Box<Lens>,
    ) -> Result<Option<Found>, StoreError> {
        let (session, life) = (&change.session_id, change.incarnation);
        let mut found = Found::default();
        let mut teller = Teller::at(from, lens);
        let is_short =
            |page: &RecordPage| page.records.is_empty() && page.end.seq < change.position.seq;
        loop {
            let (position, limit) = (teller.position, self.records_per_step);
            let read = || records_of(&*self.store, session, life, position, limit);
            let page = read_whole(read, |page| page.as_ref().is_some_and(is_short)).await?;
            let Some(page) = page.filter(|page| !is_short(page)) else {
                return Ok(None);
            };
            let (mut ended, mut is_whole) = (page.records.is_empty(), true);
            for stored in page.records {
                if is_beyond(change, &teller.told, &stored) {
                    ended = true;
                    break;
                }
                match teller.take(&*self.store, stored).await? {
                    Some(events) => found.events.extend(events),
                    None => {
                        is_whole = false;
                        break;
                    }
                }
            }
            if !is_whole {
                continue;
            }
            if ended || has_all(teller.position, change) {
                found.events.extend(teller.lens.at_end(change.position));
                found.lens = Some((teller.lens, change.position));
                return Ok(Some(found));
            }
            // Which records took the place of the last steps is known to who reads all of them in one go.
            if !teller.must_go_on() && teller.position < change.position {
                let position = teller.position;
                found.inside = Some(Inside { position, part: None });
                found.lens = Some((teller.lens, position));
                return Ok(Some(found));
            }
        }
    }

    /// The lens that stopped where the reading goes on, or another; `None` when nothing is known of that life any more.
    async fn lens(
        &mut self,
        change: &SessionChange,
        from: Position,
    ) -> Result<Option<Box<Lens>>, StoreError> {
        let life = change.incarnation;
        let kept = self.lenses.iter().position(|kept| kept.life == life && kept.position == from);
        if let Some(kept) = kept.and_then(|at| self.lenses.remove(at)) {
            return Ok(Some(kept.lens));
        }
        let lens = lens_at(&*self.store, &change.session_id, life, from).await?;
        Ok(lens.map(Box::new))
    }

    fn keep(&mut self, lens: Box<Lens>, position: Position) {
        let life = lens.life();
        self.lenses.retain(|old| old.life != life);
        self.lenses.push_back(KeptLens { life, position, lens });
        if self.lenses.len() > ALL_LENSES_MAX {
            self.lenses.pop_front();
        }
    }

    /// The records of a change are gone, with the session: that is a gap, unless its end is all that was left to tell.
    async fn no_longer_kept(
        &self,
        change: &SessionChange,
        from: Position,
    ) -> Result<Found, StoreError> {
        let only_the_end = change.deleted && change.position.seq <= from.seq.saturating_add(1);
        let mut found = Found { gap: !only_the_end, ..Found::default() };
        if change.deleted {
            found.events.extend(self.deletion(change, None).await?);
        }
        Ok(found)
    }

    /// The end of a life that no record tells of.
    async fn deletion(
        &self,
        change: &SessionChange,
        last_known: Option<Deletion>,
    ) -> Result<Option<FeedEvent>, StoreError> {
        let Some(hub) = self.hub.upgrade() else {
            return Ok(None);
        };
        let last = SessionCursor::at(change.incarnation, change.position);
        let last_known = last_known.unwrap_or_else(Deletion::unknown);
        hub.deletion(&change.session_id, last, last_known).await.map(Some)
    }
}

/// Whether a place inside a change is at its end. One that is among the records that took the place of its last steps may
/// have some of them before it.
fn has_all(at: Position, change: &SessionChange) -> bool {
    let end = change.position;
    at == end || at > end && end.revision == 0
}

/// From where to read on in a change. Which records took the place of its last steps is known to who reads all of them.
fn go_on_from(at: &SessionCursor, change: &SessionChange) -> Position {
    if at.position > change.position { Position::at(change.position.seq) } else { at.read_after() }
}

/// Whether a record, and with it what follows, is of later changes.
fn is_beyond(change: &SessionChange, told: &Told, stored: &StoredRecord) -> bool {
    let (end, at) = (change.position, stored.position);
    if at <= end {
        return false;
    }
    // Steps that were put together since are gone. The records that took their place lie beyond this change; each is told by
    // the change that has the last of its steps, and by no other.
    match stored.settles {
        Some(0) => end.revision == 0 || told.has_settled(),
        Some(last_step) if last_step <= end.revision => {
            at.seq != end.seq + 1 && !told.goes_on_with(last_step)
        }
        _ => true,
    }
}
