//! The loops of a session: found by id in constant time, listed by start.

use std::ops::Index;
use std::sync::{Arc, OnceLock};

use bough_session::IdTable;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::model::LoopRecord;
use crate::time::Timestamp;

/// The loops of a session, in the order in which they started (those of one moment in the order in which they arrived).
///
/// Clones share records until one of them changes, so a clone of a long session is cheap.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    records: Vec<Arc<LoopRecord>>,
    /// Slots by start.
    order: Vec<Slot>,
    ids: IdTable,
    /// The first loop of each id, by the number of the id.
    first_of_id: Vec<Slot>,
    /// The loops without a predecessor, by start; computed at the first use after a change.
    roots: OnceLock<Vec<Slot>>,
}

/// The place of a record. It stays the same, whatever is added or reordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(usize);

/// The session has a loop of that id already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has a loop {loop_id:?} already; give the new one another id")]
pub struct DuplicateLoop {
    /// The id.
    pub loop_id: String,
}

impl Loops {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The loop with that id, in constant time. If a file holds an id twice, the first.
    #[must_use]
    pub fn get(&self, loop_id: &str) -> Option<&LoopRecord> {
        self.slot_of(loop_id).map(|slot| self.at(slot))
    }

    /// All of them, by start.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { order: self.order.iter(), records: &self.records }
    }

    /// The one that started first.
    #[must_use]
    pub fn first(&self) -> Option<&LoopRecord> {
        self.order.first().map(|slot| self.at(*slot))
    }

    /// The one that started last.
    #[must_use]
    pub fn last(&self) -> Option<&LoopRecord> {
        self.order.last().map(|slot| self.at(*slot))
    }

    /// Adds a loop.
    pub fn add(&mut self, record: LoopRecord) -> Result<(), DuplicateLoop> {
        if self.slot_of(&record.loop_id).is_some() {
            return Err(DuplicateLoop { loop_id: record.loop_id });
        }
        self.insert(record);
        Ok(())
    }

    pub(crate) fn slot_of(&self, loop_id: &str) -> Option<Slot> {
        let number = usize::try_from(self.ids.find(loop_id)?).ok()?;
        self.first_of_id.get(number).copied()
    }

    pub(crate) fn at(&self, slot: Slot) -> &LoopRecord {
        match self.records.get(slot.0) {
            Some(record) => record,
            None => unreachable!("a record is never removed"),
        }
    }

    /// The loops without a predecessor, by start.
    pub(crate) fn roots(&self) -> &[Slot] {
        self.roots.get_or_init(|| {
            let mut before: Option<&LoopRecord> = None;
            let is_root = |slot: &Slot| {
                let record = self.at(*slot);
                // Most loops continue the one that started before them.
                let last = before.replace(record).map(|last| last.loop_id.as_str());
                let parent = record.parent_loop_id.as_deref();
                parent.is_none_or(|parent| last != Some(parent) && self.slot_of(parent).is_none())
            };
            self.slots().filter(is_root).collect()
        })
    }

    /// The slots by start.
    pub(crate) fn slots(&self) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        self.order.iter().copied()
    }

    /// A record to be changed, by a slot of this list. Its id and its start must not change; see [`Self::restart`].
    pub(crate) fn change(&mut self, slot: Slot) -> &mut LoopRecord {
        self.roots.take();
        match self.records.get_mut(slot.0) {
            Some(record) => Arc::make_mut(record),
            None => unreachable!("a record is never removed"),
        }
    }

    /// Adds a loop. If its id is taken, the id still means the first loop.
    pub(crate) fn insert(&mut self, record: LoopRecord) -> Slot {
        self.roots.take();
        let slot = Slot(self.records.len());
        let number = self.ids.add(&record.loop_id);
        if usize::try_from(number).is_ok_and(|number| number == self.first_of_id.len()) {
            self.first_of_id.push(slot);
        }
        let started_at = record.started_at;
        self.records.push(Arc::new(record));
        self.put_in_order(slot, started_at);
        slot
    }

    /// Sets the start of a loop that was only announced, and moves it to its place.
    pub(crate) fn restart(&mut self, slot: Slot, started_at: Timestamp) {
        if let Some(place) = self.place_in_order(slot) {
            self.order.remove(place);
        }
        self.change(slot).started_at = started_at;
        self.put_in_order(slot, started_at);
    }

    /// What loops are ordered by.
    pub(crate) fn key(&self, slot: Slot) -> (Timestamp, Slot) {
        (self.at(slot).started_at, slot)
    }

    fn put_in_order(&mut self, slot: Slot, started_at: Timestamp) {
        let key = (started_at, slot);
        let at_end = self.order.last().is_none_or(|last| self.key(*last) < key);
        if at_end {
            self.order.push(slot);
        } else {
            let place = self.order.partition_point(|other| self.key(*other) < key);
            self.order.insert(place, slot);
        }
    }

    fn place_in_order(&self, slot: Slot) -> Option<usize> {
        let key = self.key(slot);
        self.order.binary_search_by(|other| self.key(*other).cmp(&key)).ok()
    }
}

