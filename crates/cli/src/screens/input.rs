use ratatui::crossterm::event::KeyCode;
use unicode_segmentation::UnicodeSegmentation;

use super::event::Key;
use crate::text::{clean_line, width};

/// One line that a person types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
    /// Where the next character goes, in bytes; always between two characters.
    at: usize,
}

impl Input {
    /// A line with a text in it, to be changed.
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How far from its beginning the cursor is, in columns.
    pub(crate) fn cursor_columns(&self) -> usize {
        width(self.text.get(..self.at).unwrap_or_default())
    }

    /// Handles a key; returns whether it was for the line.
    pub(crate) fn key(&mut self, key: Key) -> bool {
        if let Some(character) = key.typed() {
            self.insert(character.encode_utf8(&mut [0; 4]));
            return true;
        }
        match key.code {
            KeyCode::Backspace if !key.ctrl => self.remove_before(),
            KeyCode::Delete => self.remove_after(),
            KeyCode::Left if !key.ctrl && !key.alt => self.at = self.before(),
            KeyCode::Right if !key.ctrl && !key.alt => self.at = self.after(),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            KeyCode::Char('u') if key.ctrl => self.remove_to_start(),
            KeyCode::Char('w') if key.ctrl => self.remove_word(),
            _ => return false,
        }
        true
    }

    /// Adds pasted text as one line.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = clean_line(text);
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.at = 0;
    }

    fn before(&self) -> usize {
        let head = self.text.get(..self.at).unwrap_or_default();
        self.at - head.graphemes(true).next_back().map_or(0, str::len)
    }

    fn after(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at + rest.graphemes(true).next().map_or(0, str::len)
    }

    fn remove_before(&mut self) {
        let start = self.before();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    fn remove_after(&mut self) {
        let end = self.after();
        self.text.replace_range(self.at..end, "");
    }

    fn remove_to_start(&mut self) {
        self.text.replace_range(..self.at, "");
        self.at = 0;
    }

    fn remove_word(&mut self) {
        let head = self.text.get(..self.at).unwrap_or_default();
        let kept = head.trim_end().rfind(char::is_whitespace).map_or(0, |at| {
            at + head.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        self.text.replace_range(kept..self.at, "");
        self.at = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(code: KeyCode) -> Key {
        Key { code, ctrl: false, alt: false }
    }

    fn ctrl(letter: char) -> Key {
        Key { code: KeyCode::Char(letter), ctrl: true, alt: false }
    }

    #[test]
    fn a_line_is_typed_and_mended() {
        let mut input = Input::of("helo wörld");
        for _ in 0..7 {
            input.key(key(KeyCode::Left));
        }
        input.key(key(KeyCode::Char('l')));
        assert_eq!(input.text(), "hello wörld");
        input.key(key(KeyCode::End));
        input.key(ctrl('w'));
        assert_eq!(input.text(), "hello ");
        input.key(key(KeyCode::Backspace));
        input.insert("\u{1b}[0m\nx");
        assert_eq!(input.text(), "hello␛[0m x");
        input.key(ctrl('u'));
        assert!(input.is_empty());
        assert!(!input.key(key(KeyCode::Up)), "not for the line");
    }

    #[test]
    fn the_cursor_counts_columns() {
        let mut input = Input::of("世a");
        assert_eq!(input.cursor_columns(), 3);
        input.key(key(KeyCode::Left));
        assert_eq!(input.cursor_columns(), 2);
    }

    proptest! {
        #[test]
        fn any_keys_leave_the_cursor_between_characters(keys in prop::collection::vec(0..9_u8, 0..40), text in "[a世é👩 ]{0,8}") {
            let mut input = Input::of(&text);
            for number in keys {
                input.key(match number {
                    0 => key(KeyCode::Left),
                    1 => key(KeyCode::Right),
                    2 => key(KeyCode::Backspace),
                    3 => key(KeyCode::Delete),
                    4 => key(KeyCode::Char('世')),
                    5 => key(KeyCode::Char(' ')),
                    6 => ctrl('w'),
                    7 => key(KeyCode::Home),
                    _ => key(KeyCode::End),
                });
                prop_assert!(input.text.is_char_boundary(input.at));
            }
        }
    }
}
