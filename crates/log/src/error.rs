use std::fmt;
use std::io;

use bough_record::Head;

/// What can go wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no log of this id.
    #[error("there is no log {id:?}")]
    NotFound {
        /// The id asked for.
        id: String,
    },
    /// A log of this id is there already.
    #[error("log {id:?} exists already")]
    Exists {
        /// The id asked for.
        id: String,
    },
    /// Something was appended since the caller looked.
    #[error("the log is at record {} by now; read it again and retry", current.seq)]
    Conflict {
        /// Where the log is now.
        current: Head,
    },
    /// The entry is in the log already.
    #[error("entry {entry:?} exists already, as record {seq}; use another id")]
    Duplicate {
        /// The entry's id.
        entry: String,
        /// The record that holds it; 0 while it is still being written.
        seq: u64,
    },
    /// A parent or target is not in the log (INV-001).
    #[error("entry {entry:?} is not in this log")]
    UnknownEntry {
        /// The id that leads nowhere.
        entry: String,
    },
    /// Another process, or another handle, is writing this log.
    #[error(
        "another process is writing this log ({holder}); read it, or write when that process has ended"
    )]
    Locked {
        /// What the holder wrote into the lock.
        holder: String,
    },
    /// A bound was passed; nothing was written.
    #[error("{what} is {size}; at most {limit} is allowed")]
    TooLarge {
        /// The bound's subject.
        what: &'static str,
        /// What was given.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The request cannot be right; nothing was written.
    #[error("{reason}")]
    Invalid {
        /// Why.
        reason: String,
    },
    /// What is on the disk contradicts itself. Reading what verifies is still possible.
    #[error(
        "{0}; reading still works, `bough verify` lists the damage, `bough salvage` copies what is whole"
    )]
    Corrupt(Damage),
    /// The files were written by a newer version.
    #[error("{file} has format {found}, this build reads up to {supported}; use a newer version")]
    NewerFormat {
        /// Which file.
        file: String,
        /// The version it asks for.
        found: u64,
        /// The newest version known here.
        supported: u64,
    },
    /// An earlier write or sync failed; nothing more is acknowledged until the log is reopened.
    #[error("an earlier write failed ({cause}); reopen the log to go on")]
    Latched {
        /// The first failure.
        cause: String,
    },
    /// The disk is full. Nothing that was acknowledged is lost.
    #[error("the disk is full ({0}); free some space, then reopen the log")]
    Full(#[source] io::Error),
    /// The disk did not do what was asked.
    #[error("the disk failed: {0}")]
    Io(#[source] io::Error),
    /// A transition that the store's state machine does not have.
    #[error("a store cannot go from {from} to {to}")]
    Transition {
        /// The state it is in.
        from: crate::format::StoreState,
        /// The state asked for.
        to: crate::format::StoreState,
    },
}

/// The result of anything that touches a log.
pub type Result<T> = std::result::Result<T, LogError>;

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Io(error),
        }
    }
}

impl From<bough_platform::PathError> for LogError {
    fn from(error: bough_platform::PathError) -> Self {
        Self::Invalid { reason: error.to_string() }
    }
}

impl From<Damage> for LogError {
    fn from(damage: Damage) -> Self {
        Self::Corrupt(damage)
    }
}

/// One place where what is on the disk contradicts what was known to be durable.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// What kind of contradiction.
    pub kind: DamageKind,
    /// The file, below the container.
    pub file: String,
    /// The byte where it begins.
    pub at: u64,
    /// The record that is hit, where that is known.
    pub seq: Option<u64>,
    /// In words.
    pub detail: String,
}

impl Damage {
    /// Damage at a place.
    pub fn new(
        kind: DamageKind,
        file: impl Into<String>,
        at: u64,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, file: file.into(), at, seq: None, detail: detail.into() }
    }

    /// The same damage, with the record that it hits.
    #[must_use]
    pub fn of(mut self, seq: u64) -> Self {
        self.seq = Some(seq);
        self
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.file, self.at)?;
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {} ({})", self.detail, self.kind.name())
    }
}

/// The kinds of damage, with the invariant that each one breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DamageKind {
    /// INV-001: a parent that is not there.
    ParentUnknown,
    /// INV-002: record numbers do not rise by one.
    SequenceBroken,
    /// INV-003: an offset row does not lead to its frame.
    IndexRow,
    /// INV-004: the checkpoint's head is not the manifest's.
    CheckpointHead,
    /// INV-005: the hash chain does not fit.
    ChainBroken,
    /// INV-006: a branch head that the index does not know.
    BranchHead,
    /// INV-007: the active store marker and the pointer disagree.
    Pointer,
    /// A frame inside what was known durable cannot be read.
    Frame,
    /// A record that was acknowledged is not there.
    Acknowledged,
    /// A segment file is missing.
    MissingSegment,
    /// The manifest is missing or unreadable.
    Manifest,
    /// A checkpoint is unreadable.
    Checkpoint,
    /// An acknowledged delta of a streaming message is not there.
    Stream,
    /// An id table disagrees with the index.
    IdTable,
    /// A ledger line is unreadable.
    Ledger,
}

impl DamageKind {
    /// The name of the invariant that is broken, or of the damage.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ParentUnknown => "INV-001",
            Self::SequenceBroken => "INV-002",
            Self::IndexRow => "INV-003",
            Self::CheckpointHead => "INV-004",
            Self::ChainBroken => "INV-005",
            Self::BranchHead => "INV-006",
            Self::Pointer => "INV-007",
            Self::Frame => "damaged frame",
            Self::Acknowledged => "acknowledged record lost",
            Self::MissingSegment => "segment missing",
            Self::Manifest => "manifest unreadable",
            Self::Checkpoint => "checkpoint unreadable",
            Self::Stream => "acknowledged delta lost",
            Self::IdTable => "id table wrong",
            Self::Ledger => "ledger line unreadable",
        }
    }

    /// Whether the damaged thing can be made again from the segments, so that no record is in doubt.
    #[must_use]
    pub fn is_derived(self) -> bool {
        matches!(self, Self::IndexRow | Self::IdTable | Self::Checkpoint | Self::CheckpointHead)
    }
}
