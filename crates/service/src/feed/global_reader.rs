//! Reads the feed of all sessions from the store: changes, and the records that each of them stands for.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_store::{
    ChangeCursor, ChangePage, Position, RecordPage, SessionChange, Store, StoreError, StoreExt,
};

use super::cursor::{FeedPosition, GlobalPosition, Inside, SessionCursor};
use super::deletions::Deletion;
use super::event::FeedEvent;
use super::filter::EventKind;
use super::incarnation_reader::IncarnationReader;
use super::point_in_time::projector_at;
use super::reader::{ReadItem, ReadPage};
use super::retry_read::ShortReads;
use super::subscription::GapReason;
use crate::limits::{FEED_CHANGES_PER_READ, FEED_RECORDS_PER_READ, GLOBAL_PROJECTORS_MAX};
use crate::open_session::OpenSessions;

/// Reads the changes of all sessions in order and makes their events.
///
/// It goes on in small reads. What a read finds takes effect at its end, all at once: one that fails or is given up in the
/// middle changes nothing, and is simply done again.
pub(super) struct GlobalFeedReader {
    sessions: Arc<OpenSessions>,
    place: GlobalPosition,
    /// Changes after the place that were fetched and not yet read, and where the feed is after them.
    changes: VecDeque<SessionChange>,
    fetched: ChangeCursor,
    /// Whether there may have been more changes when these were fetched.
    more_changes: bool,
    /// The sessions that changed last, at the back, each at the position that was read.
    readers: VecDeque<IncarnationReader>,
    records_per_read: usize,
}

/// What a read found of a change.
#[derive(Default)]
struct Found {
    /// The events, each with what a reader of the session knows after it.
    events: Vec<(FeedEvent, SessionCursor)>,
    /// Some of it is no longer kept.
    gap: bool,
    /// How far it was read; `None` is to its end.
    inside: Option<Inside>,
    /// The session, as of there.
    reader: Option<IncarnationReader>,
}

impl GlobalFeedReader {
    /// A reader that begins at a place.
    pub(super) fn at(
        place: GlobalPosition,
        sessions: Arc<OpenSessions>,
        records_per_read: usize,
    ) -> Self {
        let (changes, readers) = (VecDeque::new(), VecDeque::new());
        let fetched = place.change.clone();
        let more_changes = false;
        Self { sessions, place, changes, fetched, more_changes, readers, records_per_read }
    }

    /// A reader that begins now.
    pub(super) async fn now(sessions: Arc<OpenSessions>) -> Result<Self, StoreError> {
        let place = GlobalPosition::after(sessions.store().change_cursor().await?);
        Ok(Self::at(place, sessions, FEED_RECORDS_PER_READ))
    }

    fn store(&self) -> &dyn Store {
        self.sessions.store()
    }

    pub(super) const fn place(&self) -> &GlobalPosition {
        &self.place
    }

    /// Reads on in the changes that were fetched, or fetches the next ones.
    pub(super) async fn read(&mut self) -> Result<ReadPage, StoreError> {
        // A read that fails or is dropped leaves none, and the next one fetches them again: with what came since.
        let changes = std::mem::take(&mut self.changes);
        let items = match changes.front() {
            Some(change) => {
                let found = match self.look(change).await {
                    // One damaged session must not keep the news of the others back.
                    Err(StoreError::Corrupt { .. }) => Found { gap: true, ..Found::default() },
                    found => found?,
                };
                self.take(changes, found)
            }
            None => self.fetch().await?.into_iter().collect(),
        };
        Ok(ReadPage { items, more: self.more_changes || !self.changes.is_empty() })
    }

    /// Fetches the changes that come next; says so where some are missing before them.
    async fn fetch(&mut self) -> Result<Option<ReadItem>, StoreError> {
        let from = &self.place.change;
        let page = self.store().changes(Some(from), FEED_CHANGES_PER_READ).await?;
        self.more_changes = page.changes.len() >= FEED_CHANGES_PER_READ;
        let gap = self.take_in(page);
        if self.changes.is_empty() {
            self.place = GlobalPosition::after(self.fetched.clone());
        }
        Ok(gap)
    }

    fn take_in(&mut self, page: ChangePage) -> Option<ReadItem> {
        let first = page.changes.first().map(|change| change.number);
        self.fetched = page.next.clone();
        self.changes = page.changes.into();
        if !page.gap {
            return None;
        }
        // Goes to the first change that is known; what was before it is not.
        let number = first.map_or(page.next.number, |first| first.saturating_sub(1));
        self.readers.clear();
        self.place = GlobalPosition::after(ChangeCursor { number, ..page.next });
        Some(self.gap())
    }

    /// Says that something before the place may be missing.
    fn gap(&self) -> ReadItem {
        let position = FeedPosition::All(self.place.clone());
        ReadItem { event: Err(GapReason::TooOld), position }
    }

