//! The full-screen part: pick a session, read it, walk its tree.
//!
//! Each screen is three things: a state, `update` from events to states and effects, and `view` from states
//! to frames. `perform` carries effects out on the backend and brings back answers, which are events again;
//! `driver` owns the terminal and the loop. Nothing else touches either.

mod desk;
mod driver;
mod event;
mod input;
mod list;
mod paint;
mod perform;
mod picker;
mod search;
mod session;
mod terminal;
mod tree;

#[cfg(test)]
mod testing;

pub(crate) use desk::{Desk, Outcome, Target};
pub(crate) use driver::{ScreenOptions, run};
pub(crate) use picker::{PickerOptions, Scope as PickerScope};
pub(crate) use session::outline_lines;
pub(crate) use tree::{Filter as TreeFilter, print_lines as tree_lines};
