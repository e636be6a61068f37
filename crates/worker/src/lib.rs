//! Attaching Bough to an iii engine as a worker.
//!
//! Invariants:
//! - What is registered comes from the service's function table and its types of events; there is no second list.
//! - It knows no HTTP and no store: calls go to the service, events come from its feed.
//! - The engine's SDK is used here and nowhere else.
//! - Events are delivered at least once: what happens while the engine or a subscriber is away is delivered when both are back.

mod bindings;
mod configuration;
mod error;
mod functions;
mod worker;

pub use error::WorkerError;
pub use worker::Worker;
