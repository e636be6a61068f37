//! From entries to rows: which are visible, in which order, how far indented. Pure, and linear in the number of
//! entries.
//!
//! A run of entries without a branch is drawn straight down. If several entries follow one, each begins a branch, one
//! step further in, the active one first.

use std::collections::{HashMap, HashSet};

use bough_session::{EntryId, Role};
use clap::ValueEnum;

use crate::backend::Outline;

/// Which entries are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Filter {
    /// Messages, summaries and compactions; not labels, settings and applications' notes
    #[default]
    Default,
    /// The same without the results of tools
    NoTools,
    /// User messages
    User,
    /// Entries that have a label
    Labelled,
    /// Everything
    All,
}

impl Filter {
    /// The next filter, for a key that cycles.
    pub(crate) fn next(self) -> Self {
        self.after(1)
    }

    /// The one before.
    pub(crate) fn previous(self) -> Self {
        self.after(Self::value_variants().len() - 1)
    }

    fn after(self, steps: usize) -> Self {
        let all = Self::value_variants().iter().cycle();
        all.skip_while(|filter| **filter != self).nth(steps).copied().unwrap_or_default()
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Default => "messages",
            Self::NoTools => "no tools",
            Self::User => "user only",
            Self::Labelled => "labelled",
            Self::All => "all entries",
        }
    }
}

/// The entries of a session as a tree.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    pub(crate) nodes: Vec<Node>,
    places: HashMap<EntryId, usize>,
    labels: HashMap<EntryId, Label>,
}

/// One entry in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) entry: Outline,
    /// The entry that it follows, by its place.
    pub(crate) parent: Option<usize>,
}

/// A label and when it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) at_ms: i64,
}

impl Forest {
    /// Adds entries in the order of the log. An entry whose parent was not seen before is a root.
    pub(crate) fn add(&mut self, entries: Vec<Outline>) {
        for entry in entries {
            let parent = entry.parent_id.as_ref().and_then(|id| self.places.get(id)).copied();
            if let Some(target) = &entry.label_target {
                match &entry.label {
                    Some(text) => {
                        let label = Label { text: text.clone(), at_ms: entry.timestamp };
                        self.labels.insert(target.clone(), label);
                    }
                    None => {
                        self.labels.remove(target);
                    }
                }
            }
            self.places.insert(entry.id.clone(), self.nodes.len());
            self.nodes.push(Node { entry, parent });
        }
    }

    pub(crate) fn place(&self, id: &EntryId) -> Option<usize> {
        self.places.get(id).copied()
    }

    pub(crate) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    pub(crate) fn label(&self, at: usize) -> Option<&Label> {
        self.nodes.get(at).and_then(|node| self.labels.get(&node.entry.id))
    }

    /// Sets a label that no other entry keeps, or removes it.
    pub(crate) fn move_label(&mut self, id: EntryId, label: Option<Label>) {
        match label {
            Some(label) => {
                self.labels.retain(|_, other| other.text != label.text);
                self.labels.insert(id, label);
            }
            None => {
                self.labels.remove(&id);
            }
        }
    }

    /// The places from an entry up to its root, the entry first. Parents come before their children, so it ends.
    pub(crate) fn upwards(&self, from: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(from, |at| self.nodes.get(*at).and_then(|node| node.parent))
    }

    fn is_seen(&self, at: usize, filter: Filter) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        let entry = &node.entry;
        match filter {
            Filter::All => true,
            Filter::Labelled => self.label(at).is_some(),
            Filter::User => entry.role == Some(Role::User),
            Filter::Default => is_of_the_conversation(entry),
            Filter::NoTools => {
                is_of_the_conversation(entry) && entry.role != Some(Role::FunctionResult)
            }
        }
    }
}

/// Messages and the summaries that replace some.
fn is_of_the_conversation(entry: &Outline) -> bool {
    entry.role.is_some()
        || matches!(entry.custom_type.as_deref(), Some("bough.compaction" | "bough.branch_summary"))
}

/// One row of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Which entry.
    pub(crate) node: usize,
    /// The innermost branch that it is on, if it is on one.
    level: Option<usize>,
    /// Whether it begins that branch.
    pub(crate) begins: bool,
    /// Whether something follows it that could be folded away.
    pub(crate) can_fold: bool,
    pub(crate) is_folded: bool,
}

/// A branch: which one it is on itself, and whether others follow beside it.
#[derive(Clone, Copy, Debug)]
struct Level {
    up: Option<usize>,
    depth: usize,
    has_next: bool,
}

/// The drawing of a tree.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) rows: Vec<Row>,
    levels: Vec<Level>,
    by_node: HashMap<usize, usize>,
}

