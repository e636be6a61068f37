//! What is certainly not in an id table: a small Bloom filter in memory. Every append has to know that its id
//! is new, and without the filter it would read a page of each table to find that out.

use crate::limits;

/// Bits that each id sets in its word.
const BITS: u32 = 5;

/// The ids of one table, a byte each.
#[derive(Debug)]
pub(crate) struct BloomFilter {
    words: Box<[u64]>,
}

impl BloomFilter {
    /// The bloom of a table's rows; `None` when it would be larger than is kept in memory.
    pub(crate) fn of(rows: &[(u64, u64)]) -> Option<Self> {
        if rows.len() > limits::BLOOM_BYTES_MAX {
            return None;
        }
        let mut words = vec![0; rows.len().div_ceil(size_of::<u64>()).max(1)].into_boxed_slice();
        let count = words.len();
        for (hash, _) in rows {
            if let Some(word) = words.get_mut(place(*hash, count)) {
                *word |= bits(*hash);
            }
        }
        Some(Self { words })
    }

    /// False only when no row with this hash is in the table.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words.get(place(hash, self.words.len())).is_none_or(|word| word & bits == bits)
    }
}

/// The word of a hash: from its upper half, so that it says nothing about the bits.
fn place(hash: u64, words: usize) -> usize {
    let upper = hash >> 32;
    usize::try_from((upper * words as u64) >> 32).unwrap_or(0)
}

fn bits(hash: u64) -> u64 {
    (0..BITS).fold(0, |bits, n| bits | 1 << ((hash >> (6 * n)) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hash_id;

    fn rows(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|n| (hash_id(&format!("e{n}")), n + 1)).collect()
    }

    #[test]
    fn what_is_in_the_table_always_passes_and_little_else_does() {
        for count in [0, 1, 7, 8, 9, 5_000] {
            let bloom = BloomFilter::of(&rows(count)).unwrap();
            assert!(rows(count).iter().all(|(hash, _)| bloom.may_have(*hash)));
        }
        let bloom = BloomFilter::of(&rows(5_000)).unwrap();
        let others = (0..10_000).map(|n| hash_id(&format!("other{n}")));
        let passing = others.filter(|hash| bloom.may_have(*hash)).count();
        assert!(passing < 600, "{passing} of 10000 strangers pass");
    }

    #[test]
    fn a_filter_that_would_be_too_large_is_not_made() {
        let many = |count| vec![(1, 1); count];
        assert!(BloomFilter::of(&many(limits::BLOOM_BYTES_MAX)).is_some());
        assert!(BloomFilter::of(&many(limits::BLOOM_BYTES_MAX + 1)).is_none());
    }
}
