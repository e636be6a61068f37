//! What a session value remembers of the announcements of its groups.

use std::collections::HashMap;

use crate::time::Timestamp;

/// When groups were announced, by the first of their loops, as far as somebody heard it: session files do not say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announcements(HashMap<String, Timestamp>);

impl Announcements {
    pub(crate) fn set(&mut self, first_loop_id: &str, at: Timestamp) {
        self.0.insert(first_loop_id.to_owned(), at);
    }

    pub(crate) fn of(&self, first_loop_id: &str) -> Option<Timestamp> {
        self.0.get(first_loop_id).copied()
    }
}

/// What was heard of a session is no part of what it says.
impl PartialEq for Announcements {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
