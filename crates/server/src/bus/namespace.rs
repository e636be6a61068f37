//! Who is on the bus and what they offer: connections, functions, types of triggers and bindings.
//!
//! Callers with the same scope share a namespace and know nothing of the others: a function, a worker's name or a binding of one
//! tenant does not exist for the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bough_service::BindingId;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::connection::Connection;
use super::ids::BusId;
use super::wire::{FunctionInfo, TriggerFrame};
use crate::app::Permit;
use crate::limits::{
    BUS_FUNCTIONS_PER_CONNECTION, BUS_PENDING_PER_CONNECTION, BUS_TRIGGERS_PER_CONNECTION,
};

/// One tenant's part of the bus.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) connections: HashMap<BusId, Arc<Connection>>,
    pub(crate) functions: BTreeMap<String, Hosted>,
    pub(crate) types: BTreeMap<String, HostedType>,
    pub(crate) triggers: BTreeMap<String, Bound>,
    /// Calls with events that are not answered: their connection, and the channel that waits.
    event_calls: HashMap<BusId, (BusId, oneshot::Sender<()>)>,
    pending: HashMap<BusId, Pending>,
}

/// A function that a worker hosts.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) connection: Arc<Connection>,
    pub(crate) info: FunctionInfo,
}

/// A type of trigger that a worker owns.
#[derive(Debug)]
pub(crate) struct HostedType {
    pub(crate) connection: Arc<Connection>,
    pub(crate) info: Map<String, Value>,
}

/// A binding that a worker made, by its id.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) connection: Arc<Connection>,
    pub(crate) frame: TriggerFrame,
    pub(crate) to: BoundTo,
}

/// Whose type a function is bound to.
#[derive(Debug)]
pub(crate) enum BoundTo {
    /// One of our own.
    Session {
        /// The registration.
        id: BindingId,
        /// Counts it while it is there.
        _counted: Option<Permit>,
    },
    /// One of another worker, which handles it.
    Worker,
}

/// A call that waits for the answer of the worker that hosts its function.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) caller: Arc<Connection>,
    pub(crate) host: Arc<Connection>,
    pub(crate) invocation_id: Value,
    pub(crate) function_id: String,
}

/// The notices to send after a connection is gone.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    /// Calls that will not be answered.
    pub(crate) stopped: Vec<Pending>,
    /// Bindings to types that other workers own.
    pub(crate) unbound: Vec<(Arc<Connection>, TriggerFrame)>,
    /// Bindings to our own types.
    pub(crate) bindings: Vec<BindingId>,
}

impl Namespace {
    /// Registers a function; the last worker that registers it has it. `false` if the worker has
    /// too many.
    pub(crate) fn add_function(
        &mut self,
        connection: &Arc<Connection>,
        id: String,
        info: FunctionInfo,
    ) -> bool {
        let held =
            self.functions.values().filter(|hosted| hosted.connection.id == connection.id).count();
        if held >= BUS_FUNCTIONS_PER_CONNECTION {
            return false;
        }
        self.functions.insert(id, Hosted { connection: connection.clone(), info });
        true
    }

    pub(crate) fn remove_function(&mut self, connection: &Connection, id: &str) {
        if self.functions.get(id).is_some_and(|hosted| hosted.connection.id == connection.id) {
            self.functions.remove(id);
        }
    }

    /// The connection of the worker that hosts a function.
    pub(crate) fn host(&self, function_id: &str) -> Option<Arc<Connection>> {
        self.functions.get(function_id).map(|hosted| hosted.connection.clone())
    }

    /// Registers a type of trigger, and returns the bindings that waited for it.
    pub(crate) fn add_type(
        &mut self,
        connection: &Arc<Connection>,
        id: String,
        info: Map<String, Value>,
    ) -> Vec<TriggerFrame> {
        let waiting = self.triggers.values().filter(|bound| bound.frame.trigger_type == id);
        let waiting = waiting.map(|bound| bound.frame.clone()).collect();
        self.types.insert(id, HostedType { connection: connection.clone(), info });
        waiting
    }

    pub(crate) fn remove_type(&mut self, connection: &Connection, id: &str) {
        if self.types.get(id).is_some_and(|hosted| hosted.connection.id == connection.id) {
            self.types.remove(id);
        }
    }

