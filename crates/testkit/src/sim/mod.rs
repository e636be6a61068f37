//! A disk in memory that knows what a power cut would leave.
//!
//! What is kept apart, and when it joins:
//!
//! ```text
//!   a file     cache  (what reads see)      every write and length, at once
//!              platter (what a cut leaves)  what was pending, at File::sync of that file
//!   a folder   cache  (what list sees)      every name, at once
//!              platter                      what was pending, at Disk::sync_dir of that folder
//! ```
//!
//! The model is the conservative one wherever file systems differ:
//! - syncing a file does not make its name durable, and syncing a folder neither the folder's own name
//!   nor the bytes of the files in it;
//! - a move between two folders is one step that happens whole or not at all, as in every journal, and
//!   stays in doubt until the folder that it went **to** is synced: syncing the folder that it left does
//!   not settle it (a later durable operation on either of its two names does). To ask for both would ask
//!   the next process for what it cannot know: where a name that it finds came from;
//! - a write may survive while an earlier one, of the same file or another, does not;
//! - a surviving write may be cut, extended with zeros, miss sectors, or have one sector of garbage.
//!   Bytes beside those written are not harmed (powersafe overwrite, as SQLite assumes);
//! - a sync that fails marks the pages clean: reads still see them, no later sync carries them to the
//!   platter, only writing them again does. A folder sync that fails leaves its names pending.

mod content;
mod damage;
mod disk;
mod fault;
mod file;
mod images;
mod operation;
mod recording;
mod state;
mod tear;
mod tree;

pub use damage::Damage;
pub use disk::SimDisk;
pub use fault::{Call, CallCounts, Fault, FaultPlan, Fired};
pub use images::{Enumerated, Image, ImageRules};
pub use operation::Step;
pub use recording::{Point, Recording};

pub(crate) use file::SimFile;
pub(crate) use operation::{Change, InodeId};
pub(crate) use state::{NameChange, ROOT, View};
