use bough_session::SessionId;
use ratatui::crossterm::event::KeyCode;

use super::super::event::{Event, Key};
use super::super::input::Input;
use super::super::search::Within;
use super::super::stack::{Request, Target};
use super::super::theme::Status;
use super::state::{Answer, Effect, Mode, PickerState, Preview, Scope, Sort};
use super::view::list_rows;

/// The first requests of the picker: the first page, and the files beside it.
pub(crate) fn start(state: &mut PickerState) -> Vec<Request> {
    state.generation += 1;
    state.is_loading = true;
    state.is_refreshing = false;
    let generation = state.generation;
    vec![load(state), Request::Picker(Effect::FindFiles { generation })]
}

/// Reads the newest sessions again: the list is visible again, or time went by.
pub(crate) fn refresh(state: &mut PickerState) -> Vec<Request> {
    if state.is_loading || state.is_refreshing {
        return Vec::new();
    }
    state.is_refreshing = true;
    let (ask, generation) = (state.ask_newest(), state.generation);
    vec![Request::Picker(Effect::Refresh { ask, generation })]
}

/// Handles an event: changes the state and returns requests.
pub(crate) fn update(state: &mut PickerState, event: Event) -> Vec<Request> {
    let requests = match event {
        Event::Key(key) => {
            state.status = None;
            on_key(state, key)
        }
        Event::Paste(text) => on_paste(state, &text),
        Event::Resize(size) => {
            state.size = size;
            state.window.keep_in_view(state.rows.len(), list_rows(state));
            Vec::new()
        }
        Event::Answer(super::super::event::Answer::Picker(answer)) => on_answer(state, answer),
        Event::Tick { now_ms } => {
            state.now_ms = now_ms;
            refresh(state)
        }
        Event::Answer(_) | Event::GoTo(_) | Event::Closed => Vec::new(),
    };
    with_needs(state, requests)
}

/// Adds the requests that the state needs: the next page near the end of the list, the preview of the selection.
fn with_needs(state: &mut PickerState, mut requests: Vec<Request>) -> Vec<Request> {
    if needs_more(state) {
        state.is_loading = true;
        requests.push(load(state));
    }
    let wanted = state.chosen().map(|summary| (summary.id().clone(), summary.file.clone()));
    if let Some((session, file)) = wanted.filter(|_| state.show_preview)
        && !state.previews.contains_key(&session)
    {
        state.keep_preview(session.clone(), Preview::Loading);
        requests.push(Request::Picker(match file {
            Some(file) => Effect::PreviewFile { session, file },
            None => Effect::Preview(session),
        }));
    }
    requests
}

/// Whether the next page is needed. A filter reads everything; a list only as far as it is visible.
fn needs_more(state: &PickerState) -> bool {
    if state.is_loading || state.is_complete {
        return false;
    }
    let searching = !state.search.is_empty() || state.named_only || state.sort == Sort::Threaded;
    searching || state.rows.len() < state.window.first + 2 * list_rows(state)
}

fn load(state: &PickerState) -> Request {
    Request::Picker(Effect::Load { ask: state.ask(), generation: state.generation })
}

fn reload(state: &mut PickerState) -> Vec<Request> {
    state.forget();
    start(state)
}

fn on_key(state: &mut PickerState, key: Key) -> Vec<Request> {
    match std::mem::take(&mut state.mode) {
        Mode::Browse => on_browse_key(state, key),
        Mode::Rename(session, input) => on_rename_key(state, session, input, key),
        Mode::ConfirmDelete(session) => on_confirm_key(state, &session, key),
    }
}

fn on_browse_key(state: &mut PickerState, key: Key) -> Vec<Request> {
    let seen = list_rows(state);
    let moves = !matches!(key.code, KeyCode::Home | KeyCode::End) || state.search.is_empty();
    if moves && state.window.key(key, state.rows.len(), seen) {
        return Vec::new();
    }
    match key.code {
        KeyCode::Esc if !state.search.is_empty() => search(state, Input::clear),
        KeyCode::Esc => vec![Request::Back],
        // A word that is in no title may be in a message.
        KeyCode::Enter if state.rows.is_empty() && !state.search.is_empty() => {
            vec![search_messages(state)]
        }
        KeyCode::Enter => open(state),
        KeyCode::Tab | KeyCode::BackTab => switch_scope(state),
        KeyCode::Backspace if key.ctrl && state.search.is_empty() => ask_to_delete(state),
        _ if key.ctrl && !key.is_ctrl('u') && !key.is_ctrl('w') => on_ctrl_key(state, key),
        _ => {
            let mut taken = false;
            let requests = search(state, |input| taken = input.key(key));
            if taken { requests } else { Vec::new() }
        }
    }
}

