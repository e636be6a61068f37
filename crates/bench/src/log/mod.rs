//! `bench log`: the log beside the raw disk, SQLite, redb and the format that came before.

mod bough;
mod growth;
mod listing;
mod sizes;
mod writers;

use crate::report::Row;
use crate::{Options, Outcome, Part};

const PARTS: [Part; 6] = [
    ("writers", writers::real_rows),
    ("injected", writers::injected_rows),
    ("unsynced", writers::unsynced_rows),
    ("growth", growth::rows),
    ("sizes", sizes::rows),
    ("listing", listing::rows),
];

pub(crate) fn run(options: &Options) -> Outcome<Vec<Row>> {
    options.run_parts(&PARTS)
}
