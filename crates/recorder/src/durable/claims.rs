//! One recorder for each session.
//!
//! A recorder claims a session before it reads it, and keeps the claim while a loop of it is open. Then the claim is
//! idle: another recorder may take the session. Before a recorder continues an idle session, it asks whether another
//! recorder wrote into it, and if so reads the session again.

use super::{RecordSink, Task, tells_of};
use crate::event::AgentEvent;

impl<S: RecordSink> Task<S> {
    /// Resumes a session that is stored and not in memory; if a loop is named, only if the session has it.
    pub(super) async fn resume_session(&mut self, session_id: &str, with_loop: Option<&str>) {
        if self.translator.holds(session_id) || self.failed.contains_key(session_id) {
            return;
        }
        self.store_what_waits_for(session_id).await;
        match self.sink.claim(session_id).await {
            Ok((claim, records)) if with_loop.is_none_or(|id| tells_of(&records, id)) => {
                self.claims.insert(session_id.to_owned(), claim);
                let batches = self.translator.resume(session_id, &records);
                self.add(batches, 0);
            }
            Ok(_) => with_loop.into_iter().for_each(|loop_id| self.loop_index.miss(loop_id)),
            Err(error) => self.fail(session_id.to_owned(), error),
        }
    }

    /// Marks the claims of sessions without an open loop as idle, so that others may record into
    /// them.
    pub(super) fn rest(&mut self) {
        let recorder = self.translator.recorder();
        for (session_id, claim) in &mut self.claims {
            if recorder.open_loops(session_id) == 0 && !self.resting.contains(session_id) {
                self.sink.rest(claim);
                self.resting.insert(session_id.clone());
            }
        }
    }

    /// Renews the claims of the sessions of an event, which others may have recorded into
    /// meanwhile.
    pub(super) async fn renew_for(&mut self, event: &AgentEvent) {
        if self.resting.is_empty() {
            return;
        }
        let named = self.sessions_of(event);
        let resting: Vec<String> =
            named.filter(|id| self.resting.contains(*id)).map(str::to_owned).collect();
        for session_id in resting {
            self.renew(&session_id).await;
        }
    }

    async fn renew(&mut self, session_id: &str) {
        self.resting.remove(session_id);
        let Some(mut claim) = self.claims.remove(session_id) else {
            return;
        };
        match self.sink.renew(&mut claim).await {
            Ok(true) => drop(self.claims.insert(session_id.to_owned(), claim)),
            // Then it is loaded like a session that is not in memory.
            Ok(false) => self.translator.forget(session_id),
            Err(error) => self.fail(session_id.to_owned(), error),
        }
    }

    /// The sessions that an event names.
    pub(super) fn sessions_of<'a>(
        &'a self,
        event: &'a AgentEvent,
    ) -> impl Iterator<Item = &'a str> + use<'a, S> {
        let named = match event {
            AgentEvent::Unknown(event) => event.text("session_id"),
            event => event.session_id(),
        };
        let placed = event.loop_id().and_then(|id| self.translator.recorder().session_of(id));
        [named, placed].into_iter().flatten()
    }
}
