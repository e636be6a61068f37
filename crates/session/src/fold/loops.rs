use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::is_default;
use crate::limits::{LOOP_ID_BYTES_MAX, STATE_OPEN_LOOPS_MAX};
use crate::{LoopId, LoopPhase, TaskStatus};

/// The loops of a session as far as its state needs them: which are open, and how the last one ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopTally {
    /// Open loops by name; at most [`STATE_OPEN_LOOPS_MAX`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<LoopId, LoopPhase>,
    /// Announced loops beyond those, by number only.
    #[serde(skip_serializing_if = "is_default")]
    pub unnamed_pending: u64,
    /// Running loops beyond those, by number only.
    #[serde(skip_serializing_if = "is_default")]
    pub unnamed_running: u64,
    /// How the loop that ended last ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ended: Option<LoopPhase>,
    /// How many loops have ended.
    pub ended: u64,
}

impl LoopTally {
    /// Notes that a loop is now at `phase`.
    pub fn note(&mut self, loop_id: &LoopId, phase: LoopPhase) {
        if phase.is_open() {
            self.note_open(loop_id, phase);
        } else {
            self.note_ended(loop_id, phase);
        }
    }

    /// The status of the task, derived from its loops; `None` if there were none.
    #[must_use]
    pub fn task_status(&self) -> Option<TaskStatus> {
        let is = |wanted| self.open.values().any(|phase| *phase == wanted);
        if self.unnamed_running > 0 || is(LoopPhase::Running) {
            return Some(TaskStatus::Running);
        }
        if self.unnamed_pending > 0 || is(LoopPhase::Pending) {
            return Some(TaskStatus::Pending);
        }
        self.last_ended.map(|phase| match phase {
            LoopPhase::Completed => TaskStatus::Completed,
            LoopPhase::Rejected | LoopPhase::Aborted => TaskStatus::Failed,
            LoopPhase::Pending => TaskStatus::Pending,
            LoopPhase::Running => TaskStatus::Running,
        })
    }

    /// Whether any loop is open.
    #[must_use]
    pub fn any_open(&self) -> bool {
        !self.open.is_empty() || self.unnamed_pending > 0 || self.unnamed_running > 0
    }

    fn note_open(&mut self, loop_id: &LoopId, phase: LoopPhase) {
        if let Some(known) = self.open.get_mut(loop_id) {
            *known = phase;
            return;
        }
        let nameable = loop_id.as_str().len() <= LOOP_ID_BYTES_MAX;
        if nameable && self.open.len() < STATE_OPEN_LOOPS_MAX {
            self.open.insert(loop_id.clone(), phase);
            return;
        }
        // Too many to remember by name. A loop that was announced and now runs changes its count.
        if phase == LoopPhase::Running {
            self.unnamed_pending = self.unnamed_pending.saturating_sub(1);
            self.unnamed_running += 1;
        } else {
            self.unnamed_pending += 1;
        }
    }

    fn note_ended(&mut self, loop_id: &LoopId, phase: LoopPhase) {
        self.ended += 1;
        self.last_ended = Some(phase);
        if self.open.remove(loop_id).is_some() {
            return;
        }
        if self.unnamed_running > 0 {
            self.unnamed_running -= 1;
        } else {
            self.unnamed_pending = self.unnamed_pending.saturating_sub(1);
        }
    }
}
