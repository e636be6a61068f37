//! Attaching Bough to an iii engine as a worker.
//!
//! Invariants:
//! - Everything that is registered comes from the service's function table and its types of events; there is no second
//!   list.
//! - It knows no HTTP and no store: calls go to the service, events come from its feed.
//! - Only this crate uses the engine's SDK.
//! - Events are delivered at least once: events while the engine or a subscriber is disconnected are delivered when
//!   both are back.

mod bindings;
mod configuration;
mod error;
mod functions;
mod worker;

pub use error::WorkerError;
pub use worker::Worker;
