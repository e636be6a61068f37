//! A whole session in memory, for the adapters without an index of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bough_session::tree::{Node, branch_heads};
use bough_session::{
    BranchHead, Entry, EntryId, Incarnation, NewRecord, Record, Revision, SessionId, SessionState,
    codec,
};

use crate::StoreError;
use crate::types::{
    EntryQuery, PathPage, PathQuery, RecordFilter, RecordPage, RecordQuery, Snapshot, Steps,
    StoredEntry, StoredRecord,
};
use bough_record::{ChainHash, Envelope, Head, PathStart, Position, payload_digest};

/// A whole session in memory.
#[derive(Clone, Debug)]
pub(crate) struct MemorySession {
    pub(crate) incarnation: Incarnation,
    pub(crate) chain: ChainHash,
    pub(crate) state: SessionState,
    pub(crate) records: Vec<StoredRecord>,
    /// The newest step of a stream that a record replaced; steps are numbered from there.
    pub(crate) last_step: u64,
    nodes: Vec<EntryId>,
    entries: HashMap<EntryId, Slot>,
}

#[derive(Clone, Debug)]
struct Slot {
    seq: u64,
    last_at: i64,
    entry: Entry,
}

impl MemorySession {
    pub(crate) fn new(session: &SessionId, incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            chain: ChainHash::genesis(session.as_str(), incarnation),
            state: SessionState::new(session.clone()),
            records: Vec::new(),
            last_step: 0,
            nodes: Vec::new(),
            entries: HashMap::new(),
        }
    }

    /// A session with its first records, if they fit.
    pub(crate) fn with_records(
        session: &SessionId,
        incarnation: Incarnation,
        records: Vec<NewRecord>,
    ) -> Result<Self, StoreError> {
        let mut image = Self::new(session, incarnation);
        image.check(&records)?;
        records.into_iter().for_each(|new| image.push(new));
        Ok(image)
    }

    pub(crate) fn seq(&self) -> u64 {
        self.state.seq
    }

    pub(crate) fn head(&self) -> Head {
        Head { incarnation: self.incarnation, seq: self.seq(), chain: self.chain }
    }

    /// Refuses a caller that expects another head.
    pub(crate) fn expect_head(&self, expected: &Head) -> Result<(), StoreError> {
        let current = self.head();
        if current == *expected { Ok(()) } else { Err(StoreError::Conflict { current }) }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            head: self.head(),
            position: Position::new(self.seq(), self.last_step),
            state: Arc::new(self.state.clone()),
        }
    }

    /// Refuses a batch with a record that does not fit: an entry that exists, or a revision with
    /// another base. Nothing changes.
    pub(crate) fn check(&self, records: &[NewRecord]) -> Result<(), StoreError> {
        let mut changed: HashMap<&EntryId, Entry> = HashMap::new();
        for new in records {
            match new.record.known() {
                Record::Entry(entry) => {
                    if self.entries.contains_key(&entry.id) || changed.contains_key(&entry.id) {
                        let what = format!("entry {} exists already", entry.id);
                        return Err(StoreError::invalid(what));
                    }
                    changed.insert(&entry.id, entry.clone());
                }
                Record::Revision(revision) => self.check_revision(revision, &mut changed)?,
                Record::Removed(removal) if !self.entries.contains_key(&removal.entry_id) => {
                    return Err(StoreError::EntryNotFound { entry: removal.entry_id.clone() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_revision<'a>(
        &self,
        revision: &'a Revision,
        changed: &mut HashMap<&'a EntryId, Entry>,
    ) -> Result<(), StoreError> {
        let missing = || StoreError::EntryNotFound { entry: revision.entry_id.clone() };
        let known = changed.remove(&revision.entry_id);
        let mut entry = known
            .or_else(|| self.entry(&revision.entry_id).map(|stored| stored.entry))
            .ok_or_else(missing)?;
        revision.apply(&mut entry).map_err(|error| StoreError::invalid(error.to_string()))?;
        changed.insert(&revision.entry_id, entry);
        Ok(())
    }

    /// Adds a record; the caller has checked it.
    pub(crate) fn push(&mut self, new: NewRecord) {
        let stored = codec::encode(&new.record, new.at_ms);
        let chain = next_chain(self.chain, &stored);
        self.push_chained(new, chain);
    }

    /// Adds a record, with the hash that the caller has computed.
    pub(crate) fn push_chained(&mut self, new: NewRecord, chain: ChainHash) {
        let seq = self.seq() + 1;
        self.chain = chain;
        self.state.apply(&new.record, seq, new.at_ms);
        match new.record.known() {
            Record::Entry(entry) => self.insert(entry, seq, new.at_ms),
            Record::Revision(revision) => {
                if let Some(slot) = self.entries.get_mut(&revision.entry_id) {
                    // Checked before it was accepted; a record that does not fit changes nothing.
                    if revision.apply(&mut slot.entry).is_ok() {
                        slot.last_at = new.at_ms;
                    }
                }
            }
            Record::Removed(removal) => {
                if let Some(slot) = self.entries.get_mut(&removal.entry_id) {
                    slot.entry.hide();
                    slot.last_at = new.at_ms;
                }
            }
            _ => {}
        }
        self.records.push(StoredRecord {
            seq,
            steps: Steps::None,
            at_ms: new.at_ms,
            record: new.record,
        });
    }

    /// Notes that the newest record replaced the steps of a stream up to one.
    pub(crate) fn took_steps(&mut self, last_step: u64) {
        if let Some(newest) = self.records.last_mut() {
            newest.steps = Steps::UpTo(last_step);
        }
        self.last_step = self.last_step.max(last_step);
    }

    fn insert(&mut self, entry: &Entry, seq: u64, last_at: i64) {
        let slot = Slot { seq, last_at, entry: entry.clone() };
        if self.entries.insert(entry.id.clone(), slot).is_none() {
            self.nodes.push(entry.id.clone());
        }
    }

    pub(crate) fn entry(&self, id: &EntryId) -> Option<StoredEntry> {
        self.entries.get(id).map(|slot| StoredEntry { seq: slot.seq, entry: slot.entry.clone() })
    }

    pub(crate) fn entry_ref(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.get(id).map(|slot| &slot.entry)
    }

    /// An entry as it was at a revision, from the record that added it, those that changed it, and the steps behind them.
    pub(crate) fn entry_at(
        &self,
        id: &EntryId,
        revision: u64,
        steps: &[StoredRecord],
    ) -> Option<StoredEntry> {
        let slot = self.entries.get(id)?;
        if slot.entry.is_hidden() {
            return self.entry(id);
        }
        let before = usize::try_from(slot.seq.checked_sub(1)?).ok()?;
        let mut records = self.records.iter().skip(before).chain(steps);
        let mut entry = records.next()?.record.as_entry()?.clone();
        for stored in records {
            match stored.record.known() {
                _ if entry.revision >= revision => break,
                Record::Revision(change) if change.entry_id == *id => {
                    change.apply(&mut entry).ok()?;
                }
                _ => {}
            }
        }
        (entry.revision == revision).then_some(StoredEntry { seq: slot.seq, entry })
    }

    pub(crate) fn read_entry(&self, query: &EntryQuery) -> Option<StoredEntry> {
        match query.revision {
            Some(revision) => self.entry_at(&query.id, revision, &[]),
            None => self.entry(&query.id),
        }
    }

    pub(crate) fn records(&self, query: &RecordQuery) -> RecordPage {
        if let RecordFilter::Numbers(numbers) = &query.filter {
            return self.numbered(numbers);
        }
        let known = usize::try_from(query.after.seq).unwrap_or(usize::MAX);
        let news = self.records.iter().skip(known);
        let mut wanted = news.filter(|stored| query.wants(stored));
        RecordPage {
            incarnation: self.incarnation,
            records: wanted
                .by_ref()
                .take(query.limit.max(1))
                .map(|stored| self.shown(stored))
                .collect(),
            end: Position::new(self.seq(), self.last_step),
            more: wanted.next().is_some(),
        }
    }

    fn numbered(&self, numbers: &[u64]) -> RecordPage {
        let place = |number: &u64| usize::try_from(number.checked_sub(1)?).ok();
        let found = numbers.iter().filter_map(|number| self.records.get(place(number)?));
        RecordPage {
            incarnation: self.incarnation,
            records: found.map(|stored| self.shown(stored)).collect(),
            end: Position::new(self.seq(), self.last_step),
            more: false,
        }
    }

    /// A record as readers see it: without the content of a hidden entry.
    fn shown(&self, stored: &StoredRecord) -> StoredRecord {
        let mut shown = stored.clone();
        if shown.record.changed_entry().is_some_and(|id| self.is_hidden(id)) {
            shown.record.hide();
        }
        shown
    }

    fn is_hidden(&self, id: &EntryId) -> bool {
        self.entries.get(id).is_some_and(|slot| slot.entry.is_hidden())
    }

    pub(crate) fn branch_heads(
        &self,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let slots = self.nodes.iter().filter_map(|id| self.entries.get(id));
        let nodes: Vec<Node<'_>> = slots
            .map(|slot| Node {
                id: &slot.entry.id,
                parent: slot.entry.parent_id.as_ref(),
                at_ms: slot.last_at,
            })
            .collect();
        let mut heads = branch_heads(&nodes);
        if let Some(before) = before {
            let end = self.nodes.iter().position(|id| id == before);
            let end = end.ok_or_else(|| StoreError::EntryNotFound { entry: before.clone() })?;
            let older: HashSet<&EntryId> = self.nodes.iter().take(end).collect();
            heads.retain(|head| older.contains(&head.entry_id));
        }
        heads.reverse();
        heads.truncate(limit);
        Ok(heads)
    }

    pub(crate) fn path(&self, query: &PathQuery) -> Result<PathPage, StoreError> {
        let leaf = query.leaf.as_ref().or(self.state.leaf.as_ref());
        let Some(leaf) = leaf else {
            return Ok(PathPage { entries: Vec::new(), more: false, leaf: None });
        };
        if !self.entries.contains_key(leaf) {
            let entry = leaf.clone();
            return Err(StoreError::EntryNotFound { entry });
        }
        let mut path = self.walk(leaf)?;
        match &query.start {
            PathStart::Root => path.reverse(),
            PathStart::After(entry) => {
                path.truncate(place_of(&path, entry)?);
                path.reverse();
            }
            PathStart::Leaf => {}
            PathStart::Before(entry) => {
                path.drain(..=place_of(&path, entry)?);
            }
        }
        Ok(PathPage {
            more: path.len() > query.limit,
            entries: path.into_iter().take(query.limit).filter_map(|id| self.entry(id)).collect(),
            leaf: Some(leaf.clone()),
        })
    }

    /// The ids from a leaf to its root.
    fn walk<'a>(&'a self, leaf: &'a EntryId) -> Result<Vec<&'a EntryId>, StoreError> {
        let place = || format!("session {}", self.state.meta.session_id);
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        let mut next = Some(leaf);
        while let Some(id) = next {
            let slot = self.entries.get(id).ok_or_else(|| {
                StoreError::corrupt(format!("path references missing entry {id}"), place())
            })?;
            if !seen.insert(id) {
                let what = format!("the parents of entry {id} run in a circle");
                return Err(StoreError::corrupt(what, place()));
            }
            path.push(id);
            next = slot.entry.parent_id.as_ref();
        }
        Ok(path)
    }
}

fn place_of(path: &[&EntryId], entry: &EntryId) -> Result<usize, StoreError> {
    let found = path.iter().position(|id| *id == entry);
    found.ok_or_else(|| StoreError::NotOnPath { entry: entry.clone() })
}

/// The chain with one more record: the log's own, over another form of the record's columns.
fn next_chain(before: ChainHash, record: &Envelope<'_>) -> ChainHash {
    let Envelope { kind, id, parent, target, revision, at_ms, payload } = record;
    let columns = format!("{:?}", (kind, id, parent, target, revision, at_ms));
    before.next(columns.as_bytes(), &payload_digest("", payload.as_bytes()))
}
