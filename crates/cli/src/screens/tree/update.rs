use ratatui::crossterm::event::KeyCode;

use super::super::event::{self, Event, Key};
use super::super::input::Input;
use super::super::search::Within;
use super::super::stack::{Request, Target};
use super::super::theme::Status;
use super::layout::{Filter, Label};
use super::state::{
    Answer, Choice, Effect, Mode, SUMMARY_OPTIONS, SummaryWish, Switch, Switched, TreeState,
};
use super::view::list_rows;
use crate::backend::EntriesPage;
use bough_session::EntryId;

/// The first requests of the navigator.
pub(crate) fn start(state: &mut TreeState) -> Vec<Request> {
    let session = state.id.clone();
    let mut requests = reload(state);
    requests.push(Request::Tree(Effect::Summary { session }));
    requests
}

fn reload(state: &mut TreeState) -> Vec<Request> {
    state.generation += 1;
    state.is_loading = true;
    state.forest = super::layout::Forest::default();
    state.folded.clear();
    state.drawn_at = 0;
    state.has_moved = false;
    vec![load(state, None)]
}

fn load(state: &TreeState, cursor: Option<String>) -> Request {
    let (session, generation) = (state.id.clone(), state.generation);
    Request::Tree(Effect::Load { session, cursor, generation })
}

/// Handles an event: changes the state and returns requests.
pub(crate) fn update(state: &mut TreeState, event: Event) -> Vec<Request> {
    match event {
        Event::Key(key) => {
            state.status = None;
            on_key(state, key)
        }
        Event::Paste(text) => {
            on_paste(state, &text);
            Vec::new()
        }
        Event::Resize(size) => {
            state.size = size;
            state.window.keep_in_view(state.drawing.rows.len(), list_rows(state));
            Vec::new()
        }
        Event::Tick { now_ms } => {
            state.now_ms = now_ms;
            Vec::new()
        }
        Event::Answer(event::Answer::Tree(answer)) => on_answer(state, answer),
        Event::GoTo(entry) => go_to(state, entry),
        Event::Answer(_) | Event::Closed => Vec::new(),
    }
}

/// Goes to an entry, as soon as it is read: the search knows what was written since the tree was read.
fn go_to(state: &mut TreeState, entry: EntryId) -> Vec<Request> {
    if state.go_to(&entry) {
        return Vec::new();
    }
    state.going_to = Some(entry);
    if state.is_loading { Vec::new() } else { reload(state) }
}

fn on_key(state: &mut TreeState, key: Key) -> Vec<Request> {
    match std::mem::take(&mut state.mode) {
        Mode::Browse => on_browse_key(state, key),
        Mode::Label(input) => on_label_key(state, input, key),
        Mode::ConfirmSwitch(choice) => on_confirm_key(state, choice, key),
        Mode::Summary { choice, option } => on_summary_key(state, choice, option, key),
        Mode::Focus { choice, input } => on_focus_key(state, choice, input, key),
    }
}

fn on_browse_key(state: &mut TreeState, key: Key) -> Vec<Request> {
    let (rows, seen) = (state.drawing.rows.len(), list_rows(state));
    if moves(state, key, rows, seen) {
        state.has_moved = true;
        return Vec::new();
    }
    match key.code {
        KeyCode::Esc => vec![Request::Back],
        KeyCode::Enter => choose(state),
        KeyCode::Char(letter) if key.ctrl => {
            on_ctrl_key(state, letter);
            Vec::new()
        }
        KeyCode::Char(letter) => on_letter(state, letter),
        _ => Vec::new(),
    }
}

/// Moves about: by row, by page, by branch.
fn moves(state: &mut TreeState, key: Key, rows: usize, seen: usize) -> bool {
    let jumps = key.ctrl || key.alt;
    let plain = |code| Key { code, ctrl: false, alt: false };
    match key.code {
        KeyCode::Left if jumps => fold_or_jump_up(state),
        KeyCode::Right if jumps => unfold_or_jump_down(state),
        KeyCode::Left => return state.window.key(plain(KeyCode::PageUp), rows, seen),
        KeyCode::Right => return state.window.key(plain(KeyCode::PageDown), rows, seen),
        KeyCode::Char('k') if !jumps => return state.window.key(plain(KeyCode::Up), rows, seen),
        KeyCode::Char('j') if !jumps => return state.window.key(plain(KeyCode::Down), rows, seen),
        KeyCode::Char('g') if !jumps => return state.window.key(plain(KeyCode::Home), rows, seen),
        KeyCode::Char('G') if !jumps => return state.window.key(plain(KeyCode::End), rows, seen),
        _ => return state.window.key(key, rows, seen),
    }
    true
}

fn on_letter(state: &mut TreeState, letter: char) -> Vec<Request> {
    match letter {
        'q' => return vec![Request::Back],
        '/' => {
            let within = Within::Session(state.id.clone());
            return vec![Request::Open(Target::Search(within, String::new()))];
        }
        'f' => return fork(state),
        'l' | 'L' => ask_for_label(state),
        'T' => state.show_label_times = !state.show_label_times,
        'h' | '-' => fold_or_jump_up(state),
        '+' | '=' => unfold_or_jump_down(state),
        _ => {}
    }
    Vec::new()
}

