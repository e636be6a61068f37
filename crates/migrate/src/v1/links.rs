//! The id and the parent of each entry of a V1 file in a log, whose ids are unique and whose parents come first.
//!
//! | in the file | in the log |
//! |---|---|
//! | an id for the first time | the same id |
//! | an id again | `id~2`, `id~3`, ...; later children follow the newest of them |
//! | no id, or one that cannot be used | eight hex digits made from the session and the line |
//! | a parent that came before | that parent |
//! | a parent that is missing, comes later, or is the entry itself | none: a root |
//! | version 1, which has neither ids nor parents | each entry follows the one before it |

use std::collections::{HashMap, HashSet};

use bough_session::limits::ENTRY_ID_BYTES_MAX;
use bough_session::{EntryId, IdNumber, IdTable, hex};
use sha2::{Digest as _, Sha256};

use super::line_header::{Field, LineHeader};
use super::report::{FindingKind, V1Report};

/// The number of an entry among the entries of its file, in their order. A parent's number is smaller.
pub(crate) type Node = u32;

/// Stands for no node where one is stored.
const NONE: Node = Node::MAX;

/// The id and the parent of an entry in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryLinks {
    pub(crate) node: Node,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// For a version-1 compaction: the entry that its line number refers to.
    pub(crate) first_kept: Option<String>,
}

/// Gives entries their ids and parents, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct EntryLinker {
    salt: String,
    linear: bool,
    /// Ids in the file and in the log.
    ids: IdTable,
    /// The newest node of each of them.
    newest: Vec<Node>,
    /// The node that has each of them in the log.
    named: Vec<Node>,
    /// The id of each node in the log.
    names: Vec<IdNumber>,
    /// The parent of each node.
    parents: Vec<Node>,
    /// Entries whose parent was not known when they came.
    orphans: Vec<Orphan>,
    /// Version 1 only: the node of each line that is JSON, the header being the first.
    by_index: Vec<Option<Node>>,
}

#[derive(Debug)]
struct Orphan {
    node: Node,
    line: u64,
    parent: Box<str>,
}

impl EntryLinker {
    /// A linker for a session; `linear` for version 1.
    pub(crate) fn new(session: &str, linear: bool) -> Self {
        Self { salt: session.to_owned(), linear, ..Self::default() }
    }

    /// Notes a line that is JSON and not an entry.
    pub(crate) fn pass(&mut self) {
        if self.linear {
            self.by_index.push(None);
        }
    }

    /// Links the next entry.
    pub(crate) fn link(
        &mut self,
        line: u64,
        line_header: &LineHeader<'_>,
        report: &mut V1Report,
    ) -> EntryLinks {
        let node = Node::try_from(self.parents.len()).unwrap_or(Node::MAX);
        let raw = line_header.id.text().filter(|id| EntryId::parse(*id).is_ok());
        let parent = self.parent_of(node, line, line_header, report);
        let id = match raw {
            Some(id) if self.ids.find(id).is_none() => id.to_owned(),
            Some(id) => {
                report.find(line, FindingKind::DuplicateId, Some(id));
                self.another_name(id, line)
            }
            None => {
                // Version 1 has no ids; that is no finding.
                if !self.linear || line_header.id != Field::Absent {
                    report.find(line, FindingKind::IdAssigned, line_header.id.text());
                }
                self.fresh_name(line)
            }
        };
        let first_kept = self.first_kept(line, line_header, report);
        let name = parent.and_then(|parent| self.name_of(parent)).map(str::to_owned);
        self.add(node, &id, line_header.id.text(), parent);
        EntryLinks { node, id, parent: name, first_kept }
    }

    fn parent_of(
        &mut self,
        node: Node,
        line: u64,
        line_header: &LineHeader<'_>,
        report: &mut V1Report,
    ) -> Option<Node> {
        if self.linear && line_header.parent == Field::Absent {
            return node.checked_sub(1);
        }
        if line_header.parent == Field::Odd {
            report.find(line, FindingKind::ParentMissing, None);
        }
        let wanted = line_header.parent.text()?;
        if line_header.id.text() == Some(wanted) {
            report.find(line, FindingKind::ParentSelf, Some(wanted));
            return None;
        }
        let found = self.newest_of(wanted);
        if found.is_none() {
            self.orphans.push(Orphan { node, line, parent: wanted.into() });
        }
        found
    }

    fn first_kept(
        &self,
        line: u64,
        line_header: &LineHeader<'_>,
        report: &mut V1Report,
    ) -> Option<String> {
        let compaction = line_header.kind.as_deref() == Some("compaction");
        let index = line_header.first_kept_index.filter(|_| self.linear && compaction)?;
        if line_header.first_kept_id {
            return None;
        }
        let node = usize::try_from(index).ok().and_then(|index| self.by_index.get(index)).copied();
        let name = node.flatten().and_then(|node| self.name_of(node)).map(str::to_owned);
        if name.is_none() {
            report.find(line, FindingKind::KeptLineUnknown, None);
        }
        name
    }

