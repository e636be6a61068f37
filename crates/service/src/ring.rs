//! A bounded buffer of the newest items: events for subscribers, and writes for the feeds.

use std::collections::VecDeque;

use crate::limits::FEED_PAGE_BYTES_MAX;

/// The newest items, numbered without gaps. Older ones are dropped by number and by weight.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    items: VecDeque<(T, usize)>,
    /// The number of the oldest item.
    first: u64,
    weight: usize,
    items_max: usize,
    weight_max: usize,
}

/// What a reader at some number finds.
pub(crate) enum Read<T> {
    /// The next items.
    Items(Vec<T>),
    /// Nothing yet.
    Nothing,
    /// The next item has fallen out.
    Behind,
}

impl<T> Ring<T> {
    pub(crate) const fn new(items_max: usize, weight_max: usize) -> Self {
        Self { items: VecDeque::new(), first: 0, weight: 0, items_max, weight_max }
    }

    /// Adds an item; returns the weight of those that were dropped for it.
    pub(crate) fn push(&mut self, item: T, weight: usize) -> usize {
        let mut dropped = 0;
        self.items.push_back((item, weight));
        self.weight = self.weight.saturating_add(weight);
        // The newest stays, however heavy, so that a reader that keeps up always gets it.
        while self.items.len() > self.items_max.max(1)
            || (self.weight > self.weight_max && self.items.len() > 1)
        {
            if let Some((_, weight)) = self.items.pop_front() {
                self.first += 1;
                self.weight = self.weight.saturating_sub(weight);
                dropped += weight;
            }
        }
        dropped
    }

    /// Drops all items; returns their weight.
    pub(crate) fn clear(&mut self) -> usize {
        self.first = self.next();
        self.items.clear();
        std::mem::take(&mut self.weight)
    }

    /// The number that the next item will get.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// A page of items from a number on.
    pub(crate) fn read(&self, from: u64, limit: usize) -> Read<T>
    where
        T: Clone,
    {
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (self.first..).zip(self.items.iter().map(|(item, _)| item))
    }

    /// The items from the newest one on that fits.
    pub(crate) fn since_last(&self, fits: impl Fn(&T) -> bool) -> Option<impl Iterator<Item = &T>> {
        let first = self.items.iter().rposition(|(item, _)| fits(item))?;
        Some(self.items.range(first..).map(|(item, _)| item))
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
