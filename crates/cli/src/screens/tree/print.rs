//! The tree as lines for standard output.

use std::collections::HashSet;

use bough_session::EntryId;

use super::layout::{Drawing, Filter, Forest};
use super::view::entry_words;
use crate::backend::Outline;
use crate::text::fit;

/// Columns of an entry's beginning.
const PREVIEW_COLUMNS: usize = 60;
/// Columns of an id that are enough to name it.
const ID_COLUMNS: usize = 12;

/// One line an entry; the active path is marked.
pub(crate) fn print_lines(
    entries: Vec<Outline>,
    active_leaf: Option<&EntryId>,
    filter: Filter,
) -> Vec<String> {
    let mut forest = Forest::default();
    forest.add(entries);
    let leaf = active_leaf.and_then(|id| forest.place(id));
    let active: HashSet<usize> = forest.upwards(leaf).collect();
    let drawing = Drawing::of(&forest, leaf, filter, &HashSet::new());
    let active_end = drawing.seen_end(&forest, leaf);
    let line = |row: &super::layout::Row| {
        let node = forest.node(row.node)?;
        let mark = if active.contains(&row.node) { "• " } else { "  " };
        let label = forest.label(row.node).map(|label| format!("[{}] ", label.text));
        let (who, what) = entry_words(&node.entry);
        let text = fit(&format!("{who}: {what}"), PREVIEW_COLUMNS);
        let id = fit(node.entry.id.as_str(), ID_COLUMNS);
        let end = if active_end == Some(row.node) { "  ← active" } else { "" };
        let gutter = drawing.gutter(*row);
        Some(format!("{mark}{gutter}{}{text}  {id}{end}", label.unwrap_or_default()))
    };
    drawing.rows.iter().filter_map(line).collect()
}
