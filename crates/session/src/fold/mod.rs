//! The state of a session: what a fold over its log knows, in a few kilobytes.

mod custom_types;
mod loops;
mod state;
mod streams;

pub use custom_types::{CustomTypes, NewestOf};
pub use loops::LoopTally;
pub use state::{Labels, SessionState};
pub use streams::StreamTally;
