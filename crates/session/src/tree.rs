//! The tree of a session: the ends of its branches, and their depths.

use std::collections::{HashMap, HashSet};

use crate::EntryId;

/// The end of a branch: an entry without children.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BranchHead {
    /// The entry.
    pub entry_id: EntryId,
    /// How many entries lead to it, itself included.
    pub depth: u64,
    /// When the entry was made or last changed, milliseconds since the epoch.
    pub last_at: i64,
}

/// A node as the helpers here need it.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// The entry.
    pub id: &'a EntryId,
    /// The entry that it follows.
    pub parent: Option<&'a EntryId>,
    /// When it was made or last changed.
    pub at_ms: i64,
}

/// The ends of all branches, in the order of the nodes. A parent that is not among the nodes counts as none, and a
/// cycle of parents is cut where it closes, so that a damaged tree still has an answer.
#[must_use]
pub fn branch_heads(nodes: &[Node<'_>]) -> Vec<BranchHead> {
    let parents: HashMap<&EntryId, Option<&EntryId>> =
        nodes.iter().map(|node| (node.id, node.parent)).collect();
    let followed: HashSet<&EntryId> = nodes.iter().filter_map(|node| node.parent).collect();
    let mut depths = HashMap::new();
    nodes
        .iter()
        .filter(|node| !followed.contains(node.id))
        .map(|node| BranchHead {
            entry_id: node.id.clone(),
            depth: depth_of(node.id, &parents, &mut depths),
            last_at: node.at_ms,
        })
        .collect()
}

/// Memoised depth: each entry is walked once, whatever the number of heads.
fn depth_of<'a>(
    id: &'a EntryId,
    parents: &HashMap<&'a EntryId, Option<&'a EntryId>>,
    depths: &mut HashMap<&'a EntryId, u64>,
) -> u64 {
    let mut walked = Vec::new();
    let mut seen = HashSet::new();
    let mut next = Some(id);
    let mut depth = 0;
    while let Some(id) = next.filter(|id| parents.contains_key(id) && seen.insert(*id)) {
        if let Some(known) = depths.get(id) {
            depth = *known;
            break;
        }
        walked.push(id);
        next = parents.get(id).copied().flatten();
    }
    for id in walked.into_iter().rev() {
        depth += 1;
        depths.insert(id, depth);
    }
    depth
}
