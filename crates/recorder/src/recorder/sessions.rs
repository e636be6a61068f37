//! How sessions get into memory: new, announced, loaded, or continued after a drain.

use super::live::{Live, Stage};
use super::report::{Notice, Report};
use super::{Effect, LoopLocation, SessionKey, SessionRecorder};
use crate::announced::Announcements;
use crate::event::AgentStart;
use crate::lineage::Lineage;
use crate::loops::Loops;
use crate::model::{LoopRecord, LoopStatus, RecordedSession, SessionFormation};
use crate::time::Timestamp;

impl SessionRecorder {
    /// Loads a session that was recorded before, to continue it. Open loops are aborted, because the program that ran
    /// them is gone. Returns how many those were.
    pub fn resume(&mut self, session: RecordedSession) -> usize {
        if self.by_session.contains_key(&session.session_id) {
            return 0;
        }
        let stage = if has_begun(&session) { Stage::Drained } else { Stage::Announced };
        let key = self.hold(Live { is_resumed: true, ..Live::new(session, stage) });
        self.find_places(key);
        let aborted = self.abort_open_loops(key);
        if aborted > 0
            && let Some(live) = self.lives.get_mut(&key)
        {
            live.touch();
        } else {
            self.retained.push_back(key);
        }
        aborted
    }

    /// Registers the loops of a session for their events, and the loops that they wait for.
    pub(super) fn find_places(&mut self, key: SessionKey) {
        let Some(live) = self.lives.get_mut(&key) else {
            return;
        };
        // In the order of arrival: a reference to an id that was used again means the newest loop.
        let mut slots: Vec<_> = live.session.loops.slots().collect();
        slots.sort_unstable();
        live.open = live.open_slots().len();
        live.find_groups();
        for slot in slots {
            let record = live.record(slot);
            let location = LoopLocation { session: key, slot };
            let given_id = live.session.given_id(record);
            let known = self.locations.get(given_id);
            // A session that is in memory for links only takes no events.
            if live.stage != Stage::Linked || known.is_none_or(|known| known.session == key) {
                self.locations.insert(given_id.to_owned(), location);
            }
            self.locations.entry(record.loop_id.clone()).or_insert(location);
            let loops = &live.session.loops;
            let parent = record.parent_loop_id.as_ref();
            if let Some(parent) = parent.filter(|parent| loops.slot_of(parent).is_none()) {
                let waiting = self.waiting.entry(parent.clone()).or_default();
                if !waiting.contains(&location) {
                    waiting.push(location);
                }
            }
            for child in &record.child_loop_refs {
                self.spawned.entry(child.child_loop_id.clone()).or_insert(location);
            }
        }
        self.last_location = None;
    }

    /// The session of a loop that starts, ready to take it; `None` if it was refused.
    pub(super) fn session_for(
        &mut self,
        event: &AgentStart,
        report: &mut Report,
    ) -> Option<SessionKey> {
        if self.refused_sessions.contains(&event.session_id) {
            self.refuse(event, report);
            return None;
        }
        let known = self.by_session.get(&event.session_id).copied();
        let key = match known.or_else(|| self.load(&event.session_id)) {
            Some(key) => key,
            None => self.announce(&event.session_id, event.timestamp, report),
        };
        if !has_begun(&self.lives.get(&key)?.session) {
            self.begin(key, event);
            let live = self.lives.get(&key)?;
            let accepted = self.config.before_task.as_ref().is_none_or(|ask| ask(&live.session));
            if !accepted {
                self.forget(key);
                self.refused_sessions.add(&event.session_id);
                self.refuse(event, report);
                return None;
            }
        }
        Some(key)
    }

    /// Opens a session again because something new of it arrived.
    pub(super) fn reopen(&mut self, key: SessionKey) {
        if let Some(live) = self.lives.get_mut(&key) {
            let begun = has_begun(&live.session);
            live.stage = if begun { Stage::Open } else { Stage::Announced };
            live.has_task |= begun;
        }
    }

    /// A session in memory, or a new one because a loop of it was announced.
    pub(super) fn announced_session(
        &mut self,
        session_id: &str,
        at: Timestamp,
        report: &mut Report,
    ) -> SessionKey {
        let known = self.by_session.get(session_id).copied();
        known
            .or_else(|| self.load(session_id))
            .unwrap_or_else(|| self.announce(session_id, at, report))
    }

