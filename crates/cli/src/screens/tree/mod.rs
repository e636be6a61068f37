//! The tree navigator: shows the branches of a session with the active path marked, and switches
//! between them.

mod layout;
mod print;
mod state;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use layout::Filter;
pub(crate) use print::print_lines;
pub(crate) use state::{Answer, Effect, SummaryWish, Switch, Switched, TreeState};
pub(crate) use update::{start, update};
pub(crate) use view::{KEYS, view};
