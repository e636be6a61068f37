//! The newest writes of this process, so that the feeds need not read them back from the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bough_session::{ContentChange, Delta, Incarnation, NewRecord, Record};
use bough_store::{Appended, Position, RecordPage, Steps, StoredRecord};

use crate::feed::content_bytes;
use crate::limits::{FEED_RECORDS_PER_READ, RECENT_WRITES_MAX};
use crate::ring::Ring;

/// The newest writes to one incarnation of a session, in order, while it has a subscriber.
///
/// A reader takes a write from here if it is exactly where the write begins. If another process wrote in between, no
/// write begins at the reader's position, and the reader reads the store.
pub(super) struct RecentWrites {
    incarnation: Option<Incarnation>,
    writes: Ring<RecentWrite>,
    /// The position up to which the writes are known to be durable.
    durable: Position,
    /// What the recent writes of all sessions take in memory.
    total_bytes: Arc<AtomicUsize>,
}

/// The records of one write, with their positions.
pub(crate) struct RecentWrite {
    /// Where the feed was before it.
    after: Position,
    /// Where the feed is after it.
    position: Position,
    /// The position that the store announces when it is durable.
    announced: Position,
    records: Vec<StoredRecord>,
}

impl RecentWrite {
    /// A batch that the store accepted when the feed was at `after`.
    ///
    /// The store may have joined the steps of streams into records before the batch. A reader at `after` knows these
    /// steps, unless others wrote them: then this is `None`.
    pub(crate) fn batch(
        after: Position,
        appended: &Appended,
        records: Vec<NewRecord>,
    ) -> Option<Self> {
        let (end, count) = (appended.head.seq, records.len() as u64);
        let before_first = end.checked_sub(count).filter(|seq| *seq >= after.seq)?;
        let step = appended.position.step;
        if step > after.step || (before_first > after.seq && step == 0) {
            return None;
        }
        let records = (before_first + 1..).zip(records).map(|(seq, new)| StoredRecord {
            seq,
            steps: Steps::None,
            at_ms: new.at_ms,
            record: new.record,
        });
        Some(Self::new(after, appended, records.collect()))
    }

    /// A step of a stream that the store accepted when the feed was at `after`; `None` if others wrote in between.
    pub(crate) fn step(after: Position, appended: &Appended, delta: Delta) -> Option<Self> {
        let (seq, step) = (appended.head.seq, appended.position.step);
        let steps = if seq == after.seq && step == after.step + 1 {
            Steps::One(step)
        } else if seq == after.seq + 1 && step == 0 && after.step == 0 {
            // A store without steps makes a record of each.
            Steps::None
        } else {
            return None;
        };
        let at_ms = delta.at_ms;
        let record = Record::Revision(delta.into_revision());
        Some(Self::new(after, appended, vec![StoredRecord { seq, steps, at_ms, record }]))
    }

    fn new(after: Position, appended: &Appended, records: Vec<StoredRecord>) -> Self {
        let announced = appended.position;
        Self { after, position: after.join(announced), announced, records }
    }
}

/// Roughly how many bytes a record takes in memory.
fn record_bytes(record: &Record) -> usize {
    /// What a record takes beside its content.
    const BASE: usize = 256;
    let content = match record {
        Record::Entry(entry) => {
            entry.message().map_or(0, |message| content_bytes(message.content()))
        }
        Record::Revision(revision) => match &revision.change {
            ContentChange::Append(more) => more.text.len(),
            ContentChange::Edit(edit) => content_bytes(&edit.insert),
            ContentChange::Content(content) => content_bytes(content),
        },
        _ => 0,
    };
    BASE + content
}

impl RecentWrites {
    pub(super) const fn new(total_bytes: Arc<AtomicUsize>) -> Self {
        // The bytes of all sessions together have a bound.
        let writes = Ring::new(RECENT_WRITES_MAX, usize::MAX);
        Self { incarnation: None, writes, durable: Position::at(0), total_bytes }
    }

    /// Keeps a write that the store accepted.
    pub(super) fn add(&mut self, incarnation: Incarnation, write: RecentWrite) {
        if self.incarnation != Some(incarnation) {
            self.clear();
            self.incarnation = Some(incarnation);
        }
        let bytes = write.records.iter().map(|stored| record_bytes(&stored.record)).sum();
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
        let dropped = self.writes.push(write, bytes);
        self.total_bytes.fetch_sub(dropped, Ordering::Relaxed);
    }

    /// Notes that the writes up to a position are durable.
    pub(super) fn note_durable(&mut self, incarnation: Incarnation, position: Position) {
        if self.incarnation == Some(incarnation) {
            self.durable = self.durable.join(position);
        }
    }

    /// Forgets all writes.
    pub(super) fn clear(&mut self) {
        self.total_bytes.fetch_sub(self.writes.clear(), Ordering::Relaxed);
        (self.incarnation, self.durable) = (None, Position::default());
    }

    /// The durable records after a position; `None` if the store has to be read. Everything that the store has
    /// announced, up to `announced`, is durable.
    pub(super) fn records(
        &self,
        incarnation: Incarnation,
        after: Position,
        announced: Option<Position>,
    ) -> Option<RecordPage> {
        if self.incarnation != Some(incarnation) {
            return None;
        }
        let durable = self.durable.join(announced.unwrap_or_default());
        let writes = self.writes.since_last(|write| write.after == after)?;
        let (mut records, mut end) = (Vec::new(), after);
        for write in writes {
            let follows = write.after == end && durable.covers(write.announced);
            if !follows || records.len() >= FEED_RECORDS_PER_READ {
                break;
            }
            records.extend(write.records.iter().cloned());
            end = write.position;
        }
        let more = announced.is_none_or(|announced| !end.covers(announced));
        let page = RecordPage { incarnation, records, end, more };
        (!page.records.is_empty()).then_some(page)
    }
}

