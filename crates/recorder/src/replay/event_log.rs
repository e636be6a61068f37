//! The events of a log in their original order.

use std::collections::HashMap;

use super::{Replay, Step, facts_of};
use crate::event::AgentEvent;
use crate::fact::Fact;
use crate::model::RecordedSession;
use crate::time::Timestamp;

/// The events of a log so far, in their order.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    steps: Vec<Step>,
    /// How many events each loop has.
    counts: HashMap<String, u64>,
}

impl EventLog {
    /// Adds the next event of a log, with the session as it was before it.
    pub(crate) fn push(
        &mut self,
        loop_id: &str,
        event: &AgentEvent,
        before: Option<&RecordedSession>,
    ) {
        let location = match Fact::from_event(event) {
            None => self.location_of(loop_id, event),
            Some(Fact::Resumed { .. }) => None,
            Some(Fact::Aborted { loop_id, .. }) => {
                let record = before.and_then(|session| session.get_loop(&loop_id));
                // A choice aborts the loops that never started by itself.
                if record.is_none_or(|record| !record.status.is_open()) {
                    return;
                }
                None
            }
            Some(_) => return,
        };
        let at = event.timestamp().or(self.steps.last().map(|last| last.at));
        let at = at.unwrap_or(Timestamp::from_unix_ms(0));
        self.steps.push(Step { at, event: event.clone(), location });
    }

    fn location_of(&mut self, loop_id: &str, event: &AgentEvent) -> Option<(String, u64)> {
        if matches!(event, AgentEvent::ParallelLoopStart(_) | AgentEvent::ParallelLoopEnd(_)) {
            return None;
        }
        let count = self.counts.entry(loop_id.to_owned()).or_default();
        *count += 1;
        Some((loop_id.to_owned(), *count - 1))
    }

    /// The replay of the session that the log makes.
    pub(crate) fn play(&self, session: &RecordedSession) -> Replay {
        let is_abort =
            |step: &&Step| matches!(Fact::from_event(&step.event), Some(Fact::Aborted { .. }));
        // At the end of a recording all open loops are aborted, in the same order.
        let ends = self.steps.iter().rev().take_while(is_abort).count();
        let mut steps = self.steps.clone();
        steps.truncate(steps.len() - ends);
        let at = steps.last().map_or(session.last_active_at, |last| last.at);
        steps.extend(facts_of(session).map(|fact| Step { at, event: fact.into(), location: None }));
        Replay { steps }
    }
}
