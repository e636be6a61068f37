use std::collections::{HashMap, HashSet};

use bough_service::api::MessageItem;
use bough_session::{JsonMap, SessionId};
use bough_store::ListOrder;
use serde_json::Value;

use super::super::event::Size;
use super::super::input::Input;
use super::super::list::Window;
use super::super::theme::Status;
use crate::backend::{ListPage, ListRequest, Summary};
use crate::limits::{PICKER_PAGE, PICKER_SESSIONS_MAX, SEARCH_PAGE};
use crate::text::{Query, Score};

/// The options of the picker.
#[derive(Clone, Debug)]
pub(crate) struct PickerOptions {
    pub(crate) size: Size,
    pub(crate) now_ms: i64,
    /// The directory whose sessions are "this project's".
    pub(crate) project: Option<String>,
    pub(crate) scope: Scope,
    /// Whether choosing a session ends the picker instead of opening the session.
    pub(crate) only_pick: bool,
}

/// Whose sessions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    Project,
    #[default]
    All,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// The last changed first.
    #[default]
    Recent,
    /// Forks below their origin.
    Threaded,
    /// The best match first.
    Best,
}

/// What the keys do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Searching and moving.
    #[default]
    Browse,
    /// A new title for a session is typed.
    Rename(SessionId, Input),
    /// Deleting a session is to be confirmed.
    ConfirmDelete(SessionId),
}

/// The newest messages of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Preview {
    Loading,
    Shown(Vec<MessageItem>),
    Failed(String),
}

/// Work that the picker requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Load {
        ask: ListRequest,
        generation: u64,
    },
    /// Reads the newest sessions again: others write sessions too.
    Refresh {
        ask: ListRequest,
        generation: u64,
    },
    /// Finds the session files of pi that were not migrated.
    FindFiles {
        generation: u64,
    },
    /// Opens such a file.
    OpenFile {
        file: String,
    },
    /// Opens such a file, to show its newest messages.
    PreviewFile {
        session: SessionId,
        file: String,
    },
    Preview(SessionId),
    Rename {
        session: SessionId,
        title: String,
    },
    SetArchived {
        session: SessionId,
        archived: bool,
    },
    Delete(SessionId),
    Undelete(SessionId),
}

/// The result of an effect.
#[derive(Debug)]
pub(crate) enum Answer {
    Loaded { generation: u64, page: Result<ListPage, String> },
    Refreshed { generation: u64, page: Result<ListPage, String> },
    FoundFiles { generation: u64, files: Result<Vec<Summary>, String> },
    OpenedFile { session: Result<SessionId, String> },
    Previewed { session: SessionId, items: Result<Vec<MessageItem>, String> },
    Renamed { session: SessionId, title: Result<String, String> },
    Archived { session: SessionId, archived: bool, done: Result<(), String> },
    Deleted { session: SessionId, done: Result<(), String> },
    Undeleted { done: Result<(), String> },
}

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Which session.
    pub(crate) at: usize,
    /// How many forks lead to it, if forks are shown below their origin.
    pub(crate) depth: usize,
}

/// Everything that the picker knows.
#[derive(Debug, Default)]
pub(crate) struct PickerState {
    pub(crate) size: Size,
    pub(crate) now_ms: i64,
    pub(crate) project: Option<String>,
    pub(crate) scope: Scope,
    pub(crate) sort: Sort,
    pub(crate) named_only: bool,
    pub(crate) show_path: bool,
    pub(crate) show_archived: bool,
    pub(crate) show_preview: bool,
    pub(crate) only_pick: bool,
    pub(crate) search: Input,
    pub(crate) mode: Mode,
    pub(crate) status: Option<Status>,
    pub(crate) rows: Vec<Row>,
    pub(crate) window: Window,
    pub(crate) is_loading: bool,
    /// Whether the newest sessions are being read again.
    pub(super) is_refreshing: bool,
    /// The number of the current request; older answers are dropped.
    pub(super) generation: u64,
    pub(super) cursor: Option<String>,
    pub(super) is_complete: bool,
    pub(super) sessions: Vec<Known>,
    pub(super) places: HashMap<SessionId, usize>,
    pub(super) previews: HashMap<SessionId, Preview>,
    /// The session that was deleted last, for undo.
    pub(super) deleted: Option<SessionId>,
}

/// A session that was read, with the text that is searched.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) summary: Summary,
    pub(super) haystack: String,
}

/// Previews that are kept in memory.
const PREVIEWS_MAX: usize = 64;

