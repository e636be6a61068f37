//! The stack of screens: which one is on top, and what moves between them. Pure.

use bough_session::{EntryId, SessionId};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;

use super::event::{Answer, Event, Key, Size};
use super::picker::{self, PickerOptions, PickerState};
use super::search::{self, SearchState, Within};
use super::session::{self, SessionState};
use super::theme::{Keys, Theme, keys_dialog};
use super::tree::{self, TreeState};

/// A request of a screen.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    /// Something on the backend.
    Picker(picker::Effect),
    Tree(tree::Effect),
    Session(session::Effect),
    Search(search::Effect),
    /// Another screen on top.
    Open(Target),
    /// Closes this screen; the one below is visible again.
    Back,
    /// Closes this screen; the one below scrolls to an entry.
    BackTo(EntryId),
    /// Closes this screen after its work is done.
    Done(String),
    /// Closes all screens.
    Quit,
    /// Closes all screens, with a choice.
    Pick(SessionId),
    /// The same with a session file of pi.
    PickFile(String),
}

/// Another screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A session, read up to an entry or to its active leaf.
    Session(SessionId, Option<EntryId>),
    Tree(SessionId),
    /// A search, with a text to begin with.
    Search(Within, String),
}

/// Work for the backend.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Picker(picker::Effect),
    Tree(tree::Effect),
    Session(session::Effect),
    Search(search::Effect),
}

/// The outcome of the screens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The person left.
    Left,
    /// The person left with Ctrl-C, or without having chosen anything.
    Cancelled,
    /// A session was chosen.
    Picked(SessionId),
    /// A session file of pi was chosen.
    PickedFile(String),
    /// Something was done, in words.
    Done(String),
}

#[derive(Debug)]
enum Screen {
    Picker(Box<PickerState>),
    Tree(Box<TreeState>),
    Session(Box<SessionState>),
    Search(Box<SearchState>),
}

/// The open screens, the visible one last.
#[derive(Debug)]
pub(crate) struct ScreenStack {
    size: Size,
    now_ms: i64,
    screens: Vec<Screen>,
    outcome: Option<Outcome>,
    only_pick: bool,
    /// Whether the keys of the screen on top are shown over it.
    shows_keys: bool,
}

impl ScreenStack {
    /// A stack with the picker, and its first requests.
    pub(crate) fn with_picker(options: PickerOptions) -> (Self, Vec<Effect>) {
        let mut stack = Self::empty(options.size, options.now_ms);
        stack.only_pick = options.only_pick;
        let mut state = PickerState::new(options);
        let requests = picker::start(&mut state);
        stack.screens.push(Screen::Picker(Box::new(state)));
        let effects = stack.serve(requests);
        (stack, effects)
    }

    /// A stack with one other screen, and its first requests.
    pub(crate) fn with(target: Target, size: Size, now_ms: i64) -> (Self, Vec<Effect>) {
        let mut stack = Self::empty(size, now_ms);
        let effects = stack.serve(vec![Request::Open(target)]);
        (stack, effects)
    }

    const fn empty(size: Size, now_ms: i64) -> Self {
        let screens = Vec::new();
        Self { size, now_ms, screens, outcome: None, only_pick: false, shows_keys: false }
    }

