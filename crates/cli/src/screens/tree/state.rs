use std::collections::HashSet;

use bough_session::{EntryId, Role, SessionId, SessionStatus};

use super::super::event::Size;
use super::super::input::Input;
use super::super::list::Window;
use super::super::theme::Status;
use super::layout::{Drawing, Filter, Forest, Row};
use crate::backend::{EntriesPage, Summary};

/// What the keys do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Moving about.
    #[default]
    Browse,
    /// A label is typed.
    Label(Input),
    /// The session is working; switching must be confirmed.
    ConfirmSwitch(Choice),
    /// Whether to summarise the branch that is left.
    Summary { choice: Choice, option: usize },
    /// The focus of the summary is typed.
    Focus { choice: Choice, input: Input },
}

/// An entry that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The new leaf; `None` is before the first entry.
    pub(crate) to: Option<EntryId>,
    /// The message whose text is offered for editing.
    pub(crate) edit: Option<EntryId>,
    /// How many entries of the active path are left behind.
    pub(crate) left_behind: usize,
}

/// The kind of summary for the branch that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SummaryWish {
    /// Nothing.
    None,
    /// A summary by the configured program, or by the fixed rules.
    Usual,
    /// A summary that pays attention to something.
    Focused(String),
}

/// The ways to answer the question for a summary.
pub(crate) const SUMMARY_OPTIONS: [&str; 3] =
    ["No summary", "Summarise", "Summarise with a focus…"];

/// A switch to another branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) session: SessionId,
    /// The leaf that the person saw.
    pub(crate) from: Option<EntryId>,
    pub(crate) to: Option<EntryId>,
    pub(crate) edit: Option<EntryId>,
    pub(crate) summary: SummaryWish,
}

/// The result of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switched {
    pub(crate) leaf: Option<EntryId>,
    /// Whether an edited message was appended.
    pub(crate) appended: bool,
}

/// Work that the navigator requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Load { session: SessionId, cursor: Option<String>, generation: u64 },
    Summary { session: SessionId },
    Switch(Switch),
    Fork { session: SessionId, entry: EntryId, edit: Option<EntryId> },
    Label { session: SessionId, entry: EntryId, label: Option<String> },
}

/// The result of an effect.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time is on its way; boxing buys nothing")]
pub(crate) enum Answer {
    Loaded { generation: u64, page: Result<EntriesPage, String> },
    Summary { session: SessionId, summary: Result<Summary, String> },
    Switched { session: SessionId, done: Result<Switched, String> },
    Forked { session: SessionId, fork: Result<SessionId, String> },
    Labelled { session: SessionId, entry: EntryId, label: Result<Option<String>, String> },
}

/// Everything that the navigator knows.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) size: Size,
    pub(crate) now_ms: i64,
    pub(crate) id: SessionId,
    pub(crate) session: Option<Summary>,
    pub(crate) forest: Forest,
    pub(crate) drawing: Drawing,
    pub(crate) window: Window,
    pub(crate) filter: Filter,
    pub(crate) show_label_times: bool,
    pub(crate) mode: Mode,
    pub(crate) status: Option<Status>,
    pub(crate) is_loading: bool,
    pub(crate) active: HashSet<usize>,
    /// The end of the active path, as far as it is visible.
    pub(crate) active_end: Option<usize>,
    pub(super) generation: u64,
    pub(super) active_leaf: Option<EntryId>,
    pub(super) folded: HashSet<usize>,
    /// Entries when the layout was made; it is made again when there are twice as many, and at the end.
    pub(super) drawn_at: usize,
    /// Whether the person has moved; until then the active leaf is selected.
    pub(super) has_moved: bool,
    /// An entry to go to that is not read yet.
    pub(super) going_to: Option<EntryId>,
}

impl TreeState {
    pub(crate) fn new(id: SessionId, size: Size, now_ms: i64) -> Self {
        Self {
            size,
            now_ms,
            id,
            session: None,
            forest: Forest::default(),
            drawing: Drawing::default(),
            window: Window::default(),
            filter: Filter::default(),
            show_label_times: false,
            mode: Mode::default(),
            status: None,
            is_loading: false,
            active: HashSet::new(),
            active_end: None,
            generation: 0,
            active_leaf: None,
            folded: HashSet::new(),
            drawn_at: 0,
            has_moved: false,
            going_to: None,
        }
    }

    /// The chosen row.
    pub(crate) fn chosen(&self) -> Option<Row> {
        self.drawing.rows.get(self.window.chosen).copied()
    }

    /// The place of the active leaf.
    pub(crate) fn leaf_place(&self) -> Option<usize> {
        self.active_leaf.as_ref().and_then(|id| self.forest.place(id))
    }

    /// Whether the agent is working, which switching would disturb.
    pub(super) fn is_working(&self) -> bool {
        self.session.as_ref().is_some_and(|found| found.meta.status == SessionStatus::Working)
    }

    /// Selects an entry, and shows everything if the filter would hide it. Returns whether the entry is read already.
    pub(super) fn go_to(&mut self, entry: &EntryId) -> bool {
        let Some(node) = self.forest.place(entry) else { return false };
        self.has_moved = true;
        if self.drawn_at < self.forest.nodes.len() {
            self.lay_out();
        }
        if self.drawing.exact_row_of(node).is_none() {
            self.filter = Filter::All;
            self.folded.clear();
            self.lay_out();
        }
        self.window.chosen = self.drawing.exact_row_of(node).unwrap_or(self.window.chosen);
        self.window.keep_in_view(self.drawing.rows.len(), super::view::list_rows(self));
        true
    }

    /// Makes the layout again, and keeps the selection as far as it is still visible.
    pub(super) fn lay_out(&mut self) {
        let chosen = self.chosen().map(|row| row.node);
        let leaf = self.leaf_place();
        self.active = self.forest.upwards(leaf).collect();
        self.drawing = Drawing::of(&self.forest, leaf, self.filter, &self.folded);
        self.active_end = self.drawing.seen_end(&self.forest, leaf);
        self.drawn_at = self.forest.nodes.len();
        let wanted = chosen.filter(|_| self.has_moved).or(leaf);
        let row = self.drawing.row_of(&self.forest, wanted);
        let last = self.drawing.rows.len().saturating_sub(1);
        self.window.chosen = row.unwrap_or(if self.has_moved { 0 } else { last });
        self.window.keep_in_view(self.drawing.rows.len(), super::view::list_rows(self));
    }

    /// What selecting a row means: a message of the person, or of an application, is edited and sent again from before
    /// it; anything else is continued from.
    pub(super) fn choice(&self, row: Row) -> Option<Choice> {
        let node = self.forest.node(row.node)?;
        let is_said_anew = matches!(node.entry.role, Some(Role::User | Role::Custom));
        let (to, edit) = match is_said_anew {
            true => {
                let parent = node.parent.and_then(|at| self.forest.node(at));
                (parent.map(|node| node.entry.id.clone()), Some(node.entry.id.clone()))
            }
            false => (Some(node.entry.id.clone()), None),
        };
        let target = to.as_ref().and_then(|id| self.forest.place(id));
        let kept: HashSet<usize> = self.forest.upwards(target).collect();
        let left = self.forest.upwards(self.leaf_place()).filter(|at| !kept.contains(at));
        let messages =
            left.filter(|at| self.forest.node(*at).is_some_and(|n| n.entry.role.is_some()));
        Some(Choice { to, edit, left_behind: messages.count() })
    }
}
