//! Sessions that are here only so that others can be linked with them.
//!
//! Whoever records such a session may be another process, right now: nothing of it is changed but its links, and none
//! of its loops is broken off.

use super::live::{Live, Stage};
use super::{SessionKey, SessionRecorder};
use crate::model::Session;

impl SessionRecorder {
    /// Takes in a session for as long as links with it are written. It says nothing to the events of its own loops:
    /// [`Self::leave`] comes before the next of them.
    pub(crate) fn visit(&mut self, session: Session) {
        if !self.by_session.contains_key(&session.session_id) {
            let key = self.hold(Live::new(session, Stage::Guest));
            self.find_places(key);
        }
    }

    /// Lets go of a session that [`Self::visit`] took in.
    pub(crate) fn leave(&mut self, session_id: &str) {
        if self.is_guest(session_id) {
            self.drop_session(session_id);
        }
    }

    /// Whether a session is here only so that others can be linked with it.
    pub(crate) fn is_guest(&self, session_id: &str) -> bool {
        self.live_by_id(session_id).is_some_and(|live| live.stage == Stage::Guest)
    }

    /// The session that a loop belongs to.
    pub(crate) fn session_of(&self, loop_id: &str) -> Option<&str> {
        let place = self.places.get(loop_id)?;
        self.lives.get(&place.session).map(|live| live.session.session_id.as_str())
    }

    /// Forgets what a session that is gone told of others, and others of it.
    pub(super) fn forget_names(&mut self, key: SessionKey, session: &Session) {
        self.last_place = None;
        self.echoes.forget(key);
        self.by_session.remove(&session.session_id);
        for record in &session.loops {
            for id in [session.given_id(record), &record.loop_id] {
                if self.places.get(id).is_some_and(|place| place.session == key) {
                    self.places.remove(id);
                }
            }
            if let Some(parent) = &record.parent_loop_id
                && let Some(waiting) = self.waiting.get_mut(parent)
            {
                waiting.retain(|place| place.session != key);
                if waiting.is_empty() {
                    self.waiting.remove(parent);
                }
            }
            for child in &record.child_loop_refs {
                if self.spawned.get(&child.child_loop_id).is_some_and(|place| place.session == key)
                {
                    self.spawned.remove(&child.child_loop_id);
                }
            }
        }
    }
}
