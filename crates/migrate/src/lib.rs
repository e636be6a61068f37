//! Other formats in and out: plan, stage, verify, cut over, roll back.
//!
//! pi's V1 sessions (JSON lines, header versions 1 to 3, and the SQLite form) are read as streams, served
//! live, migrated into native logs and rolled back; any session is exported as a pi file, as canonical
//! lines, as one document or as a readable transcript.
//!
//! Invariants:
//! - A V1 file is only read by a migration. It is written to when it is live, and by a rollback.
//! - No line of a V1 file is left out in silence: it becomes an entry, is kept as it is, or the whole
//!   file is refused. The report says which.
//! - At every instant one store answers for a session: the one that the manifest points to.
//! - It knows sessions and stores; not the files of a log, not HTTP, and not what a terminal shows.

pub mod limits;

mod error;
mod export;
mod migration;
mod pi_line;
mod served;
mod v1;
mod v1_index;
mod v1_session;

pub use error::{MigrateError, Result};
pub use export::{ExportFormat, ExportOptions, Exported, export, neutralise, write_sqlite};
pub use migration::{
    FileResult, Found, Lost, LostKind, Migrator, Outcome, Plan, Progress, Recovered,
    RollbackOptions, RollbackSummary, Standing, Step, Summary,
};
pub use served::ServedStore;
pub use v1::{
    CURRENT_VERSION, Content, Finding, FindingKind, Line, Lines, LiveV1, OsV1Files,
    SessionFileName, Snapshot, Spelling, V1_KIND, V1File, V1Files, V1Format, V1Header, V1Report,
    format_iso, parse_iso,
};
pub use v1_session::V1Session;
