use bough_service::api::{IndexStatus, SearchHit, SearchRequest, SearchResponse};
use bough_session::SessionId;

use super::super::event::Size;
use super::super::input::Input;
use super::super::list::Window;
use super::super::theme::Status;
use crate::limits::SEARCH_HITS_PAGE;

/// The sessions to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// In all sessions; a hit opens its session.
    Everything,
    /// In one session; selecting a hit scrolls the screen below to it.
    Session(SessionId),
}

/// Work that the screen requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Search(SearchRequest),
}

/// The result of an effect.
#[derive(Debug)]
pub(crate) enum Answer {
    Found {
        query: String,
        /// Whether it is the first page; others are added to the hits.
        is_first: bool,
        found: Result<SearchResponse, String>,
    },
}

/// Everything that the screen knows.
#[derive(Debug)]
pub(crate) struct SearchState {
    pub(crate) size: Size,
    pub(crate) now_ms: i64,
    pub(crate) within: Within,
    pub(crate) input: Input,
    pub(crate) hits: Vec<SearchHit>,
    pub(crate) window: Window,
    pub(crate) status: Option<Status>,
    pub(crate) index: Option<IndexStatus>,
    /// Where the next page of hits begins.
    pub(crate) next: Option<String>,
    /// The query that is running. Only one runs at a time: what is typed meanwhile becomes one further query.
    pub(super) asked: Option<String>,
    /// The query that the hits are of.
    pub(super) answered: String,
}

impl SearchState {
    pub(crate) fn new(within: Within, text: &str, size: Size, now_ms: i64) -> Self {
        Self {
            size,
            now_ms,
            within,
            input: Input::of(text),
            hits: Vec::new(),
            window: Window::default(),
            status: None,
            index: None,
            next: None,
            asked: None,
            answered: String::new(),
        }
    }

    /// The chosen hit.
    pub(crate) fn chosen(&self) -> Option<&SearchHit> {
        self.hits.get(self.window.chosen)
    }

    /// Whether the hits are not yet those of the typed query.
    pub(crate) const fn is_searching(&self) -> bool {
        self.asked.is_some()
    }

    /// The typed text as a query.
    pub(super) fn query(&self) -> String {
        let typed = self.input.text().trim();
        match &self.within {
            _ if typed.is_empty() => String::new(),
            Within::Everything => typed.to_owned(),
            Within::Session(id) => {
                // A quote in quotes is written twice.
                let id = id.as_str().replace('"', "\"\"");
                format!("session:\"{id}\" {typed}")
            }
        }
    }

    pub(super) fn request(query: String, cursor: Option<String>) -> SearchRequest {
        SearchRequest { query, cursor, limit: Some(SEARCH_HITS_PAGE), ..SearchRequest::default() }
    }
}
