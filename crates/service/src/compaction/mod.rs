//! Compaction: where to cut, what the summary says, and how it is taken back.
//!
//! Everything here is pure: a path of entries goes in, a plan or a text comes out. It knows no terminal, no disk and no
//! clock, so the command line, a server and a library follow the same rules.
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

mod blocks;
mod branch;
pub(crate) mod context;
mod cut;
mod digest;
mod files;
mod path;
mod settings;
mod tokens;
mod transcript;
mod undo;
mod windows;

#[cfg(test)]
mod tests;

pub(crate) use blocks::summarised_messages;
pub use blocks::{BlockPlan, loop_of, plan_blocks, undo_blocks};
pub use branch::{branch_digest, left_behind};
pub use cut::{NothingToCompact, Plan, plan};
pub use digest::{DIGEST_MARK, digest};
pub use files::Files;
pub use path::{PathItem, Previous};
pub use settings::CompactionSettings;
pub use tokens::{context_tokens, reported_tokens};
pub use transcript::conversation_text;
pub use undo::{Undo, undo};
pub use windows::ModelWindows;
