use std::io;

use bough_session::SessionId;
use bough_store::origin::Verification;
use bough_store::{StoreError, describe_holder};

use crate::migration::Lost;

/// Why something was not read, migrated, rolled back or exported, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The file is not a session of a kind that we read.
    #[error("{address} is not a pi session: {reason}")]
    NotASession {
        /// The file.
        address: String,
        /// What is missing.
        reason: String,
    },
    /// There is no such file.
    #[error("{address} is not there: put it back, or name another file")]
    Missing {
        /// The file.
        address: String,
    },
    /// A line is longer than a record may be.
    #[error("line {line} of {address} has {size} bytes; at most {limit} can be kept in one record")]
    LineTooLarge {
        /// The file.
        address: String,
        /// The line, from 1.
        line: u64,
        /// Its length.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The file was written to since it was looked at.
    #[error("{address} has changed since it was planned; nothing was migrated, plan it again")]
    SourceChanged {
        /// The file.
        address: String,
    },
    /// The database has a write of another program in the middle of it.
    #[error(
        "{address} has an unfinished write ({beside}); open it once with its own program first"
    )]
    UnfinishedWrite {
        /// The database.
        address: String,
        /// The file that shows it.
        beside: String,
    },
    /// A session of that id is there, and it did not come from this file.
    #[error(
        "session {session} exists already and is not a copy of this file; export or delete it first"
    )]
    Exists {
        /// The session.
        session: String,
    },
    /// The session was brought in from this file, and another program wrote to the file since.
    #[error(
        "{address} has changed since it was brought in as session {session}; \
         `bough rollback {session} --accept-changed` gives the session back to the file, then migrate it again"
    )]
    ChangedSince {
        /// The file.
        address: String,
        /// The session.
        session: String,
    },
    /// What was built is not what the source says.
    #[error(
        "the copy does not match its source ({detail}); nothing was changed, the source is still live"
    )]
    VerificationFailed {
        /// What was compared.
        verification: Verification,
        /// In words.
        detail: String,
    },
    /// The session has no earlier store to go back to.
    #[error("session {session} has no V1 file to go back to")]
    NothingToRollBackTo {
        /// The session.
        session: String,
    },
    /// Going back would leave something out.
    #[error(
        "rolling back would lose {}; export the session first, or accept the loss",
        words(lost)
    )]
    WouldLose {
        /// What, by kind.
        lost: Vec<Lost>,
    },
    /// The file to go back to is not the one that was migrated.
    #[error(
        "{address} was changed by another program since the migration ({detail}); accept the change, or export instead"
    )]
    TargetChanged {
        /// The file.
        address: String,
        /// What differs.
        detail: String,
    },
    /// The migration failed and could not be undone by itself.
    #[error("session {session} cannot be recovered without help: {reason}")]
    NeedsOperator {
        /// The session.
        session: String,
        /// What happened and what to do.
        reason: String,
    },
    /// The session is served by its native log, not by a V1 file.
    #[error("session {session} is served by its log, not by a V1 file")]
    NotLive {
        /// The session.
        session: String,
    },
    /// Another process is writing the V1 file through us.
    #[error(
        "another process is writing {address} ({}); try again when it ends",
        describe_holder(holder)
    )]
    Locked {
        /// The file.
        address: String,
        /// What the holder says of itself.
        holder: String,
    },
    /// Another program writes the whole file again and again.
    #[error(
        "another program keeps rewriting {address}; nothing is acknowledged, try again when it ends"
    )]
    Contended {
        /// The file.
        address: String,
    },
    /// An entry cannot be written in the file's format.
    #[error("{reason}")]
    NotRepresentable {
        /// Why.
        reason: String,
    },
    /// The address is not one that can be opened here.
    #[error("{address:?} is not a path that can be used: {reason}")]
    BadAddress {
        /// As it was given.
        address: String,
        /// Why.
        reason: String,
    },
    /// Another process writes the session's log.
    #[error(
        "another process is writing session {session} ({}); stop it, then try again",
        describe_holder(holder)
    )]
    SessionLocked {
        /// The session.
        session: String,
        /// What the holder says of itself.
        holder: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk did not do what was asked.
    #[error("the disk failed: {0}")]
    Io(#[from] io::Error),
    /// The database cannot be read or made.
    #[error("the SQLite file cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// The result of anything in this crate.
pub type Result<T> = std::result::Result<T, MigrateError>;

impl MigrateError {
    /// Whether bytes of the log are damaged.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Corrupt { .. }))
    }

    /// Says which session it was that another process writes.
    pub(crate) fn of_session(self, session: &SessionId) -> Self {
        match self {
            Self::Store(StoreError::Locked { holder }) => {
                Self::SessionLocked { session: session.to_string(), holder }
            }
            other => other,
        }
    }
}

impl From<bough_platform::PathError> for MigrateError {
    fn from(error: bough_platform::PathError) -> Self {
        Self::Io(error.into())
    }
}

fn words(lost: &[Lost]) -> String {
    let parts: Vec<String> = lost.iter().map(ToString::to_string).collect();
    parts.join(", ")
}
