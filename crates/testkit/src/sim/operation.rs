use std::fmt;
use std::sync::Arc;

/// A file or folder, whatever its current name.
pub(crate) type InodeId = usize;

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) folder: InodeId,
    pub(crate) name: Arc<str>,
}

/// One change of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Write { at: usize, bytes: Arc<[u8]> },
    SetLen(usize),
}

/// Whether a new file only exists to be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Data,
    Lock,
}

/// One operation on a simulated disk. Reads are not included. New inodes are numbered in the order
/// of their creation, so replaying the operations gives the same numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create { to: Place, purpose: Purpose },
    CreateDir { to: Place },
    Change { inode: InodeId, change: Change },
    Sync { inode: InodeId },
    SyncLost { inode: InodeId },
    Rename { from: Place, to: Place },
    Remove { from: Place },
    SyncDir { inode: InodeId },
}

/// An operation with the path that it was called by; prints as one line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub(crate) operation: Operation,
    pub(crate) path: String,
    pub(crate) time_ms: i64,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.operation {
            Operation::Create { purpose, .. } => match purpose {
                Purpose::Data => write!(f, "create {path}"),
                Purpose::Lock => write!(f, "create lock {path}"),
            },
            Operation::CreateDir { .. } => write!(f, "create folder {path}"),
            Operation::Change { change, .. } => match change {
                Change::Write { at, bytes } => write!(f, "write {path} {} at {at}", bytes.len()),
                Change::SetLen(len) => write!(f, "set length {path} {len}"),
            },
            Operation::Sync { .. } => write!(f, "sync {path}"),
            Operation::SyncLost { .. } => write!(f, "sync fails, pages clean {path}"),
            Operation::Rename { to, .. } => write!(f, "rename {path} to .../{}", to.name),
            Operation::Remove { .. } => write!(f, "remove {path}"),
            Operation::SyncDir { .. } => write!(f, "sync folder {path}"),
        }
    }
}
