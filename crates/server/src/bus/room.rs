//! Who is on the bus and what they offer: lines, functions, types of triggers and bindings.
//!
//! Callers with the same scope share a room and see nothing of the others: a function, a worker's name or a binding of one
//! tenant does not exist for the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};

use super::ids::BusId;
use super::line::Line;
use super::triggers::Binding;
use super::wire::{FunctionInfo, TriggerFrame};
use crate::limits::{
    BUS_FUNCTIONS_PER_CONNECTION, BUS_PENDING_PER_CONNECTION, BUS_TRIGGERS_PER_CONNECTION,
};

/// One tenant's part of the bus.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) lines: HashMap<BusId, Arc<Line>>,
    pub(crate) functions: BTreeMap<String, Hosted>,
    pub(crate) types: BTreeMap<String, HostedType>,
    pub(crate) triggers: BTreeMap<String, Bound>,
    /// Bindings to our own events, by the number in the ids of their deliveries.
    pub(crate) bindings: HashMap<u64, Arc<Binding>>,
    pending: HashMap<BusId, Pending>,
}

/// A function that a worker hosts.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) line: Arc<Line>,
    pub(crate) info: FunctionInfo,
}

/// A type of trigger that a worker owns.
#[derive(Debug)]
pub(crate) struct HostedType {
    pub(crate) line: Arc<Line>,
    pub(crate) info: Map<String, Value>,
}

/// A binding that a worker made, by its id.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) line: Arc<Line>,
    pub(crate) frame: TriggerFrame,
    /// For our own types; others are the business of the worker that owns them.
    pub(crate) binding: Option<Arc<Binding>>,
}

/// A call that waits for the answer of the worker that hosts its function.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) caller: Arc<Line>,
    pub(crate) host: Arc<Line>,
    pub(crate) invocation_id: Value,
    pub(crate) function_id: String,
}

/// What is left to be told when a line is gone.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    /// Calls that will not be answered.
    pub(crate) stopped: Vec<Pending>,
    /// Bindings to types that other workers own.
    pub(crate) unbound: Vec<(Arc<Line>, TriggerFrame)>,
    /// Bindings to our own types.
    pub(crate) bindings: Vec<(TriggerFrame, Arc<Binding>)>,
}

impl Room {
    /// Takes a function; the last that registers it has it. `false` when the worker has too many.
    pub(crate) fn add_function(
        &mut self,
        line: &Arc<Line>,
        id: String,
        info: FunctionInfo,
    ) -> bool {
        let held = self.functions.values().filter(|hosted| hosted.line.id == line.id).count();
        if held >= BUS_FUNCTIONS_PER_CONNECTION {
            return false;
        }
        self.functions.insert(id, Hosted { line: line.clone(), info });
        true
    }

    pub(crate) fn remove_function(&mut self, line: &Line, id: &str) {
        if self.functions.get(id).is_some_and(|hosted| hosted.line.id == line.id) {
            self.functions.remove(id);
        }
    }

    /// The line of the worker that hosts a function.
    pub(crate) fn host(&self, function_id: &str) -> Option<Arc<Line>> {
        self.functions.get(function_id).map(|hosted| hosted.line.clone())
    }

    /// Takes a type of trigger, and gives back the bindings that waited for it.
    pub(crate) fn add_type(
        &mut self,
        line: &Arc<Line>,
        id: String,
        info: Map<String, Value>,
    ) -> Vec<TriggerFrame> {
        let waiting = self.triggers.values().filter(|bound| bound.frame.trigger_type == id);
        let waiting = waiting.map(|bound| bound.frame.clone()).collect();
        self.types.insert(id, HostedType { line: line.clone(), info });
        waiting
    }

    pub(crate) fn remove_type(&mut self, line: &Line, id: &str) {
        if self.types.get(id).is_some_and(|hosted| hosted.line.id == line.id) {
            self.types.remove(id);
        }
    }

    /// Whether a worker may bind one more, or this one again.
    pub(crate) fn may_bind(&self, line: &Line, id: &str) -> bool {
        let is_own = |bound: &&Bound| bound.line.id == line.id;
        self.triggers.get(id).as_ref().is_some_and(is_own)
            || self.triggers.values().filter(is_own).count() < BUS_TRIGGERS_PER_CONNECTION
    }

    /// Takes a binding in place of one with the same id.
    pub(crate) fn bind(&mut self, bound: Bound) -> Option<Bound> {
        if let Some(binding) = &bound.binding {
            self.bindings.insert(binding.number, binding.clone());
        }
        let old = self.triggers.insert(bound.frame.id.clone(), bound);
        self.forget(old)
    }

    /// Takes a binding away, if it is this worker's.
    pub(crate) fn unbind(&mut self, line: &Line, id: &str) -> Option<Bound> {
        let is_own = self.triggers.get(id).is_some_and(|bound| bound.line.id == line.id);
        let bound = is_own.then(|| self.triggers.remove(id)).flatten();
        self.forget(bound)
    }

    fn forget(&mut self, bound: Option<Bound>) -> Option<Bound> {
        if let Some(binding) = bound.as_ref().and_then(|bound| bound.binding.as_ref()) {
            self.bindings.remove(&binding.number);
        }
        bound
    }

    /// Notes that a call waits; `false` when its host has too many waiting.
    pub(crate) fn begin_call(&mut self, id: BusId, pending: Pending) -> bool {
        if pending.host.waiting() >= BUS_PENDING_PER_CONNECTION {
            return false;
        }
        pending.host.waiting.fetch_add(1, Ordering::Relaxed);
        self.pending.insert(id, pending);
        true
    }

    /// The call that an answer of this worker is for.
    pub(crate) fn end_call(&mut self, host: &Line, id: BusId) -> Option<Pending> {
        let is_its = self.pending.get(&id).is_some_and(|pending| pending.host.id == host.id);
        let pending = is_its.then(|| self.pending.remove(&id)).flatten()?;
        pending.host.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(pending)
    }

    /// Takes a line and all that it had away.
    pub(crate) fn depart(&mut self, line: &Line) -> Departure {
        self.lines.remove(&line.id);
        self.functions.retain(|_, hosted| hosted.line.id != line.id);
        self.types.retain(|_, hosted| hosted.line.id != line.id);
        let mut departure = Departure::default();
        let own: Vec<String> = self
            .triggers
            .iter()
            .filter(|(_, bound)| bound.line.id == line.id)
            .map(|(id, _)| id.clone())
            .collect();
        for id in own {
            let Some(bound) = self.triggers.remove(&id) else { continue };
            match bound.binding {
                Some(binding) => {
                    self.bindings.remove(&binding.number);
                    departure.bindings.push((bound.frame, binding));
                }
                None => {
                    let owner = self.types.get(&bound.frame.trigger_type);
                    departure.unbound.extend(owner.map(|owner| (owner.line.clone(), bound.frame)));
                }
            }
        }
        let ended: Vec<BusId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.host.id == line.id || pending.caller.id == line.id)
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            let Some(pending) = self.pending.remove(&id) else { continue };
            pending.host.waiting.fetch_sub(1, Ordering::Relaxed);
            if pending.host.id == line.id && pending.caller.id != line.id {
                departure.stopped.push(pending);
            }
        }
        departure
    }
}
