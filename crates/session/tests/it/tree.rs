//! Heads and depths of trees, whole and damaged.

use bough_session::EntryId;
use bough_session::tree::{Node, branch_heads};

/// Nodes given as `child` or `child<parent`.
fn with_nodes<T>(text: &str, run: impl FnOnce(&[Node<'_>]) -> T) -> T {
    let ids: Vec<(EntryId, Option<EntryId>)> = text
        .split_whitespace()
        .map(|node| match node.split_once('<') {
            Some((child, parent)) => (child, Some(parent)),
            None => (node, None),
        })
        .map(|(child, parent)| (EntryId::from_stored(child), parent.map(EntryId::from_stored)))
        .collect();
    let nodes: Vec<Node<'_>> = (1..)
        .zip(&ids)
        .map(|(at_ms, (id, parent))| Node { id, parent: parent.as_ref(), at_ms })
        .collect();
    run(&nodes)
}

#[track_caller]
fn check(nodes: &str, expected: &[(&str, u64, i64)]) {
    let heads = with_nodes(nodes, branch_heads);
    let heads: Vec<_> = heads.iter().map(|h| (h.entry_id.as_str(), h.depth, h.last_at)).collect();
    assert_eq!(heads, expected, "{nodes}");
}

#[test]
fn heads_are_what_nothing_follows() {
    check("", &[]);
    check("a", &[("a", 1, 1)]);
    check("a b<a c<b", &[("c", 3, 3)]);
    check("a b<a c<a d<c", &[("b", 2, 2), ("d", 3, 4)]);
    check("a x", &[("a", 1, 1), ("x", 1, 2)]);
}

#[test]
fn a_damaged_tree_still_has_an_answer() {
    check("a<gone b<a", &[("b", 2, 2)]);
    check("a<b b<a c<a", &[("c", 3, 3)]);
    check("a<a", &[]);
}
