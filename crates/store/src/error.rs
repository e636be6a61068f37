//! Why a store did not do something, by what the caller can do about it.

use std::io;
use std::sync::Arc;

use bough_session::{EntryId, LimitError, SessionId};
use serde_json::Value;
use thiserror::Error;

use crate::Head;

/// Why an operation of a store failed. It can be cloned, because callers that share one disk write share its failure.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// There is no such session. Create it, or look elsewhere.
    #[error("session {session} does not exist")]
    NotFound {
        /// The session that was asked for.
        session: SessionId,
    },
    /// The session has no such entry.
    #[error("entry {entry} does not exist")]
    EntryNotFound {
        /// The entry that was asked for.
        entry: EntryId,
    },
    /// The entry exists and is not on the path that was asked for. Start the path anew.
    #[error("entry {entry} is not on this path; start again from its beginning")]
    NotOnPath {
        /// The entry that was named.
        entry: EntryId,
    },
    /// The session exists already. Use it, or choose another id.
    #[error("session {session} exists already")]
    Exists {
        /// The session that was to be made.
        session: SessionId,
    },
    /// Another writer appended since the caller read the session. Read `current`, decide again,
    /// retry.
    #[error("the session is at record {} by now; read it again and retry", current.seq)]
    Conflict {
        /// Where the session is now.
        current: Head,
    },
    /// Another writer changed the message since the caller read it.
    #[error("entry {entry} is at revision {current} by now; read it again and retry")]
    RevisionConflict {
        /// The message.
        entry: EntryId,
        /// Its present revision.
        current: u64,
    },
    /// Another process is writing the session. Wait, or call that process.
    #[error(
        "another process is writing here ({}); wait for it, or use its server",
        describe_holder(holder)
    )]
    Locked {
        /// What the other process says of itself.
        holder: String,
    },
    /// Too much at once. Send less.
    #[error(transparent)]
    TooLarge(#[from] LimitError),
    /// The request is invalid. Fix the caller.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// The cursor is not from this store, or of another list.
    #[error("the cursor is not valid here; start again without one")]
    InvalidCursor,
    /// The stored data is damaged. Verify, then salvage.
    #[error("damaged: {what} ({place}); run verify, then salvage")]
    Corrupt {
        /// What is wrong.
        what: String,
        /// Where.
        place: String,
    },
    /// The disk is full. Free space, then reopen.
    #[error("the disk is full; free some space, then reopen the session")]
    Full,
    /// A write failed earlier, and no more writes are accepted until the session is reopened.
    #[error("an earlier write failed ({reason}); reopen the session")]
    Latched {
        /// What failed.
        reason: String,
    },
    /// The place where the session is stored cannot express it: it is another program's file.
    #[error("a session in another program's file cannot {capability}; migrate the file first")]
    Unsupported {
        /// The requested capability, as words that follow "cannot".
        capability: &'static str,
    },
    /// The store behind this one does not answer. Try again later.
    #[error("the store is not reachable ({reason}); try again later")]
    Unavailable {
        /// What happened.
        reason: String,
    },
    /// The store behind this one refuses us until its settings change.
    #[error("{reason}")]
    Refused {
        /// Why, and what to change.
        reason: String,
    },
    /// The disk did not answer.
    #[error("disk error: {0}")]
    Io(Arc<io::Error>),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::Full;
        }
        Self::Io(Arc::new(error))
    }
}

impl StoreError {
    /// There is no such session.
    #[must_use]
    pub fn not_found(session: &SessionId) -> Self {
        Self::NotFound { session: session.clone() }
    }

    /// There is such a session already.
    #[must_use]
    pub fn exists(session: &SessionId) -> Self {
        Self::Exists { session: session.clone() }
    }

    /// A request that makes no sense.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    /// Damage at a place.
    pub fn corrupt(what: impl Into<String>, place: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into(), place: place.into() }
    }
}

/// The process that holds a lock, in words for a person. What it writes into its locks is JSON for programs; other text
/// stays as it is.
#[must_use]
pub fn describe_holder(holder: &str) -> String {
    let written = serde_json::from_str::<Value>(holder).unwrap_or_default();
    let server = written.get("address").and_then(Value::as_str).unwrap_or_default();
    match written.get("pid").and_then(Value::as_u64) {
        Some(pid) if server.is_empty() => format!("process {pid}"),
        Some(pid) => format!("process {pid}, which serves {server}"),
        None => holder.to_owned(),
    }
}
