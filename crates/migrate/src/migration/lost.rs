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
    /// The mark of an entry that was hidden: the file shows it.
    Removal,
    /// An event of an agent's loop.
    LoopEvent,
    /// An entry that does not follow the last one, in a version-1 file, which has no branches.
    Branch,
    /// An active leaf that is not the last entry, in a version-1 file, which goes on from its last line.
    Leaf,
    /// A label, in a version-1 file, whose entries have no ids that it could name.
    Label,
    /// An entry that follows a line which has no id in the file.
    Unreachable,
    /// A record of a kind that this version does not know.
    Unknown,
    /// Records that cannot be read because the log is damaged.
    Damaged,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = match self.kind {
            LostKind::Revision => ("change of a migrated entry", "changes of migrated entries"),
            LostKind::Meta => {
                ("change of the session's metadata", "changes of the session's metadata")
            }
            LostKind::Removal => ("hidden entry", "hidden entries"),
            LostKind::LoopEvent => ("loop event", "loop events"),
            LostKind::Branch => ("branched entry", "branched entries"),
            LostKind::Leaf => ("move of the active leaf", "moves of the active leaf"),
            LostKind::Label => ("label in a file without ids", "labels in a file without ids"),
            LostKind::Unreachable => {
                ("entry after a line without an id", "entries after lines without an id")
            }
            LostKind::Unknown => ("record of an unknown kind", "records of unknown kinds"),
            LostKind::Damaged => ("unreadable stretch", "unreadable stretches"),
        };
        let what = if self.count == 1 { one } else { many };
        write!(f, "{} {what}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_in_the_right_number() {
        let text = |count| Lost { kind: LostKind::Meta, count }.to_string();
        assert_eq!(text(1), "1 change of the session's metadata");
        assert_eq!(text(2), "2 changes of the session's metadata");
    }
}
