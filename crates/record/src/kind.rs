//! The kinds of record that a log understands; it carries all others without looking.

/// Adds an entry to the tree and makes it the active leaf.
pub const ENTRY: &str = "entry";
/// Changes what an entry says, given what it said before.
pub const REVISION: &str = "rev";
/// Hides an entry from every read.
pub const REMOVED: &str = "removed";
/// Moves the active leaf to `target`, or to nothing.
pub const LEAF: &str = "leaf";
/// Says that steps of a stream of `target` may follow outside of the log.
pub const STREAM: &str = "stream";
/// The session was deleted.
pub const TOMBSTONE: &str = "tomb";
/// The deletion was undone.
pub const RESTORED: &str = "restored";
