//! Session files: one `{session_id}.json` for each session, pretty-printed, in one folder.
//!
//! A file is replaced as a whole: written beside the old one, synced, renamed over it, and the folder synced. Readers
//! therefore need no lock: the file that they open is whole and stays whole while they read. Writers take the lock of
//! the session and never wait for it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_platform::{Disk, OsDisk};

use crate::model::RecordedSession;

mod compare;
mod folder;
mod memory;
mod pretty;
mod split;
mod store;
mod write;

pub use folder::SessionFolder;
pub use memory::MemorySessionStore;
pub use store::{FileSystemSessionStore, SessionStore};

/// Why a session was not saved, loaded or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The disk failed.
    #[error("cannot {action} session {session_id:?}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The session; empty if it is the folder.
        session_id: String,
        /// Why not.
        source: io::Error,
    },
    /// The file does not hold a session.
    #[error("the file of session {session_id:?} cannot be read: {source}; restore it or delete it")]
    Unreadable {
        /// The session.
        session_id: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// The file holds another session than its name says.
    #[error("the file of session {session_id:?} holds session {found:?}; rename it")]
    WrongSession {
        /// The session that was asked for.
        session_id: String,
        /// The session that was found.
        found: String,
    },
    /// There is no such session.
    #[error("there is no session {session_id:?}")]
    NotFound {
        /// The session.
        session_id: String,
    },
    /// Another program is writing it.
    #[error("another program is writing session {session_id:?}; try again")]
    Locked {
        /// The session.
        session_id: String,
    },
    /// The stored session has something that the saved one lacks, so saving it would lose that.
    #[error(
        "session {session_id:?} was changed since it was loaded: what is stored has {missing}; \
         load it again and repeat the change"
    )]
    LostUpdate {
        /// The session.
        session_id: String,
        /// What would be lost.
        missing: String,
    },
    /// The id cannot name a file.
    #[error("{session_id:?} cannot name a file; use letters, digits, '-', '_' and '.'")]
    UnsafeId {
        /// The id.
        session_id: String,
    },
    /// The task that did the work was cancelled.
    #[error("the work on session {session_id:?} was cancelled; try again")]
    BrokenOff {
        /// The session.
        session_id: String,
    },
}

/// The sessions of an agent, and what could not be read.
#[derive(Debug, Default)]
pub struct AgentSessions {
    /// The sessions, newest first.
    pub sessions: Vec<RecordedSession>,
    /// The files that could not be read, by session: one bad file hides no other.
    pub unreadable: BTreeMap<String, SessionError>,
}

/// Writes `{dir}/{session_id}.json` and returns its path. The folder is created if it is missing.
///
/// When it returns, the session is on the disk; if it fails, the previous file is unchanged. A session that lacks
/// something that is stored already is not written ([`SessionError::LostUpdate`]).
pub fn save_session(session: &RecordedSession, dir: &Path) -> Result<PathBuf, SessionError> {
    let disk = OsDisk::create(dir).map_err(|source| SessionError::Io {
        action: "make the folder of",
        session_id: session.session_id.clone(),
        source,
    })?;
    let path = disk.root().join(format!("{}.json", session.session_id));
    SessionFolder::new(Arc::new(disk)).save(session)?;
    Ok(path)
}

/// Reads `{dir}/{session_id}.json`.
pub fn load_session(session_id: &str, dir: &Path) -> Result<RecordedSession, SessionError> {
    match open(dir)? {
        Some(folder) => folder.load(session_id),
        None => Err(SessionError::NotFound { session_id: session_id.to_owned() }),
    }
}

/// The ids of the sessions in a folder, last changed first; none if there is no such folder.
pub fn list_session_ids(dir: &Path) -> Result<Vec<String>, SessionError> {
    open(dir)?.map_or_else(|| Ok(Vec::new()), |folder| folder.list_ids())
}

/// All sessions of an agent in a folder, last changed first.
pub fn load_sessions_for_agent(agent_id: &str, dir: &Path) -> Result<AgentSessions, SessionError> {
    open(dir)?
        .map_or_else(|| Ok(AgentSessions::default()), |folder| folder.load_for_agent(agent_id))
}

/// Removes `{dir}/{session_id}.json`.
pub fn delete_session(session_id: &str, dir: &Path) -> Result<(), SessionError> {
    match open(dir)? {
        Some(folder) => folder.delete(session_id),
        None => Err(SessionError::NotFound { session_id: session_id.to_owned() }),
    }
}

fn open(dir: &Path) -> Result<Option<SessionFolder>, SessionError> {
    match OsDisk::open(dir) {
        Ok(disk) => Ok(Some(SessionFolder::new(Arc::new(disk) as Arc<dyn Disk>))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SessionError::Io {
            action: "open the folder of",
            session_id: String::new(),
            source,
        }),
    }
}
