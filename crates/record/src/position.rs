use serde::{Deserialize, Serialize};

/// How far a session's feed was read: all records up to one, and all steps of streams up to one.
///
/// The two numbers are independent: a position is what a reader knows. Steps are numbered through the whole
/// incarnation and never start again. So a step is known exactly when its number is at most `step`, and a
/// record that took the place of steps is known when the last of them is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// The number of a record; 0 is before the first.
    pub seq: u64,
    /// The number of a step; 0 is before the first.
    pub step: u64,
}

impl Position {
    /// A position from its two numbers.
    #[must_use]
    pub const fn new(seq: u64, step: u64) -> Self {
        Self { seq, step }
    }

    /// Right after a record, before any step.
    #[must_use]
    pub const fn at(seq: u64) -> Self {
        Self { seq, step: 0 }
    }

    /// What two readers know together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { seq: self.seq.max(other.seq), step: self.step.max(other.step) }
    }

    /// Whether a reader that is here knows everything that one at `other` knows.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.seq >= other.seq && self.step >= other.step
    }
}
