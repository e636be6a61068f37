//! Sessions that are in memory only to be linked with.
//!
//! Another process may be recording such a session: only its links change, and its loops are not aborted.

use super::live::{Live, Stage};
use super::{SessionKey, SessionRecorder};
use crate::model::RecordedSession;

impl SessionRecorder {
    /// Holds a session while links with it are written. Events of its own loops do not reach it: [`Self::drop_linked`]
    /// is called before the next of them.
    pub(crate) fn hold_linked(&mut self, session: RecordedSession) {
        if !self.by_session.contains_key(&session.session_id) {
            let key = self.hold(Live::new(session, Stage::Linked));
            self.find_places(key);
        }
    }

    /// Drops a session that [`Self::hold_linked`] took in.
    pub(crate) fn drop_linked(&mut self, session_id: &str) {
        if self.is_linked(session_id) {
            self.drop_session(session_id);
        }
    }

    /// Whether a session is in memory only so that others can be linked with it.
    pub(crate) fn is_linked(&self, session_id: &str) -> bool {
        self.live_by_id(session_id).is_some_and(|live| live.stage == Stage::Linked)
    }

    /// The session that a loop belongs to.
    pub(crate) fn session_of(&self, loop_id: &str) -> Option<&str> {
        let location = self.locations.get(loop_id)?;
        self.lives.get(&location.session).map(|live| live.session.session_id.as_str())
    }

    /// Drops a session, as if it had never been held.
    pub(crate) fn drop_session(&mut self, session_id: &str) {
        let key = self.by_session.get(session_id).copied();
        if let Some((key, live)) = key.and_then(|key| Some((key, self.lives.remove(&key)?))) {
            self.forget_names(key, &live.session);
        }
    }

    /// Forgets the references between a removed session and others, in both directions.
    pub(super) fn forget_names(&mut self, key: SessionKey, session: &RecordedSession) {
        self.last_location = None;
        self.repeats.forget(key);
        self.by_session.remove(&session.session_id);
        for record in &session.loops {
            for id in [session.given_id(record), &record.loop_id] {
                if self.locations.get(id).is_some_and(|location| location.session == key) {
                    self.locations.remove(id);
                }
            }
            if let Some(parent) = &record.parent_loop_id
                && let Some(waiting) = self.waiting.get_mut(parent)
            {
                waiting.retain(|location| location.session != key);
                if waiting.is_empty() {
                    self.waiting.remove(parent);
                }
            }
            for child in &record.child_loop_refs {
                if self
                    .spawned
                    .get(&child.child_loop_id)
                    .is_some_and(|location| location.session == key)
                {
                    self.spawned.remove(&child.child_loop_id);
                }
            }
        }
    }
}
