use ratatui::crossterm::event::KeyCode;

use super::event::Key;

/// The selected row of a list, and the visible rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// The chosen row.
    pub(crate) chosen: usize,
    /// The first row that is seen.
    pub(crate) first: usize,
}

impl Window {
    /// Handles a key that moves the selection; returns whether it did.
    pub(crate) fn key(&mut self, key: Key, rows: usize, seen: usize) -> bool {
        let page = seen.saturating_sub(1).max(1);
        match key.code {
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => self.chosen += 1,
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(page),
            KeyCode::PageDown => self.chosen += page,
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = rows.saturating_sub(1),
            _ => return false,
        }
        self.keep_in_view(rows, seen);
        true
    }

    /// Selects an existing row, and scrolls it into view.
    pub(crate) fn keep_in_view(&mut self, rows: usize, seen: usize) {
        self.chosen = self.chosen.min(rows.saturating_sub(1));
        let lowest = (self.chosen + 1).saturating_sub(seen.max(1));
        self.first = self.first.clamp(lowest, self.chosen.max(lowest));
        // No empty rows at the end while there are some above.
        self.first = self.first.min(rows.saturating_sub(seen));
    }

    /// The rows that are seen.
    pub(crate) fn range(&self, rows: usize, seen: usize) -> std::ops::Range<usize> {
        self.first.min(rows)..(self.first + seen).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_chosen_row_is_always_seen(
            rows in 0..40_usize,
            seen in 1..12_usize,
            keys in prop::collection::vec(0..6_usize, 0..30),
        ) {
            let codes = [KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End];
            let mut window = Window::default();
            for number in keys {
                window.key(Key { code: codes[number], ctrl: false, alt: false }, rows, seen);
                let range = window.range(rows, seen);
                prop_assert!(rows == 0 || range.contains(&window.chosen));
                prop_assert!(range.len() == rows.min(seen));
            }
        }
    }
}
