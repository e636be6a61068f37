//! The ways in which a write that was not synced can survive in part.

use std::ops::Range;

use super::content::Content;
use crate::limits::{SECTOR_BYTES, TORN_SUBSETS_MAX};
use crate::seeded::Seeded;

/// The number of sectors of one write that a set of survivors can distinguish, as bits of a word.
const SECTOR_BITS: usize = 63;

/// How finely writes are torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fineness {
    Whole,
    Sectors,
    EveryByte,
}

/// What survives of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tear {
    /// The first bytes; the file is no longer than they make it.
    Cut(usize),
    /// The first bytes; the file has its new length, and zeros where nothing was.
    ZeroTail(usize),
    /// The length, and the bytes of those sectors whose bit is set.
    Sectors(u64),
    /// Everything, but garbage in one sector.
    Garbage(usize),
}

impl Tear {
    /// Every way in which a write of `len` bytes at `at` is torn.
    pub(crate) fn all(at: usize, len: usize, fineness: Fineness) -> Vec<Self> {
        let pieces = pieces(at, len);
        let cuts: Vec<usize> = match fineness {
            Fineness::Whole => return Vec::new(),
            Fineness::EveryByte => (1..len).collect(),
            Fineness::Sectors => cuts(&pieces, len),
        };
        let boundaries = pieces.iter().map(|piece| piece.start);
        let mut tears: Vec<Self> = boundaries.map(Self::ZeroTail).collect();
        tears.extend(cuts.into_iter().map(Self::Cut));
        tears.extend(survivors(pieces.len()).into_iter().map(Self::Sectors));
        tears.extend((0..pieces.len()).map(Self::Garbage));
        tears
    }

    /// Writes what survives.
    pub(crate) fn apply(&self, content: &mut Content, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        let longer = content.len().max(end);
        match self {
            Self::Cut(kept) => put_piece(content, at, bytes, 0..*kept),
            Self::ZeroTail(kept) => {
                content.set_len(longer);
                put_piece(content, at, bytes, 0..*kept);
            }
            Self::Sectors(mask) => {
                content.set_len(longer);
                for (index, piece) in pieces(at, bytes.len()).into_iter().enumerate() {
                    if survives(*mask, index) {
                        put_piece(content, at, bytes, piece);
                    }
                }
            }
            Self::Garbage(index) => {
                content.put(at, bytes);
                if let Some(piece) = pieces(at, bytes.len()).get(*index) {
                    let mut garbage = vec![0; piece.len()];
                    Seeded::new(*index as u64).fill(&mut garbage);
                    content.put(at + piece.start, &garbage);
                }
            }
        }
    }
}

/// Whether a sector is among the survivors. Sectors beyond the bits of the word always survive.
const fn survives(mask: u64, sector: usize) -> bool {
    sector >= SECTOR_BITS || mask >> sector & 1 == 1
}

/// The parts of a write that lie in one sector each, as ranges of the write's own bytes.
fn pieces(at: usize, len: usize) -> Vec<Range<usize>> {
    let sector = usize::try_from(SECTOR_BYTES).unwrap_or(usize::MAX);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < len {
        let to_boundary = sector - (at + start) % sector;
        let end = len.min(start + to_boundary);
        pieces.push(start..end);
        start = end;
    }
    pieces
}

fn cuts(pieces: &[Range<usize>], len: usize) -> Vec<usize> {
    let boundaries = pieces.iter().map(|piece| piece.start);
    let mut cuts: Vec<usize> = boundaries.chain([1, len.saturating_sub(1)]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|cut| *cut > 0 && *cut < len);
    cuts
}

