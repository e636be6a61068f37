use std::collections::HashSet;

use bough_session::EntryId;

use super::Files;
use super::digest::{DIGEST_MARK, Facts};
use super::path::PathItem;

/// The entries that are left behind when the leaf moves from the end of `old` to the end of `new`: those of the old
/// path that are not on the new one.
#[must_use]
pub fn left_behind<'a>(old: &'a [PathItem], new: &[EntryId]) -> &'a [PathItem] {
    let kept: HashSet<&EntryId> = new.iter().collect();
    let shared = old.iter().take_while(|item| kept.contains(&item.id)).count();
    old.get(shared..).unwrap_or_default()
}

/// A summary of a branch that needs no model: the counts, the last messages and the files, by the rules of the
/// compaction's digest.
#[must_use]
pub fn branch_digest(items: &[PathItem]) -> String {
    let facts = Facts::of(items);
    let files = Files::of(items, None);
    let goal = facts.goal_section();
    let text = format!("{goal}{}{}", facts.counts_section(), facts.last_sections());
    format!("{text}{}\n\n{DIGEST_MARK}", files.to_text())
}
