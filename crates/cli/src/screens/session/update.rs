use bough_service::api::MessageItem;
use bough_session::EntryId;
use ratatui::crossterm::event::KeyCode;
use serde_json::Value;

use super::super::event::{self, Event, Key};
use super::super::search::Within;
use super::super::stack::{Request, Target};
use super::super::theme::Status;
use super::state::{Answer, Effect, From, Item, SessionState};
use super::view::text_rows;
use crate::backend::{EventPage, PathPage, SessionEvent};
use crate::limits::TRANSCRIPT_ITEMS_MAX;

/// The first requests of the screen. The cursor of the events is requested before anything is read, so that none is
/// missed in between.
pub(crate) fn start(state: &mut SessionState) -> Vec<Request> {
    let session = state.id.clone();
    vec![
        Request::Session(Effect::Summary(session.clone())),
        watch(state),
        Request::Session(Effect::Loops(session)),
    ]
}

/// Reads the transcript again from one of its ends.
fn read_from(state: &mut SessionState, from: From) -> Vec<Request> {
    state.generation += 1;
    state.from = from;
    state.items.clear();
    state.cursor = None;
    state.top = 0;
    state.chosen = 0;
    state.follows = from == From::Tail;
    state.is_loading = true;
    vec![page(state)]
}

fn page(state: &SessionState) -> Request {
    Request::Session(Effect::Page {
        session: state.id.clone(),
        leaf: state.leaf.clone(),
        from: state.from,
        cursor: state.cursor.clone(),
        generation: state.generation,
    })
}

/// Handles an event: changes the state and returns requests.
pub(crate) fn update(state: &mut SessionState, event: Event) -> Vec<Request> {
    let mut requests = match event {
        Event::Key(key) => {
            state.status = None;
            on_key(state, key)
        }
        Event::Resize(size) => {
            state.size = size;
            state.lay_out();
            Vec::new()
        }
        Event::Tick { now_ms } => {
            state.now_ms = now_ms;
            if state.is_cut_off && !state.is_watching { vec![watch(state)] } else { Vec::new() }
        }
        Event::Answer(event::Answer::Session(answer)) => on_answer(state, answer),
        Event::GoTo(entry) => go_to(state, entry),
        Event::Answer(_) | Event::Paste(_) | Event::Closed => Vec::new(),
    };
    if needs_more(state) {
        state.is_loading = true;
        requests.push(page(state));
    }
    requests
}

/// Whether the visible part is near the end of what was read.
fn needs_more(state: &SessionState) -> bool {
    if state.is_loading || state.cursor.is_none() || state.items.len() >= TRANSCRIPT_ITEMS_MAX {
        return false;
    }
    let rows = text_rows(state);
    match state.from {
        From::Tail => state.top < rows,
        From::Head => state.total() < state.top + 2 * rows,
    }
}

fn on_key(state: &mut SessionState, key: Key) -> Vec<Request> {
    let page = text_rows(state).saturating_sub(1).max(1);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') if !key.ctrl => return vec![Request::Back],
        KeyCode::Up | KeyCode::Char('k') => scroll_to(state, state.top.saturating_sub(1)),
        KeyCode::Down | KeyCode::Char('j') => scroll_to(state, state.top + 1),
        KeyCode::PageUp => scroll_to(state, state.top.saturating_sub(page)),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll_to(state, state.top + page),
        KeyCode::Home | KeyCode::Char('g') => return to_start(state),
        KeyCode::End | KeyCode::Char('G') => return to_end(state),
        KeyCode::Char('p') if !key.ctrl => step(state, false),
        KeyCode::Char('n') if !key.ctrl => step(state, true),
        KeyCode::Enter => flip(state),
        KeyCode::Char('t') if key.ctrl => {
            state.unfolded.thinking = !state.unfolded.thinking;
            state.lay_out();
        }
        KeyCode::Char('o') if key.ctrl => {
            state.unfolded.tools = !state.unfolded.tools;
            state.lay_out();
        }
        KeyCode::Char('o') => {
            state.show_outline = !state.show_outline;
            state.lay_out();
        }
        KeyCode::Char('t') => return vec![Request::Open(Target::Tree(state.id.clone()))],
        KeyCode::Char('/') => {
            let within = Within::Session(state.id.clone());
            return vec![Request::Open(Target::Search(within, String::new()))];
        }
        _ => {}
    }
    Vec::new()
}

