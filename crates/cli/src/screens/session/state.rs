use std::collections::HashSet;

use bough_service::api::{LoopSummary, MessageItem};
use bough_session::{EntryId, SessionId};

use super::super::event::Size;
use super::super::theme::Status;
use super::lines::{TextLine, Unfolded, lines_of};
use super::outline::{OutlineLine, outline_lines};
use crate::backend::{EventPage, PathPage, Summary};

/// From which end the transcript was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum From {
    /// From the newest message back; new ones are added as they come.
    #[default]
    Tail,
    /// From the first message on.
    Head,
}

/// Work that the screen requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Summary(SessionId),
    Page {
        session: SessionId,
        leaf: Option<EntryId>,
        from: From,
        cursor: Option<String>,
        generation: u64,
    },
    Watch {
        session: SessionId,
        after: Option<String>,
        /// Whether to wait for the next event if there is none yet.
        waits: bool,
    },
    Loops(SessionId),
}

/// The result of an effect.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time is on its way; boxing buys nothing")]
pub(crate) enum Answer {
    Summary { session: SessionId, summary: Result<Option<Summary>, String> },
    Page { session: SessionId, generation: u64, from: From, page: Result<PathPage, String> },
    Events { session: SessionId, page: Result<EventPage, String> },
    Loops { session: SessionId, loops: Result<Vec<LoopSummary>, String> },
}

/// One message with its lines.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) item: MessageItem,
    pub(crate) lines: Vec<TextLine>,
}

/// Everything that the screen knows.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) size: Size,
    pub(crate) now_ms: i64,
    pub(crate) id: SessionId,
    /// The entry at the end of the shown path; `None` is the active leaf, which events move.
    pub(crate) leaf: Option<EntryId>,
    pub(crate) session: Option<Summary>,
    pub(crate) items: Vec<Item>,
    pub(crate) from: From,
    /// The first visible line of the transcript.
    pub(crate) top: usize,
    /// Whether the end stays in view as it grows.
    pub(crate) follows: bool,
    /// The message that the keys speak of.
    pub(crate) chosen: usize,
    pub(crate) unfolded: Unfolded,
    pub(crate) outline: Vec<OutlineLine>,
    pub(crate) show_outline: bool,
    pub(crate) status: Option<Status>,
    pub(crate) is_loading: bool,
    pub(crate) is_gone: bool,
    /// Whether events no longer arrive: the server ended, or the store cannot be read. Retried at every tick.
    pub(crate) is_cut_off: bool,
    /// Whether events are asked for. More than one request at a time would never become one again.
    pub(super) is_watching: bool,
    pub(super) flipped: HashSet<EntryId>,
    pub(super) generation: u64,
    /// Where the next page in the direction of reading starts; `None` at the end of the path.
    pub(super) cursor: Option<String>,
    /// The cursor of the events.
    pub(super) after: Option<String>,
}

impl SessionState {
    pub(crate) fn new(id: SessionId, size: Size, now_ms: i64) -> Self {
        Self {
            size,
            now_ms,
            id,
            leaf: None,
            session: None,
            items: Vec::new(),
            from: From::Tail,
            top: 0,
            follows: true,
            chosen: 0,
            unfolded: Unfolded::default(),
            outline: Vec::new(),
            show_outline: false,
            status: None,
            is_loading: false,
            is_gone: false,
            is_cut_off: false,
            is_watching: false,
            flipped: HashSet::new(),
            generation: 0,
            cursor: None,
            after: None,
        }
    }

    /// How many lines there are.
    pub(crate) fn total(&self) -> usize {
        self.items.iter().map(|item| item.lines.len()).sum()
    }

    /// The first line of a message.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.items.iter().take(at).map(|item| item.lines.len()).sum()
    }

    /// The message that a line belongs to.
    pub(super) fn item_at(&self, line: usize) -> usize {
        let mut end = 0;
        let found = self.items.iter().position(|item| {
            end += item.lines.len();
            line < end
        });
        found.unwrap_or(self.items.len().saturating_sub(1))
    }

    /// Keeps the scroll position within the transcript.
    pub(super) fn settle(&mut self) {
        let most = self.total().saturating_sub(super::view::text_rows(self));
        if self.follows {
            self.top = most;
            self.chosen = self.items.len().saturating_sub(1);
        }
        self.top = self.top.min(most);
        self.chosen = self.chosen.min(self.items.len().saturating_sub(1));
    }

    /// Makes all lines again: the window or the folding has changed. The message on top stays on top.
    pub(super) fn lay_out(&mut self) {
        let on_top = self.item_at(self.top);
        let columns = super::view::text_columns(self);
        for item in &mut self.items {
            let flipped = self.flipped.contains(&item.item.entry_id);
            item.lines = lines_of(&item.item, columns, self.unfolded, flipped);
        }
        self.top = self.line_of(on_top);
        self.settle();
    }

    /// A message with its lines.
    pub(super) fn laid_out(&self, item: MessageItem) -> Item {
        let flipped = self.flipped.contains(&item.entry_id);
        let lines = lines_of(&item, super::view::text_columns(self), self.unfolded, flipped);
        Item { item, lines }
    }

    pub(super) fn place(&self, entry: &EntryId) -> Option<usize> {
        self.items.iter().rposition(|item| item.item.entry_id == *entry)
    }

    pub(super) fn take_loops(&mut self, loops: &[LoopSummary]) {
        self.outline = outline_lines(self.id.as_str(), loops);
    }
}
