//! The log from outside: what it promises when disks, processes and files do their worst.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test may"
)]

mod decoders;
mod derived;
mod documents;
mod failure_semantics;
mod gate;
mod handover;
mod invariants;
mod kept_inputs;
#[cfg(unix)]
mod limits;
mod maintenance;
mod model;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod read_only;
mod recovery;
mod redaction;
mod replace;
mod revisions;
mod streams;
mod support;
mod trash;
mod verify_salvage;
