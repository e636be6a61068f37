//! The types of a store as they travel, and the way there and back.

use bough_session::codec::{self, LogRecord};
use bough_session::{
    BranchHead, EntryId, Incarnation, NewRecord, Record, SessionDetails, SessionId, SessionMeta,
    SessionState,
};
use serde::{Deserialize, Serialize};

use super::protocol::{ReadRequest, WireList, WireRecord, WireStart};
use crate::StoreError;
use crate::types::{
    ChangeCursor, ChangePage, Head, ListPage, ListQuery, Listed, PathPage, PathQuery, PathStart,
    Position, RecordPage, SessionChange, Snapshot, StoredEntry, StoredRecord, Trashed,
};

/// The answer to an append.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireAppended {
    pub(crate) head: Head,
    pub(crate) position: Position,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireSnapshot {
    head: Head,
    position: Position,
    state: SessionState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireEntry {
    seq: u64,
    record: WireRecord,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WirePath {
    entries: Vec<WireEntry>,
    more: bool,
    leaf: Option<EntryId>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WirePlaced {
    position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settles: Option<u64>,
    record: WireRecord,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireRecords {
    incarnation: Incarnation,
    records: Vec<WirePlaced>,
    end: Position,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireHead {
    entry_id: EntryId,
    depth: u64,
    last_at: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireTrashed {
    session_id: SessionId,
    incarnation: Incarnation,
    deleted_at: Option<i64>,
    state: SessionState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireListed {
    meta: SessionMeta,
    details: SessionDetails,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WirePage {
    sessions: Vec<WireListed>,
    next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireChange {
    number: u64,
    session_id: SessionId,
    incarnation: Incarnation,
    after: Position,
    position: Position,
    deleted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireChanges {
    changes: Vec<WireChange>,
    next: ChangeCursor,
    gap: bool,
}

impl WireRecord {
    pub(crate) fn of(record: &Record, at_ms: i64) -> Self {
        let LogRecord { kind, id, parent, target, revision, at_ms, payload } =
            codec::encode(record, at_ms);
        Self { kind: kind.into_owned(), id, parent, target, revision, at_ms, payload }
    }

    pub(crate) fn into_new(self) -> NewRecord {
        let at_ms = self.at_ms;
        let Self { kind, id, parent, target, revision, payload, .. } = self;
        let stored = LogRecord { kind: kind.into(), id, parent, target, revision, at_ms, payload };
        codec::decode(stored).at(at_ms)
    }
}

pub(crate) fn records_out(records: &[NewRecord]) -> Vec<WireRecord> {
    records.iter().map(|new| WireRecord::of(&new.record, new.at_ms)).collect()
}

pub(crate) fn records_in(records: Vec<WireRecord>) -> Vec<NewRecord> {
    records.into_iter().map(WireRecord::into_new).collect()
}

impl From<Snapshot> for WireSnapshot {
    fn from(Snapshot { head, position, state }: Snapshot) -> Self {
        Self { head, position, state }
    }
}

impl From<WireSnapshot> for Snapshot {
    fn from(WireSnapshot { head, position, state }: WireSnapshot) -> Self {
        Self { head, position, state }
    }
}

impl From<StoredEntry> for WireEntry {
    fn from(stored: StoredEntry) -> Self {
        let at_ms = stored.entry.timestamp;
        Self { seq: stored.seq, record: WireRecord::of(&Record::Entry(stored.entry), at_ms) }
    }
}

impl WireEntry {
    pub(crate) fn into_stored(self) -> Result<StoredEntry, StoreError> {
        let new = self.record.into_new();
        let entry = new.record.as_entry().cloned();
        let entry = entry.ok_or_else(|| StoreError::invalid("the main sent no entry"))?;
        Ok(StoredEntry { seq: self.seq, entry })
    }
}

impl From<PathPage> for WirePath {
    fn from(page: PathPage) -> Self {
        let entries = page.entries.into_iter().map(WireEntry::from).collect();
        Self { entries, more: page.more, leaf: page.leaf }
    }
}

impl WirePath {
    pub(crate) fn into_page(self) -> Result<PathPage, StoreError> {
        let entries: Result<_, _> = self.entries.into_iter().map(WireEntry::into_stored).collect();
        Ok(PathPage { entries: entries?, more: self.more, leaf: self.leaf })
    }
}

impl From<RecordPage> for WireRecords {
    fn from(page: RecordPage) -> Self {
        let placed = |stored: StoredRecord| WirePlaced {
            position: stored.position,
            settles: stored.settles,
            record: WireRecord::of(&stored.record, stored.at_ms),
        };
        let records = page.records.into_iter().map(placed).collect();
        Self { incarnation: page.incarnation, records, end: page.end }
    }
}

impl From<WireRecords> for RecordPage {
    fn from(page: WireRecords) -> Self {
        let stored = |placed: WirePlaced| {
            let NewRecord { at_ms, record } = placed.record.into_new();
            StoredRecord { position: placed.position, at_ms, record, settles: placed.settles }
        };
        let records = page.records.into_iter().map(stored).collect();
        Self { incarnation: page.incarnation, records, end: page.end }
    }
}

impl From<BranchHead> for WireHead {
    fn from(BranchHead { entry_id, depth, last_at }: BranchHead) -> Self {
        Self { entry_id, depth, last_at }
    }
}

impl From<WireHead> for BranchHead {
    fn from(WireHead { entry_id, depth, last_at }: WireHead) -> Self {
        Self { entry_id, depth, last_at }
    }
}

impl From<Trashed> for WireTrashed {
    fn from(Trashed { session_id, incarnation, deleted_at, state }: Trashed) -> Self {
        Self { session_id, incarnation, deleted_at, state }
    }
}

impl From<WireTrashed> for Trashed {
    fn from(WireTrashed { session_id, incarnation, deleted_at, state }: WireTrashed) -> Self {
        Self { session_id, incarnation, deleted_at, state }
    }
}

impl From<ListPage> for WirePage {
    fn from(page: ListPage) -> Self {
        let listed = |Listed { meta, details }: Listed| WireListed { meta, details };
        let sessions = page.sessions.into_iter().map(listed).collect();
        Self { sessions, next_cursor: page.next_cursor }
    }
}

impl From<WirePage> for ListPage {
    fn from(page: WirePage) -> Self {
        let listed = |WireListed { meta, details }: WireListed| Listed { meta, details };
        let sessions = page.sessions.into_iter().map(listed).collect();
        Self { sessions, next_cursor: page.next_cursor }
    }
}

impl From<ChangePage> for WireChanges {
    fn from(page: ChangePage) -> Self {
        let change = |change: SessionChange| WireChange {
            number: change.number,
            session_id: change.session_id,
            incarnation: change.incarnation,
            after: change.after,
            position: change.position,
            deleted: change.deleted,
        };
        let changes = page.changes.into_iter().map(change).collect();
        Self { changes, next: page.next, gap: page.gap }
    }
}

impl From<WireChanges> for ChangePage {
    fn from(page: WireChanges) -> Self {
        let change = |change: WireChange| SessionChange {
            number: change.number,
            session_id: change.session_id,
            incarnation: change.incarnation,
            after: change.after,
            position: change.position,
            deleted: change.deleted,
        };
        let changes = page.changes.into_iter().map(change).collect();
        Self { changes, next: page.next, gap: page.gap }
    }
}

impl From<&ListQuery> for WireList {
    fn from(query: &ListQuery) -> Self {
        let ListQuery {
            order,
            status,
            task_status,
            task_name,
            archived,
            id_prefix,
            metadata,
            scope,
            text,
            limit,
            cursor,
        } = query.clone();
        Self {
            order,
            status,
            task_status,
            task_name,
            archived,
            id_prefix,
            metadata,
            scope,
            text,
            limit,
            cursor,
        }
    }
}

impl From<WireList> for ListQuery {
    fn from(query: WireList) -> Self {
        let WireList {
            order,
            status,
            task_status,
            task_name,
            archived,
            id_prefix,
            metadata,
            scope,
            text,
            limit,
            cursor,
        } = query;
        Self {
            order,
            status,
            task_status,
            task_name,
            archived,
            id_prefix,
            metadata,
            scope,
            text,
            limit,
            cursor,
        }
    }
}

impl From<&PathStart> for WireStart {
    fn from(start: &PathStart) -> Self {
        match start {
            PathStart::Root => Self::Root,
            PathStart::After(entry) => Self::After(entry.clone()),
            PathStart::Leaf => Self::Leaf,
            PathStart::Before(entry) => Self::Before(entry.clone()),
        }
    }
}

impl From<WireStart> for PathStart {
    fn from(start: WireStart) -> Self {
        match start {
            WireStart::Root => Self::Root,
            WireStart::After(entry) => Self::After(entry),
            WireStart::Leaf => Self::Leaf,
            WireStart::Before(entry) => Self::Before(entry),
        }
    }
}

impl ReadRequest {
    pub(crate) fn path(session_id: SessionId, query: &PathQuery) -> Self {
        let start = WireStart::from(&query.start);
        Self::Path { session_id, leaf: query.leaf.clone(), start, limit: query.limit }
    }
}
