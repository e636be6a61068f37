//! The Store trait, its adapters and the catalogue.
//!
//! Invariants:
//! - A store speaks of sessions, heads and records, never of offsets, files or locks.
//! - It knows no rules (parents, roles, revisions, scopes are the service's) and no HTTP.
//! - Nothing is shown, announced or acknowledged before it is durable.
//! - The catalogue is derived: delete it, and it is rebuilt from the logs.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub mod bridge;

pub mod blobs;
mod buffered_draft;
mod catalogue;
mod changes;
mod error;
mod fs;
pub mod limits;
mod listing;
mod memory;
mod memory_session;
mod native;
mod opaque_cursor;
pub mod shared_state;
mod store;
mod store_ext;
mod sync;
mod types;

pub use bough_log::{
    Damage, DamageKind, Durability, LogSizes, Options as LogOptions, SalvageReport, VerifyReport,
};
pub use bough_record::{ChainHash, Head, PathStart, Position};
pub use catalogue::{Catalogue, CatalogueFile, CatalogueRow, Fingerprint, Found, GONE_KEPT};
pub use changes::{CHANGES_KEPT, ChangeHub, ChangeWatch, FeedEnd, SessionWatch, Wake};
pub use error::{StoreError, describe_holder};
pub use fs::FsStore;
pub use memory::{MemoryStore, new_incarnation};
pub use native::{
    CATALOGUE_FILE, FileSessions, LogReader, NativeOptions, NativeStore, SessionDirectory,
    StagedSession, holds_sessions, measure, origin, salvage, verify,
};
pub use opaque_cursor::{SEAL_CHARS, Sealed, seal, unseal};
pub use store::{Draft, ReadStore, Store};
pub use store_ext::StoreExt;
pub use types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, Durable, EntryQuery, ListOrder,
    ListPage, ListQuery, Listed, Loaded, PathPage, PathQuery, RecordFilter, RecordPage,
    RecordQuery, SessionChange, Snapshot, Steps, StoredEntry, StoredRecord, Trashed, UsageGroup,
    UsageName, UsageQuery, UsageReport, UsageSum, Write,
};
