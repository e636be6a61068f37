//! Full-text search in the messages of all sessions, or of the open one.

mod state;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use state::{Answer, Effect, SearchState, Within};
pub(crate) use update::{start, update};
pub(crate) use view::{KEYS, view};
