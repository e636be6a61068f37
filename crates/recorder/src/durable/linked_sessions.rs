//! Links with sessions that are not in memory.
//!
//! A link is written on both sides when the recorder learns of either side. The other session may have been recorded
//! before, or by another process. It is then read from its log and stays in memory until the next append. Another
//! process may be recording it at the same time, so only its links are written. A link that cannot be written is
//! reported and does not stop the recording.

use super::{RecordSink, Task, tells_of};
use crate::event::{AgentEvent, ToolExecutionEnd};
use crate::limits::DURABLE_LINKED_SESSIONS_MAX;
use crate::recorder::Notice;

impl<S: RecordSink> Task<S> {
    /// Loads the sessions that an event links with.
    pub(super) async fn load_linked_for(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart(start) => {
                self.note_loop(&start.loop_id, &start.session_id).await;
                if let Some(parent) = &start.parent_loop_id {
                    self.find_loop(parent, &start.session_id).await;
                }
            }
            AgentEvent::ParallelLoopStart(start) => {
                for loop_id in &start.loop_ids {
                    self.note_loop(loop_id, &start.session_id).await;
                }
            }
            AgentEvent::ToolExecutionEnd(end) => {
                let session_id = self.translator.recorder().session_of(&end.loop_id);
                if let (Some(child), Some(session_id)) = (child_of(end), session_id) {
                    let session_id = session_id.to_owned();
                    self.find_loop(child, &session_id).await;
                }
            }
            _ => {}
        }
    }

    /// Notes where a loop is, and loads the sessions that named it before.
    async fn note_loop(&mut self, loop_id: &str, session_id: &str) {
        self.loop_index.loop_is_in(loop_id, session_id);
        for named_by in self.loop_index.take_named_by(loop_id) {
            self.load_linked(&named_by, None).await;
        }
    }

    /// Looks for a loop that a session names and that is not in memory.
    async fn find_loop(&mut self, loop_id: &str, session_id: &str) {
        if self.translator.recorder().knows(loop_id) {
            return;
        }
        if let Some(named) = self.loop_index.session_of(loop_id).map(str::to_owned) {
            self.load_linked(&named, Some(loop_id)).await;
        }
        if !self.translator.recorder().knows(loop_id) {
            self.loop_index.is_named_by(loop_id, session_id);
        }
    }

    /// Loads a session for a link; if a loop is named, only if the session has it.
    async fn load_linked(&mut self, session_id: &str, with_loop: Option<&str>) {
        if self.translator.holds(session_id) || self.failed.contains_key(session_id) {
            return;
        }
        self.store_what_waits_for(session_id).await;
        match self.sink.load(session_id).await {
            Ok(records) if with_loop.is_none_or(|loop_id| tells_of(&records, loop_id)) => {
                if self.translator.load_linked(session_id, &records) {
                    self.linked.insert(session_id.to_owned(), records.len());
                }
            }
            Ok(_) => with_loop.into_iter().for_each(|loop_id| self.loop_index.miss(loop_id)),
            Err(error) => {
                with_loop.into_iter().for_each(|loop_id| self.loop_index.miss(loop_id));
                self.tell_link_not_stored(session_id, error.to_string());
            }
        }
    }

    /// Drops linked sessions that an event belongs to: they are then resumed like any other session.
    pub(super) fn drop_linked_of(&mut self, event: &AgentEvent) {
        if self.linked.is_empty() {
            return;
        }
        let named = self.sessions_of(event);
        let linked: Vec<String> =
            named.filter(|id| self.linked.contains_key(*id)).map(str::to_owned).collect();
        for session_id in linked {
            self.drop_linked(&session_id);
        }
        if self.linked.len() >= DURABLE_LINKED_SESSIONS_MAX {
            self.drop_all_linked();
        }
    }

    pub(super) fn drop_linked(&mut self, session_id: &str) {
        self.linked.remove(session_id);
        self.translator.drop_linked(session_id);
    }

    pub(super) fn drop_all_linked(&mut self) {
        for session_id in std::mem::take(&mut self.linked).into_keys() {
            self.translator.drop_linked(&session_id);
        }
    }

    pub(super) fn tell_link_not_stored(&self, session_id: &str, reason: String) {
        if let Some(on_notice) = &self.on_notice {
            let session_id = session_id.to_owned();
            on_notice(self.received, &Notice::LinkNotStored { session_id, reason });
        }
    }
}

/// The loop of the sub-agent that a tool ran.
fn child_of(end: &ToolExecutionEnd) -> Option<&str> {
    end.result.child_loop_id.as_deref().or(end.child_loop_id.as_deref())
}
