//! The benches that `cargo xtask bench` runs, all but the recorder's, which is in `tests/compat`.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "measuring needs the real clock and disk, and the peers use them as they like"
)]

mod entries;
mod log;
mod memory;
mod migrate;
mod peers;
mod program;
mod server;
mod service;

use std::process::ExitCode;

use bough_bench::{Bench, Options, Outcome, Part, measure, report};

/// Counts allocations, so that a row can say how many an operation needs.
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

const BENCHES: &[Bench] = &[
    Bench { name: "log", about: "the log: appends, opening, sizes, listing", run: log::run },
    Bench {
        name: "service",
        about: "the service: appends, streams, pages, long histories, lists, forks, fan-out",
        run: service::run,
    },
    Bench {
        name: "migrate",
        about: "V1 files of pi: opening, commands on long sessions, rolling back, migrating many",
        run: migrate::run,
    },
    Bench { name: "server", about: "a server: load, live events, memory, kills", run: server::run },
];

fn main() -> ExitCode {
    bough_bench::main(BENCHES)
}
