//! Which loop has which id.
//!
//! Ids are looked up more than anything else, so they are in one buffer: in a long session, ids with allocations of
//! their own would each touch another page of memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::Slot;

/// The ids of loops, by slot, and back.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    /// All ids, one after the other, by slot.
    text: String,
    ends: Vec<usize>,
    hasher: RandomState,
    /// The first loop that has an id of this hash.
    by_hash: HashMap<u64, Slot, BuildHasherDefault<AsItIs>>,
    /// Ids whose hash another one has already.
    others: HashMap<String, Slot>,
}

impl Ids {
    /// The first loop of that id.
    pub(super) fn slot_of(&self, id: &str) -> Option<Slot> {
        self.find(id, self.hasher.hash_one(id))
    }

    fn find(&self, id: &str, hash: u64) -> Option<Slot> {
        let slot = *self.by_hash.get(&hash)?;
        if self.id_of(slot) == id { Some(slot) } else { self.others.get(id).copied() }
    }

    /// Gives the next slot its id. If the id is taken, it still means the first loop.
    pub(super) fn push(&mut self, id: &str) {
        let hash = self.hasher.hash_one(id);
        self.push_hashed(id, hash);
    }

    fn push_hashed(&mut self, id: &str, hash: u64) {
        let slot = Slot(self.ends.len());
        self.text.push_str(id);
        self.ends.push(self.text.len());
        let first = *self.by_hash.entry(hash).or_insert(slot);
        if self.id_of(first) != id {
            self.others.entry(id.to_owned()).or_insert(slot);
        }
    }

    fn id_of(&self, slot: Slot) -> &str {
        let start = slot.0.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(slot.0).copied().unwrap_or_default();
        self.text.get(start.copied().unwrap_or_default()..end).unwrap_or_default()
    }
}

/// A hash needs no hashing.
#[derive(Clone, Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_means_the_first_loop_that_has_it() {
        let mut ids = Ids::default();
        for id in ["a", "", "ab", "a", "b"] {
            ids.push(id);
        }
        let found = ["a", "", "ab", "b", "c"].map(|id| ids.slot_of(id).map(|slot| slot.0));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(4), None]);
    }

    #[test]
    fn ids_of_one_hash_are_told_apart() {
        let mut ids = Ids::default();
        let hash = ids.hasher.hash_one("a");
        for id in ["a", "other", "third", "other"] {
            ids.push_hashed(id, hash);
        }
        let found = ["a", "other", "third", "fourth"].map(|id| ids.find(id, hash));
        assert_eq!(found, [Some(Slot(0)), Some(Slot(1)), Some(Slot(2)), None]);
    }
}
