//! Reading: what is durable, from the log.

use bough_log as log;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId, SessionState};

use super::{Shared, convert, fold};
use crate::StoreError;
use crate::types::{
    Head, PathPage, PathQuery, PathStart, Position, RecordPage, Snapshot, StoredEntry, StoredRecord,
};

impl Shared {
    /// A reader; derived files that turn out to be damaged are made again on the way.
    pub(super) fn reader(&self, session: &SessionId) -> Result<log::Reader, StoreError> {
        self.log.read(session.as_str()).map_err(|error| match error {
            // An id that no log can have has no log.
            log::LogError::Invalid { .. } | log::LogError::TooLarge { .. } => {
                StoreError::NotFound { session: session.clone() }
            }
            other => convert::error(other, session),
        })
    }

    /// A reader, or `None` when there is no such session.
    fn reader_if_there(&self, session: &SessionId) -> Result<Option<log::Reader>, StoreError> {
        match self.reader(session) {
            Ok(reader) => Ok(Some(reader)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        let look = || {
            let Some(reader) = self.reader_if_there(session)? else { return Ok(None) };
            check_whole(&reader, session)?;
            snapshot(&reader, session).map(Some)
        };
        if_there(self.looking(session, look))
    }

    /// The state as far as the log can be read: enough for a list, where a damaged session must not be missing.
    pub(super) fn readable_state(
        &self,
        session: &SessionId,
    ) -> Result<Option<Snapshot>, StoreError> {
        let reader = self.reader_if_there(session)?;
        reader.map(|reader| snapshot(&reader, session)).transpose()
    }

    pub(super) fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let look = || {
            let Some(reader) = self.reader_if_there(session)? else { return Ok(None) };
            read_entry(&reader, session, entry)
        };
        if_there(self.looking(session, look))
    }

    pub(super) fn path(
        &self,
        session: &SessionId,
        query: &PathQuery,
    ) -> Result<PathPage, StoreError> {
        self.looking(session, || self.path_now(session, query))
    }

    fn path_now(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let reader = self.reader(session)?;
        let failed = |error| convert::error(error, session);
        if query.leaf.is_none() {
            check_whole(&reader, session)?;
        }
        let leaf = query.leaf.clone().or_else(|| reader.active_leaf().map(EntryId::from_stored));
        let Some(leaf) = leaf else {
            return Ok(PathPage { entries: Vec::new(), more: false, leaf: None });
        };
        if reader.find(leaf.as_str()).map_err(failed)?.is_none() {
            check_whole(&reader, session)?;
            return Err(StoreError::EntryNotFound { entry: leaf });
        }
        let (start, named) = match &query.start {
            PathStart::Root => (log::PathStart::Root, None),
            PathStart::After(entry) => (log::PathStart::After(entry.as_str()), Some(entry)),
            PathStart::Leaf => (log::PathStart::Leaf, None),
            PathStart::Before(entry) => (log::PathStart::Before(entry.as_str()), Some(entry)),
        };
        let page = reader.path(leaf.as_str(), start, query.limit).map_err(failed)?;
        let Some(page) = page else {
            let entry = named.cloned().unwrap_or(leaf);
            return Err(StoreError::NotOnPath { entry });
        };
        // Each is let go of as soon as it is converted: a page may be many megabytes.
        let entries = page.entries.into_iter().map(|found| Ok(convert::entry(&found)?.0));
        let entries = entries.collect::<Result<_, StoreError>>()?;
        Ok(PathPage { entries, more: page.more, leaf: Some(leaf) })
    }

    /// Whether what follows a position is little and was just written, so that the system has it in memory.
    pub(super) fn is_at_hand(&self, session: &SessionId, after: Position) -> bool {
        /// More is work for another thread.
        const AT_HAND_RECORDS_MAX: u64 = 8;
        self.log.is_open(session.as_str())
            && self
                .log
                .accepted_head(session.as_str())
                .is_ok_and(|head| head.seq.saturating_sub(after.seq) <= AT_HAND_RECORDS_MAX)
    }

    /// Whether this process writes the log, so that nobody else does, and left it at `head`.
    pub(super) fn is_newest(&self, session: &SessionId, head: &Head) -> bool {
        // Asking where the log ends would open one that is closed.
        self.log.is_open(session.as_str())
            && self.accepted(session).is_ok_and(|accepted| accepted == *head)
    }

    /// The records after a position, if this process wrote them and nobody wrote to the log since.
    pub(super) fn recent_records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Option<RecordPage> {
        // Asking where the log ends would open one that is closed.
        if !self.log.is_open(session.as_str()) {
            return None;
        }
        let accepted = self.accepted(session).ok()?;
        self.recent.read(session, &accepted, after, limit)
    }

    pub(super) fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        self.looking(session, || read_records(&self.reader(session)?, session, after, limit))
    }