    /// Whether a worker may bind one more, or this one again.
    pub(crate) fn may_bind(&self, connection: &Connection, id: &str) -> bool {
        let is_own = |bound: &&Bound| bound.connection.id == connection.id;
        self.triggers.get(id).as_ref().is_some_and(is_own)
            || self.triggers.values().filter(is_own).count() < BUS_TRIGGERS_PER_CONNECTION
    }

    /// Adds a binding, replacing one with the same id.
    pub(crate) fn bind(&mut self, bound: Bound) -> Option<Bound> {
        self.triggers.insert(bound.frame.id.clone(), bound)
    }

    /// Removes a binding, if it is this worker's.
    pub(crate) fn unbind(&mut self, connection: &Connection, id: &str) -> Option<Bound> {
        let is_own =
            self.triggers.get(id).is_some_and(|bound| bound.connection.id == connection.id);
        is_own.then(|| self.triggers.remove(id)).flatten()
    }

    /// Registers a call with an event that waits for the answer of its host.
    pub(crate) fn begin_event_call(
        &mut self,
        id: BusId,
        host: &Connection,
        answer: oneshot::Sender<()>,
    ) {
        // If the host has left, the channel is dropped, which wakes the callers that wait.
        if self.connections.contains_key(&host.id) {
            self.event_calls.insert(id, (host.id, answer));
        }
    }

    /// Removes a call with an event, because its caller has stopped waiting.
    pub(crate) fn forget_event_call(&mut self, id: BusId) {
        self.event_calls.remove(&id);
    }

    /// Ends a call with an event that a worker answered; `false` if the id is not of such a call.
    pub(crate) fn end_event_call(&mut self, host: &Connection, id: BusId) -> bool {
        if self.event_calls.get(&id).is_none_or(|(of, _)| *of != host.id) {
            return false;
        }
        if let Some((_, answer)) = self.event_calls.remove(&id) {
            // The receiver may have stopped waiting.
            let _ = answer.send(()).is_ok();
        }
        true
    }

    /// Registers a call that waits; `false` if its host has too many waiting.
    pub(crate) fn begin_call(&mut self, id: BusId, pending: Pending) -> bool {
        if pending.host.waiting() >= BUS_PENDING_PER_CONNECTION {
            return false;
        }
        pending.host.waiting.fetch_add(1, Ordering::Relaxed);
        self.pending.insert(id, pending);
        true
    }

    /// The call that an answer of this worker is for.
    pub(crate) fn end_call(&mut self, host: &Connection, id: BusId) -> Option<Pending> {
        let is_its = self.pending.get(&id).is_some_and(|pending| pending.host.id == host.id);
        let pending = is_its.then(|| self.pending.remove(&id)).flatten()?;
        pending.host.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(pending)
    }

    /// Removes a connection and everything that it registered.
    pub(crate) fn depart(&mut self, connection: &Connection) -> Departure {
        self.connections.remove(&connection.id);
        self.functions.retain(|_, hosted| hosted.connection.id != connection.id);
        self.types.retain(|_, hosted| hosted.connection.id != connection.id);
        // The end of their channel wakes those who wait.
        self.event_calls.retain(|_, (host, _)| *host != connection.id);
        let mut departure = Departure::default();
        let own: Vec<String> = self
            .triggers
            .iter()
            .filter(|(_, bound)| bound.connection.id == connection.id)
            .map(|(id, _)| id.clone())
            .collect();
        for id in own {
            let Some(bound) = self.triggers.remove(&id) else { continue };
            match bound.to {
                BoundTo::Session { id, .. } => departure.bindings.push(id),
                BoundTo::Worker => {
                    let owner = self.types.get(&bound.frame.trigger_type);
                    departure
                        .unbound
                        .extend(owner.map(|owner| (owner.connection.clone(), bound.frame)));
                }
            }
        }
        let ended: Vec<BusId> = self
            .pending
            .iter()
            .filter(|(_, pending)| {
                pending.host.id == connection.id || pending.caller.id == connection.id
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            let Some(pending) = self.pending.remove(&id) else { continue };
            pending.host.waiting.fetch_sub(1, Ordering::Relaxed);
            if pending.host.id == connection.id && pending.caller.id != connection.id {
                departure.stopped.push(pending);
            }
        }
        departure
    }
}
