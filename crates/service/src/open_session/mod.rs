//! A session while it is in use: all that the service knows of it, in one place.
//!
//! Whoever writes a session or follows it goes through its [`OpenSession`]. One writer at a time decides, under a lock; many
//! wait for one disk write together. So the next writer decides on top of what the store accepted and has not made durable
//! yet, and nobody is answered before it is. Those who follow the session share one tail of its feed.

mod commits;
mod recent_writes;
mod registry;
mod session;
mod streams;

pub(crate) use commits::{CommitNotifier, CommitWaiter, UncommittedEntry};
pub(crate) use recent_writes::RecentWrite;
pub(crate) use registry::OpenSessions;
pub(crate) use session::{AcceptedState, Known, OpenSession, WriteState};
pub(crate) use streams::{StreamingMessage, text_bytes};