fn scroll_to(state: &mut SessionState, top: usize) {
    let most = state.total().saturating_sub(text_rows(state));
    state.top = top.min(most);
    state.follows = state.from == From::Tail && most <= top;
    state.chosen = state.item_at(state.top);
    if state.follows {
        state.chosen = state.items.len().saturating_sub(1);
    }
}

fn to_start(state: &mut SessionState) -> Vec<Request> {
    // The loaded messages are enough if they reach back to the first message.
    if state.from == From::Head || state.cursor.is_none() {
        scroll_to(state, 0);
        return Vec::new();
    }
    read_from(state, From::Head)
}

fn to_end(state: &mut SessionState) -> Vec<Request> {
    if state.leaf.take().is_some() {
        return read_from(state, From::Tail);
    }
    if state.from == From::Tail || state.cursor.is_none() {
        state.from = From::Tail;
        state.follows = true;
        state.settle();
        return Vec::new();
    }
    read_from(state, From::Tail)
}

/// Scrolls to an entry: where it is loaded already, or by loading the path to it on its branch.
fn go_to(state: &mut SessionState, entry: EntryId) -> Vec<Request> {
    if let Some(at) = state.place(&entry) {
        scroll_to(state, state.line_of(at));
        state.follows = false;
        state.chosen = at;
        return Vec::new();
    }
    state.leaf = Some(entry);
    read_from(state, From::Tail)
}

/// Goes to the next or the previous message.
fn step(state: &mut SessionState, forward: bool) {
    let last = state.items.len().saturating_sub(1);
    let chosen =
        if forward { (state.chosen + 1).min(last) } else { state.chosen.saturating_sub(1) };
    let line = state.line_of(chosen);
    state.follows = false;
    state.top = line.min(state.total().saturating_sub(text_rows(state)));
    state.chosen = chosen;
}

fn flip(state: &mut SessionState) {
    let Some(item) = state.items.get(state.chosen) else { return };
    let entry = item.item.entry_id.clone();
    if !state.flipped.remove(&entry) {
        state.flipped.insert(entry);
    }
    let chosen = state.chosen;
    state.lay_out();
    state.chosen = chosen;
}

fn on_answer(state: &mut SessionState, answer: Answer) -> Vec<Request> {
    match answer {
        Answer::Summary { session, summary } if session == state.id => {
            match summary {
                Ok(Some(summary)) => state.session = Some(summary),
                Ok(None) => gone(state),
                Err(text) => state.status = Some(Status::problem(text)),
            }
            Vec::new()
        }
        Answer::Page { session, generation, from, page }
            if session == state.id && generation == state.generation =>
        {
            state.is_loading = false;
            match page {
                Ok(page) => take_page(state, from, page),
                Err(text) => state.status = Some(Status::problem(text)),
            }
            Vec::new()
        }
        Answer::Events { session, page } if session == state.id => on_events(state, page),
        Answer::Loops { session, loops } if session == state.id => {
            // Sessions that no recorder made have none; that is not reported.
            if let Ok(loops) = loops {
                state.take_loops(&loops);
                state.lay_out();
            }
            Vec::new()
        }
        Answer::Summary { .. }
        | Answer::Page { .. }
        | Answer::Events { .. }
        | Answer::Loops { .. } => Vec::new(),
    }
}

/// Asks for the events after the last one. A screen that is cut off does not wait for an event, so that it is live again as soon
/// as there is an answer.
fn watch(state: &mut SessionState) -> Request {
    state.is_watching = true;
    let (session, after) = (state.id.clone(), state.after.clone());
    Request::Session(Effect::Watch { session, after, waits: !state.is_cut_off })
}

