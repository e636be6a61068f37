//! Bindings: functions of workers that are called with the events of a filter, at least once.
//!
//! A binding is identified by its request (type, function, namespace, filter) and by its ordinal among equals, not by
//! the id that a client gives it. It has a position in the feed: before the first event whose call was not answered. The
//! position outlives the binding's connection for a while, and the process: it is written to the
//! [`SharedState`](bough_store::shared_state::SharedState).
//!
//! - A new binding starts at the present.
//! - A disconnect keeps the position for [`BINDING_KEPT_FOR`](crate::limits::BINDING_KEPT_FOR); an unregistration drops
//!   it.
//! - An event is delivered again if its call was not answered before the connection, the engine or this process ended.
//!   After a kill, events of the last [`BINDINGS_WRITTEN_EVERY`](crate::limits::BINDINGS_WRITTEN_EVERY) may be delivered
//!   again too; after a power cut, those since the system last wrote the file.
//! - A call that is not answered within [`EVENT_ANSWER_WAIT`](crate::limits::EVENT_ANSWER_WAIT) on an open connection
//!   counts as delivered, so a handler that never answers does not stop the others.
//! - When another store takes the place of the old one, its sessions are replayed. A replay has no position: a binding
//!   that leaves before its end gets all of it again. So does one whose position is of another store.
//! - Equal bindings call one function. A new one takes the place that was left last, and a place after which another one
//!   delivers everything is not kept.
//! - If the feed no longer reaches back to a position, or the position was dropped because it was left too long ago or
//!   there were too many, the [`EventSink`] is notified of a gap.

mod delivery;
mod identity;
mod progress;
mod registry;
mod spec;
mod stored_bindings;
mod table;
mod trigger_type;

#[cfg(test)]
mod tests;

use async_trait::async_trait;

pub use identity::{WORKER_DESCRIPTION, WORKER_NAME, WORKER_VERSION};
pub use registry::{BindingId, BindingRequest, Bindings, Registered};
pub use spec::BindingSpec;
pub use trigger_type::TriggerType;

use crate::feed::FeedEvent;

/// Who calls the function of a binding.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Calls the function with an event; returns when it has answered, or when it has no host.
    async fn call(&self, event: &FeedEvent) -> Called;

    /// Waits until a retry after [`Called::Absent`] makes sense.
    async fn ready(&self);

    /// Events before the next one may be missing.
    fn missed(&self, reason: &'static str);
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// The function was called, whatever it answered.
    Taken,
    /// No worker hosts the function now, or its host disconnected before it answered. The call is repeated.
    Absent,
}