impl PickerState {
    pub(crate) fn new(options: PickerOptions) -> Self {
        let PickerOptions { size, now_ms, project, scope, only_pick } = options;
        Self { size, now_ms, project, scope, only_pick, show_preview: true, ..Self::default() }
    }

    /// The session of a row.
    pub(crate) fn session(&self, row: Row) -> Option<&Summary> {
        self.sessions.get(row.at).map(|known| &known.summary)
    }

    /// The chosen session.
    pub(crate) fn chosen(&self) -> Option<&Summary> {
        self.rows.get(self.window.chosen).and_then(|row| self.session(*row))
    }

    /// The chosen session's preview.
    pub(crate) fn preview(&self) -> Option<&Preview> {
        self.previews.get(self.chosen()?.id())
    }

    /// How many sessions were read, and whether there are more.
    pub(crate) fn read_so_far(&self) -> (usize, bool) {
        (self.sessions.len(), !self.is_complete)
    }

    /// The question for the next page.
    pub(super) fn ask(&self) -> ListRequest {
        let mut metadata = JsonMap::new();
        if let (Scope::Project, Some(project)) = (self.scope, &self.project) {
            metadata.insert("cwd".to_owned(), Value::String(project.clone()));
        }
        let searching = !self.search.is_empty() || self.named_only || self.sort == Sort::Threaded;
        ListRequest {
            order: Some(ListOrder::UpdatedDesc),
            archived: if self.show_archived { "include" } else { "exclude" },
            cursor: self.cursor.clone(),
            metadata,
            ..ListRequest::recent(if searching { SEARCH_PAGE } else { PICKER_PAGE })
        }
    }

    /// The request for the newest sessions, whatever was read of the others.
    pub(super) fn ask_newest(&self) -> ListRequest {
        ListRequest { cursor: None, limit: PICKER_PAGE, ..self.ask() }
    }

    /// Adds a session. One that changed while the list was read may come twice; the newer one counts.
    fn take_one(&mut self, summary: Summary) {
        let known = Known { haystack: haystack(&summary), summary };
        match self.places.get(known.summary.id()) {
            Some(at) => {
                if let Some(slot) = self.sessions.get_mut(*at) {
                    *slot = known;
                }
            }
            None => {
                self.places.insert(known.summary.id().clone(), self.sessions.len());
                self.sessions.push(known);
            }
        }
    }

    /// Adds the session files of pi. If a session is in both, the file is left out.
    pub(super) fn take_files(&mut self, files: Vec<Summary>) {
        let in_scope = |file: &Summary| match (self.scope, &self.project) {
            (Scope::Project, Some(project)) => file.cwd() == Some(project.as_str()),
            _ => true,
        };
        let new = |file: &Summary| !self.places.contains_key(file.id());
        let files: Vec<Summary> =
            files.into_iter().filter(|file| in_scope(file) && new(file)).collect();
        files.into_iter().for_each(|file| self.take_one(file));
    }