    fn load(&mut self, session_id: &str) -> Option<SessionKey> {
        let load = self.config.load_session.as_ref()?;
        let session = load(session_id).filter(|session| session.session_id == session_id)?;
        self.resume(session);
        self.by_session.get(session_id).copied()
    }

    fn announce(&mut self, session_id: &str, at: Timestamp, report: &mut Report) -> SessionKey {
        if self.forgotten.contains(session_id) {
            report.note(Notice::SessionForgotten { session_id: session_id.to_owned() });
        }
        let session = RecordedSession {
            session_id: session_id.to_owned(),
            agent_id: String::new(),
            created_at: at,
            last_active_at: at,
            formation: SessionFormation::FirstLoop { timestamp: at },
            parent_spawn_ref: None,
            scope: self.config.scope,
            task_name: None,
            stated_task_status: None,
            loops: Loops::default(),
            lineage: Lineage::default(),
            announced: Announcements::default(),
        };
        self.trace(|| Effect::Header { session_id: session_id.to_owned() });
        self.hold(Live::new(session, Stage::Announced))
    }

    /// Fills in the header of a session whose first loop starts.
    fn begin(&mut self, key: SessionKey, event: &AgentStart) {
        let formation = self.formation_of(event);
        let Some(live) = self.lives.get_mut(&key) else {
            return;
        };
        live.stage = Stage::Open;
        live.session.agent_id.clone_from(&event.agent_id);
        live.session.created_at = event.timestamp;
        live.session.last_active_at = event.timestamp;
        live.session.formation = formation;
        // Loops that were announced before their agent was known.
        let announced: Vec<_> = live.session.loops.slots().collect();
        for slot in announced {
            live.change(slot).agent_id.clone_from(&event.agent_id);
        }
        self.trace(|| Effect::Header { session_id: event.session_id.clone() });
    }

    fn formation_of(&mut self, event: &AgentStart) -> SessionFormation {
        let timestamp = event.timestamp;
        let announced = self.formations.remove(&event.session_id);
        let formation = announced.or_else(|| {
            let threshold = self.config.inactivity_timeout?;
            let (previous, active_at) = self.agents.get(&event.agent_id)?;
            (timestamp.since(*active_at) > threshold).then(|| SessionFormation::InactivityTimeout {
                threshold_secs: threshold.as_secs(),
                previous_session_id: Some(previous.clone()),
                timestamp,
            })
        });
        if let Some(SessionFormation::InactivityTimeout { previous_session_id, .. }) = &formation {
            let previous = previous_session_id.as_ref().and_then(|id| self.by_session.get(id));
            let resting = |key: &SessionKey| self.lives.get(key).is_some_and(|live| live.open == 0);
            if let Some(previous) = previous.copied().filter(resting) {
                self.complete(previous);
                self.end_task(previous);
            }
        }
        formation.unwrap_or(SessionFormation::FirstLoop { timestamp })
    }

    /// Notes when an agent was last active, for as long as that matters.
    pub(super) fn note_activity(&mut self, location: LoopLocation, at: Timestamp) {
        if self.config.inactivity_timeout.is_none() {
            return;
        }
        let Some(live) = self.lives.get(&location.session) else {
            return;
        };
        let agent_id = live.record(location.slot).agent_id.clone();
        let activity = (live.session.session_id.clone(), at);
        match self.agents.get(&agent_id) {
            Some((_, latest)) if *latest > at => {}
            _ => {
                self.agents.insert(agent_id, activity);
            }
        }
    }

    fn refuse(&mut self, event: &AgentStart, report: &mut Report) {
        self.refused_loops.add(&event.loop_id);
        report.note(Notice::RefusedSession { event_type: "AgentStart".to_owned() });
    }

    pub(super) fn hold(&mut self, live: Live) -> SessionKey {
        let key = SessionKey(self.next_key);
        self.next_key += 1;
        self.by_session.insert(live.session.session_id.clone(), key);
        self.lives.insert(key, live);
        key
    }
}

/// Whether a loop of a session has started. The agent of a loop that was only announced is not known yet.
fn has_begun(session: &RecordedSession) -> bool {
    let has_started = |record: &LoopRecord| !record.events.is_empty();
    !session.agent_id.is_empty() || session.loops.iter().any(has_started)
}

impl Live {
    /// Aborts a loop. One that never started takes the parent of its group.
    pub(super) fn abort(&mut self, slot: crate::loops::Slot) {
        if self.record(slot).status == LoopStatus::Pending {
            self.adopt_parent(slot);
        }
        self.close(slot, LoopStatus::Aborted);
    }
}
