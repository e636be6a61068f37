//! Everything that can wake a screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use bough_session::EntryId;

use super::{picker, search, session, tree};

/// Something happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time is on its way; boxing buys nothing")]
pub(crate) enum Event {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The window has another size.
    Resize(Size),
    /// An effect was carried out.
    Answer(Answer),
    /// The screen above chose an entry.
    GoTo(EntryId),
    /// Time went by.
    Tick { now_ms: i64 },
    /// The terminal is gone.
    Closed,
}

/// An effect was carried out, or failed.
#[derive(Debug)]
pub(crate) enum Answer {
    Picker(picker::Answer),
    Tree(tree::Answer),
    Session(session::Answer),
    Search(search::Answer),
}

/// The window, in columns and rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

/// A key, with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) code: KeyCode,
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
}

impl Key {
    /// A letter that is held together with Ctrl.
    pub(crate) fn is_ctrl(self, letter: char) -> bool {
        self.ctrl && matches!(self.code, KeyCode::Char(c) if c.eq_ignore_ascii_case(&letter))
    }

    /// The character that is typed, if this types one.
    pub(crate) const fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(character) if !self.ctrl && !self.alt => Some(character),
            _ => None,
        }
    }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        Self {
            code: event.code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
        }
    }
}
