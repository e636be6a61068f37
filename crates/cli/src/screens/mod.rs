//! The full-screen part: pick a session, read it, walk its tree.
//!
//! Each screen is three things: a state, `update` from events to states and effects, and `view` from states
//! to frames. `effects` carries effects out on the backend and brings back answers, which are events again;
//! `driver` owns the terminal and the loop. Nothing else touches either.

mod driver;
mod effects;
mod event;
mod input;
mod list;
mod picker;
mod search;
mod session;
mod stack;
mod terminal;
mod theme;
mod tree;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use driver::{ScreenOptions, run};
pub(crate) use picker::{PickerOptions, Scope as PickerScope};
pub(crate) use session::outline_lines;
pub(crate) use stack::{Outcome, ScreenStack, Target};
pub(crate) use tree::{Filter as TreeFilter, print_lines as tree_lines};