fn gone(state: &mut SessionState) {
    state.is_gone = true;
    state.status = Some(Status::problem("The session was deleted"));
}

fn take_page(state: &mut SessionState, from: From, page: PathPage) {
    state.cursor = page.next_cursor;
    match from {
        From::Head => {
            let items: Vec<Item> =
                page.messages.into_iter().map(|item| state.laid_out(item)).collect();
            state.items.extend(items);
        }
        From::Tail => {
            // Newest first; entries that an event added meanwhile are there already.
            let older =
                page.messages.into_iter().filter(|item| state.place(&item.entry_id).is_none());
            let older: Vec<MessageItem> = older.collect();
            let older: Vec<Item> =
                older.into_iter().rev().map(|item| state.laid_out(item)).collect();
            let (count, added) =
                (older.len(), older.iter().map(|item| item.lines.len()).sum::<usize>());
            state.items.splice(0..0, older);
            state.top += added;
            state.chosen += count;
        }
    }
    state.settle();
}

fn on_events(state: &mut SessionState, page: Result<EventPage, String>) -> Vec<Request> {
    state.is_watching = false;
    let page = match page {
        Ok(page) => page,
        Err(text) => {
            state.is_cut_off = true;
            state.status = Some(Status::problem(format!("No longer live: {text}")));
            return Vec::new();
        }
    };
    if std::mem::take(&mut state.is_cut_off) {
        state.status = Some(Status::done("Live again"));
    }
    let first = state.after.is_none();
    state.after = Some(page.next);
    let mut requests = vec![watch(state)];
    if first {
        requests.extend(read_from(state, From::Tail));
        return requests;
    }
    if page.gap {
        requests.extend(read_from(state, state.from));
    }
    let mut facts_changed = false;
    for event in page.events {
        facts_changed |= event.kind != "session::message-updated";
        requests.extend(on_event(state, event));
    }
    if facts_changed && !state.is_gone {
        requests.push(Request::Session(Effect::Summary(state.id.clone())));
    }
    requests
}

fn on_event(state: &mut SessionState, event: SessionEvent) -> Vec<Request> {
    match event.kind.as_str() {
        "session::message-added" => added(state, event.payload),
        "session::message-updated" => {
            updated(state, event.payload);
            Vec::new()
        }
        "session::leaf-moved" if state.from == From::Tail && state.leaf.is_none() => {
            read_from(state, From::Tail)
        }
        "session::loop-changed" => vec![Request::Session(Effect::Loops(state.id.clone()))],
        "session::deleted" => {
            gone(state);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn added(state: &mut SessionState, payload: Value) -> Vec<Request> {
    // While the transcript is read from its beginning, new entries at the end are read later.
    let is_elsewhere = state.from == From::Head || state.leaf.is_some();
    if is_elsewhere || state.is_loading && state.items.is_empty() {
        return Vec::new();
    }
    let parent = payload.get("parent_id").and_then(Value::as_str).map(EntryId::from_stored);
    let Ok(item) = serde_json::from_value::<MessageItem>(payload) else {
        return Vec::new();
    };
    if state.place(&item.entry_id).is_some() {
        return Vec::new();
    }
    let last = state.items.last().map(|item| &item.item.entry_id);
    if parent.as_ref() != last {
        // Another branch: load its path.
        return read_from(state, From::Tail);
    }
    let item = state.laid_out(item);
    state.items.push(item);
    state.settle();
    Vec::new()
}

fn updated(state: &mut SessionState, payload: Value) {
    let Ok(item) = serde_json::from_value::<MessageItem>(payload) else { return };
    let Some(at) = state.place(&item.entry_id) else { return };
    let item = state.laid_out(item);
    if let Some(slot) = state.items.get_mut(at) {
        *slot = item;
    }
    state.settle();
}
