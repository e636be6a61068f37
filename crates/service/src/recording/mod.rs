//! Recording over the API: agent events come in by requests, and recorded sessions are asked about their loops.
//!
//! A recording is one stream of events. The service keeps its recorder between requests and counts its events: what a caller
//! sends again after a broken connection is passed over. After a restart the recording is not known any more. The caller
//! then sends the events again that follow `resume_after`, and the recorder finds what it stored of them before.

mod queries;
mod recorded;
mod recordings;
mod sink;
mod stream;

pub(crate) use queries::{loop_chain, loop_groups, loops, spawns};
pub(crate) use recorded::RecordedSessions;
pub(crate) use recordings::{Recordings, record, recording};