fn on_ctrl_key(state: &mut TreeState, letter: char) {
    let filter = match letter.to_ascii_lowercase() {
        'd' => Filter::Default,
        't' => Filter::NoTools,
        'u' => Filter::User,
        'l' => Filter::Labelled,
        'a' => Filter::All,
        // Shift distinguishes the two, if the terminal reports it.
        'o' if letter.is_uppercase() => state.filter.previous(),
        'o' => state.filter.next(),
        _ => return,
    };
    // The same key again returns to the usual view.
    let again = filter == state.filter && filter != Filter::Default;
    state.filter = if again { Filter::Default } else { filter };
    state.has_moved = true;
    state.lay_out();
}

fn on_paste(state: &mut TreeState, text: &str) {
    match &mut state.mode {
        Mode::Label(input) | Mode::Focus { input, .. } => input.insert(text),
        Mode::Browse | Mode::ConfirmSwitch(_) | Mode::Summary { .. } => {}
    }
}

fn fold_or_jump_up(state: &mut TreeState) {
    let Some(row) = state.chosen() else { return };
    if row.can_fold && !row.is_folded {
        state.folded.insert(row.node);
        state.has_moved = true;
        state.lay_out();
        return;
    }
    let rows = &state.drawing.rows;
    let above = forest_branch_above(state, row.node);
    let at = above.and_then(|node| state.drawing.exact_row_of(node)).unwrap_or(0);
    state.window.chosen = at;
    state.window.keep_in_view(rows.len(), list_rows(state));
}

/// The nearest entry above that begins a branch or ends in several.
fn forest_branch_above(state: &TreeState, node: usize) -> Option<usize> {
    let is_fork = |at: &usize| {
        let row = state.drawing.exact_row_of(*at).and_then(|row| state.drawing.rows.get(row));
        row.is_some_and(|row| row.can_fold || row.begins)
    };
    state.forest.upwards(Some(node)).skip(1).find(is_fork)
}

fn unfold_or_jump_down(state: &mut TreeState) {
    let Some(row) = state.chosen() else { return };
    if row.is_folded {
        state.folded.remove(&row.node);
        state.has_moved = true;
        state.lay_out();
        return;
    }
    let rows = &state.drawing.rows;
    let below = rows.iter().enumerate().skip(state.window.chosen + 1);
    let next = below.filter(|(_, row)| row.begins || row.can_fold).map(|(at, _)| at).next();
    state.window.chosen = next.unwrap_or(rows.len().saturating_sub(1));
    state.window.keep_in_view(rows.len(), list_rows(state));
}

fn choose(state: &mut TreeState) -> Vec<Request> {
    let Some(choice) = state.chosen().and_then(|row| state.choice(row)) else {
        return Vec::new();
    };
    if choice.to == state.active_leaf && choice.edit.is_none() {
        return vec![Request::Back];
    }
    if state.is_working() {
        state.mode = Mode::ConfirmSwitch(choice);
        return Vec::new();
    }
    go_on(state, choice)
}

/// Asks about the branch that is left, or switches at once if nothing is left.
fn go_on(state: &mut TreeState, choice: Choice) -> Vec<Request> {
    if choice.left_behind > 0 {
        state.mode = Mode::Summary { choice, option: 0 };
        return Vec::new();
    }
    vec![switch(state, choice, SummaryWish::None)]
}

fn switch(state: &mut TreeState, choice: Choice, summary: SummaryWish) -> Request {
    state.status = Some(Status::done("Switching…"));
    Request::Tree(Effect::Switch(Switch {
        session: state.id.clone(),
        from: state.active_leaf.clone(),
        to: choice.to,
        edit: choice.edit,
        summary,
    }))
}

fn on_confirm_key(state: &mut TreeState, choice: Choice, key: Key) -> Vec<Request> {
    match key.code {
        KeyCode::Char('y' | 'Y') if !key.ctrl => go_on(state, choice),
        _ => Vec::new(),
    }
}

fn on_summary_key(state: &mut TreeState, choice: Choice, option: usize, key: Key) -> Vec<Request> {
    let last = SUMMARY_OPTIONS.len() - 1;
    let option = match key.code {
        KeyCode::Up | KeyCode::Char('k') => option.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab => (option + 1).min(last),
        KeyCode::Esc | KeyCode::Char('q') => return Vec::new(),
        KeyCode::Enter => {
            return match option {
                0 => vec![switch(state, choice, SummaryWish::None)],
                1 => vec![switch(state, choice, SummaryWish::Usual)],
                _ => {
                    state.mode = Mode::Focus { choice, input: Input::default() };
                    Vec::new()
                }
            };
        }
        _ => option,
    };
    state.mode = Mode::Summary { choice, option };
    Vec::new()
}

