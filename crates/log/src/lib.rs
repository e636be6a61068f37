//! Bytes in order, durable: the hash-chained log under every session.
//!
//! A log is one ordered sequence of records in a folder of its own: segments of frames, an index that
//! can be made again from them, checkpoints that spare reading them all, a manifest. The only write is
//! compare-and-append. `docs/FORMAT.md` draws the files, `docs/RECOVERY.md` lists what each state of the
//! disk means.
//!
//! Invariants:
//! - It knows records, entries with parents, and bytes; not sessions, messages, HTTP or async.
//! - Nothing is acknowledged before it is durable; nothing is shown before it is durable.
//! - Reading never writes. Damage of what was durable is reported, never trimmed.
//! - Every bound is in [`limits`]. Every file is reached through `bough_platform`.

pub mod canary;
pub mod format;
pub mod limits;
pub mod recovery;

mod bloom;
mod chunk;
mod commit_waiters;
mod container;
mod create;
mod error;
mod files;
mod id_tables;
mod ids;
mod ledger;
mod load;
mod maintain;
mod measure;
mod migration;
mod nonces;
mod open;
mod options;
mod pending;
mod queue;
mod read_only;
mod reader;
mod rebuild;
mod rebuilt_logs;
mod record;
mod replace;
mod rows;
mod salvage;
mod scan;
mod staged;
mod state;
mod store;
mod streams;
mod subdir;
mod sync;
mod tail;
mod trash;
mod verify;
mod view;
mod writer;

pub use bough_record::{
    ChainHash, Envelope, Fold, Head, Incarnation, PathStart, StoredEnvelope, kind,
};
pub use container::Container;
pub use error::{Damage, DamageKind, LogError, Result};
pub use load::OpenReport;
pub use measure::LogSizes;
pub use migration::Switch;
pub use options::{Durability, Maintenance, Options};
pub use pending::{CommitTask, Pending};
pub use queue::{Batch, Expected, NewDelta};
pub use reader::{Moment, Page, Reader};
pub use salvage::SalvageReport;
pub use staged::StagedLog;
pub use store::{ListedLog, LogStore};
pub use verify::VerifyReport;
pub use view::{EntryRecord, Others, PathPage};
