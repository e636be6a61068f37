//! Reading: what is durable, from the log.

use std::sync::Arc;

use bough_log as log;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId, SessionState};

use super::{Shared, convert};
use crate::StoreError;
use crate::types::{PathPage, PathQuery, RecordPage, Snapshot, StoredEntry, StoredRecord};
use bough_record::{Head, Position};

impl Shared {
    /// A reader; derived files that turn out to be damaged are made again on the way.
    pub(super) fn reader(
        &self,
        session: &SessionId,
    ) -> Result<log::Reader<SessionState>, StoreError> {
        self.log.read(session.as_str()).map_err(|error| match error {
            // An id that no log can have has no log.
            log::LogError::Invalid { .. } | log::LogError::TooLarge { .. } => {
                StoreError::NotFound { session: session.clone() }
            }
            other => convert::error(other, session),
        })
    }

    /// A reader, or `None` when there is no such session.
    fn reader_if_there(
        &self,
        session: &SessionId,
    ) -> Result<Option<log::Reader<SessionState>>, StoreError> {
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
            Ok(Some(snapshot(&reader)))
        };
        if_there(self.looking(session, look))
    }

    /// The state as far as the log can be read: enough for a list, where a damaged session must not be missing.
    pub(super) fn readable_state(
        &self,
        session: &SessionId,
    ) -> Result<Option<Snapshot>, StoreError> {
        let reader = self.reader_if_there(session)?;
        Ok(reader.as_ref().map(snapshot))
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
        let start = query.start.map(EntryId::as_str);
        let page = reader.path(leaf.as_str(), start, query.limit).map_err(failed)?;
        let Some(page) = page else {
            let entry = query.start.named().cloned().unwrap_or(leaf);
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
        let look = |reader: &log::Reader<SessionState>| read_entry(reader, session, entry);
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
            let looked_at = page.looked_at;
            for found in page.records {
                let stored = convert::stored_record(found);
                state.apply(&stored.record, stored.seq, stored.at_ms);
            }
            if looked_at <= next {
                break;
            }
            next = looked_at;
        }
        Ok(Some(state))
    }

    /// A reader of a life that is there or in the trash.
    fn reader_of(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<Option<log::Reader<SessionState>>, StoreError> {
        let live = self.reader_if_there(session)?;
        let is_it = |reader: &log::Reader<SessionState>| reader.head().incarnation == incarnation;
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
            Ok((snapshot(reader).state, reader.deleted_at_ms()))
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
fn check_whole(reader: &log::Reader<SessionState>, session: &SessionId) -> Result<(), StoreError> {
    reader.damage().map_or(Ok(()), |damage| Err(convert::error(damage.into(), session)))
}

/// What is durable, with the steps of streams: they are news of the session too.
pub(super) fn snapshot(reader: &log::Reader<SessionState>) -> Snapshot {
    // One look: a head that is newer than the state would let a writer go on from an old leaf.
    let log::Moment { head, fold, last_delta, last_step } = reader.moment();
    let mut state = Arc::unwrap_or_clone(fold);
    if let Some(step) = &last_delta {
        state.updated_at = state.updated_at.max(step.at_ms);
    }
    let position = Position::new(head.seq, last_step);
    Snapshot { head, position, state }
}

fn read_entry(
    reader: &log::Reader<SessionState>,
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
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    after: Position,
    limit: usize,
) -> Result<RecordPage, StoreError> {
    let limit = limit.max(1);
    let page = reader.page(after.seq, after.step, limit as u64);
    let page = page.map_err(|error| convert::error(error, session))?;
    let log::Page { records: found, deltas, head, last_step } = page;
    let steps: Vec<StoredRecord> = deltas.iter().filter_map(convert::stored_delta).collect();
    let end = Position::new(head.seq, last_step);
    let last_read = found.last().map_or(head.seq, |record| record.seq);
    let mut records: Vec<StoredRecord> = found.into_iter().map(convert::stored_record).collect();
    // A step belongs between the record that it follows and the next; those after the last record of
    // this page come with the next one.
    let whole = last_read == head.seq;
    records.extend(steps.into_iter().filter(|step| step.seq < last_read || whole));
    records.sort_by_key(StoredRecord::position);
    let more = !whole || records.len() > limit;
    records.truncate(limit);
    if !more {
        // Damage is after what can be read: who comes there is not told that the log ends.
        check_whole(reader, session)?;
    }
    Ok(RecordPage { incarnation: head.incarnation, records, end, more })
}