fn on_focus_key(state: &mut TreeState, choice: Choice, mut input: Input, key: Key) -> Vec<Request> {
    match key.code {
        KeyCode::Esc => state.mode = Mode::Summary { choice, option: 0 },
        KeyCode::Enter => {
            let focus = input.text().trim().to_owned();
            let wish =
                if focus.is_empty() { SummaryWish::Usual } else { SummaryWish::Focused(focus) };
            return vec![switch(state, choice, wish)];
        }
        _ => {
            input.key(key);
            state.mode = Mode::Focus { choice, input };
        }
    }
    Vec::new()
}

/// Forks at the selected entry; if it is the person's message, before it, with its text to be
/// edited.
fn fork(state: &mut TreeState) -> Vec<Request> {
    let Some(row) = state.chosen() else { return Vec::new() };
    let (Some(choice), Some(node)) = (state.choice(row), state.forest.node(row.node)) else {
        return Vec::new();
    };
    let session = state.id.clone();
    let (entry, edit) = match (choice.to, choice.edit) {
        (Some(parent), Some(edit)) => (parent, Some(edit)),
        // Nothing comes before the first message; it is copied as it is.
        _ => (node.entry.id.clone(), None),
    };
    state.status = Some(Status::done("Forking…"));
    vec![Request::Tree(Effect::Fork { session, entry, edit })]
}

fn ask_for_label(state: &mut TreeState) {
    if let Some(row) = state.chosen() {
        let label = state.forest.label(row.node).map(|label| label.text.clone());
        state.mode = Mode::Label(Input::of(&label.unwrap_or_default()));
    }
}

fn on_label_key(state: &mut TreeState, mut input: Input, key: Key) -> Vec<Request> {
    match key.code {
        KeyCode::Esc => Vec::new(),
        KeyCode::Enter => {
            let Some(node) = state.chosen().and_then(|row| state.forest.node(row.node)) else {
                return Vec::new();
            };
            let label = Some(input.text().trim().to_owned()).filter(|text| !text.is_empty());
            let (session, entry) = (state.id.clone(), node.entry.id.clone());
            vec![Request::Tree(Effect::Label { session, entry, label })]
        }
        _ => {
            input.key(key);
            state.mode = Mode::Label(input);
            Vec::new()
        }
    }
}

fn on_answer(state: &mut TreeState, answer: Answer) -> Vec<Request> {
    match answer {
        Answer::Loaded { generation, page } if generation == state.generation => {
            loaded(state, page)
        }
        Answer::Summary { session, summary } if session == state.id => {
            match summary {
                Ok(summary) => state.session = Some(summary),
                Err(text) => state.status = Some(Status::problem(text)),
            }
            Vec::new()
        }
        Answer::Switched { session, done } if session == state.id => switched(state, done),
        Answer::Forked { session, fork } if session == state.id => {
            state.status = Some(match fork {
                Ok(fork) => Status::done(format!("Forked as {fork}")),
                Err(text) => Status::problem(text),
            });
            Vec::new()
        }
        Answer::Labelled { session, entry, label } if session == state.id => {
            match label {
                Ok(label) => {
                    let at_ms = state.now_ms;
                    state.forest.move_label(entry, label.map(|text| Label { text, at_ms }));
                    state.lay_out();
                }
                Err(text) => state.status = Some(Status::problem(text)),
            }
            Vec::new()
        }
        Answer::Loaded { .. }
        | Answer::Summary { .. }
        | Answer::Switched { .. }
        | Answer::Forked { .. }
        | Answer::Labelled { .. } => Vec::new(),
    }
}

fn loaded(state: &mut TreeState, page: Result<EntriesPage, String>) -> Vec<Request> {
    let page = match page {
        Ok(page) => page,
        Err(text) => {
            state.is_loading = false;
            state.status = Some(Status::problem(text));
            return Vec::new();
        }
    };
    // Pages in between do not say.
    if page.active_leaf.is_some() || page.next_cursor.is_none() {
        state.active_leaf = page.active_leaf;
    }
    state.forest.add(page.entries);
    let next = page.next_cursor;
    state.is_loading = next.is_some();
    if next.is_none() || state.forest.nodes.len() >= 2 * state.drawn_at {
        state.lay_out();
    }
    if let Some(entry) = state.going_to.take()
        && !state.go_to(&entry)
    {
        match next {
            Some(_) => state.going_to = Some(entry),
            None => state.status = Some(Status::problem("That entry is not in the tree")),
        }
    }
    next.map(|cursor| load(state, Some(cursor))).into_iter().collect()
}

fn switched(state: &mut TreeState, done: Result<Switched, String>) -> Vec<Request> {
    match done {
        Ok(switched) => {
            let place = switched.leaf.as_ref().map_or("the beginning", AsRef::as_ref);
            let how = if switched.appended { "with a new message" } else { "" };
            vec![Request::Done(
                format!("the session goes on from {place} {how}").trim_end().to_owned(),
            )]
        }
        Err(text) => {
            state.status = Some(Status::problem(text));
            Vec::new()
        }
    }
}