    /// The outcome, once there is one.
    pub(crate) const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Handles an event: changes the state and returns effects.
    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        let requests = match event {
            Event::Resize(size) => {
                self.size = size;
                self.tell_all(|| Event::Resize(size))
            }
            Event::Tick { now_ms } => {
                self.now_ms = now_ms;
                self.tell_all(|| Event::Tick { now_ms })
            }
            Event::Closed => vec![Request::Quit],
            Event::Answer(answer) => self.tell_asker(answer),
            Event::Key(key) if self.takes_for_keys(key) => Vec::new(),
            Event::Key(_) | Event::Paste(_) | Event::GoTo(_) => match self.screens.last_mut() {
                Some(top) => top.update(event),
                None => Vec::new(),
            },
        };
        self.serve(requests)
    }

    /// Draws the screen on top.
    pub(crate) fn view(&self, frame: &mut Frame, theme: Theme) {
        match self.screens.last() {
            Some(Screen::Picker(state)) => picker::view(state, frame, theme),
            Some(Screen::Tree(state)) => tree::view(state, frame, theme),
            Some(Screen::Session(state)) => session::view(state, frame, theme),
            Some(Screen::Search(state)) => search::view(state, frame, theme),
            None => {}
        }
        if let Some(top) = self.screens.last().filter(|_| self.shows_keys) {
            keys_dialog(frame, theme, top.keys());
        }
    }

    /// Shows or hides the help of keys; returns whether the key was for that.
    fn takes_for_keys(&mut self, key: Key) -> bool {
        let was_shown = self.shows_keys;
        self.shows_keys = !was_shown && key.code == KeyCode::F(1);
        (was_shown && !quits(key)) || self.shows_keys
    }

    fn tell_all(&mut self, event: impl Fn() -> Event) -> Vec<Request> {
        self.screens.iter_mut().flat_map(|screen| screen.update(event())).collect()
    }

    /// Passes an answer to the newest screen of the kind that asked; each screen knows which answers are its own.
    fn tell_asker(&mut self, answer: Answer) -> Vec<Request> {
        let asked = |screen: &&mut Screen| {
            matches!(
                (screen, &answer),
                (Screen::Picker(_), Answer::Picker(_))
                    | (Screen::Tree(_), Answer::Tree(_))
                    | (Screen::Session(_), Answer::Session(_))
                    | (Screen::Search(_), Answer::Search(_))
            )
        };
        match self.screens.iter_mut().rev().find(asked) {
            Some(screen) => screen.update(Event::Answer(answer)),
            None => Vec::new(),
        }
    }

    fn serve(&mut self, requests: Vec<Request>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for request in requests {
            match request {
                Request::Picker(effect) => effects.push(Effect::Picker(effect)),
                Request::Tree(effect) => effects.push(Effect::Tree(effect)),
                Request::Session(effect) => effects.push(Effect::Session(effect)),
                Request::Search(effect) => effects.push(Effect::Search(effect)),
                Request::Open(target) => {
                    let needs = self.open(target);
                    effects.extend(self.serve(needs));
                }
                Request::Back => effects.extend(self.close(Outcome::Left)),
                Request::BackTo(entry) => {
                    effects.extend(self.close(Outcome::Left));
                    let needs = self.screens.last_mut().map(|top| top.update(Event::GoTo(entry)));
                    effects.extend(self.serve(needs.unwrap_or_default()));
                }
                Request::Done(text) => effects.extend(self.close(Outcome::Done(text))),
                Request::Quit => self.outcome = Some(Outcome::Cancelled),
                Request::Pick(session) => self.outcome = Some(Outcome::Picked(session)),
                Request::PickFile(file) => self.outcome = Some(Outcome::PickedFile(file)),
            }
        }
        effects
    }

    fn open(&mut self, target: Target) -> Vec<Request> {
        match target {
            Target::Session(id, leaf) => {
                let mut state = SessionState::new(id, self.size, self.now_ms);
                state.leaf = leaf;
                let requests = session::start(&mut state);
                self.screens.push(Screen::Session(Box::new(state)));
                requests
            }
            Target::Search(within, text) => {
                let mut state = SearchState::new(within, &text, self.size, self.now_ms);
                let requests = search::start(&mut state);
                self.screens.push(Screen::Search(Box::new(state)));
                requests
            }
            Target::Tree(id) => {
                let mut state = TreeState::new(id, self.size, self.now_ms);
                let requests = tree::start(&mut state);
                self.screens.push(Screen::Tree(Box::new(state)));
                requests
            }
        }
    }

    /// Closes the screen on top. A picker below it is refreshed: sessions may have been made meanwhile.
    fn close(&mut self, outcome: Outcome) -> Vec<Effect> {
        self.screens.pop();
        let requests = match self.screens.last_mut() {
            Some(Screen::Picker(state)) => picker::refresh(state),
            Some(_) => Vec::new(),
            None => {
                let cancelled = outcome == Outcome::Left && self.only_pick;
                self.outcome = Some(if cancelled { Outcome::Cancelled } else { outcome });
                Vec::new()
            }
        };
        self.serve(requests)
    }
}

impl Screen {
    const fn keys(&self) -> &'static Keys {
        match self {
            Self::Picker(_) => picker::KEYS,
            Self::Tree(_) => tree::KEYS,
            Self::Session(_) => session::KEYS,
            Self::Search(_) => search::KEYS,
        }
    }

    fn update(&mut self, event: Event) -> Vec<Request> {
        if let Event::Key(key) = &event
            && quits(*key)
        {
            return vec![Request::Quit];
        }
        match self {
            Self::Picker(state) => picker::update(state, event),
            Self::Tree(state) => tree::update(state, event),
            Self::Session(state) => session::update(state, event),
            Self::Search(state) => search::update(state, event),
        }
    }
}

/// Ctrl-C leaves from anywhere.
fn quits(key: Key) -> bool {
    key.is_ctrl('c')
}

#[cfg(test)]
mod tests {
    use super::super::picker::Scope;
    use super::super::testing::{SMALL, TINY, check_snapshot, draw, key, summary};
    use super::*;
    use crate::backend::ListPage;

    fn picker(size: Size) -> ScreenStack {
        let (now_ms, project) = (0, None);
        let options = PickerOptions { size, now_ms, project, scope: Scope::All, only_pick: false };
        ScreenStack::with_picker(options).0
    }

    fn shown(stack: &ScreenStack, size: Size) -> String {
        draw(size, |frame, theme| stack.view(frame, theme))
    }

    #[test]
    fn f1_shows_all_keys_and_any_key_puts_them_away() {
        let mut stack = picker(SMALL);
        let before = shown(&stack, SMALL);
        stack.update(Event::Key(key("F1")));
        check_snapshot("keys_80x24", &shown(&stack, SMALL));
        stack.update(Event::Key(key("x")));
        assert_eq!(shown(&stack, SMALL), before, "the key that closes is not typed");
        assert!(stack.outcome().is_none());
        stack.update(Event::Key(key("F1")));
        stack.update(Event::Key(key("Ctrl+c")));
        assert_eq!(stack.outcome(), Some(&Outcome::Cancelled), "leaving works from anywhere");
    }

    #[test]
    fn keys_in_a_tiny_window_break_nothing() {
        for size in TINY {
            let mut stack = picker(size);
            stack.update(Event::Key(key("F1")));
            shown(&stack, size);
        }
    }

    #[test]
    fn a_picker_that_is_seen_again_reads_its_newest_sessions() {
        let mut stack = picker(SMALL);
        let page = ListPage { sessions: vec![summary("s_1", "One", 1)], next_cursor: None };
        let loaded = picker::Answer::Loaded { generation: 1, page: Ok(page) };
        stack.update(Event::Answer(Answer::Picker(loaded)));
        stack.update(Event::Key(key("Enter")));
        let effects = stack.update(Event::Key(key("Esc")));
        let [Effect::Picker(picker::Effect::Refresh { .. })] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert!(stack.outcome().is_none());
    }
}
