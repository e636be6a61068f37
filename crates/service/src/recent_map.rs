//! A small map that keeps its newest values.

use std::collections::VecDeque;

/// Values by key, at most `MAX` of them: putting one more drops the one that was put first.
///
/// Lookups compare one key after the other from the newest on, so it is for few values, or for values that are asked for soon.
pub(crate) struct RecentMap<K, V, const MAX: usize>(VecDeque<(K, V)>);

impl<K, V, const MAX: usize> Default for RecentMap<K, V, MAX> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq, V, const MAX: usize> RecentMap<K, V, MAX> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.iter().rev().find(|(kept, _)| kept == key).map(|(_, value)| value)
    }

    /// Removes a value, to be changed and put back.
    pub(crate) fn take(&mut self, key: &K) -> Option<V> {
        let at = self.0.iter().rposition(|(kept, _)| kept == key)?;
        self.0.remove(at).map(|(_, value)| value)
    }

    /// Puts a value in the place of the one with the same key.
    pub(crate) fn put(&mut self, key: K, value: V) {
        self.0.retain(|(kept, _)| *kept != key);
        self.0.push_back((key, value));
        if self.0.len() > MAX {
            self.0.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_that_was_put_first_falls_out() {
        let mut map = RecentMap::<u32, &str, 2>::default();
        map.put(1, "a");
        map.put(2, "b");
        map.put(1, "c");
        map.put(3, "d");
        assert_eq!((map.get(&1), map.get(&2), map.get(&3)), (Some(&"c"), None, Some(&"d")));
        assert_eq!((map.take(&1), map.get(&1)), (Some("c"), None));
        map.clear();
        assert_eq!(map.get(&3), None);
    }
}
