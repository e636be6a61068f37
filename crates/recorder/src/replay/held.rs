//! What of a replay a stored session holds already.

use super::Step;
use crate::event::AgentEvent;
use crate::fact::{Fact, SessionFact};
use crate::model::{LoopRecord, LoopStatus, Session};

/// Whether a stored session holds all that an event says.
pub(super) fn is_held(stored: &Session, step: &Step) -> bool {
    if let Some((loop_id, sequence)) = &step.place {
        // A loop that has started and is held without events is not to have any.
        let holds = |record: &LoopRecord| match record.events.last() {
            Some(last) => *sequence <= last.sequence,
            None => record.status != LoopStatus::Pending,
        };
        return stored.get_loop(loop_id).is_some_and(holds);
    }
    let of_loop =
        |id: &str, holds: &dyn Fn(&LoopRecord) -> bool| stored.get_loop(id).is_some_and(holds);
    match &step.event {
        AgentEvent::ParallelLoopStart(start) => {
            start.loop_ids.iter().all(|id| stored.get_loop(id).is_some())
        }
        AgentEvent::ParallelLoopEnd(end) => of_loop(&end.selected_loop_id, &|record| {
            record.parallel_group.as_ref().is_some_and(|group| !group.selected_loop_id.is_empty())
        }),
        event => match Fact::from_event(event) {
            Some(Fact::Session(fact)) => fact == SessionFact::of(stored),
            Some(Fact::SubAgents { loop_id, child_loop_refs, .. }) => {
                of_loop(&loop_id, &|record| record.child_loop_refs == child_loop_refs)
            }
            Some(Fact::Compaction { loop_id, block, .. }) => {
                of_loop(&loop_id, &|record| record.compaction_block == block)
            }
            Some(Fact::Aborted { loop_id, .. }) => {
                of_loop(&loop_id, &|record| !record.status.is_open())
            }
            Some(Fact::Resumed { loop_id, .. }) => {
                of_loop(&loop_id, &|record| record.status != LoopStatus::Aborted)
            }
            Some(Fact::Stored { .. }) | None => false,
        },
    }
}
