//! The state of a session: what a fold over its log knows, in a few kilobytes.

mod loops;
mod state;
mod streams;

pub use loops::LoopTally;
pub use state::{Labels, SessionState};
pub use streams::StreamTally;
