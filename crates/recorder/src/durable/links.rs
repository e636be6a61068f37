//! Links with sessions that are not at hand.
//!
//! A link is written on both sides when either side is heard. The other session may have been recorded before, by
//! another process, or so long ago that it was let go of. It is then read from its log and is a guest until the events that
//! are at hand are stored. Another process may be recording it right now: a guest gets its links and nothing else, and if it
//! cannot be written, that is reported and stops nobody.

use super::{RecordSink, Task, tells_of};
use crate::event::{AgentEvent, ToolExecutionEnd};
use crate::limits::DURABLE_GUESTS_MAX;
use crate::recorder::Notice;

impl<S: RecordSink> Task<S> {
    /// Has the sessions of the loops at hand that an event links with.
    pub(super) async fn bring_guests_for(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart(start) => {
                self.greet(&start.loop_id, &start.session_id).await;
                if let Some(parent) = &start.parent_loop_id {
                    self.look_for(parent, &start.session_id).await;
                }
            }
            AgentEvent::ParallelLoopStart(start) => {
                for loop_id in &start.loop_ids {
                    self.greet(loop_id, &start.session_id).await;
                }
            }
            AgentEvent::ToolExecutionEnd(end) => {
                let session_id = self.translator.recorder().session_of(&end.loop_id);
                if let (Some(child), Some(session_id)) = (child_of(end), session_id) {
                    let session_id = session_id.to_owned();
                    self.look_for(child, &session_id).await;
                }
            }
            _ => {}
        }
    }

    /// A loop is heard of: the sessions that named it before are told.
    async fn greet(&mut self, loop_id: &str, session_id: &str) {
        self.whereabouts.loop_is_in(loop_id, session_id);
        for named_by in self.whereabouts.take_named_by(loop_id) {
            self.visit(&named_by, None).await;
        }
    }

    /// Looks for a loop that a session names and that is not at hand.
    async fn look_for(&mut self, loop_id: &str, session_id: &str) {
        if self.translator.recorder().knows(loop_id) {
            return;
        }
        if let Some(named) = self.whereabouts.session_of(loop_id).map(str::to_owned) {
            self.visit(&named, Some(loop_id)).await;
        }
        if !self.translator.recorder().knows(loop_id) {
            self.whereabouts.is_named_by(loop_id, session_id);
        }
    }

    /// Has a session at hand for a link; if a loop is named, only if that is in it.
    async fn visit(&mut self, session_id: &str, with_loop: Option<&str>) {
        if self.translator.holds(session_id) || self.failed.contains_key(session_id) {
            return;
        }
        self.store_what_waits_for(session_id).await;
        match self.sink.load(session_id).await {
            Ok(records) if with_loop.is_none_or(|loop_id| tells_of(&records, loop_id)) => {
                if self.translator.visit(session_id, &records) {
                    self.guests.insert(session_id.to_owned(), records.len());
                }
            }
            Ok(_) => with_loop.into_iter().for_each(|loop_id| self.whereabouts.miss(loop_id)),
            Err(error) => {
                with_loop.into_iter().for_each(|loop_id| self.whereabouts.miss(loop_id));
                self.tell_link_not_stored(session_id, error.to_string());
            }
        }
    }

    /// Events of a guest's own are recorded as if it had not been here.
    pub(super) fn leave_who_is_spoken_of(&mut self, event: &AgentEvent) {
        if self.guests.is_empty() {
            return;
        }
        let spoken_of = self.sessions_of(event);
        let guests: Vec<String> =
            spoken_of.filter(|id| self.guests.contains_key(*id)).map(str::to_owned).collect();
        for session_id in guests {
            self.leave(&session_id);
        }
        if self.guests.len() >= DURABLE_GUESTS_MAX {
            self.leave_all();
        }
    }

    pub(super) fn leave(&mut self, session_id: &str) {
        self.guests.remove(session_id);
        self.translator.leave(session_id);
    }

    pub(super) fn leave_all(&mut self) {
        for session_id in std::mem::take(&mut self.guests).into_keys() {
            self.translator.leave(&session_id);
        }
    }

    pub(super) fn tell_link_not_stored(&self, session_id: &str, reason: String) {
        if let Some(on_notice) = &self.on_notice {
            let session_id = session_id.to_owned();
            on_notice(self.heard, &Notice::LinkNotStored { session_id, reason });
        }
    }
}

/// The loop of the sub-agent that a tool ran.
fn child_of(end: &ToolExecutionEnd) -> Option<&str> {
    end.result.child_loop_id.as_deref().or(end.child_loop_id.as_deref())
}
