//! Writing: a command reads a session and decides what to write, and the write runs to completion.
//!
//! A [`Command`] reads a session through a [`WriteContext`]. Deciding and passing the write to the store happen under
//! the session's lock; waiting for the disk does not.

mod command;
mod context;
mod delete;
mod run_to_completion;
mod session_builder;
mod stored_write;

pub(crate) use command::{Command, Decision, change, create, run, run_recorded};
pub(crate) use context::WriteContext;
pub(crate) use delete::{delete, delete_stored, undelete, undelete_stored};
pub(crate) use run_to_completion::run_to_completion;
pub(crate) use session_builder::SessionBuilder;
pub(crate) use stored_write::write_stored;
