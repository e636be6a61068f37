//! An index of the newest record of each key.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bough_session::limits::check_at_most;
use bough_session::{DocumentRecord, Incarnation, LimitError, NewRecord, Record, RequestDigest};
use bough_store::StoredRecord;

use crate::limits::{
    DOCUMENT_DEAD_BYTES_MIN, DOCUMENT_KEY_OVERHEAD, DOCUMENT_RECORD_OVERHEAD,
    DOCUMENT_SCOPE_KEYS_BYTES_MAX,
};

/// The live keys of a scope after a record of its log.
#[derive(Debug)]
pub(crate) struct DocumentIndex {
    pub(crate) incarnation: Incarnation,
    /// The last record that was folded in.
    pub(crate) seq: u64,
    /// The newest version of the scope, and the record that has it.
    pub(crate) newest: (u64, u64),
    locations: BTreeMap<Box<str>, DocumentLocation>,
    /// Bytes of the records of live documents, and of all records.
    live_bytes: usize,
    log_bytes: usize,
    /// Bytes that the index takes in memory, and those of all indexes of a store together.
    memory: usize,
    all_memory: Arc<AtomicUsize>,
    /// The log must be larger than this before it is compacted.
    compact_above: usize,
}

/// The newest record of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentLocation {
    pub(crate) seq: u64,
    pub(crate) version: u64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// Bytes of the value.
    pub(crate) bytes: usize,
    pub(crate) request: Option<RequestDigest>,
}

/// What an index needs of a record, without its value.
pub(crate) struct DocumentFact {
    key: Box<str>,
    /// `None` when the key is taken away.
    location: Option<DocumentLocation>,
    version: u64,
}

impl DocumentFact {
    fn of(document: &DocumentRecord, seq: u64, at_ms: i64) -> Self {
        let location = document.value.as_ref().map(|value| DocumentLocation {
            seq,
            version: document.version,
            created_at: document.created_at.unwrap_or(at_ms),
            updated_at: at_ms,
            bytes: value.get().len(),
            request: document.request,
        });
        Self { key: document.key.as_str().into(), location, version: document.version }
    }

    /// The facts of records that will be appended; their numbers are not known yet.
    pub(crate) fn of_new(records: &[NewRecord]) -> Vec<Option<Self>> {
        let of = |new: &NewRecord| match new.record.known() {
            Record::Document(document) => Some(Self::of(document, 0, new.at_ms)),
            _ => None,
        };
        records.iter().map(of).collect()
    }
}

