//! The same text in the indexes of the peers.

use crate::report::Row;
use crate::{Options, Outcome, bough, fts5, place, ripgrep, tantivy_index};

pub(crate) const FTS5: &str = "plain_fts5";
pub(crate) const TANTIVY: &str = "tantivy_0.25";
pub(crate) const RIPGREP: &str = "ripgrep";

/// Makes the indexes of the peers, each unless it is there, and sets what they cost beside ours.
pub(crate) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = place(options)?;
    let ours = bough::made(options)?;
    ripgrep::make(&folder)?;
    let plain = fts5::made(&folder)?;
    let tantivy = tantivy_index::made(&folder)?;
    let row = |name: &str, unit: &str, of: fn(&crate::Made) -> f64| {
        Row::new(name, unit, of(&ours)).beside(FTS5, of(&plain)).beside(TANTIVY, of(&tantivy))
    };
    Ok(vec![
        row("index over text", "times", crate::Made::size),
        row("processor time of indexing", "s/MB", crate::Made::processor),
        row("indexing from the beginning", "MB/s", crate::Made::rate),
    ])
}
