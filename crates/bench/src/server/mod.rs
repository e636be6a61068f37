//! `bench server`: a server in a process of its own, driven by real clients over loopback.

mod bus;
mod cpu;
mod deltas;
mod http;
mod idle;
mod live;
mod load;
mod place;
mod replay;
mod restarts;
mod stalled;
mod subscriber;

use crate::report::Row;
use crate::{Options, Outcome};

/// Runs every part of the bench, or the one that was asked for.
pub(crate) fn run(options: &Options) -> Outcome<Vec<Row>> {
    options.run_parts(&[
        ("http", load::over_http),
        ("bus", load::over_bus),
        ("cpu", cpu::per_append),
        ("live", live::open_loop),
        ("idle", idle::memory),
        ("stalled", stalled::memory),
        ("deltas", deltas::bytes),
        ("replay", replay::rows),
        ("restarts", restarts::kills),
    ])
}
