//! Reads the feed of all sessions from the store: changes, and the records that each of them stands for.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::Incarnation;
use bough_store::{
    ChangeCursor, ChangePage, RecordPage, SessionChange, Store, StoreError, StoreExt,
};

use super::cursor::{FeedPosition, GlobalPosition, Inside, SessionCursor};
use super::deletions::Deletion;
use super::event::FeedEvent;
use super::event_table::EventKind;
use super::incarnation_reader::{AfterPage, IncarnationReader};
use super::reader::{ReadItem, ReadPage};
use super::retry_read::ShortReads;
use super::subscription::GapReason;
use crate::limits::{FEED_CHANGES_PER_READ, FEED_RECORDS_PER_READ, GLOBAL_PROJECTORS_MAX};
use crate::open_session::OpenSessions;
use crate::recent_map::RecentMap;

/// Reads the changes of all sessions in order and makes their events.
///
/// Each read is small, and its result takes effect at its end, all at once. A read that fails or is dropped changes nothing, and
/// the next one repeats it.
pub(super) struct GlobalFeedReader {
    sessions: Arc<OpenSessions>,
    position: GlobalPosition,
    /// Changes after the position that were fetched and not yet read.
    changes: VecDeque<SessionChange>,
    /// After all changes that were fetched.
    fetched: ChangeCursor,
    /// Whether there may have been more changes when these were fetched.
    more_changes: bool,
    /// Readers of the sessions that changed last.
    readers: RecentMap<Incarnation, IncarnationReader, GLOBAL_PROJECTORS_MAX>,
    records_per_read: usize,
}

/// What a read found in a change.
#[derive(Default)]
struct Found {
    items: Vec<ReadItem>,
    /// How far the change was read; `None` is to its end.
    inside: Option<Inside>,
    /// The reader of the session, to read on.
    reader: Option<IncarnationReader>,
}

impl GlobalFeedReader {
    /// A reader that begins at a position.
    pub(super) fn at(
        position: GlobalPosition,
        sessions: Arc<OpenSessions>,
        records_per_read: usize,
    ) -> Self {
        Self {
            sessions,
            fetched: position.change.clone(),
            position,
            changes: VecDeque::new(),
            more_changes: false,
            readers: RecentMap::default(),
            records_per_read,
        }
    }

    /// A reader that begins now.
    pub(super) async fn now(sessions: Arc<OpenSessions>) -> Result<Self, StoreError> {
        let position = GlobalPosition::after(sessions.store().change_cursor().await?);
        Ok(Self::at(position, sessions, FEED_RECORDS_PER_READ))
    }

    fn store(&self) -> &dyn Store {
        self.sessions.store()
    }

    pub(super) const fn position(&self) -> &GlobalPosition {
        &self.position
    }

    /// Reads on in the changes that were fetched, or fetches the next ones.
    pub(super) async fn read(&mut self) -> Result<ReadPage, StoreError> {
        // A read that fails or is dropped leaves no changes here, and the next one fetches them again, with newer ones.
        let changes = std::mem::take(&mut self.changes);
        let items = match changes.front() {
            Some(change) => {
                let found = match self.read_change(change).await {
                    // One damaged session must not hold back the events of the others.
                    Err(StoreError::Corrupt { .. }) => {
                        Found { items: vec![self.gap()], ..Found::default() }
                    }
                    found => found?,
                };
                self.take(changes, found)
            }
            None => self.fetch().await?.into_iter().collect(),
        };
        Ok(ReadPage { items, more: self.more_changes || !self.changes.is_empty() })
    }

    /// Fetches the next changes; returns a gap if some are missing before them.
    async fn fetch(&mut self) -> Result<Option<ReadItem>, StoreError> {
        let from = &self.position.change;
        let page = self.store().changes(Some(from), FEED_CHANGES_PER_READ).await?;
        self.more_changes = page.changes.len() >= FEED_CHANGES_PER_READ;
        let gap = self.take_changes(page);
        if self.changes.is_empty() {
            self.position = GlobalPosition::after(self.fetched.clone());
        }
        Ok(gap)
    }

    fn take_changes(&mut self, page: ChangePage) -> Option<ReadItem> {
        let first = page.changes.first().map(|change| change.number);
        self.fetched = page.next.clone();
        self.changes = page.changes.into();
        if !page.gap {
            return None;
        }
        // The changes before the first one are lost.
        let number = first.map_or(page.next.number, |first| first.saturating_sub(1));
        self.readers.clear();
        self.position = GlobalPosition::after(ChangeCursor { number, ..page.next });
        Some(self.gap())
    }

    /// An item which says that something before the position may be missing.
    fn gap(&self) -> ReadItem {
        let position = FeedPosition::All(self.position.clone());
        ReadItem { event: Err(GapReason::TooOld), position }
    }