/// How many steps of indentation are drawn; deeper ones are shown as a number.
const STEPS_SHOWN: usize = 12;

impl Drawing {
    /// Lays the tree out.
    pub(crate) fn of(
        forest: &Forest,
        active_leaf: Option<usize>,
        filter: Filter,
        folded: &HashSet<usize>,
    ) -> Self {
        let active: HashSet<usize> = forest.upwards(active_leaf).collect();
        let mut family = Family::of(forest, filter);
        family.put_first(&active);
        let mut drawing = Self::default();
        drawing.draw(&family, folded);
        drawing.by_node =
            drawing.rows.iter().enumerate().map(|(row, drawn)| (drawn.node, row)).collect();
        drawing
    }

    fn draw(&mut self, family: &Family, folded: &HashSet<usize>) {
        let mut stack: Vec<(usize, Option<usize>, bool)> = Vec::new();
        self.push_all(&mut stack, &family.roots, None);
        while let Some((node, level, begins)) = stack.pop() {
            let children = family.children.get(&node).map_or(&[][..], Vec::as_slice);
            let can_fold = !children.is_empty() && (begins || children.len() > 1);
            let is_folded = can_fold && folded.contains(&node);
            self.rows.push(Row { node, level, begins, can_fold, is_folded });
            if !is_folded {
                self.push_all(&mut stack, children, level);
            }
        }
    }

    /// Pushes siblings on the stack, the first on top; several of them begin branches.
    fn push_all(
        &mut self,
        stack: &mut Vec<(usize, Option<usize>, bool)>,
        siblings: &[usize],
        level: Option<usize>,
    ) {
        if let [only] = siblings {
            stack.push((*only, level, false));
            return;
        }
        let depth = level.and_then(|at| self.levels.get(at)).map_or(0, |level| level.depth) + 1;
        for (at, node) in siblings.iter().enumerate().rev() {
            let has_next = at + 1 < siblings.len();
            self.levels.push(Level { up: level, depth, has_next });
            stack.push((*node, Some(self.levels.len() - 1), true));
        }
    }

    /// The visible entry at or above a place: the end of an active path whose leaf a filter hides.
    pub(crate) fn seen_end(&self, forest: &Forest, leaf: Option<usize>) -> Option<usize> {
        let row = self.row_of(forest, Some(leaf?))?;
        self.rows.get(row).map(|row| row.node)
    }

    /// The row of an entry, or of its nearest visible ancestor.
    pub(crate) fn row_of(&self, forest: &Forest, node: Option<usize>) -> Option<usize> {
        forest.upwards(node).find_map(|at| self.by_node.get(&at).copied())
    }

    /// The row of an entry, if it is visible.
    pub(crate) fn exact_row_of(&self, node: usize) -> Option<usize> {
        self.by_node.get(&node).copied()
    }

    /// The lines before a row's text.
    pub(crate) fn gutter(&self, row: Row) -> String {
        let mut steps = Vec::new();
        let mut at = row.level;
        let mut innermost = row.begins;
        while let Some(level) = at.and_then(|at| self.levels.get(at)) {
            let step = match (innermost, level.has_next) {
                (true, true) => "├─ ",
                (true, false) => "└─ ",
                (false, true) => "│  ",
                (false, false) => "   ",
            };
            innermost = false;
            steps.push(step);
            if steps.len() == STEPS_SHOWN && level.up.is_some() {
                let further = level.depth - 1;
                return format!("…{further} ") + &steps.into_iter().rev().collect::<String>();
            }
            at = level.up;
        }
        steps.into_iter().rev().collect()
    }
}

/// The tree of the visible entries.
struct Family {
    roots: Vec<usize>,
    children: HashMap<usize, Vec<usize>>,
}

impl Family {
    fn of(forest: &Forest, filter: Filter) -> Self {
        let mut family = Self { roots: Vec::new(), children: HashMap::new() };
        // For each entry, itself if it is visible, else its nearest visible ancestor.
        let mut anchors: Vec<Option<usize>> = Vec::with_capacity(forest.nodes.len());
        for (at, node) in forest.nodes.iter().enumerate() {
            let above = node.parent.and_then(|parent| anchors.get(parent).copied().flatten());
            if !forest.is_seen(at, filter) {
                anchors.push(above);
                continue;
            }
            anchors.push(Some(at));
            match above {
                Some(parent) => family.children.entry(parent).or_default().push(at),
                None => family.roots.push(at),
            }
        }
        family
    }

    /// Moves entries on the active path before their siblings.
    fn put_first(&mut self, active: &HashSet<usize>) {
        let first = |siblings: &mut Vec<usize>| siblings.sort_by_key(|at| !active.contains(at));
        first(&mut self.roots);
        self.children.values_mut().for_each(first);
    }
}
