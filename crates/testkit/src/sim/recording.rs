use super::disk::SimDisk;
use super::images::{Enumerated, Image, ImageRules, enumerate};
use super::operation::Step;
use super::state::State;

/// The first state of a disk and every operation since: enough to restore each moment.
#[derive(Clone, Debug)]
pub struct Recording {
    start: State,
    steps: Vec<Step>,
}

/// The disk as it was after some operation.
#[derive(Debug)]
pub struct Point<'a> {
    number: usize,
    step: Option<&'a Step>,
    state: &'a State,
}

impl Recording {
    pub(crate) const fn starting_at(start: State) -> Self {
        let steps = Vec::new();
        Self { start, steps }
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// How many operations there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing was done.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The operations in order; the first is number 1.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Visits every moment: before the first operation (number 0) and after each.
    pub fn walk(&self, mut visit: impl FnMut(&Point<'_>)) {
        let mut state = self.start.clone();
        visit(&Point { number: 0, step: None, state: &state });
        for (index, step) in self.steps.iter().enumerate() {
            state.apply(step);
            visit(&Point { number: index + 1, step: Some(step), state: &state });
        }
    }

    /// The disk as it was after operation `number`, with everything that was pending.
    #[must_use]
    pub fn disk_at(&self, number: usize) -> SimDisk {
        let mut state = self.start.clone();
        for step in self.steps.iter().take(number) {
            state.apply(step);
        }
        SimDisk::of(state)
    }
}

impl Point<'_> {
    /// How many operations were done.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The last operation.
    #[must_use]
    pub const fn step(&self) -> Option<&Step> {
        self.step
    }

    /// The disk itself, with everything that was pending: what the next process finds if only the
    /// process ends.
    #[must_use]
    pub fn disk(&self) -> SimDisk {
        SimDisk::of(self.state.clone())
    }

    /// How many changes and name operations are not durable.
    #[must_use]
    pub fn pending(&self) -> usize {
        let files = (0..self.state.inodes.len()).filter_map(|id| self.state.file(id));
        self.state.names.len() + files.map(|file| file.pending.len()).sum::<usize>()
    }

    /// Visits the disks that a power cut at this moment can leave.
    pub fn images(&self, rules: &ImageRules, visit: impl FnMut(&Image<'_>)) -> Enumerated {
        enumerate(self.state, rules, visit)
    }
}
