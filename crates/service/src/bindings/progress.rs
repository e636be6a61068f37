use std::collections::VecDeque;
use std::sync::Mutex;

use crate::feed::FeedCursor;
use crate::lock::lock;

/// A binding's position: the position from which it resumes without missing an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResumePosition {
    /// With the first event of its session, which has never existed so far.
    Start,
    /// After an event.
    After(FeedCursor),
    /// With the replay of a new store, which was not complete, then after a position in that store.
    Replaying {
        /// Where the store was when the replay began; `None` is where it is on resuming.
        after: Option<FeedCursor>,
    },
    /// At the present: its position was not kept any longer, so it has missed events.
    Dropped,
}

impl From<Option<FeedCursor>> for ResumePosition {
    fn from(cursor: Option<FeedCursor>) -> Self {
        cursor.map_or(Self::Start, Self::After)
    }
}

/// The progress of a binding's deliveries.
#[derive(Debug)]
pub(super) struct Progress {
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    /// After the last event that was passed to a call; `None` until the subscription has begun.
    sent: Option<ResumePosition>,
    /// The number of the first call in `calls`.
    first: u64,
    /// Calls since the oldest unanswered one: the position before each, and whether it is answered.
    calls: VecDeque<(Option<ResumePosition>, bool)>,
}

impl Progress {
    pub(super) fn at(position: Option<ResumePosition>) -> Self {
        let window = Window { sent: position, first: 0, calls: VecDeque::new() };
        Self { window: Mutex::new(window) }
    }

    /// The position from which to resume: before the first unanswered call.
    pub(super) fn position(&self) -> Option<ResumePosition> {
        let window = lock(&self.window);
        match window.calls.front() {
            Some((before, _)) => before.clone(),
            None => window.sent.clone(),
        }
    }

    /// Notes the subscription's position while no call is running.
    pub(super) fn idle_at(&self, position: ResumePosition) {
        let mut window = lock(&self.window);
        if window.calls.is_empty() {
            window.sent = Some(position);
        }
    }

    /// Notes that a replay begins, which is repeated if the binding leaves before it is complete. Calls with events of
    /// the store before are not made again: that store is gone.
    pub(super) fn begin_replay(&self, after: Option<FeedCursor>) {
        let mut window = lock(&self.window);
        let position = ResumePosition::Replaying { after };
        for (before, _) in &mut window.calls {
            *before = Some(position.clone());
        }
        window.sent = Some(position);
    }

    /// Notes that every event of a replay was passed to a call, and where the binding goes on.
    pub(super) fn end_replay(&self, position: ResumePosition) {
        lock(&self.window).sent = Some(position);
    }

    /// Notes that a call with the event before `after` begins; returns its number.
    pub(super) fn begin_call(&self, after: FeedCursor) -> u64 {
        let mut window = lock(&self.window);
        let before = match &window.sent {
            // The rest of a replay is yet to come, whatever is delivered meanwhile.
            Some(ResumePosition::Replaying { .. }) => window.sent.clone(),
            _ => window.sent.replace(ResumePosition::After(after)),
        };
        window.calls.push_back((before, false));
        window.first + window.calls.len() as u64 - 1
    }

    /// Notes that a call was answered; returns whether the position moved.
    pub(super) fn end_call(&self, number: u64) -> bool {
        let mut window = lock(&self.window);
        let index = number.checked_sub(window.first).and_then(|index| usize::try_from(index).ok());
        if let Some((_, is_answered)) = index.and_then(|index| window.calls.get_mut(index)) {
            *is_answered = true;
        }
        let first = window.first;
        while window.calls.front().is_some_and(|(_, is_answered)| *is_answered) {
            window.calls.pop_front();
            window.first += 1;
        }
        window.first != first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(number: u64) -> FeedCursor {
        format!("all.{number:064}").parse().unwrap()
    }

    fn after(number: u64) -> Option<ResumePosition> {
        Some(ResumePosition::After(cursor(number)))
    }

    #[test]
    fn the_position_is_before_the_first_call_that_was_not_answered() {
        let progress = Progress::at(after(0));
        let calls: Vec<u64> = (1..=3).map(|number| progress.begin_call(cursor(number))).collect();
        assert_eq!((calls.as_slice(), progress.position()), ([0, 1, 2].as_slice(), after(0)));
        assert!(!progress.end_call(1), "the first is still under way");
        assert_eq!(progress.position(), after(0));
        assert!(progress.end_call(0));
        assert_eq!(progress.position(), after(2));
        progress.idle_at(ResumePosition::Start);
        assert_eq!(progress.position(), after(2), "a call is under way");
        assert!(progress.end_call(2));
        assert_eq!(progress.position(), after(3));
        assert!(!progress.end_call(2), "once is enough");
        progress.idle_at(ResumePosition::After(cursor(9)));
        assert_eq!(progress.position(), after(9));
    }

    #[test]
    fn a_replay_is_repeated_until_all_of_it_was_answered() {
        let progress = Progress::at(after(1));
        let old = progress.begin_call(cursor(2));
        let replaying = Some(ResumePosition::Replaying { after: Some(cursor(10)) });
        progress.begin_replay(Some(cursor(10)));
        assert_eq!(progress.position(), replaying, "the store of the first call is gone");
        let (replayed, live) = (progress.begin_call(cursor(2)), progress.begin_call(cursor(11)));
        for call in [old, live] {
            progress.end_call(call);
            assert_eq!(progress.position(), replaying);
        }
        progress.end_replay(ResumePosition::After(cursor(11)));
        let next = progress.begin_call(cursor(12));
        assert_eq!(progress.position(), replaying, "a replayed event was not answered");
        progress.end_call(replayed);
        assert_eq!(progress.position(), after(11));
        progress.end_call(next);
        assert_eq!(progress.position(), after(12));
    }

    #[test]
    fn a_binding_that_has_not_begun_has_no_position() {
        let progress = Progress::at(None);
        assert_eq!(progress.position(), None);
        progress.idle_at(ResumePosition::Start);
        assert_eq!(progress.position(), Some(ResumePosition::Start));
    }
}
