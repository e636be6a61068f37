//! Which steps of a stream a reader has been told of.

use bough_store::{Position, Store, StoreError, StoredRecord};

use super::event::FeedEvent;
use super::lens::Lens;

/// Reads on in one life of a session: what is news, what it says, and where the reader is after it.
pub(super) struct Teller {
    pub(super) lens: Box<Lens>,
    pub(super) told: Told,
    pub(super) position: Position,
}

/// The steps that a reader was told of one by one, so that the records which later stand for them are not told again.
///
/// All that can be known is in the position: every batch begins with the records that take the place of the steps before it,
/// in the order of their last steps. So those whose last step is not after the reader's are the first of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// The last step that was told; 0 when the last thing told was a record.
    step: u64,
    /// The last step that the records since then stand for.
    settled: u64,
}

impl Teller {
    /// At a position, with a lens for it.
    pub(super) fn at(position: Position, lens: impl Into<Box<Lens>>) -> Self {
        Self { lens: lens.into(), told: Told::up_to(position), position }
    }

    /// Goes on over a record. `None` when it is no longer there: what comes after the position has to be read again.
    ///
    /// Given up in the middle, it has changed nothing that would be told otherwise then.
    pub(super) async fn take(
        &mut self,
        store: &dyn Store,
        stored: StoredRecord,
    ) -> Result<Option<Vec<FeedEvent>>, StoreError> {
        let mut told = self.told;
        let is_known = told.knows(&stored);
        let place = told.place(&stored);
        let events = if is_known {
            Vec::new()
        } else {
            match self.lens.look(store, stored).await? {
                Some(events) => events,
                None => return Ok(None),
            }
        };
        self.told = told;
        self.position = self.position.max(place);
        Ok(Some(events))
    }

    /// Whether a reader that stopped here would take what it was told for news: among the copies of a fork, or among
    /// records for steps that it knows.
    pub(super) const fn must_go_on(&self) -> bool {
        self.lens.is_copying() || self.told.is_among_known()
    }
}

impl Told {
    /// A reader that stopped at a position.
    pub(super) const fn up_to(position: Position) -> Self {
        Self { step: position.revision, settled: 0 }
    }

    /// Notes that a record comes next; says whether the reader knows all of it already.
    pub(super) const fn knows(&mut self, stored: &StoredRecord) -> bool {
        match stored.settles {
            // It tells nothing. Steps before it that are not settled stay so.
            Some(0) => {
                if self.settled > 0 {
                    *self = Self::up_to(stored.position);
                }
                true
            }
            Some(last_step) if last_step > self.settled => {
                self.settled = last_step;
                last_step <= self.step
            }
            // Steps may be counted anew when those before are settled: what was told of them says nothing about these.
            Some(last_step) => {
                *self = Self { step: 0, settled: last_step };
                false
            }
            None => {
                *self = Self::up_to(stored.position);
                false
            }
        }
    }

    /// Where a reader is after a record that was noted.
    const fn place(&self, stored: &StoredRecord) -> Position {
        match stored.settles {
            // The steps that were told are still to be settled: the place must not forget them.
            Some(0) => Position { revision: self.step, ..stored.position },
            _ => stored.position,
        }
    }

    /// Whether a record for steps up to one goes on with those that were noted.
    pub(super) const fn goes_on_with(&self, last_step: u64) -> bool {
        last_step > self.settled
    }

    /// Whether records for steps were noted, and nothing else since.
    pub(super) const fn has_settled(&self) -> bool {
        self.settled > 0
    }

    /// Whether the next record may stand for steps that are known, which the place alone does not say.
    const fn is_among_known(&self) -> bool {
        self.settled > 0 && self.settled < self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bough_session::Record;

    fn stored(seq: u64, revision: u64, settles: Option<u64>) -> StoredRecord {
        StoredRecord {
            position: Position { seq, revision },
            at_ms: 0,
            record: Record::Leaf(None),
            settles,
        }
    }

    fn check(stopped_at: u64, records: &[StoredRecord], known: &[bool]) {
        let mut told = Told::up_to(Position { seq: 5, revision: stopped_at });
        let found: Vec<bool> = records.iter().map(|stored| told.knows(stored)).collect();
        assert_eq!(found, known, "stopped at {stopped_at}");
    }

    #[test]
    fn settled_steps_are_told_to_those_who_have_not_heard_them_all() {
        let settled = [stored(6, 0, Some(3)), stored(7, 0, Some(4)), stored(8, 0, None)];
        check(0, &settled, &[false, false, false]);
        check(2, &settled, &[false, false, false]);
        check(3, &settled, &[true, false, false]);
        check(4, &settled, &[true, true, false]);
        // A later run counts anew: what was told of the first says nothing about the second.
        let later = [stored(6, 0, None), stored(7, 0, Some(2))];
        check(4, &later, &[false, false]);
        let live = [stored(5, 3, None), stored(5, 4, None), stored(6, 0, Some(4))];
        check(2, &live, &[false, false, true]);
    }

    #[test]
    fn steps_that_are_counted_anew_are_news() {
        let anew = [stored(6, 0, Some(5)), stored(7, 0, Some(2)), stored(8, 0, Some(3))];
        check(5, &anew, &[true, false, false]);
        let begun = [stored(6, 0, Some(5)), stored(7, 0, Some(0)), stored(8, 0, Some(2))];
        check(5, &begun, &[true, true, false]);
    }

    #[test]
    fn a_stream_that_begins_beside_others_does_not_end_them() {
        let beside = [stored(6, 0, Some(0)), stored(7, 0, Some(3)), stored(8, 0, Some(4))];
        check(3, &beside, &[true, true, false]);
        let mut told = Told::up_to(Position { seq: 5, revision: 3 });
        let [begins, settles, _] = &beside;
        assert!(told.knows(begins));
        let place = told.place(begins);
        assert_eq!(place, Position { seq: 6, revision: 3 });
        assert!(Told::up_to(place).knows(settles), "who goes on from there knows it too");
    }
}
