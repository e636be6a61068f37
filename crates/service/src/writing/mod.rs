//! Writing: a command reads a session and decides what to write, and the write runs to completion.
//!
//! A [`Command`] reads a session through a [`WriteContext`]. Deciding and passing the write to the store happen under
//! the session's lock; waiting for the disk does not.

mod command;
mod context;
mod delete;
mod run_to_completion;
mod session_builder;

pub(crate) use command::{Command, Decision, create, run, run_recorded};
pub(crate) use context::WriteContext;
pub(crate) use delete::{delete, undelete};
pub(crate) use run_to_completion::run_to_completion;
pub(crate) use session_builder::SessionBuilder;