    /// Moves the position to where a read of the first of these changes ended.
    fn take(&mut self, mut changes: VecDeque<SessionChange>, found: Found) -> Vec<ReadItem> {
        if let Some(reader) = found.reader {
            self.readers.put(reader.cursor.incarnation, reader);
        }
        if found.inside.is_some() {
            self.position.inside = found.inside;
        } else if let Some(change) = changes.pop_front() {
            // The last change of the page stands for those after it that have no events.
            let number = if changes.is_empty() { self.fetched.number } else { change.number };
            let epoch = self.position.change.epoch;
            self.position = GlobalPosition::after(ChangeCursor { epoch, number });
        }
        self.changes = changes;
        found.items
    }

    /// Reads on in a change. It changes nothing but the kept readers, of which one may be missing if it fails.
    ///
    /// A change has the records that a reader at its end knows and a reader at its beginning does not. Steps may have become
    /// records beyond its last one; those up to its last step belong to it.
    async fn read_change(&mut self, change: &SessionChange) -> Result<Found, StoreError> {
        let start = SessionCursor::at(change.incarnation, change.after);
        let cursor = self.position.inside.map_or(start, |at| at.as_cursor(change.incarnation));
        let is_done = cursor.part.is_none() && cursor.position.covers(change.position);
        // A change that is only the end of a session covers no records, but its deletion is yet to be delivered.
        if is_done && self.position.inside.is_some() {
            return Ok(Found::default());
        }
        let mut reader = self.reader(change, cursor);
        let more = loop {
            let page = self.records(change, &reader).await?;
            let Some(page) = page else { return self.no_longer_kept(change, cursor).await };
            match reader.take_page(self.store(), page, Some(change.position)).await? {
                AfterPage::End => break false,
                AfterPage::More => break true,
                AfterPage::ReadOn => {}
                AfterPage::NotKept => return self.no_longer_kept(change, cursor).await,
            }
        };
        if change.deleted && !more && !reader.has_found(EventKind::Deleted) {
            let deletion = self.deletion(change, reader.last_known()).await?;
            deletion.into_iter().for_each(|event| reader.push(event));
        }
        let inside = more.then_some(Inside { position: reader.position, part: None });
        let before = &self.position.change;
        let items = reader
            .take_items(|at| FeedPosition::All(GlobalPosition::after_event(before.clone(), &at)));
        Ok(Found { items, inside, reader: Some(reader) })
    }

    /// The next records of a change; `None` when they are not kept, or the store does not show them for long.
    async fn records(
        &self,
        change: &SessionChange,
        reader: &IncarnationReader,
    ) -> Result<Option<RecordPage>, StoreError> {
        let (session, incarnation, end) = (&change.session_id, change.incarnation, change.position);
        let recent = || self.sessions.recent_records(session, incarnation, reader.next, end);
        if let Some(page) = reader.uses_memory.then(recent).flatten() {
            return Ok(Some(page));
        }
        let mut reads = ShortReads::default();
        loop {
            let page = reader.stored_page(self.store(), self.records_per_read).await?;
            let is_short = |page: &RecordPage| page.records.is_empty() && page.end.seq < end.seq;
            if !page.as_ref().is_some_and(is_short) {
                return Ok(page);
            }
            if !reads.may_repeat().await {
                return Ok(None);
            }
        }
    }

    /// The kept reader that stopped at a cursor, or a new one.
    fn reader(&mut self, change: &SessionChange, cursor: SessionCursor) -> IncarnationReader {
        let kept = self.readers.take(&change.incarnation);
        let kept = kept.and_then(|reader| reader.resumed_at(cursor));
        kept.unwrap_or_else(|| IncarnationReader::at(change.session_id.clone(), cursor))
    }

    /// The records of a change are gone, with the session. That is a gap, unless only the deletion was yet to be delivered.
    async fn no_longer_kept(
        &self,
        change: &SessionChange,
        cursor: SessionCursor,
    ) -> Result<Found, StoreError> {
        let last = cursor.read_after().seq;
        let only_the_end = change.deleted && change.position.seq <= last.saturating_add(1);
        let mut items: Vec<_> = (!only_the_end).then(|| self.gap()).into_iter().collect();
        if change.deleted
            && let Some(event) = self.deletion(change, None).await?
        {
            let at = SessionCursor::at(change.incarnation, change.position).after(&event);
            let position = GlobalPosition::after_event(self.position.change.clone(), &at);
            items.push(ReadItem::event(event, FeedPosition::All(position)));
        }
        Ok(Found { items, ..Found::default() })
    }

    /// The event of a deletion that has no record.
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
