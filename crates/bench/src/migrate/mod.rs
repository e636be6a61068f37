//! `bench migrate`: V1 files of pi: opening, commands on long sessions, rolling back, migrating many.
//!
//! Peers: pi itself, where `PI_SESSION_MANAGER` names its `session-manager.js` and `node` can run it; and the least that
//! the machine must do, which is to read the file once, or to write and sync each small file once.

mod commands;
mod files;
mod open;
mod rollback;
mod small;

use crate::report::Row;
use crate::{Options, Outcome, Part};

const PARTS: [Part; 4] = [
    ("open", open::rows),
    ("commands", commands::rows),
    ("rollback", rollback::rows),
    ("small", small::rows),
];

pub(crate) fn run(options: &Options) -> Outcome<Vec<Row>> {
    options.run_parts(&PARTS)
}