    /// How many entries named a parent that had not come before them.
    pub(crate) fn orphans(&self) -> u64 {
        self.orphans.len() as u64
    }

    /// The entry that has this id in the log. Where an id comes twice in the file, that is the first.
    pub(crate) fn node_of(&self, id: &str) -> Option<Node> {
        stored(&self.named, self.ids.find(id)?)
    }

    /// The id of an entry in the log.
    pub(crate) fn name_of(&self, node: Node) -> Option<&str> {
        self.ids.get(*self.names.get(usize::try_from(node).ok()?)?)
    }

    /// The parent of an entry.
    pub(crate) fn parent(&self, node: Node) -> Option<Node> {
        stored(&self.parents, node)
    }

    /// The entry that a line means that names a parent so: the newest so far.
    fn newest_of(&self, id: &str) -> Option<Node> {
        stored(&self.newest, self.ids.find(id)?)
    }

    /// Version 1 only: the number of an entry's line among those that are JSON, the header's being 0.
    pub(crate) fn index_of(&self, id: &str) -> Option<usize> {
        let node = self.newest_of(id)?;
        self.by_index.iter().position(|known| *known == Some(node))
    }

    /// The number that the next line will have.
    pub(crate) fn next_index(&self) -> usize {
        self.by_index.len()
    }

    fn add(&mut self, node: Node, id: &str, raw: Option<&str>, parent: Option<Node>) {
        let name = self.point(id, node);
        if let Some(named) = usize::try_from(name).ok().and_then(|at| self.named.get_mut(at)) {
            *named = node;
        }
        self.names.push(name);
        if let Some(raw) = raw.filter(|raw| *raw != id) {
            self.point(raw, node);
        }
        self.parents.push(parent.unwrap_or(NONE));
        if self.linear {
            self.by_index.push(Some(node));
        }
    }

    /// Makes a node the newest of an id.
    fn point(&mut self, id: &str, node: Node) -> IdNumber {
        let number = self.ids.add(id);
        match usize::try_from(number).ok().and_then(|at| self.newest.get_mut(at)) {
            Some(newest) => *newest = node,
            None => {
                self.newest.push(node);
                self.named.push(NONE);
            }
        }
        number
    }

    fn another_name(&self, id: &str, line: u64) -> String {
        let mut number = 2_u64;
        loop {
            let name = format!("{id}~{number}");
            if name.len() > ENTRY_ID_BYTES_MAX {
                return self.fresh_name(line);
            }
            if self.ids.find(&name).is_none() {
                return name;
            }
            number += 1;
        }
    }

    /// The same for the same file every time, so that reading twice gives the same tree.
    fn fresh_name(&self, line: u64) -> String {
        let mut attempt = 0_u64;
        loop {
            let digest = Sha256::digest(format!("{}\0{line}\0{attempt}", self.salt));
            let name = hex(digest.get(..4).unwrap_or_default());
            if self.ids.find(&name).is_none() {
                return name;
            }
            attempt += 1;
        }
    }

    /// Says of each entry that lost its parent why: only now is it known what came later.
    pub(crate) fn finish(&mut self, report: &mut V1Report) {
        let orphans = std::mem::take(&mut self.orphans);
        let mut later = HashMap::new();
        for orphan in &orphans {
            if let Some(parent) = self.newest_of(&orphan.parent) {
                later.insert(orphan.node, parent);
            }
        }
        let cycles = self.nodes_in_cycles(&later);
        for orphan in &orphans {
            let kind = match later.get(&orphan.node) {
                None => FindingKind::ParentMissing,
                Some(_) if cycles.contains(&orphan.node) => FindingKind::ParentCycle,
                Some(_) => FindingKind::ParentLater,
            };
            report.find(orphan.line, kind, Some(&orphan.parent));
        }
        report.findings.sort_by_key(|finding| finding.line);
    }

    /// Nodes that are their own ancestors once late parents count. Each node is walked once.
    fn nodes_in_cycles(&self, later: &HashMap<Node, Node>) -> HashSet<Node> {
        let mut found = HashSet::new();
        let mut done = HashSet::new();
        for start in later.keys() {
            let mut path: HashMap<Node, usize> = HashMap::new();
            let mut order = Vec::new();
            let mut next = Some(*start);
            while let Some(node) = next.filter(|node| !done.contains(node)) {
                if let Some(from) = path.get(&node) {
                    found.extend(order.iter().skip(*from).copied());
                    break;
                }
                path.insert(node, order.len());
                order.push(node);
                next = later.get(&node).copied().or_else(|| self.parent(node));
            }
            done.extend(order);
        }
        found
    }
}

/// What is stored at a place, where it is a node.
fn stored(nodes: &[Node], at: u32) -> Option<Node> {
    nodes.get(usize::try_from(at).ok()?).copied().filter(|node| *node != NONE)
}
