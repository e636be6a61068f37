//! What was said, found by words: in all sessions, or in the one that is read.

mod state;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use state::{Answer, Effect, SearchState, Within};
pub(crate) use update::{start, update};
pub(crate) use view::{KEYS, view};
