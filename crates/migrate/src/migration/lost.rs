use std::fmt;

use serde::Serialize;

/// Something that a V1 file cannot say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// What.
    pub kind: LostKind,
    /// How many of it.
    pub count: u64,
}

/// The kinds of things that a V1 file cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LostKind {
    /// A change of an entry that came from the file itself, which is not rewritten.
    Revision,
    /// A change of description, metadata, archive mark or task name.
    Meta,
    /// An event of an agent's loop.
    LoopEvent,
    /// An entry that does not follow the last one, in a version-1 file, which has no branches.
    Branch,
    /// An entry that follows a line which has no id in the file.
    Unreachable,
    /// A record of a kind that this version does not know.
    Unknown,
    /// Records that cannot be read because the log is damaged.
    Damaged,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            LostKind::Revision => "changes of migrated entries",
            LostKind::Meta => "changes of the session's metadata",
            LostKind::LoopEvent => "loop events",
            LostKind::Branch => "branched entries",
            LostKind::Unreachable => "entries after lines without an id",
            LostKind::Unknown => "records of unknown kinds",
            LostKind::Damaged => "unreadable stretches",
        };
        write!(f, "{} {what}", self.count)
    }
}
