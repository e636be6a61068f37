//! Facts that arrive beside the events of agents.

use super::report::{Notice, Report};
use super::{Effect, LoopLocation, SessionRecorder};
use crate::fact::{Fact, SessionFact};
use crate::model::{CompactionBlock, LoopStatus, RecordedSession};

impl SessionRecorder {
    /// Applies a fact to a session in memory.
    pub(crate) fn on_fact(&mut self, fact: Fact, report: &mut Report) {
        let session_id = fact.session_id().to_owned();
        let key = self.by_session.get(&session_id).copied();
        let Some(live) = key.and_then(|key| self.lives.get_mut(&key)) else {
            report.note(Notice::UnknownSession { session_id, event_type: "a fact".to_owned() });
            return;
        };
        let slot = fact.loop_id().map(|id| live.session.loops.slot_of(id));
        let Some(slot) = slot.map_or(Some(None), |slot| slot.map(Some)) else {
            report.note(Notice::UnknownLoop {
                loop_id: fact.loop_id().unwrap_or_default().to_owned(),
                event_type: "a fact".to_owned(),
            });
            return;
        };
        if is_known(&fact, &live.session) {
            return;
        }
        live.touch();
        match (fact, slot) {
            (Fact::Session(fact), _) => {
                fact.apply(&mut live.session);
                self.trace(|| Effect::Header { session_id });
            }
            (Fact::SubAgents { child_loop_refs, loop_id, .. }, Some(slot)) => {
                live.change(slot).child_loop_refs = child_loop_refs;
                self.trace(|| Effect::ChildRefs { session_id, loop_id });
            }
            (Fact::Compaction { block, loop_id, .. }, Some(slot)) => {
                live.change(slot).compaction_block = block;
                self.trace(|| Effect::Compaction { session_id, loop_id });
            }
            (Fact::Aborted { loop_id, .. }, Some(slot)) if live.record(slot).status.is_open() => {
                live.abort(slot);
                self.trace(|| Effect::Aborted { session_id, loop_id });
            }
            (Fact::Resumed { .. }, Some(slot)) => {
                if let Some(session) = key {
                    self.go_on(LoopLocation { session, slot });
                }
            }
            _ => {}
        }
    }

    /// Adds a compaction to a loop of a session in memory, or removes it. Returns whether it could.
    pub fn set_compaction_block(
        &mut self,
        session_id: &str,
        loop_id: &str,
        block: Option<CompactionBlock>,
    ) -> bool {
        let mut report = Report::default();
        let fact = Fact::Compaction {
            session_id: session_id.to_owned(),
            loop_id: loop_id.to_owned(),
            block,
        };
        self.on_fact(fact, &mut report);
        report.is_clean()
    }
}

/// Whether a session already has the fact.
fn is_known(fact: &Fact, session: &RecordedSession) -> bool {
    let record = fact.loop_id().and_then(|id| session.get_loop(id));
    match (fact, record) {
        (Fact::Session(says), _) => *says == SessionFact::of(session),
        (Fact::SubAgents { child_loop_refs, .. }, Some(record)) => {
            *child_loop_refs == record.child_loop_refs
        }
        (Fact::Compaction { block, .. }, Some(record)) => *block == record.compaction_block,
        (Fact::Aborted { .. }, Some(record)) => !record.status.is_open(),
        (Fact::Resumed { .. }, Some(record)) => record.status != LoopStatus::Aborted,
        _ => false,
    }
}