    /// The records of a life that is in the trash.
    pub(super) fn trashed_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        self.in_trash(session, incarnation, |reader| read_records(reader, session, after, limit))
    }

    /// An entry of a life that is in the trash.
    pub(super) fn trashed_entry(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let look = |reader: &log::Reader| read_entry(reader, session, entry);
        if_there(self.in_trash(session, incarnation, look))
    }

    /// An entry as it was at a revision, in a life that is there or in the trash.
    pub(super) fn entry_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
        revision: u64,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let Some(reader) = self.reader_of(session, incarnation)? else { return Ok(None) };
        let found = reader.entry(entry.as_str()).map_err(|error| convert::error(error, session))?;
        let Some(found) = found else { return Ok(None) };
        let (stored, _) = convert::entry_up_to(&found, revision)?;
        Ok(Some(stored).filter(|stored| stored.entry.revision == revision))
    }

    /// The fold over the records up to one, of which those that add or change entries are left out.
    pub(super) fn state_at(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        seq: u64,
    ) -> Result<Option<SessionState>, StoreError> {
        let Some(reader) = self.reader_of(session, incarnation)? else { return Ok(None) };
        let mut state = SessionState::new(session.clone());
        let mut next = 0;
        while next < seq {
            let page = reader.others(next, seq).map_err(|error| convert::error(error, session))?;
            for found in &page.records {
                let stored = convert::stored_record(found);
                state.apply(&stored.record, found.seq, stored.at_ms);
            }
            if page.looked_at <= next {
                break;
            }
            next = page.looked_at;
        }
        Ok(Some(state))
    }

    /// A reader of a life that is there or in the trash.
    fn reader_of(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<Option<log::Reader>, StoreError> {
        let live = self.reader_if_there(session)?;
        let is_it = |reader: &log::Reader| convert::head(reader.head()).incarnation == incarnation;
        if let Some(reader) = live.filter(is_it) {
            return Ok(Some(reader));
        }
        match self.reader_of_trash(session, incarnation) {
            Ok(reader) => Ok(Some(reader)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        self.looking(session, || self.branch_heads_now(session, before, limit))
    }

    fn branch_heads_now(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let reader = self.reader(session)?;
        check_whole(&reader, session)?;
        let failed = |error| convert::error(error, session);
        let mut heads = reader.branch_heads().map_err(failed)?;
        if let Some(before) = before {
            let found = reader.entry(before.as_str()).map_err(failed)?;
            let end =
                found.ok_or_else(|| StoreError::EntryNotFound { entry: before.clone() })?.added.seq;
            heads.retain(|head| head.seq < end);
        }
        heads.reverse();
        heads.truncate(limit);
        let mut found = Vec::with_capacity(heads.len());
        for head in heads {
            if let Some(entry) = reader.entry(&head.entry_id).map_err(failed)? {
                let depth = entry.depth;
                let (stored, last_at) = convert::entry(&entry)?;
                found.push(BranchHead { entry_id: stored.entry.id, depth, last_at });
            }
        }
        Ok(found)
    }

    /// The state of a life that is in the trash.
    pub(super) fn trashed_state(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<SessionState, StoreError> {
        Ok(self.trashed(session, incarnation)?.0)
    }

    /// The state of a life that is in the trash, and when it was deleted.
    pub(super) fn trashed(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<(SessionState, Option<i64>), StoreError> {
        self.in_trash(session, incarnation, |reader| {
            Ok((snapshot(reader, session)?.state, reader.deleted_at_ms()))
        })
    }
}

/// A session that is not found is none.
fn if_there<T>(seen: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match seen {
        Err(StoreError::NotFound { .. }) => Ok(None),
        seen => seen,
    }
}

/// Refuses a log that is damaged behind what can be read of it: what is missing there must not be taken for not there.
fn check_whole(reader: &log::Reader, session: &SessionId) -> Result<(), StoreError> {
    reader.damage().map_or(Ok(()), |damage| Err(convert::error(damage.into(), session)))
}

/// What is durable, with the steps of streams: they are news of the session too.
pub(super) fn snapshot(reader: &log::Reader, session: &SessionId) -> Result<Snapshot, StoreError> {
    // One look: a head that is newer than the state would let a writer go on from an old leaf.
    let log::Moment { head, fold, last_delta } = reader.moment();
    let state = fold::state_of(&*fold).cloned();
    let mut state = state.ok_or_else(|| {
        StoreError::corrupt("the state cannot be read", format!("session {session}"))
    })?;
    let last_step = last_delta.as_ref().and_then(convert::stored_delta);
    if let Some(step) = &last_step {
        state.updated_at = state.updated_at.max(step.at_ms);
    }
    let position = end_position(head.seq, last_step.as_ref());
    Ok(Snapshot { head: convert::head(head), position, state })
}

fn read_entry(
    reader: &log::Reader,
    session: &SessionId,
    entry: &EntryId,
) -> Result<Option<StoredEntry>, StoreError> {
    let found = reader.entry(entry.as_str()).map_err(|error| convert::error(error, session))?;
    if found.is_none() {
        check_whole(reader, session)?;
    }
    found.map(|found| Ok(convert::entry(&found)?.0)).transpose()
}

/// The records after a position, with the steps of streams among them.
fn read_records(
    reader: &log::Reader,
    session: &SessionId,
    after: Position,
    limit: usize,
) -> Result<RecordPage, StoreError> {
    let limit = limit.max(1);
    let page = reader.page(after.seq, after.revision, limit as u64);
    let page = page.map_err(|error| convert::error(error, session))?;
    let log::Page { records: found, deltas, head, last_delta } = page;
    let steps: Vec<StoredRecord> = deltas.iter().filter_map(convert::stored_delta).collect();
    let last_step = last_delta.as_ref().and_then(convert::stored_delta);
    let end = end_position(head.seq, last_step.as_ref());
    let last_read = found.last().map_or(head.seq, |record| record.seq);
    let mut records: Vec<StoredRecord> = found.iter().map(convert::stored_record).collect();
    // A step belongs between the record that it follows and the next; those after the last record of
    // this page come with the next one.
    let whole = last_read == head.seq;
    records.extend(steps.into_iter().filter(|step| step.position.seq < last_read || whole));
    records.sort_by_key(|record| record.position);
    records.truncate(limit);
    if records.last().is_none_or(|last| last.position >= end) {
        check_whole(reader, session)?;
    }
    Ok(RecordPage { incarnation: convert::incarnation(head.incarnation), records, end })
}

/// Where the feed ends: at the last record and the last step, which is not always one after it: a stream that begins
/// beside others has a record, and they go on.
fn end_position(seq: u64, last_step: Option<&StoredRecord>) -> Position {
    Position { seq, revision: last_step.map_or(0, |step| step.position.revision) }
}
