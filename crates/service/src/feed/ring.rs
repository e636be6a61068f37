//! The newest things that a feed told, shared by its subscribers.

use std::collections::VecDeque;

use crate::limits::FEED_PAGE_BYTES_MAX;

/// The newest items, numbered without gaps; older ones fall out by number and by weight.
#[derive(Debug)]
pub(super) struct Ring<T> {
    items: VecDeque<(T, usize)>,
    /// The number of the oldest item.
    first: u64,
    weight: usize,
    items_max: usize,
    weight_max: usize,
}

/// What a reader at some number finds.
pub(super) enum Read<T> {
    /// The next items.
    Items(Vec<T>),
    /// Nothing yet.
    Nothing,
    /// The next item has fallen out.
    Behind,
}

impl<T: Clone> Ring<T> {
    pub(super) const fn new(items_max: usize, weight_max: usize) -> Self {
        Self { items: VecDeque::new(), first: 0, weight: 0, items_max, weight_max }
    }

    pub(super) fn push(&mut self, item: T, weight: usize) {
        self.items.push_back((item, weight));
        self.weight = self.weight.saturating_add(weight);
        // The newest stays, however heavy, so that a reader who keeps up always gets on.
        while self.items.len() > self.items_max.max(1)
            || (self.weight > self.weight_max && self.items.len() > 1)
        {
            if let Some((_, weight)) = self.items.pop_front() {
                self.first += 1;
                self.weight = self.weight.saturating_sub(weight);
            }
        }
    }

    /// The number that the next item will get.
    pub(super) fn next(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// A page of items from a number on; the reader keeps them while it hands them out.
    pub(super) fn read(&self, from: u64, limit: usize) -> Read<T> {
        if from < self.first {
            return Read::Behind;
        }
        let skip = usize::try_from(from - self.first).unwrap_or(usize::MAX);
        let mut weight = 0_usize;
        let fits = |(_, more): &&(T, usize)| {
            let is_first = weight == 0;
            weight = weight.saturating_add(*more);
            is_first || weight <= FEED_PAGE_BYTES_MAX
        };
        let page = self.items.iter().skip(skip).take(limit).take_while(fits);
        let items: Vec<T> = page.map(|(item, _)| item.clone()).collect();
        if items.is_empty() {
            return Read::Nothing;
        }
        Read::Items(items)
    }

    /// The items with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (self.first..).zip(self.items.iter().map(|(item, _)| item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ring: &Ring<u32>, from: u64) -> Option<Vec<u32>> {
        match ring.read(from, 100) {
            Read::Items(items) => Some(items),
            Read::Nothing => Some(Vec::new()),
            Read::Behind => None,
        }
    }

    #[test]
    fn old_items_fall_out_by_number() {
        let mut ring = Ring::new(3, 1000);
        for item in 0..5 {
            ring.push(item, 1);
        }
        assert_eq!(read(&ring, 1), None);
        assert_eq!(read(&ring, 2), Some(vec![2, 3, 4]));
        assert_eq!(read(&ring, 4), Some(vec![4]));
        assert_eq!(read(&ring, 5), Some(Vec::new()));
        assert_eq!(ring.next(), 5);
    }

    #[test]
    fn old_items_fall_out_by_weight_and_the_newest_stays() {
        let mut ring = Ring::new(100, 10);
        for item in 0..4 {
            ring.push(item, 4);
        }
        assert_eq!(read(&ring, 2), Some(vec![2, 3]));
        ring.push(4, 1000);
        assert_eq!(read(&ring, 4), Some(vec![4]));
        assert_eq!(read(&ring, 3), None);
        ring.push(5, 1);
        assert_eq!(read(&ring, 5), Some(vec![5]));
    }

    #[test]
    fn a_reader_takes_a_page_of_few_bytes_and_one_item_however_heavy() {
        let mut ring = Ring::new(100, usize::MAX);
        let half = FEED_PAGE_BYTES_MAX / 2;
        for (item, weight) in [half, half, 1, 10 * FEED_PAGE_BYTES_MAX, 1].into_iter().enumerate() {
            ring.push(u32::try_from(item).unwrap(), weight);
        }
        assert_eq!(read(&ring, 0), Some(vec![0, 1]));
        assert_eq!(read(&ring, 2), Some(vec![2]));
        assert_eq!(read(&ring, 3), Some(vec![3]));
    }
}
