//! Reads the feed of all sessions from the store: changes, and the records that each of them stands for.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::Incarnation;
use bough_store::{
    ChangeCursor, ChangePage, Position, RecordPage, SessionChange, Store, StoreError, StoreExt,
};

use super::cursor::{GlobalPosition, Inside, SessionCursor};
use super::deletions::Deletion;
use super::event::FeedEvent;
use super::filter::EventKind;
use super::global_tail::GlobalFeedItem;
use super::point_in_time::projector_at;
use super::projector::EventProjector;
use super::reader::FeedReader;
use super::retry_read::read_until_whole;
use crate::limits::{FEED_CHANGES_PER_READ, GLOBAL_PROJECTORS_MAX};
use crate::open_session::OpenSessions;

/// Reads the changes of all sessions in order and makes their events.
///
/// It goes on in small steps. What a step finds takes effect at its end, all at once: one that fails or is given up in the
/// middle changes nothing, and is simply done again.
pub(super) struct GlobalFeedReader {
    sessions: Arc<OpenSessions>,
    place: GlobalPosition,
    /// Changes after the place that were fetched and not yet read, and where the feed is after them.
    changes: VecDeque<SessionChange>,
    fetched: ChangeCursor,
    /// The sessions that changed last, at the back, each as of the position that was read.
    projectors: VecDeque<KeptProjector>,
    records_per_step: usize,
}

/// A projector that is kept, as of a position. Small, because they change places often.
struct KeptProjector {
    incarnation: Incarnation,
    position: Position,
    projector: Box<EventProjector>,
}

/// What came with the changes that were fetched.
pub(super) struct Fetched {
    /// Says that some before them are not known.
    pub(super) gap: Option<GlobalFeedItem>,
    /// There may be more behind them already.
    pub(super) more: bool,
}

/// What a step found of a change.
#[derive(Default)]
struct Found {
    /// The events, each with what a reader of the session knows after it.
    events: Vec<(FeedEvent, SessionCursor)>,
    /// Some of it is no longer kept.
    gap: bool,
    /// How far it was read; `None` is to its end.
    inside: Option<Inside>,
    /// The session, as of there.
    projector: Option<(Box<EventProjector>, Position)>,
}

impl GlobalFeedReader {
    /// A reader that begins at a place.
    pub(super) fn at(
        place: GlobalPosition,
        sessions: Arc<OpenSessions>,
        records_per_step: usize,
    ) -> Self {
        let (changes, projectors) = (VecDeque::new(), VecDeque::new());
        let fetched = place.change.clone();
        Self { sessions, place, changes, fetched, projectors, records_per_step }
    }

    /// A reader that begins now.
    pub(super) async fn now(
        sessions: Arc<OpenSessions>,
        records_per_step: usize,
    ) -> Result<Self, StoreError> {
        let place = GlobalPosition::after(sessions.store().change_cursor().await?);
        Ok(Self::at(place, sessions, records_per_step))
    }

    fn store(&self) -> &dyn Store {
        self.sessions.store()
    }

    pub(super) const fn place(&self) -> &GlobalPosition {
        &self.place
    }

