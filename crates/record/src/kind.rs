//! The kinds of record that a log understands. It stores records of all other kinds without
//! interpreting them.

use std::borrow::Cow;

/// Adds an entry to the tree and makes it the active leaf.
pub const ENTRY: &str = "entry";
/// Changes the content of an entry, relative to the previous revision.
pub const REVISION: &str = "rev";
/// Hides an entry from every read.
pub const REMOVED: &str = "removed";
/// Says who redacted an entry, and hides it as [`REMOVED`] does. The content is gone from its frames.
pub const REDACTED: &str = "redacted";
/// Moves the active leaf to `target`, or to nothing.
pub const LEAF: &str = "leaf";
/// Announces that steps of a stream of `target` may follow outside of the log.
pub const STREAM: &str = "stream";
/// The session was deleted.
pub const TOMBSTONE: &str = "tomb";
/// The deletion was undone.
pub const RESTORED: &str = "restored";

/// A kind that borrows nothing. One that a log understands needs no memory of its own.
pub(crate) fn into_owned(kind: Cow<'_, str>) -> Cow<'static, str> {
    const UNDERSTOOD: [&str; 7] = [ENTRY, REVISION, REMOVED, LEAF, STREAM, TOMBSTONE, RESTORED];
    match UNDERSTOOD.into_iter().find(|known| *known == kind) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(kind.into_owned()),
    }
}

/// Whether a record of this kind hides its target from every read.
#[must_use]
pub fn hides_target(kind: &str) -> bool {
    matches!(kind, REMOVED | REDACTED)
}
