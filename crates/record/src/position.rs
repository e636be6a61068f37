use serde::{Deserialize, Serialize};

/// How far a reader has read a session's feed: all records up to `seq`, and all steps of streams up to `step`.
///
/// The two numbers are independent. Steps are numbered through the whole incarnation and never start again. So a reader
/// knows a step exactly when the step's number is at most `step`, and it knows a record that replaced steps when it
/// knows the last of them.
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

    /// The position of a reader that knows everything at either position.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { seq: self.seq.max(other.seq), step: self.step.max(other.step) }
    }

    /// Whether a reader at this position knows everything that a reader at `other` knows.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.seq >= other.seq && self.step >= other.step
    }
}
