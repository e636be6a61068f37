//! Ids by number, each stored once.
//!
//! A session of a million entries has a million ids, which are looked up more than anything else. As texts of their own in a
//! map they take more memory than all else that is kept of a file, and each look-up touches another page of it.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// The number of an id, in the order in which the ids came.
pub type IdNumber = u32;

/// Ids by number, and numbers by id.
#[derive(Clone, Debug, Default)]
pub struct IdTable {
    /// All ids, one behind the other.
    text: String,
    /// Where each of them ends.
    ends: Vec<u64>,
    numbers: HashTable<IdNumber>,
    hasher: RandomState,
}

impl IdTable {
    /// The number of an id that came before.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<IdNumber> {
        let is_it = |number: &IdNumber| self.get(*number) == Some(id);
        self.numbers.find(self.hasher.hash_one(id), is_it).copied()
    }

    /// The number of an id, a new one if it did not come before.
    pub fn add(&mut self, id: &str) -> IdNumber {
        let hash = self.hasher.hash_one(id);
        let is_it = |number: &IdNumber| self.get(*number) == Some(id);
        if let Some(number) = self.numbers.find(hash, is_it) {
            return *number;
        }
        let number = IdNumber::try_from(self.ends.len()).unwrap_or(IdNumber::MAX);
        self.text.push_str(id);
        self.ends.push(self.text.len() as u64);
        let Self { text, ends, numbers, hasher } = self;
        let rehash =
            |number: &IdNumber| hasher.hash_one(text_of(text, ends, *number).unwrap_or_default());
        numbers.insert_unique(hash, number, rehash);
        number
    }

    /// The id of a number.
    #[must_use]
    pub fn get(&self, number: IdNumber) -> Option<&str> {
        text_of(&self.text, &self.ends, number)
    }
}

fn text_of<'a>(text: &'a str, ends: &[u64], number: IdNumber) -> Option<&'a str> {
    let number = usize::try_from(number).ok()?;
    let before = number.checked_sub(1).and_then(|before| ends.get(before));
    let at = |place: u64| usize::try_from(place).ok();
    text.get(at(before.copied().unwrap_or_default())?..at(*ends.get(number)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_one_number() {
        let mut ids = IdTable::default();
        for round in 0..2 {
            for number in 0..2_000_u32 {
                assert_eq!(ids.add(&format!("id{number}")), number, "round {round}");
            }
        }
        assert_eq!(ids.add(""), 2_000);
        assert_eq!(ids.get(1_234), Some("id1234"));
        assert_eq!(ids.get(2_000), Some(""));
        assert_eq!(ids.get(2_001), None);
        assert_eq!(ids.find("id0"), Some(0));
        assert_eq!(ids.find("id2000"), None);
    }
}
