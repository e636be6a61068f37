//! The session screen: the transcript, live as it is written, with the loops beside it.

mod lines;
mod outline;
mod state;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use outline::outline_lines;
pub(crate) use state::{Answer, Effect, From, SessionState};
pub(crate) use update::{start, update};
pub(crate) use view::{KEYS, view};