impl DocumentIndex {
    pub(crate) fn new(incarnation: Incarnation, all_memory: Arc<AtomicUsize>) -> Self {
        Self {
            incarnation,
            seq: 0,
            newest: (0, 0),
            locations: BTreeMap::new(),
            live_bytes: 0,
            log_bytes: 0,
            memory: 0,
            all_memory,
            compact_above: 0,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&DocumentLocation> {
        self.locations.get(key)
    }

    /// Live keys that begin with a prefix and follow a key, in order.
    pub(crate) fn after<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a str, &'a DocumentLocation)> {
        let first = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let range = self.locations.range::<str, _>((first, Bound::Unbounded));
        range
            .map(|(key, location)| (&**key, location))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Takes in a record of the log.
    pub(crate) fn apply(&mut self, stored: &StoredRecord) {
        if stored.seq <= self.seq {
            return;
        }
        self.seq = stored.seq;
        if let Record::Document(document) = stored.record.known() {
            self.take(DocumentFact::of(document, stored.seq, stored.at_ms));
        }
    }

    /// Adds records that were appended, the last of which is number `last`.
    pub(crate) fn apply_new(&mut self, facts: Vec<Option<DocumentFact>>, last: u64) {
        for (behind, fact) in (0..facts.len() as u64).rev().zip(facts) {
            self.seq = last.saturating_sub(behind);
            if let Some(mut fact) = fact {
                fact.location =
                    fact.location.map(|location| DocumentLocation { seq: self.seq, ..location });
                self.take(fact);
            }
        }
    }

    fn take(&mut self, fact: DocumentFact) {
        let DocumentFact { key, location, version } = fact;
        self.newest = (version, self.seq);
        let size = record_bytes(&key, location.as_ref());
        self.log_bytes = self.log_bytes.saturating_add(size);
        let (memory, old) = (key.len() + DOCUMENT_KEY_OVERHEAD, self.locations.remove(&*key));
        if old.is_some() {
            self.live_bytes = self.live_bytes.saturating_sub(record_bytes(&key, old.as_ref()));
            self.account(false, memory);
        }
        if let Some(location) = location {
            self.live_bytes = self.live_bytes.saturating_add(size);
            self.account(true, memory);
            self.locations.insert(key, location);
        }
    }

    fn account(&mut self, is_more: bool, bytes: usize) {
        if is_more {
            self.memory = self.memory.saturating_add(bytes);
            self.all_memory.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.memory = self.memory.saturating_sub(bytes);
            self.all_memory.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Refuses keys that would make the index too large.
    pub(crate) fn check_key_count(&self, keys: usize) -> Result<(), LimitError> {
        let most = DOCUMENT_SCOPE_KEYS_BYTES_MAX;
        check_at_most("scope", "bytes of keys", self.memory.saturating_add(keys), most)
    }

    /// Whether more of the log is overwritten than live.
    pub(crate) fn is_wasteful(&self) -> bool {
        let dead = self.log_bytes.saturating_sub(self.live_bytes);
        dead > self.live_bytes.max(DOCUMENT_DEAD_BYTES_MIN) && self.log_bytes > self.compact_above
    }

    /// Notes that the log could not be compacted now. It is tried again when the log has doubled.
    pub(crate) fn put_off_compaction(&mut self) {
        self.compact_above = self.log_bytes.saturating_mul(2);
    }

    /// The records of a compacted log, in order: those of live documents, and the newest one, which holds the count of
    /// versions.
    pub(crate) fn kept(&self) -> Vec<KeptRecord> {
        let live = self.locations.values();
        let mut kept: Vec<KeptRecord> =
            live.map(|location| KeptRecord { seq: location.seq, bytes: location.bytes }).collect();
        kept.sort_unstable_by_key(|record| record.seq);
        let (_, newest) = self.newest;
        if newest > 0 && kept.last().is_none_or(|last| last.seq != newest) {
            kept.push(KeptRecord { seq: newest, bytes: 0 });
        }
        kept
    }

    /// The same documents in a log that holds only the records of [`kept`](Self::kept), after a first one.
    pub(crate) fn renumber(&mut self, incarnation: Incarnation, kept: &[KeptRecord]) {
        let first_is_meta = 2;
        for location in self.locations.values_mut() {
            let at = kept.binary_search_by_key(&location.seq, |record| record.seq);
            location.seq = at.map_or(0, |at| at as u64 + first_is_meta);
        }
        self.incarnation = incarnation;
        self.seq = kept.len() as u64 + 1;
        self.newest.1 = self.seq;
        self.log_bytes = self.live_bytes;
        self.compact_above = 0;
    }
}

impl Drop for DocumentIndex {
    fn drop(&mut self) {
        self.account(false, self.memory);
    }
}

/// A record that a compaction keeps.
pub(crate) struct KeptRecord {
    pub(crate) seq: u64,
    pub(crate) bytes: usize,
}

/// About how many bytes a record takes on the disk, with its row of the index.
fn record_bytes(key: &str, location: Option<&DocumentLocation>) -> usize {
    DOCUMENT_RECORD_OVERHEAD + key.len() + location.map_or(0, |location| location.bytes)
}

#[cfg(test)]
mod tests {
    use bough_session::RawJson;

    use super::*;

    fn record(seq: u64, key: &str, value: Option<&str>) -> StoredRecord {
        let value = value.map(|value| RawJson::parse(value).unwrap());
        let (created_at, request) = (None, None);
        let document =
            DocumentRecord { key: key.to_owned(), version: seq, created_at, request, value };
        let (steps, at_ms) = (bough_store::Steps::None, 7);
        StoredRecord { seq, steps, at_ms, record: Record::Document(document) }
    }

    fn keys(index: &DocumentIndex, prefix: &str, after: Option<&str>) -> Vec<String> {
        index.after(prefix, after).map(|(key, _)| key.to_owned()).collect()
    }

    #[test]
    fn keys_are_listed_by_their_beginning_and_memory_is_given_back() {
        let memory = Arc::new(AtomicUsize::new(0));
        let mut index = DocumentIndex::new(Incarnation::new([1; 16]), Arc::clone(&memory));
        for (seq, key) in (2..).zip(["b/2", "a", "b/1", "b", "c", "b/1"]) {
            index.apply(&record(seq, key, Some("1")));
        }
        assert_eq!(keys(&index, "", None), ["a", "b", "b/1", "b/2", "c"]);
        assert_eq!(keys(&index, "b/", None), ["b/1", "b/2"]);
        assert_eq!(keys(&index, "b/", Some("b/1")), ["b/2"]);
        assert_eq!(keys(&index, "b/", Some("a")), ["b/1", "b/2"]);
        assert_eq!(keys(&index, "b/", Some("b/9")), [""; 0]);
        index.apply(&record(8, "c", None));
        assert_eq!(keys(&index, "c", None), [""; 0]);
        assert!(memory.load(Ordering::Relaxed) > 0);
        drop(index);
        assert_eq!(memory.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_kept_ends_with_the_newest_version() {
        let mut index = DocumentIndex::new(Incarnation::new([1; 16]), Arc::default());
        for stored in [
            record(2, "a", Some("1")),
            record(3, "b", Some("1")),
            record(4, "a", Some("2")),
            record(5, "b", None),
        ] {
            index.apply(&stored);
        }
        let kept = index.kept();
        assert_eq!(kept.iter().map(|record| record.seq).collect::<Vec<_>>(), [4, 5]);
        index.renumber(Incarnation::new([2; 16]), &kept);
        assert_eq!(index.get("a").map(|location| (location.seq, location.version)), Some((2, 4)));
        assert_eq!((index.seq, index.newest), (3, (5, 3)));
    }
}