    /// The next items; none when nothing more happened. Changes without events are passed over.
    pub(super) async fn next(&mut self) -> Result<Vec<GlobalFeedItem>, StoreError> {
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
    pub(super) async fn step(&mut self) -> Result<Option<Vec<GlobalFeedItem>>, StoreError> {
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
        let page = self.store().changes(Some(from), FEED_CHANGES_PER_READ).await?;
        let more = page.changes.len() >= FEED_CHANGES_PER_READ;
        let gap = self.take_in(page);
        if self.changes.is_empty() {
            self.place = GlobalPosition::after(self.fetched.clone());
        }
        Ok(Fetched { gap, more })
    }

    /// Takes in the changes that come next; says so where some are missing before them.
    fn take_in(&mut self, page: ChangePage) -> Option<GlobalFeedItem> {
        let first = page.changes.first().map(|change| change.number);
        self.fetched = page.next.clone();
        self.changes = page.changes.into();
        if !page.gap {
            return None;
        }
        // Goes to the first change that is known; what was before it is not.
        let number = first.map_or(page.next.number, |first| first.saturating_sub(1));
        self.projectors.clear();
        self.place = GlobalPosition::after(ChangeCursor { number, ..page.next });
        Some(GlobalFeedItem { event: None, place: self.place.clone() })
    }

    /// Goes on to where a step came.
    fn take(&mut self, change: &SessionChange, found: Found) -> Vec<GlobalFeedItem> {
        let before = self.place.change.clone();
        let items = found.events.into_iter().map(|(event, at)| GlobalFeedItem {
            place: GlobalPosition::after_event(before.clone(), &at),
            event: Some(Arc::new(event)),
        });
        let items: Vec<GlobalFeedItem> = if found.gap {
            let gap = GlobalFeedItem { event: None, place: self.place.clone() };
            std::iter::once(gap).chain(items).collect()
        } else {
            items.collect()
        };
        if let Some((projector, position)) = found.projector {
            self.keep(projector, position);
        }
        if found.inside.is_some() {
            self.place.inside = found.inside;
            return items;
        }
        self.changes.pop_front();
        // The last of the page stands for the changes after it that have no events.
        let number = if self.changes.is_empty() { self.fetched.number } else { change.number };
        self.place = GlobalPosition::after(ChangeCursor { number, ..before });
        items
    }

    /// Reads on in a change. Leaves everything but the projectors as it is, and those may be missing.
    async fn look(&mut self, change: &SessionChange) -> Result<Found, StoreError> {
        let start = SessionCursor::at(change.incarnation, change.after);
        let cursor = self.place.inside.map_or(start, |at| at.as_cursor(change.incarnation));
        let is_done = cursor.part.is_none() && cursor.position.covers(change.position);
        // A change that is only the end of a session moves nothing, and is yet to be delivered.
        if is_done && self.place.inside.is_some() {
            return Ok(Found::default());
        }
        let from = cursor.read_after();
        let Some(projector) = self.projector(change, from).await? else {
            return self.no_longer_kept(change, from).await;
        };
        let Some((mut events, mut found)) = self.read(change, from, projector).await? else {
            return self.no_longer_kept(change, from).await;
        };
        events.retain(|event| cursor.is_before(event));
        let is_end = |event: &FeedEvent| event.kind() == EventKind::Deleted;
        if change.deleted && found.inside.is_none() && !events.iter().any(is_end) {
            let last_known = found.projector.as_ref().map(|(projector, _)| projector.last_known());
            events.extend(self.deletion(change, last_known).await?);
        }
        let mut at = cursor;
        found.events.extend(events.into_iter().map(|event| {
            at = at.after(&event);
            (event, at)
        }));
        Ok(found)
    }

    /// The events of a change after a position, as far as one step goes; `None` when its records are not kept.
    ///
    /// A change has the records that its end knows and its beginning does not. Steps may have become records that lie
    /// beyond its last: those up to its last step belong to it.
    async fn read(
        &self,
        change: &SessionChange,
        from: Position,
        projector: Box<EventProjector>,
    ) -> Result<Option<(Vec<FeedEvent>, Found)>, StoreError> {
        let (session, incarnation) = (&change.session_id, change.incarnation);
        let mut events = Vec::new();
        let mut reader = FeedReader::at(from, projector);
        let mut next = from;
        let is_short =
            |page: &RecordPage| page.records.is_empty() && page.end.seq < change.position.seq;
        let mut uses_memory = true;
        loop {
            let recent = uses_memory
                .then(|| self.sessions.recent_records(session, incarnation, next, change.position));
            let page = match recent.flatten() {
                Some(page) => Some(page),
                None => {
                    let limit = self.records_per_step;
                    let read = || self.store().records_of(session, incarnation, next, limit);
                    read_until_whole(read, |page| page.as_ref().is_some_and(is_short)).await?
                }
            };
            let Some(page) = page.filter(|page| !is_short(page)) else {
                return Ok(None);
            };
            let mut is_whole = true;
            for stored in page.records {
                let position = stored.position();
                if stored.is_known_at(change.position) {
                    match reader.take(self.store(), stored).await? {
                        Some(found) => events.extend(found),
                        None => {
                            is_whole = false;
                            break;
                        }
                    }
                }
                next = next.join(position);
            }
            if !is_whole {
                // A step that cannot be shown any more is part of a record that only the store has.
                (next, uses_memory) = (reader.position, false);
                continue;
            }
            let mut found = Found::default();
            if !page.more || reader.position.covers(change.position) {
                events.extend(reader.projector.at_end(change.position.seq));
                found.projector = Some((reader.projector, change.position));
                return Ok(Some((events, found)));
            }
            let is_inside = next.seq <= change.position.seq;
            if is_inside && !reader.projector.is_copying() {
                let position = reader.position;
                found.inside = Some(Inside { position, part: None });
                found.projector = Some((reader.projector, position));
                return Ok(Some((events, found)));
            }
        }
    }

    /// The projector that stopped where the reading goes on, or another; `None` when nothing is known of that incarnation any more.
    async fn projector(
        &mut self,
        change: &SessionChange,
        from: Position,
    ) -> Result<Option<Box<EventProjector>>, StoreError> {
        let incarnation = change.incarnation;
        let kept = self
            .projectors
            .iter()
            .position(|kept| kept.incarnation == incarnation && kept.position == from);
        if let Some(kept) = kept.and_then(|at| self.projectors.remove(at)) {
            return Ok(Some(kept.projector));
        }
        let projector = projector_at(self.store(), &change.session_id, incarnation, from).await?;
        Ok(projector.map(Box::new))
    }

    fn keep(&mut self, projector: Box<EventProjector>, position: Position) {
        let incarnation = projector.incarnation();
        self.projectors.retain(|old| old.incarnation != incarnation);
        self.projectors.push_back(KeptProjector { incarnation, position, projector });
        if self.projectors.len() > GLOBAL_PROJECTORS_MAX {
            self.projectors.pop_front();
        }
    }

    /// The records of a change are gone, with the session: that is a gap, unless only its end was yet to be delivered.
    async fn no_longer_kept(
        &self,
        change: &SessionChange,
        from: Position,
    ) -> Result<Found, StoreError> {
        let only_the_end = change.deleted && change.position.seq <= from.seq.saturating_add(1);
        let mut found = Found { gap: !only_the_end, ..Found::default() };
        if change.deleted
            && let Some(event) = self.deletion(change, None).await?
        {
            let at = SessionCursor::at(change.incarnation, change.position).after(&event);
            found.events.push((event, at));
        }
        Ok(found)
    }

    /// The end of an incarnation of which there is no record.
    async fn deletion(
        &self,
        change: &SessionChange,
        last_known: Option<Deletion>,
    ) -> Result<Option<FeedEvent>, StoreError> {
        let last = SessionCursor::at(change.incarnation, change.position);
        let last_known = last_known.unwrap_or_else(Deletion::unknown);
        self.sessions.deletions().event(&change.session_id, last, Some(last_known)).await
    }
}