fn search_messages(state: &PickerState) -> Request {
    Request::Open(Target::Search(Within::Everything, state.search.text().to_owned()))
}

fn on_ctrl_key(state: &mut PickerState, key: Key) -> Vec<Request> {
    let KeyCode::Char(letter) = key.code else {
        return Vec::new();
    };
    match letter.to_ascii_lowercase() {
        'c' => vec![Request::Quit],
        'd' => ask_to_delete(state),
        'f' => vec![search_messages(state)],
        's' => {
            state.sort = match state.sort {
                Sort::Recent => Sort::Threaded,
                Sort::Threaded => Sort::Best,
                Sort::Best => Sort::Recent,
            };
            relaid(state)
        }
        'n' => {
            state.named_only = !state.named_only;
            relaid(state)
        }
        'p' => {
            state.show_path = !state.show_path;
            Vec::new()
        }
        'v' => {
            state.show_preview = !state.show_preview;
            relaid(state)
        }
        'r' => {
            if is_changeable(state)
                && let Some(chosen) = state.chosen()
            {
                state.mode = Mode::Rename(chosen.id().clone(), Input::of(&chosen.meta.title));
            }
            Vec::new()
        }
        'a' => archive(state),
        't' => {
            state.show_archived = !state.show_archived;
            reload(state)
        }
        'z' => bring_back(state),
        _ => Vec::new(),
    }
}

fn relaid(state: &mut PickerState) -> Vec<Request> {
    state.lay_out();
    Vec::new()
}

fn search(state: &mut PickerState, change: impl FnOnce(&mut Input)) -> Vec<Request> {
    let before = state.search.text().to_owned();
    change(&mut state.search);
    if before != state.search.text() {
        // The selection among other rows does not apply any more.
        state.window.chosen = 0;
        state.rows.clear();
        state.lay_out();
    }
    Vec::new()
}

fn on_paste(state: &mut PickerState, text: &str) -> Vec<Request> {
    match &mut state.mode {
        Mode::Rename(_, input) => {
            input.insert(text);
            Vec::new()
        }
        Mode::Browse => search(state, |input| input.insert(text)),
        Mode::ConfirmDelete(_) => Vec::new(),
    }
}

fn open(state: &PickerState) -> Vec<Request> {
    let Some(chosen) = state.chosen() else {
        return Vec::new();
    };
    let session = chosen.id().clone();
    match (&chosen.file, state.only_pick) {
        (Some(file), true) => vec![Request::PickFile(file.clone())],
        (Some(file), false) => vec![Request::Picker(Effect::OpenFile { file: file.clone() })],
        (None, true) => vec![Request::Pick(session)],
        (None, false) => vec![Request::Open(Target::Session(session, None))],
    }
}

fn switch_scope(state: &mut PickerState) -> Vec<Request> {
    if state.project.is_none() {
        state.status = Some(Status::problem("There is no current folder to look in"));
        return Vec::new();
    }
    state.scope = match state.scope {
        Scope::Project => Scope::All,
        Scope::All => Scope::Project,
    };
    reload(state)
}

fn ask_to_delete(state: &mut PickerState) -> Vec<Request> {
    if is_changeable(state)
        && let Some(chosen) = state.chosen()
    {
        state.mode = Mode::ConfirmDelete(chosen.id().clone());
    }
    Vec::new()
}

/// Whether the selected session can be changed here. A file of pi cannot: the status line says so.
fn is_changeable(state: &mut PickerState) -> bool {
    let is_file = state.chosen().map(|chosen| chosen.file.is_some());
    if is_file == Some(true) {
        let text = "This is a session file of pi; `bough migrate` brings it in";
        state.status = Some(Status::problem(text));
    }
    is_file == Some(false)
}

/// Deletes what the question names, whatever is chosen by now: others change the list too.
fn on_confirm_key(state: &PickerState, session: &SessionId, key: Key) -> Vec<Request> {
    let yes = matches!(key.code, KeyCode::Enter | KeyCode::Char('y' | 'Y')) && !key.ctrl;
    match state.summary(session).filter(|_| yes) {
        Some(summary) => vec![Request::Picker(Effect::Delete(summary.id().clone()))],
        None => Vec::new(),
    }
}