/// Sets of sectors that survive, as bits, beyond the prefixes that `ZeroTail` covers.
fn survivors(count: usize) -> Vec<u64> {
    let all = (1_u64 << count.min(SECTOR_BITS)) - 1;
    let is_prefix = |mask: &u64| (mask + 1).is_power_of_two();
    if count <= TORN_SUBSETS_MAX {
        return (1..all).filter(|mask| !is_prefix(mask)).collect();
    }
    let one_missing = (0..count.min(SECTOR_BITS)).map(|index| all & !(1 << index));
    one_missing.filter(|mask| !is_prefix(mask)).collect()
}

fn put_piece(content: &mut Content, at: usize, bytes: &[u8], piece: Range<usize>) {
    let start = piece.start;
    if let Some(part) = bytes.get(piece).filter(|part| !part.is_empty()) {
        content.put(at + start, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torn(old: &str, at: usize, new: &[u8], tear: &Tear) -> Vec<u8> {
        let mut content = Content::new(old.as_bytes().to_vec());
        tear.apply(&mut content, at, new);
        content.bytes().to_vec()
    }

    #[test]
    fn a_small_write_is_cut_zeroed_or_garbage() {
        let tears = Tear::all(3, 5, Fineness::Sectors);
        let expected = [Tear::ZeroTail(0), Tear::Cut(1), Tear::Cut(4), Tear::Garbage(0)];
        assert_eq!(tears, expected);
        assert_eq!(torn("abc", 3, b"defgh", &Tear::Cut(1)), b"abcd");
        assert_eq!(torn("abc", 3, b"defgh", &Tear::ZeroTail(0)), b"abc\0\0\0\0\0");
        let garbage = torn("abc", 3, b"defgh", &Tear::Garbage(0));
        assert_eq!((&garbage[..3], garbage.len()), (&b"abc"[..], 8));
        assert_ne!(&garbage[3..], b"defgh");
    }

    #[test]
    fn a_zero_tail_over_old_bytes_leaves_the_old_bytes() {
        assert_eq!(torn("abcdef", 1, b"XYZ", &Tear::ZeroTail(1)), b"aXcdef");
    }

    #[test]
    fn a_long_write_is_torn_at_the_files_sectors_not_its_own() {
        let tears = Tear::all(500, 1100, Fineness::Sectors);
        for cut in [1, 12, 524, 1036, 1099] {
            assert!(tears.contains(&Tear::Cut(cut)), "{cut}");
        }
        // Four sectors: every subset that is neither whole, empty nor a prefix, once.
        let subsets = tears.iter().filter(|tear| matches!(tear, Tear::Sectors(_)));
        assert_eq!(subsets.count(), 16 - 5);
    }

    #[test]
    fn a_missing_sector_is_zeros_between_what_survived() {
        let bytes = vec![7; 1536];
        let torn = torn("", 0, &bytes, &Tear::Sectors(0b101));
        assert_eq!(torn.len(), 1536);
        assert!(torn[..512].iter().all(|byte| *byte == 7));
        assert!(torn[512..1024].iter().all(|byte| *byte == 0));
        assert!(torn[1024..].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn many_sectors_lose_one_each() {
        let tears = Tear::all(0, 512 * 9, Fineness::Sectors);
        let one_missing = tears.iter().filter(|tear| matches!(tear, Tear::Sectors(_)));
        assert_eq!(one_missing.count(), 8);
    }

    #[test]
    fn a_write_of_more_sectors_than_a_word_has_bits_keeps_all_but_the_missing_one() {
        let bytes = vec![7; 512 * 90];
        for tear in Tear::all(0, bytes.len(), Fineness::Sectors) {
            let torn = torn("", 0, &bytes, &tear);
            if matches!(tear, Tear::Sectors(_)) {
                assert_eq!(torn.iter().filter(|byte| **byte == 0).count(), 512, "{tear:?}");
            }
        }
    }

    #[test]
    fn every_byte_means_every_byte() {
        let tears = Tear::all(0, 40, Fineness::EveryByte);
        assert!((1..40).all(|cut| tears.contains(&Tear::Cut(cut))));
        assert!(Tear::all(0, 40, Fineness::Whole).is_empty());
    }
}
