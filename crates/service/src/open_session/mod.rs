//! A session while it is in use: everything that the service knows of it.
//!
//! Writers and subscribers of a session go through its [`OpenSession`]. One writer at a time decides, under a lock;
//! many wait for one disk write together. So the next writer decides on top of records that the store has accepted but
//! not made durable, and no caller is answered before they are durable. The subscribers of the session share one tail
//! of its feed. A recorder claims the session while it records, and writes as any other call does.

mod commits;
mod recent_writes;
mod recorder_claim;
mod registry;
mod session;
mod streams;

pub(crate) use commits::{CommitNotifier, CommitWaiter, UncommittedEntry, WriteEnd};
pub(crate) use recent_writes::RecentWrite;
pub(crate) use recorder_claim::RecorderClaim;
pub(crate) use registry::OpenSessions;
pub(crate) use session::{AcceptedState, Known, OpenSession, WriteState};
pub(crate) use streams::{StreamingMessage, text_bytes};
