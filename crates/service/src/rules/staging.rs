//! Unfinished operations of the store protocol.
//!
//! session-manager forks by writing the entries first and the session's own record last, and deletes by removing the
//! entries first. Our sessions appear and disappear whole, so the parts wait here for the call that completes them.
//! Only the protocol reads them, and a bound keeps an instance that never completes anything from filling memory.

use std::collections::HashMap;
use std::sync::Mutex;

use bough_session::limits::check_at_most;
use bough_session::{EntryId, SessionEntry, SessionId};

use crate::error::ServiceError;
use crate::limits::{STAGED_ENTRIES_MAX, STAGED_SESSIONS_MAX};
use crate::lock::lock;

/// Parts of sessions that do not exist yet, and of sessions that are about to be deleted.
#[derive(Default)]
pub(crate) struct Staging {
    sessions: Mutex<HashMap<SessionId, Staged>>,
}

/// What waits for one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Staged {
    /// Entries of a session that does not exist yet, in the order in which they were first written.
    pub(crate) entries: Vec<SessionEntry>,
    /// Where each of them is in that list.
    places: HashMap<EntryId, usize>,
    /// Its active leaf.
    pub(crate) leaf: Option<EntryId>,
    /// The entries of an existing session were deleted, and the rest is to follow.
    pub(crate) entries_gone: bool,
    /// The same for its active leaf.
    pub(crate) leaf_gone: bool,
}

impl Staged {
    /// Lets go of the entries.
    pub(crate) fn clear_entries(&mut self) {
        self.entries.clear();
        self.places.clear();
    }
}

impl Staging {
    pub(crate) fn get(&self, session: &SessionId) -> Staged {
        lock(&self.sessions).get(session).cloned().unwrap_or_default()
    }

    pub(crate) fn take(&self, session: &SessionId) -> Staged {
        lock(&self.sessions).remove(session).unwrap_or_default()
    }

    /// Holds an entry, in place of an older one with its id.
    pub(crate) fn put_entry(
        &self,
        session: &SessionId,
        entry: SessionEntry,
    ) -> Result<(), ServiceError> {
        self.change(session, |staged| {
            let place = staged.places.get(entry.id()).copied();
            if let Some(old) = place.and_then(|place| staged.entries.get_mut(place)) {
                *old = entry;
                return Ok(());
            }
            let count = staged.entries.len() + 1;
            check_at_most("staged session", "entries", count, STAGED_ENTRIES_MAX)?;
            staged.places.insert(entry.id().clone(), staged.entries.len());
            staged.entries.push(entry);
            Ok(())
        })
    }

    /// Changes what waits for a session.
    pub(crate) fn change(
        &self,
        session: &SessionId,
        change: impl FnOnce(&mut Staged) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let mut sessions = lock(&self.sessions);
        if !sessions.contains_key(session) {
            let count = sessions.len() + 1;
            check_at_most("staging area", "sessions", count, STAGED_SESSIONS_MAX)?;
        }
        change(sessions.entry(session.clone()).or_default())
    }
}
