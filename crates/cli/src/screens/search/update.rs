use bough_service::api::SearchResponse;
use ratatui::crossterm::event::KeyCode;

use super::super::event::{self, Event, Key};
use super::super::list::Window;
use super::super::stack::{Request, Target};
use super::super::theme::Status;
use super::state::{Answer, Effect, SearchState, Within};
use super::view::list_hits;

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
        Event::Answer(event::Answer::Search(Answer::Found { query, found })) => {
            answered(state, &query, found)
        }
        Event::Answer(_) | Event::GoTo(_) | Event::Closed => Vec::new(),
    }
}

fn on_key(state: &mut SearchState, key: Key) -> Vec<Request> {
    let is_of_the_line = matches!(key.code, KeyCode::Home | KeyCode::End);
    if !is_of_the_line && state.window.key(key, state.hits.len(), list_hits(state)) {
        return Vec::new();
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
        state.status = None;
        return Vec::new();
    }
    state.asked = Some(query.clone());
    vec![Request::Search(Effect::Search(SearchState::request(query)))]
}

/// Repeats the query while the index is behind, so that newly indexed entries appear.
fn ask_again(state: &mut SearchState) -> Vec<Request> {
    let is_behind = state.index.is_some_and(|index| !index.is_complete);
    let query = state.query();
    if !is_behind || state.asked.is_some() || query.is_empty() || query != state.answered {
        return Vec::new();
    }
    state.asked = Some(query.clone());
    vec![Request::Search(Effect::Search(SearchState::request(query)))]
}

fn answered(
    state: &mut SearchState,
    query: &str,
    found: Result<SearchResponse, String>,
) -> Vec<Request> {
    if state.asked.as_deref() != Some(query) {
        return Vec::new();
    }
    let is_other = state.answered != query;
    state.answered = state.asked.take().unwrap_or_default();
    match found {
        Ok(found) => {
            state.status = None;
            state.hits = found.hits;
            state.has_more = found.next_cursor.is_some();
            state.index = found.index;
            if is_other {
                state.window = Window::default();
            }
            state.window.keep_in_view(state.hits.len(), list_hits(state));
        }
        // Keep the previous hits: half a filter is not yet a mistake.
        Err(text) => state.status = Some(Status::problem(text)),
    }
    ask(state)
}

fn open(state: &SearchState) -> Vec<Request> {
    let Some(hit) = state.chosen() else { return Vec::new() };
    let session = hit.meta.session_id.clone();
    match (&state.within, hit.entry_id.clone()) {
        (Within::Everything, Some(entry)) => vec![Request::Open(Target::Entry(session, entry))],
        (Within::Everything, None) => vec![Request::Open(Target::Session(session))],
        (Within::Session(_), Some(entry)) => vec![Request::BackTo(entry)],
        (Within::Session(_), None) => vec![Request::Back],
    }
}