impl Drop for RecentWrites {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use bough_session::{EntryId, TextAppend};
    use bough_store::{ChainHash, Durable, Head};

    use super::*;

    const INCARNATION: Incarnation = Incarnation::new([1; 16]);

    fn appended(seq: u64, step: u64) -> Appended {
        let head = Head { incarnation: INCARNATION, seq, chain: ChainHash::from_bytes([0; 32]) };
        Appended { head, position: Position::new(seq, step), durable: Durable::ready() }
    }

    fn leaf_moves(count: usize) -> Vec<NewRecord> {
        (0..count).map(|_| Record::Leaf(None).at(1)).collect()
    }

    fn step() -> Delta {
        let (entry_id, text) = (EntryId::from_stored("e"), "more".to_owned());
        let change = ContentChange::Append(TextAppend { block: 0, text });
        Delta { at_ms: 1, entry_id, revision: 1, change, details: None, origin: None }
    }

    fn none() -> RecentWrites {
        RecentWrites::new(Arc::default())
    }

    /// Writes of one record each, the first after record 1.
    fn writes(ends: impl IntoIterator<Item = u64>) -> RecentWrites {
        let mut recent = none();
        for end in ends {
            let after = Position::at(end - 1);
            let write = RecentWrite::batch(after, &appended(end, 0), leaf_moves(1)).unwrap();
            recent.add(INCARNATION, write);
        }
        recent
    }

    /// The numbers of the records after one, and whether there is more.
    fn read(recent: &RecentWrites, after: u64, announced: Option<u64>) -> Option<(Vec<u64>, bool)> {
        let announced = announced.map(Position::at);
        let page = recent.records(INCARNATION, Position::at(after), announced)?;
        Some((page.records.iter().map(|stored| stored.seq).collect(), page.more))
    }

    #[test]
    fn only_what_is_durable_is_shown() {
        let mut recent = writes(2..=5);
        assert_eq!(read(&recent, 1, None), None);
        assert_eq!(read(&recent, 1, Some(3)), Some((vec![2, 3], false)));
        recent.note_durable(INCARNATION, Position::at(4));
        assert_eq!(read(&recent, 1, None), Some((vec![2, 3, 4], true)));
        assert_eq!(read(&recent, 4, None), None);
    }

    #[test]
    fn a_reader_that_is_not_where_a_write_begins_goes_to_the_store() {
        let recent = writes([2, 3, 6, 7]);
        assert_eq!(read(&recent, 1, Some(7)), Some((vec![2, 3], true)));
        assert_eq!(read(&recent, 3, Some(7)), None);
        assert_eq!(read(&recent, 5, Some(7)), Some((vec![6, 7], false)));
        assert_eq!(read(&recent, 5, Some(9)), Some((vec![6, 7], true)));
        let other = Incarnation::new([2; 16]);
        assert!(recent.records(other, Position::at(1), Some(Position::at(7))).is_none());
    }

    #[test]
    fn a_write_of_another_incarnation_begins_anew() {
        let (mut recent, other) = (writes(2..=5), Incarnation::new([2; 16]));
        recent.note_durable(INCARNATION, Position::at(5));
        let write = RecentWrite::batch(Position::at(1), &appended(2, 0), leaf_moves(1)).unwrap();
        recent.add(other, write);
        assert_eq!(read(&recent, 1, Some(5)), None);
        assert!(recent.records(other, Position::at(1), None).is_none(), "it is not durable yet");
    }

    #[test]
    fn what_is_kept_has_a_bound_and_is_counted() {
        let total = Arc::new(AtomicUsize::new(0));
        let mut recent = RecentWrites::new(total.clone());
        for end in 1..=RECENT_WRITES_MAX as u64 + 1 {
            let after = Position::at(end - 1);
            let write = RecentWrite::batch(after, &appended(end, 0), leaf_moves(1)).unwrap();
            recent.add(INCARNATION, write);
        }
        assert_eq!(recent.writes.iter().count(), RECENT_WRITES_MAX);
        assert!(total.load(Ordering::Relaxed) >= RECENT_WRITES_MAX);
        drop(recent);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn records_that_put_known_steps_together_are_passed_over() {
        let after = Position::new(4, 9);
        let write = RecentWrite::batch(after, &appended(7, 9), leaf_moves(2)).unwrap();
        assert_eq!(write.records.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [6, 7]);
        assert_eq!(write.position, Position::new(7, 9));
        // Steps that others wrote, or of which the store says nothing.
        assert!(RecentWrite::batch(after, &appended(7, 10), leaf_moves(2)).is_none());
        assert!(RecentWrite::batch(after, &appended(7, 0), leaf_moves(2)).is_none());
        assert!(RecentWrite::batch(after, &appended(6, 10), leaf_moves(2)).is_none());
        assert!(RecentWrite::batch(after, &appended(6, 0), leaf_moves(2)).is_some());
    }

    #[test]
    fn a_step_follows_the_step_before_it() {
        let after = Position::new(4, 9);
        let write = RecentWrite::step(after, &appended(4, 10), step()).unwrap();
        assert_eq!(write.records.first().unwrap().steps, Steps::One(10));
        for (seq, last) in [(4, 11), (5, 10), (5, 0), (6, 0)] {
            assert!(
                RecentWrite::step(after, &appended(seq, last), step()).is_none(),
                "{seq}.{last}"
            );
        }
        let write = RecentWrite::step(Position::at(4), &appended(5, 0), step()).unwrap();
        assert_eq!(write.records.first().unwrap().steps, Steps::None);
    }
}
