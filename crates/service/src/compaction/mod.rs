//! Compaction: where to cut, what the summary says, how it is written and taken back.
//!
//! `planning` and `compact` are the functions of the table, and `automatic` compacts the sessions of a server. The rules below
//! them are pure: a path of entries goes in, a plan or a text comes out.
//!
//! The rules:
//! - The summarised range starts at the first entry that the compaction before kept (at the first entry of
//!   the path without one), and ends before the cut.
//! - The cut is the first place from which a tail of at least `keep_recent_tokens` begins, moved on to the next entry
//!   that a model may be shown first (a user or assistant message, a command's output, an application's
//!   message, a branch summary; never the result of a call), or back to the last such entry when there is none.
//! - No call is cut off from its result, whatever lies between them.
//! - Bookkeeping just before the cut stays with what it introduces.
//! - A compaction that has nothing after it is not compacted again.

mod automatic;
mod blocks;
mod branch;
mod compact;
pub(crate) mod context;
mod context_stream;
mod cut;
mod digest;
mod files;
mod path;
mod planning;
mod settings;
mod tokens;
mod transcript;
mod undo;
mod windows;

#[cfg(test)]
mod tests;

pub use automatic::{NoSummary, Summariser, keep_compacted};
pub(crate) use blocks::summarised_messages;
pub use branch::{branch_digest, left_behind};
pub(crate) use compact::{compact, undo_compaction};
pub use context_stream::ContextStream;
pub use cut::NothingToCompact;
pub use files::Files;
pub use path::PathItem;
pub(crate) use planning::plan_compaction;
pub use settings::CompactionSettings;
pub use transcript::conversation_text;
pub use windows::ModelWindows;