    /// Goes on to where a read of the first of these changes came.
    fn take(&mut self, mut changes: VecDeque<SessionChange>, found: Found) -> Vec<ReadItem> {
        let before = self.place.change.clone();
        let gap = found.gap.then(|| self.gap());
        let events = found.events.into_iter().map(|(event, at)| {
            let place = GlobalPosition::after_event(before.clone(), &at);
            ReadItem { event: Ok(Arc::new(event)), position: FeedPosition::All(place) }
        });
        let items = gap.into_iter().chain(events).collect();
        if let Some(reader) = found.reader {
            self.keep(reader);
        }
        if found.inside.is_some() {
            self.place.inside = found.inside;
        } else if let Some(change) = changes.pop_front() {
            // The last of the page stands for the changes after it that have no events.
            let number = if changes.is_empty() { self.fetched.number } else { change.number };
            self.place = GlobalPosition::after(ChangeCursor { number, ..before });
        }
        self.changes = changes;
        items
    }

    /// Reads on in a change. Leaves everything but the kept readers as it is, and those may be missing.
    async fn look(&mut self, change: &SessionChange) -> Result<Found, StoreError> {
        let start = SessionCursor::at(change.incarnation, change.after);
        let cursor = self.place.inside.map_or(start, |at| at.as_cursor(change.incarnation));
        let is_done = cursor.part.is_none() && cursor.position.covers(change.position);
        // A change that is only the end of a session moves nothing, and is yet to be delivered.
        if is_done && self.place.inside.is_some() {
            return Ok(Found::default());
        }
        let from = cursor.read_after();
        let Some(reader) = self.reader(change, from).await? else {
            return self.no_longer_kept(change, from).await;
        };
        let Some((mut events, mut found)) = self.read_change(change, reader).await? else {
            return self.no_longer_kept(change, from).await;
        };
        events.retain(|event| cursor.is_before(event));
        let is_end = |event: &FeedEvent| event.kind() == EventKind::Deleted;
        if change.deleted && found.inside.is_none() && !events.iter().any(is_end) {
            let last_known = found.reader.as_ref().map(|reader| reader.projector.last_known());
            events.extend(self.deletion(change, last_known).await?);
        }
        let mut at = cursor;
        found.events.extend(events.into_iter().map(|event| {
            at = at.after(&event);
            (event, at)
        }));
        Ok(found)
    }

    /// The events of a change after a position, as far as one read goes; `None` when its records are not kept.
    ///
    /// A change has the records that its end knows and its beginning does not. Steps may have become records that lie
    /// beyond its last: those up to its last step belong to it.
    async fn read_change(
        &self,
        change: &SessionChange,
        mut reader: IncarnationReader,
    ) -> Result<Option<(Vec<FeedEvent>, Found)>, StoreError> {
        let mut events = Vec::new();
        let (mut next, mut uses_memory) = (reader.position, true);
        'pages: loop {
            let page = self.records(change, next, uses_memory).await?;
            let Some(page) = page else { return Ok(None) };
            for stored in page.records {
                let position = stored.position();
                if stored.is_known_at(change.position) {
                    let Some(found) = reader.take(self.store(), stored).await? else {
                        // A step that cannot be shown any more is part of a record that only the store has.
                        (next, uses_memory) = (reader.position, false);
                        continue 'pages;
                    };
                    events.extend(found);
                }
                next = next.join(position);
            }
            let mut inside = None;
            if !page.more || reader.position.covers(change.position) {
                events.extend(reader.projector.at_end(change.position.seq));
                reader.position = change.position;
            } else if next.seq > change.position.seq || reader.projector.is_copying() {
                continue;
            } else {
                inside = Some(Inside { position: reader.position, part: None });
            }
            let found = Found { inside, reader: Some(reader), ..Found::default() };
            return Ok(Some((events, found)));
        }
    }

    /// Records of a change after a position; `None` when they are not kept, or the store does not show them for long.
    async fn records(
        &self,
        change: &SessionChange,
        from: Position,
        uses_memory: bool,
    ) -> Result<Option<RecordPage>, StoreError> {
        let (session, incarnation, end) = (&change.session_id, change.incarnation, change.position);
        if uses_memory
            && let Some(page) = self.sessions.recent_records(session, incarnation, from, end)
        {
            return Ok(Some(page));
        }
        let mut reads = ShortReads::default();
        loop {
            let limit = self.records_per_read;
            let page = self.store().records_of(session, incarnation, from, limit).await?;
            let is_short = |page: &RecordPage| page.records.is_empty() && page.end.seq < end.seq;
            if !page.as_ref().is_some_and(is_short) {
                return Ok(page);
            }
            if !reads.may_repeat().await {
                return Ok(None);
            }
        }
    }

    /// The reader that stopped where the reading goes on, or another; `None` when nothing is known of that incarnation any more.
    async fn reader(
        &mut self,
        change: &SessionChange,
        from: Position,
    ) -> Result<Option<IncarnationReader>, StoreError> {
        let incarnation = change.incarnation;
        let is_there = |kept: &IncarnationReader| {
            kept.projector.incarnation() == incarnation && kept.position == from
        };
        let kept = self.readers.iter().position(is_there);
        if let Some(kept) = kept.and_then(|at| self.readers.remove(at)) {
            return Ok(Some(kept));
        }
        let projector = projector_at(self.store(), &change.session_id, incarnation, from).await?;
        Ok(projector.map(|projector| IncarnationReader::at(from, projector)))
    }

    fn keep(&mut self, reader: IncarnationReader) {
        let incarnation = reader.projector.incarnation();
        self.readers.retain(|old| old.projector.incarnation() != incarnation);
        self.readers.push_back(reader);
        if self.readers.len() > GLOBAL_PROJECTORS_MAX {
            self.readers.pop_front();
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
