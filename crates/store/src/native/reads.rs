//! Reading: what is durable, from the log.

use std::sync::Arc;

use bough_log as log;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId, SessionState};

use super::convert::StoreResult;
use super::{Shared, convert};
use crate::StoreError;
use crate::store_ext::if_there;
use crate::types::{
    EntryQuery, Loaded, PathPage, PathQuery, RecordFilter, RecordPage, RecordQuery, Snapshot,
    StoredEntry, StoredRecord,
};
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
                StoreError::not_found(session)
            }
            other => convert::store_error(other, session),
        })
    }

    /// Reads the incarnation of a session that is asked for: the present one, or one in the trash. `NotFound` when it is
    /// neither.
    fn read_incarnation<T>(
        &self,
        session: &SessionId,
        incarnation: Option<Incarnation>,
        read: impl Fn(&log::Reader<SessionState>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let present = self.retry_read(session, || {
            let reader = self.reader(session)?;
            let is_asked = incarnation.is_none_or(|asked| asked == reader.head().incarnation);
            is_asked.then(|| read(&reader)).transpose()
        });
        match (present, incarnation) {
            (Ok(Some(found)), _) => Ok(found),
            (Ok(None) | Err(StoreError::NotFound { .. }), Some(asked)) => {
                self.in_trash(session, asked, read)
            }
            (Ok(None), None) => Err(StoreError::not_found(session)),
            (Err(error), _) => Err(error),
        }
    }

    pub(super) fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        if_there(self.retry_read(session, || {
            let reader = self.reader(session)?;
            check_whole(&reader, session)?;
            Ok(snapshot(&reader))
        }))
    }

    /// The state, unless the caller knows it.
    pub(super) fn load(
        &self,
        session: &SessionId,
        known: Option<&Head>,
    ) -> Result<Loaded, StoreError> {
        // Asking a log that is closed where it ends would open it for writing.
        if let Some(known) = known
            && self.log.is_open(session.as_str())
            && self.accepted(session).is_ok_and(|accepted| accepted == *known)
        {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::unless(known, self.state(session)?))
    }

    /// The state as far as the log can be read: enough for a list, where a damaged session must not be missing.
    pub(super) fn readable_state(
        &self,
        session: &SessionId,
    ) -> Result<Option<Snapshot>, StoreError> {
        Ok(if_there(self.reader(session))?.as_ref().map(snapshot))
    }

    pub(super) fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let read = |reader: &log::Reader<SessionState>| entry_of(reader, session, query);
        Ok(if_there(self.read_incarnation(session, query.incarnation, read))?.flatten())
    }

    pub(super) fn path(
        &self,
        session: &SessionId,
        query: &PathQuery,
    ) -> Result<PathPage, StoreError> {
        self.retry_read(session, || self.path_now(session, query))
    }

    fn path_now(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let reader = self.reader(session)?;
        if query.leaf.is_none() {
            check_whole(&reader, session)?;
        }
        let leaf = query.leaf.clone().or_else(|| reader.active_leaf().map(EntryId::from_stored));
        let Some(leaf) = leaf else {
            return Ok(PathPage { entries: Vec::new(), more: false, leaf: None });
        };
        if reader.find(leaf.as_str()).of(session)?.is_none() {
            check_whole(&reader, session)?;
            return Err(StoreError::EntryNotFound { entry: leaf });
        }
        let start = query.start.map(EntryId::as_str);
        let page =
            reader.path(leaf.as_str(), start, query.limit, convert::stored_record).of(session)?;
        let Some(page) = page else {
            let entry = query.start.named().cloned().unwrap_or(leaf);
            return Err(StoreError::NotOnPath { entry });
        };
        let entries = page.entries.into_iter().map(|found| Ok(convert::entry(found)?.0));
        let entries = entries.collect::<Result<_, StoreError>>()?;
        Ok(PathPage { entries, more: page.more, leaf: Some(leaf) })
    }

    /// Whether what follows a position is little and was just written, so that the system has it in memory.
    pub(super) fn is_small_read(&self, session: &SessionId, query: &RecordQuery) -> bool {
        /// More is work for another thread.
        const SMALL_READ_RECORDS_MAX: u64 = 8;
        let is_little = |head: Head| {
            query.incarnation.is_none_or(|asked| asked == head.incarnation)
                && head.seq.saturating_sub(query.after.seq) <= SMALL_READ_RECORDS_MAX
        };
        self.log.is_open(session.as_str()) && self.accepted(session).is_ok_and(is_little)
    }

    pub(super) fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        self.read_incarnation(session, query.incarnation, |reader| match &query.filter {
            RecordFilter::All => records_of(reader, session, query),
            RecordFilter::WithoutEntries { up_to } => {
                records_without_entries(reader, session, query, *up_to)
            }
            RecordFilter::Numbers(numbers) => records_numbered(reader, session, numbers),
        })
    }

    pub(super) fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        self.retry_read(session, || self.branch_heads_now(session, before, limit))
    }

    fn branch_heads_now(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let reader = self.reader(session)?;
        check_whole(&reader, session)?;
        let mut heads = reader.branch_heads().of(session)?;
        if let Some(before) = before {
            let found = reader.find(before.as_str()).of(session)?;
            let end = found.ok_or_else(|| StoreError::EntryNotFound { entry: before.clone() })?;
            heads.retain(|head| head.seq < end);
        }
        heads.reverse();
        heads.truncate(limit);
        let mut found = Vec::with_capacity(heads.len());
        for head in heads {
            let entry = reader.entry(&head.entry_id, convert::stored_record).of(session)?;
            if let Some(entry) = entry {
                let depth = entry.depth;
                let (stored, last_at) = convert::entry(entry)?;
                found.push(BranchHead { entry_id: stored.entry.id, depth, last_at });
            }
        }
        Ok(found)
    }

    /// The state of an incarnation that is in the trash, and when it was deleted.
    pub(super) fn trashed(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<(SessionState, Option<i64>), StoreError> {
        self.in_trash(session, incarnation, |reader| {
            Ok((Arc::unwrap_or_clone(snapshot(reader).state), reader.deleted_at_ms()))
        })
    }
}

