//! The tree as lines for standard output.

use std::collections::HashSet;

use bough_session::EntryId;

use super::layout::{Drawing, Filter, Forest};
use super::view::entry_words;
use crate::backend::Outline;
use crate::text::{fit, unique_ids, width};

/// The least width of an entry's text, however deep it is.
const WORDS_COLUMNS_MIN: usize = 20;
/// The most width of an entry's text.
const WORDS_COLUMNS_MAX: usize = 160;
const ACTIVE_END: &str = "  ← active";

/// One line for each entry, as wide as the window; the active path is marked. The ids are long enough to be pasted into
/// other commands.
pub(crate) fn print_lines(
    entries: Vec<Outline>,
    active_leaf: Option<&EntryId>,
    filter: Filter,
    columns: usize,
) -> Vec<String> {
    let mut forest = Forest::default();
    forest.add(entries);
    let leaf = active_leaf.and_then(|id| forest.place(id));
    let active: HashSet<usize> = forest.upwards(leaf).collect();
    let drawing = Drawing::of(&forest, leaf, filter, &HashSet::new());
    let active_end = drawing.seen_end(&forest, leaf);
    // A short id must be unique among all entries, not only among the printed ones.
    let ids: Vec<&str> = forest.nodes.iter().map(|node| node.entry.id.as_str()).collect();
    let short_ids = unique_ids(&ids);
    let line = |row: &super::layout::Row| {
        let (node, id) = (forest.node(row.node)?, short_ids.get(row.node)?);
        let mark = if active.contains(&row.node) { "• " } else { "  " };
        let label = forest.label(row.node).map(|label| format!("[{}] ", label.text));
        let (who, what) = entry_words(&node.entry);
        let before = format!("{mark}{}{}", drawing.gutter(*row), label.unwrap_or_default());
        let end = if active_end == Some(row.node) { ACTIVE_END } else { "" };
        let columns_left = columns.saturating_sub(width(&before) + 2 + width(id) + width(end));
        let columns_left = columns_left.clamp(WORDS_COLUMNS_MIN, WORDS_COLUMNS_MAX);
        let text = fit(&format!("{who}: {what}"), columns_left);
        Some(format!("{before}{text}  {id}{end}"))
    };
    drawing.rows.iter().filter_map(line).collect()
}
