//! Sessions that V1 files answer for in the place of their logs, in the catalogue.
//!
//! The logs of such sessions name the file and nothing else, so the catalogue reads the files through [`FileSessions`].

use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};

use bough_session::SessionId;

use super::Shared;
use crate::StoreError;
use crate::sync::lock;
use crate::types::Snapshot;

#[cfg(test)]
mod tests;

/// Reads sessions that V1 files answer for. The server of those files implements it.
pub trait FileSessions: Send + Sync + Debug {
    /// A session as its file has it; `None` when no file answers for it, and when its file cannot be read: then it is
    /// listed as it was. May block.
    fn snapshot(&self, session: &SessionId) -> Option<Snapshot>;
}

/// What the catalogue needs to list such sessions.
#[derive(Debug, Default)]
pub(super) struct SessionsInFiles {
    reader: OnceLock<Arc<dyn FileSessions>>,
    /// Those that a catalogue made anew lacks.
    unlisted: Mutex<Vec<SessionId>>,
}

impl SessionsInFiles {
    /// Sets the reader of the files; the first one stays.
    pub(super) fn read_by(&self, reader: Arc<dyn FileSessions>) {
        drop(self.reader.set(reader));
    }

    /// Notes a session whose log does not answer for it. It is listed before the next list.
    pub(super) fn add(&self, session: &SessionId) {
        let mut unlisted = lock(&self.unlisted);
        unlisted.push(session.clone());
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.unlisted).is_empty()
    }

    fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        self.reader.get()?.snapshot(session)
    }
}

impl Shared {
    /// Lists the sessions in files that a catalogue made anew lacks. One that cannot be read hides no other.
    pub(super) fn list_sessions_in_files(&self) {
        if self.in_files.reader.get().is_none() {
            return;
        }
        // Locked while they are read, so that the next list waits for them.
        let mut unlisted = lock(&self.in_files.unlisted);
        if unlisted.is_empty() {
            return;
        }
        for session in unlisted.drain(..) {
            drop(self.put_as_answered(&session));
        }
        self.show();
    }

    /// Puts sessions into the catalogue as their logs or files have them now, and waits until they are listed.
    pub(super) fn refresh(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        sessions.iter().try_for_each(|session| self.put_as_answered(session))?;
        self.catalogue().flush().map(drop)
    }

    fn put_as_answered(&self, session: &SessionId) -> Result<(), StoreError> {
        let by_log = self.readable_state(session)?;
        if let Some(snapshot) = by_log.or_else(|| self.in_files.snapshot(session)) {
            self.catalogue().put(self.row(session, &snapshot));
        }
        Ok(())
    }
}
