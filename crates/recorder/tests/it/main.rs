//! The recorder against phi-core's sessions, its own rules, and any stream of events.

#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod conformance;
mod drained;
mod durable;
mod files;
mod links;
mod properties;
mod recorder;
mod repeats;
mod replays;
mod support;
mod turns;
mod verbatim;