/// Refuses a log that is damaged behind what can be read of it: what is missing there must not be taken for not there.
fn check_whole(reader: &log::Reader<SessionState>, session: &SessionId) -> Result<(), StoreError> {
    reader.damage().map_or(Ok(()), |damage| Err(damage.into()).of(session))
}

/// What is durable, with the steps of streams: they are news of the session too.
pub(super) fn snapshot(reader: &log::Reader<SessionState>) -> Snapshot {
    // Read together: with a head that is newer than the state, a writer would go on from an old leaf.
    let log::Moment { head, fold: mut state, last_delta, last_step } = reader.moment();
    if let Some(step) = last_delta.filter(|step| step.at_ms > state.meta.updated_at) {
        Arc::make_mut(&mut state).meta.updated_at = step.at_ms;
    }
    let position = Position::new(head.seq, last_step);
    Snapshot { head, position, state }
}

fn entry_of(
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    query: &EntryQuery,
) -> Result<Option<StoredEntry>, StoreError> {
    let found = reader.entry(query.id.as_str(), convert::stored_record).of(session)?;
    let Some(found) = found else {
        check_whole(reader, session)?;
        return Ok(None);
    };
    let (stored, _) = convert::entry_up_to(found, query.revision.unwrap_or(u64::MAX))?;
    let is_asked = |revision: u64| revision == stored.entry.revision;
    Ok(query.revision.is_none_or(is_asked).then_some(stored))
}

/// The records after a position, with the steps of streams among them.
fn records_of(
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    query: &RecordQuery,
) -> Result<RecordPage, StoreError> {
    let (after, limit) = (query.after, query.limit.max(1));
    let from = (after.seq, after.step);
    let page = reader.page(from, limit as u64, convert::stored_record).of(session)?;
    let log::Page { mut records, deltas, head, last_step } = page;
    let steps: Vec<StoredRecord> = deltas.iter().filter_map(convert::stored_delta).collect();
    let end = Position::new(head.seq, last_step);
    let last_read = records.last().map_or(head.seq, |record| record.seq);
    hide_records(reader, session, &mut records)?;
    // A step belongs between the record that it follows and the next; those after the last record of
    // this page come with the next one.
    let whole = last_read == head.seq;
    records.extend(steps.into_iter().filter(|step| step.seq < last_read || whole));
    records.sort_by_key(StoredRecord::position);
    let more = !whole || records.len() > limit;
    records.truncate(limit);
    if !more {
        // The damage is behind what can be read: a reader that comes there must not believe that the log ends.
        check_whole(reader, session)?;
    }
    Ok(RecordPage { incarnation: head.incarnation, records, end, more })
}

/// The records with these numbers: one look-up each.
fn records_numbered(
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    numbers: &[u64],
) -> Result<RecordPage, StoreError> {
    let log::Moment { head, last_step, .. } = reader.moment();
    let mut records = Vec::with_capacity(numbers.len());
    for number in numbers {
        records.extend(reader.record(*number, convert::stored_record).of(session)?);
    }
    hide_records(reader, session, &mut records)?;
    let end = Position::new(head.seq, last_step);
    Ok(RecordPage { incarnation: head.incarnation, records, end, more: false })
}

/// Takes away what the records say of entries that were hidden since.
fn hide_records(
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    records: &mut [StoredRecord],
) -> Result<(), StoreError> {
    if reader.moment().fold.hidden_count == 0 {
        return Ok(());
    }
    for stored in records {
        let Some(id) = stored.record.changed_entry() else { continue };
        if reader.is_removed(id.as_str()).of(session)? {
            stored.record.hide();
        }
    }
    Ok(())
}

/// The records after a position that neither add nor change an entry. Of the others only the offset rows are read.
fn records_without_entries(
    reader: &log::Reader<SessionState>,
    session: &SessionId,
    query: &RecordQuery,
    up_to: u64,
) -> Result<RecordPage, StoreError> {
    let log::Moment { head, last_step, .. } = reader.moment();
    let (limit, last) = (query.limit.max(1), up_to.min(head.seq));
    let (mut records, mut looked_at) = (Vec::new(), query.after.seq);
    while looked_at < last && records.len() <= limit {
        let page = reader.others(looked_at, last, convert::stored_record).of(session)?;
        records.extend(page.records);
        if page.looked_at <= looked_at {
            break;
        }
        looked_at = page.looked_at;
    }
    let more = records.len() > limit;
    records.truncate(limit);
    if !more {
        check_whole(reader, session)?;
    }
    let end = Position::new(head.seq, last_step);
    Ok(RecordPage { incarnation: head.incarnation, records, end, more })
}
