//! The times at which the groups of a session value were announced.

use std::collections::HashMap;

use crate::time::Timestamp;

/// When groups were announced, by the first of their loops, as far as it is known: session files do not have it.
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

/// These times are not part of a session's content, so any two are equal.
impl PartialEq for Announcements {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
