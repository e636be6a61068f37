//! Which session a loop belongs to, for loops whose sessions are not in memory.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::limits::{REMEMBERED_IDS_MAX, REMEMBERED_LOOPS_MAX};
use crate::model::session_id_in;

/// What a durable recorder remembers of loops whose sessions may not be in memory any more.
#[derive(Debug, Default)]
pub(super) struct LoopIndex {
    /// The sessions of loops whose ids do not contain the session.
    recorded: Pairs,
    /// The sessions that named a loop which is not known yet.
    named_by: Pairs,
    /// Loops that were looked for in vain.
    missed: HashSet<String>,
}

impl LoopIndex {
    /// A loop is recorded in a session from now on.
    pub(super) fn loop_is_in(&mut self, loop_id: &str, session_id: &str) {
        self.missed.remove(loop_id);
        if session_id_in(loop_id) != Some(session_id) {
            self.recorded.add(loop_id, session_id);
        }
    }

    /// Notes that a session names an unknown loop. The session may be dropped from memory before the loop starts.
    pub(super) fn is_named_by(&mut self, loop_id: &str, session_id: &str) {
        self.named_by.add(loop_id, session_id);
    }

    /// The sessions that named a loop before it was known.
    pub(super) fn take_named_by(&mut self, loop_id: &str) -> Vec<String> {
        self.named_by.take(loop_id)
    }

    /// The session in which to look for a loop. The text of an id is only a hint.
    pub(super) fn session_of<'a>(&'a self, loop_id: &'a str) -> Option<&'a str> {
        if self.missed.contains(loop_id) {
            return None;
        }
        self.recorded.last(loop_id).or_else(|| session_id_in(loop_id))
    }

    /// Notes that a loop was not found, so that it is not searched again for each of its events.
    pub(super) fn miss(&mut self, loop_id: &str) {
        if self.missed.len() >= REMEMBERED_IDS_MAX {
            self.missed.clear();
        }
        self.missed.insert(loop_id.to_owned());
    }
}

/// Loops with sessions, the latest up to a bound.
#[derive(Debug, Default)]
struct Pairs {
    /// By loop, the sessions with the numbers that they were added under, the oldest first.
    sessions: HashMap<String, VecDeque<(u64, String)>>,
    /// Everything that was added, in order. A pair that was taken since is skipped when it would be
    /// evicted.
    order: VecDeque<(u64, String)>,
    added: u64,
}

impl Pairs {
    fn add(&mut self, loop_id: &str, session_id: &str) {
        let sessions = self.sessions.entry(loop_id.to_owned()).or_default();
        if sessions.back().is_some_and(|(_, known)| known == session_id) {
            return;
        }
        self.added += 1;
        sessions.push_back((self.added, session_id.to_owned()));
        self.order.push_back((self.added, loop_id.to_owned()));
        if self.order.len() > REMEMBERED_LOOPS_MAX {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((number, loop_id)) = self.order.pop_front() else {
            return;
        };
        let Some(sessions) = self.sessions.get_mut(&loop_id) else {
            return;
        };
        if sessions.front().is_some_and(|(oldest, _)| *oldest == number) {
            sessions.pop_front();
        }
        if sessions.is_empty() {
            self.sessions.remove(&loop_id);
        }
    }

    fn last(&self, loop_id: &str) -> Option<&str> {
        let (_, session_id) = self.sessions.get(loop_id)?.back()?;
        Some(session_id)
    }

    fn take(&mut self, loop_id: &str) -> Vec<String> {
        let taken = self.sessions.remove(loop_id).unwrap_or_default();
        taken.into_iter().map(|(_, session_id)| session_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_loops_are_forgotten_first() {
        let mut pairs = Pairs::default();
        pairs.add("first", "a");
        pairs.add("first", "b");
        pairs.add("taken", "a");
        for at in 3..REMEMBERED_LOOPS_MAX {
            pairs.add(&at.to_string(), "s");
            pairs.add(&at.to_string(), "s");
        }
        assert_eq!(pairs.take("taken"), ["a"]);
        assert_eq!(pairs.sessions["first"].len(), 2);
        pairs.add("taken", "b");
        assert_eq!(pairs.sessions["first"].len(), 1);
        assert_eq!(pairs.last("first"), Some("b"));
        pairs.add("one more", "s");
        assert_eq!(pairs.last("first"), None);
        pairs.add("another", "s");
        assert_eq!(pairs.last("taken"), Some("b"), "the one that was taken is not there twice");
        assert_eq!(pairs.last("3"), Some("s"));
    }

    #[test]
    fn a_loop_is_looked_for_where_it_was_recorded_and_else_where_its_id_says() {
        let mut known = LoopIndex::default();
        assert_eq!(known.session_of("s.cfg.1"), Some("s"));
        assert_eq!(known.session_of("opaque"), None);
        known.loop_is_in("opaque", "s");
        known.loop_is_in("t.cfg.1", "s");
        assert_eq!(known.session_of("opaque"), Some("s"));
        assert_eq!(known.session_of("t.cfg.1"), Some("s"));
        known.miss("s.cfg.1");
        assert_eq!(known.session_of("s.cfg.1"), None);
        known.loop_is_in("s.cfg.1", "s");
        assert_eq!(known.session_of("s.cfg.1"), Some("s"));
    }
}
