use bough_service::api::{SearchHit, SearchResponse};
use bough_session::{EntryId, SessionId};
use ratatui::crossterm::event::KeyCode;

use super::super::event::{self, Event, Key};
use super::super::stack::{Request, Target};
use super::super::theme::Status;
use super::state::{Answer, Effect, SearchState, Within};
use super::view::list_hits;
use crate::limits::SEARCH_HITS_PAGE;

/// The first requests of the screen: search for the initial text.
pub(crate) fn start(state: &mut SearchState) -> Vec<Request> {
    ask(state)
}

/// Handles an event: changes the state and returns requests.
pub(crate) fn update(state: &mut SearchState, event: Event) -> Vec<Request> {
    match event {
        Event::Key(key) => on_key(state, key),
        Event::Paste(text) => {
            state.input.insert(&text);
            ask(state)
        }
        Event::Resize(size) => {
            state.size = size;
            state.window.keep_in_view(state.hits.len(), list_hits(state));
            Vec::new()
        }
        Event::Tick { now_ms } => {
            state.now_ms = now_ms;
            ask_again(state)
        }
        Event::Answer(event::Answer::Search(Answer::Found { query, is_first, found })) => {
            answered(state, &query, is_first, found)
        }
        Event::Answer(_) | Event::GoTo(_) | Event::Closed => Vec::new(),
    }
}

fn on_key(state: &mut SearchState, key: Key) -> Vec<Request> {
    let is_of_the_line = matches!(key.code, KeyCode::Home | KeyCode::End);
    if !is_of_the_line && state.window.key(key, state.hits.len(), list_hits(state)) {
        return ask_for_more(state);
    }
    match key.code {
        KeyCode::Esc => vec![Request::Back],
        KeyCode::Enter => open(state),
        _ if state.input.key(key) => ask(state),
        _ => Vec::new(),
    }
}

/// Searches for the typed text, unless a query is running: then its answer starts the next one.
fn ask(state: &mut SearchState) -> Vec<Request> {
    let query = state.query();
    if state.asked.is_some() || query == state.answered {
        return Vec::new();
    }
    if query.is_empty() {
        state.answered.clear();
        state.hits.clear();
        state.next = None;
        state.status = None;
        return Vec::new();
    }
    vec![search(state, query, None)]
}

fn search(state: &mut SearchState, query: String, cursor: Option<String>) -> Request {
    state.asked = Some(query.clone());
    Request::Search(Effect::Search(SearchState::request(query, cursor)))
}

/// Reads the next page when the last hits are near. A page may have none, and others follow.
fn ask_for_more(state: &mut SearchState) -> Vec<Request> {
    let is_near = state.hits.len() < state.window.first + 2 * list_hits(state);
    let query = state.query();
    if !is_near || state.next.is_none() || state.asked.is_some() || query != state.answered {
        return Vec::new();
    }
    let next = state.next.clone();
    vec![search(state, query, next)]
}

/// Repeats the query while the index is behind, so that newly indexed entries appear; not once further pages are read, which
/// it would take away.
fn ask_again(state: &mut SearchState) -> Vec<Request> {
    let is_behind = state.index.is_some_and(|index| !index.is_complete);
    let query = state.query();
    let has_pages = state.hits.len() > SEARCH_HITS_PAGE;
    if !is_behind
        || has_pages
        || state.asked.is_some()
        || query.is_empty()
        || query != state.answered
    {
        return Vec::new();
    }
    vec![search(state, query, None)]
}

fn answered(
    state: &mut SearchState,
    query: &str,
    is_first: bool,
    found: Result<SearchResponse, String>,
) -> Vec<Request> {
    if state.asked.as_deref() != Some(query) {
        return Vec::new();
    }
    let is_other = state.answered != query;
    state.answered = state.asked.take().unwrap_or_default();
    let is_found = found.is_ok();
    match found {
        Ok(found) => {
            state.status = None;
            state.index = found.index;
            state.next = found.next_cursor;
            if is_first {
                take_first(state, found.hits, is_other);
            } else {
                state.hits.extend(found.hits);
            }
            state.window.keep_in_view(state.hits.len(), list_hits(state));
        }
        // Keep the previous hits: half a filter is not yet a mistake.
        Err(text) => state.status = Some(Status::problem(text)),
    }
    let requests = ask(state);
    if requests.is_empty() && is_found { ask_for_more(state) } else { requests }
}

/// Takes the first page of hits. Those of the same query keep the chosen one.
fn take_first(state: &mut SearchState, hits: Vec<SearchHit>, is_other: bool) {
    let chosen = state.chosen().filter(|_| !is_other).map(key_of);
    let at = chosen.and_then(|chosen| hits.iter().position(|hit| key_of(hit) == chosen));
    state.window.chosen = at.unwrap_or_default();
    state.hits = hits;
}

fn key_of(hit: &SearchHit) -> (SessionId, Option<EntryId>, Option<u64>) {
    (hit.meta.session_id.clone(), hit.entry_id.clone(), hit.revision)
}

fn open(state: &SearchState) -> Vec<Request> {
    let Some(hit) = state.chosen() else { return Vec::new() };
    let session = hit.meta.session_id.clone();
    match (&state.within, hit.entry_id.clone()) {
        (Within::Everything, entry) => vec![Request::Open(Target::Session(session, entry))],
        (Within::Session(_), Some(entry)) => vec![Request::BackTo(entry)],
        (Within::Session(_), None) => vec![Request::Back],
    }
}