fn on_rename_key(
    state: &mut PickerState,
    session: SessionId,
    mut input: Input,
    key: Key,
) -> Vec<Request> {
    match key.code {
        KeyCode::Esc => return Vec::new(),
        KeyCode::Char('c') if key.ctrl => return Vec::new(),
        KeyCode::Enter => {
            let title = input.text().trim().to_owned();
            return vec![Request::Picker(Effect::Rename { session, title })];
        }
        _ => {
            input.key(key);
        }
    }
    state.mode = Mode::Rename(session, input);
    Vec::new()
}

fn archive(state: &mut PickerState) -> Vec<Request> {
    if !is_changeable(state) {
        return Vec::new();
    }
    let Some(chosen) = state.chosen() else {
        return Vec::new();
    };
    let archived = !chosen.details.archived;
    vec![Request::Picker(Effect::SetArchived { session: chosen.id().clone(), archived })]
}

fn bring_back(state: &mut PickerState) -> Vec<Request> {
    match state.deleted.take() {
        Some(session) => vec![Request::Picker(Effect::Undelete(session))],
        None => {
            state.status = Some(Status::problem("Nothing to restore"));
            Vec::new()
        }
    }
}

fn on_answer(state: &mut PickerState, answer: Answer) -> Vec<Request> {
    match answer {
        Answer::Loaded { generation, .. } if generation != state.generation => Vec::new(),
        Answer::Loaded { page, .. } => {
            state.is_loading = false;
            match page {
                Ok(page) => state.take(page),
                Err(text) => {
                    state.is_complete = true;
                    state.status = Some(Status::problem(text));
                }
            }
            relaid(state)
        }
        Answer::Refreshed { generation, page } => {
            state.is_refreshing = false;
            // A failure is retried soon; the list stays as it is.
            if let (true, Ok(page)) = (generation == state.generation, page) {
                state.take_newest(page);
            }
            Vec::new()
        }
        Answer::FoundFiles { generation, files } => {
            if let (true, Ok(files)) = (generation == state.generation, files) {
                state.take_files(files);
            }
            relaid(state)
        }
        Answer::OpenedFile { session } => {
            after(state, session, |_, session| vec![Request::Open(Target::Session(session, None))])
        }
        Answer::Previewed { session, items } => {
            let preview = items.map_or_else(Preview::Failed, Preview::Shown);
            state.keep_preview(session, preview);
            Vec::new()
        }
        Answer::Renamed { session, title } => {
            after(state, title, |state, title| renamed(state, &session, title))
        }
        Answer::Archived { session, archived, done } => {
            after(state, done, |state, ()| put_away(state, &session, archived))
        }
        Answer::Deleted { session, done } => after(state, done, |state, ()| {
            state.remove(&session);
            state.deleted = Some(session);
            state.status = Some(Status::done("Deleted; Ctrl+Z restores it"));
            Vec::new()
        }),
        Answer::Undeleted { done } => after(state, done, |state, ()| {
            let requests = reload(state);
            state.status = Some(Status::done("Restored"));
            requests
        }),
    }
}

/// Continues after a success, or shows why it failed.
fn after<T>(
    state: &mut PickerState,
    done: Result<T, String>,
    then: impl FnOnce(&mut PickerState, T) -> Vec<Request>,
) -> Vec<Request> {
    match done {
        Ok(value) => then(state, value),
        Err(text) => {
            state.status = Some(Status::problem(text));
            Vec::new()
        }
    }
}

fn renamed(state: &mut PickerState, session: &SessionId, title: String) -> Vec<Request> {
    state.status = Some(Status::done(format!("Renamed to {title:?}")));
    if let Some(known) = state.summary_mut(session) {
        known.summary.meta.title = title;
    }
    relaid(state)
}

fn put_away(state: &mut PickerState, session: &SessionId, archived: bool) -> Vec<Request> {
    let word =
        if archived { "Archived; Ctrl+T shows archived sessions" } else { "No longer archived" };
    state.status = Some(Status::done(word));
    if let Some(known) = state.summary_mut(session) {
        known.summary.details.archived = archived;
    }
    if archived && !state.show_archived {
        state.remove(session);
    }
    relaid(state)
}
