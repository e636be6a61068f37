//! The service from outside, on every store.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "in a test a panic is the message"
)]

#[macro_use]
mod common;
mod oracle;

/// Counts allocations, for the tests that say what something costs.
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

mod bounds;
mod branching;
mod busy;
mod compaction;
mod concurrency;
mod cuts;
mod documents;
mod entries;
mod events;
mod forks;
mod hiding;
mod keys;
mod lifecycle;
mod model;
mod own_writes;
mod positions;
mod processes;
mod protocol;
mod reading;
mod recording;
mod redaction;
mod replay;
mod resume;
mod schemas;
mod scopes;
mod search;
mod short_reads;
mod stalled;
mod stats;
mod streaming;
mod swap;
mod tree;
mod two_recorders;
mod weaknesses;
