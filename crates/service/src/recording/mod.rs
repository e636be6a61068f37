//! Recording over the API: agent events arrive in requests, and callers query the loops of recorded sessions.
//!
//! A recording is one stream of events. The service keeps its recorder between requests and counts its events: events
//! that a caller sends again after a broken connection are skipped. After a restart the recording is not known any
//! more. The caller then sends the events after `resume_after` again, and the recorder recognises those that it stored
//! before.

mod queries;
mod recorded;
mod recordings;
mod sink;
mod stream;

pub(crate) use queries::{loop_chain, loop_groups, loops, spawns};
pub(crate) use recorded::RecordedSessions;
pub(crate) use recordings::{Recordings, record, recording};
pub use sink::{RecordingClaim, RecordingSink};
