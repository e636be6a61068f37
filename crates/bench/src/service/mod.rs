//! `bench service`: the session service on Bough's log, beside the same service on files as the original lays them out.

mod appends;
mod fanout;
mod forks;
mod history;
mod listing;
mod pages;
mod sides;
mod streaming;

use crate::report::Row;
use crate::{Options, Outcome, Part};

const PARTS: [Part; 7] = [
    ("appends", appends::rows),
    ("streaming", streaming::rows),
    ("pages", pages::rows),
    ("history", history::rows),
    ("listing", listing::rows),
    ("fork", forks::rows),
    ("fanout", fanout::rows),
];

pub(crate) fn run(options: &Options) -> Outcome<Vec<Row>> {
    options.run_parts(&PARTS)
}