/// Loops by start.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    order: std::slice::Iter<'a, Slot>,
    records: &'a [Arc<LoopRecord>],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a LoopRecord;

    fn next(&mut self) -> Option<&'a LoopRecord> {
        let slot = self.order.next()?;
        self.records.get(slot.0).map(Arc::as_ref)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.order.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let slot = self.order.next_back()?;
        self.records.get(slot.0).map(Arc::as_ref)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Loops {
    type Item = &'a LoopRecord;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl FromIterator<LoopRecord> for Loops {
    fn from_iter<I: IntoIterator<Item = LoopRecord>>(records: I) -> Self {
        let mut loops = Self::default();
        for record in records {
            loops.insert(record);
        }
        loops
    }
}

/// The loop at a place, by start. Panics if there are not so many; [`Loops::iter`] and [`Loops::get`] do not.
impl Index<usize> for Loops {
    type Output = LoopRecord;

    fn index(&self, place: usize) -> &LoopRecord {
        match self.order.get(place) {
            Some(slot) => self.at(*slot),
            None => panic!("there are {} loops, and no loop {place}", self.len()),
        }
    }
}

/// The loop with an id. Panics if there is none; [`Loops::get`] does not.
impl Index<&str> for Loops {
    type Output = LoopRecord;

    fn index(&self, loop_id: &str) -> &LoopRecord {
        match self.get(loop_id) {
            Some(record) => record,
            None => panic!("there is no loop {loop_id:?}"),
        }
    }
}

/// The loops by start.
impl IntoIterator for Loops {
    type Item = LoopRecord;
    type IntoIter = std::vec::IntoIter<LoopRecord>;

    fn into_iter(self) -> Self::IntoIter {
        let loops: Vec<LoopRecord> = self.iter().cloned().collect();
        loops.into_iter()
    }
}

/// Two lists are equal that hold equal loops in the same order.
impl PartialEq for Loops {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, two): (&LoopRecord, &LoopRecord)| std::ptr::eq(one, two) || one == two;
        self.len() == other.len() && self.iter().zip(other).all(is_same)
    }
}

impl Serialize for Loops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Loops {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seq;
        impl<'de> serde::de::Visitor<'de> for Seq {
            type Value = Loops;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of loops")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Loops, A::Error> {
                let mut loops = Loops::default();
                while let Some(record) = seq.next_element()? {
                    loops.insert(record);
                }
                Ok(loops)
            }
        }
        deserializer.deserialize_seq(Seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LoopStatus;

    fn record(id: &str, second: i64) -> LoopRecord {
        let at = Timestamp::from_unix_ms(second * 1000);
        LoopRecord::new(id, "s", "a", LoopStatus::Running, at)
    }

    fn ids(loops: &Loops) -> Vec<&str> {
        loops.iter().map(|record| record.loop_id.as_str()).collect()
    }

    #[test]
    fn loops_are_listed_by_start_whatever_order_they_come_in() {
        let loops: Loops = [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("d", 3)]
            .map(|(id, second)| record(id, second))
            .into_iter()
            .collect();
        assert_eq!(ids(&loops), ["a", "a2", "b", "c", "d"]);
        assert_eq!(loops.last().unwrap().loop_id, "d");
        assert_eq!(loops.first().unwrap().loop_id, "a");
        assert_eq!((&*loops[2].loop_id, loops["c"].started_at.unix_ms()), ("b", 3000));
        let owned: Vec<String> = loops.clone().into_iter().map(|record| record.loop_id).collect();
        assert_eq!(owned, ids(&loops));
        assert_eq!(loops.iter().rev().count(), 5);
    }

    #[test]
    fn a_loop_that_starts_after_its_announcement_moves() {
        let mut loops: Loops =
            [record("a", 1), record("b", 1), record("c", 2)].into_iter().collect();
        loops.restart(loops.slot_of("a").unwrap(), Timestamp::from_unix_ms(9000));
        assert_eq!(ids(&loops), ["b", "c", "a"]);
        assert_eq!(loops.get("a").unwrap().started_at.unix_ms(), 9000);
    }

    #[test]
    fn an_id_is_given_once() {
        let mut loops = Loops::default();
        loops.add(record("a", 1)).unwrap();
        assert!(loops.add(record("a", 2)).is_err());
        // A file of another program may hold one twice: both are kept, and the id means the first.
        loops.insert(record("a", 5));
        assert_eq!(ids(&loops), ["a", "a"]);
        assert_eq!(loops.get("a").unwrap().started_at.unix_ms(), 1000);
    }

    #[test]
    fn roots_follow_every_change() {
        let mut loops: Loops = [record("b", 2)].into_iter().collect();
        let roots = |loops: &Loops| -> Vec<String> {
            loops.roots().iter().map(|slot| loops.at(*slot).loop_id.clone()).collect()
        };
        let slot = loops.slot_of("b").unwrap();
        loops.change(slot).parent_loop_id = Some("a".to_owned());
        assert_eq!(roots(&loops), ["b"], "its parent is not here");
        loops.insert(record("a", 1));
        assert_eq!(roots(&loops), ["a"]);
        loops.change(slot).parent_loop_id = None;
        assert_eq!(roots(&loops), ["a", "b"]);
        loops.restart(slot, Timestamp::from_unix_ms(0));
        assert_eq!(roots(&loops), ["b", "a"]);
    }

    #[test]
    fn clones_share_until_one_changes() {
        let mut one: Loops = [record("a", 1)].into_iter().collect();
        let two = one.clone();
        let slot = one.slot_of("a").unwrap();
        one.change(slot).rejection = Some("x".to_owned());
        assert_eq!(two.get("a").unwrap().rejection, None);
        assert_ne!(one, two);
    }
}
