//! The state of a session: what a fold over its log computes, in a few kilobytes.

use std::collections::VecDeque;

mod apply;
mod custom_types;
mod forks;
mod labels;
mod loops;
mod state;
mod streams;
mod usage_by_day;

pub use custom_types::{CustomTypes, NewestOf};
pub use forks::{Fork, Forks};
pub use labels::Labels;
pub use loops::LoopTally;
pub use state::SessionState;
pub use streams::StreamTally;
pub use usage_by_day::{UsageByDay, UsageKey, UsageOf, Used};

/// Adds an item at the end; the oldest one is dropped when there are more than `most`.
fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    queue.push_back(item);
    if queue.len() > most {
        queue.pop_front();
    }
}
