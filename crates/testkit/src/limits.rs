//! Every bound of the simulation, by name.

/// The unit that a disk writes atomically. Writes tear between sectors, and at their own first and last byte.
pub const SECTOR_BYTES: u64 = 512;

/// Up to this many pending changes of one file, every subset of them is an image; above it, prefixes,
/// single drops and a seeded sample.
pub const FILE_SUBSETS_MAX: usize = 10;

/// Up to this many pending name operations, every subset of them is an image; above it, prefixes and
/// single drops only.
pub const NAME_SUBSETS_MAX: usize = 4;

/// A write of up to this many sectors is torn in every subset of its sectors; a longer one at each
/// boundary and with each single sector missing.
pub const TORN_SUBSETS_MAX: usize = 4;

/// Up to this many combinations of the files' subsets at one crash point all are made; above it, a
/// seeded sample of this many.
pub const COMBINATIONS_MAX: usize = 4096;

/// The number of random subsets that are tried for a file with too many pending changes.
pub const SAMPLED_SUBSETS: usize = 48;

/// The longest pending set of one file that random subsets are drawn from, as bits of a word.
pub(crate) const MASK_BITS: usize = 64;

/// The longest file of a session in which an entry is redacted, in bytes.
#[cfg(feature = "redaction")]
pub(crate) const REDACTED_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