    /// Updates the list with the newest sessions: adds those that changed or are new, and drops those that are gone.
    pub(super) fn take_newest(&mut self, page: ListPage) {
        let listed: HashSet<SessionId> =
            page.sessions.iter().map(|summary| summary.id().clone()).collect();
        // Every session that is newer than the end of the page would be on it.
        let oldest = match (&page.next_cursor, page.sessions.last()) {
            (Some(_), Some(last)) => last.meta.updated_at,
            _ => i64::MIN,
        };
        let is_gone = |known: &Known| {
            let summary = &known.summary;
            summary.file.is_none()
                && summary.meta.updated_at > oldest
                && !listed.contains(summary.id())
        };
        let gone: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|known| is_gone(known))
            .map(|k| k.summary.id().clone())
            .collect();
        gone.iter().for_each(|session| self.remove(session));
        for summary in page.sessions {
            let before = self.places.get(summary.id()).and_then(|at| self.sessions.get(*at));
            if before.is_none_or(|known| known.summary.meta.updated_at != summary.meta.updated_at) {
                self.previews.remove(summary.id());
            }
            self.take_one(summary);
        }
        self.lay_out();
    }

    /// Takes a page in.
    pub(super) fn take(&mut self, page: ListPage) {
        page.sessions.into_iter().for_each(|summary| self.take_one(summary));
        let full = self.sessions.len() >= PICKER_SESSIONS_MAX;
        self.is_complete = page.next_cursor.is_none() || full;
        self.cursor = page.next_cursor;
    }

    /// Forgets all sessions, to read them anew.
    pub(super) fn forget(&mut self) {
        self.sessions.clear();
        self.places.clear();
        self.rows.clear();
        self.window = Window::default();
        self.cursor = None;
        self.is_complete = false;
    }

    /// Takes one session out.
    pub(super) fn remove(&mut self, session: &SessionId) {
        // Rows name sessions by their numbers, which are about to change.
        let chosen = self.chosen().map(|summary| summary.id().clone());
        self.sessions.retain(|known| known.summary.id() != session);
        self.places = self
            .sessions
            .iter()
            .enumerate()
            .map(|(at, known)| (known.summary.id().clone(), at))
            .collect();
        self.previews.remove(session);
        self.lay_out_around(chosen.as_ref());
    }

    pub(super) fn summary(&self, session: &SessionId) -> Option<&Summary> {
        let at = self.places.get(session)?;
        self.sessions.get(*at).map(|known| &known.summary)
    }

    pub(super) fn summary_mut(&mut self, session: &SessionId) -> Option<&mut Known> {
        self.places.get(session).and_then(|at| self.sessions.get_mut(*at))
    }

    pub(super) fn keep_preview(&mut self, session: SessionId, preview: Preview) {
        if self.previews.len() >= PREVIEWS_MAX && !self.previews.contains_key(&session) {
            self.previews.clear();
        }
        self.previews.insert(session, preview);
    }

    /// Makes the rows, and keeps the selection.
    pub(super) fn lay_out(&mut self) {
        let chosen = self.chosen().map(|summary| summary.id().clone());
        self.lay_out_around(chosen.as_ref());
    }

    fn lay_out_around(&mut self, chosen: Option<&SessionId>) {
        let query = Query::parse(self.search.text());
        let mut found: Vec<(usize, Score)> = Vec::new();
        for (at, known) in self.sessions.iter().enumerate() {
            if self.named_only && !known.summary.is_named() {
                continue;
            }
            if let Some(score) = query.score(&known.haystack) {
                found.push((at, score));
            }
        }
        // Pages come in this order; refreshed sessions and files do not.
        let updated_at =
            |at: usize| self.sessions.get(at).map(|known| known.summary.meta.updated_at);
        found.sort_by_key(|(at, _)| std::cmp::Reverse(updated_at(*at)));
        self.rows = match self.sort {
            Sort::Threaded => threads(&found, &self.sessions, &self.places),
            Sort::Best => {
                found.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
                flat(&found)
            }
            Sort::Recent => flat(&found),
        };
        let same = |row: &Row| self.session(*row).map(Summary::id) == chosen;
        let at = chosen.and_then(|_| self.rows.iter().position(same));
        self.window.chosen = at.unwrap_or(self.window.chosen);
        self.window.keep_in_view(self.rows.len(), super::view::list_rows(self));
    }
}

fn flat(found: &[(usize, Score)]) -> Vec<Row> {
    found.iter().map(|(at, _)| Row { at: *at, depth: 0 }).collect()
}

/// Forks below their origin; a thread is where its newest session would be.
fn threads(
    found: &[(usize, Score)],
    sessions: &[Known],
    places: &HashMap<SessionId, usize>,
) -> Vec<Row> {
    let shown: HashSet<usize> = found.iter().map(|(at, _)| *at).collect();
    let parent = |at: usize| {
        let from = sessions.get(at)?.summary.meta.forked_from.as_ref()?;
        places.get(from).copied().filter(|parent| shown.contains(parent))
    };
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut roots: Vec<usize> = Vec::new();
    for (at, _) in found {
        // The root of a thread is placed when the first of its sessions is.
        let mut root = *at;
        let mut steps = 0;
        while let Some(up) = parent(root).filter(|_| steps < sessions.len()) {
            root = up;
            steps += 1;
        }
        roots.push(root);
        if let Some(up) = parent(*at) {
            children.entry(up).or_default().push(*at);
        }
    }
    let mut rows = Vec::new();
    let mut done = HashSet::new();
    for root in roots {
        let mut stack = vec![Row { at: root, depth: 0 }];
        while let Some(row) = stack.pop() {
            if !done.insert(row.at) {
                continue;
            }
            rows.push(row);
            let below = children.get(&row.at).into_iter().flatten().rev();
            stack.extend(below.map(|at| Row { at: *at, depth: row.depth + 1 }));
        }
    }
    rows
}

/// The text that a filter searches: title, name, first message, directory, model and id.
fn haystack(summary: &Summary) -> String {
    let details = &summary.details;
    let parts = [
        Some(summary.meta.title.as_str()),
        details.name.as_deref(),
        details.preview.as_deref(),
        summary.cwd(),
        summary.model(),
        Some(summary.id().as_str()),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n").to_lowercase()
}
