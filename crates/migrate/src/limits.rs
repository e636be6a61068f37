//! Every bound of the crate, by name.

use std::time::Duration;

/// Bytes read from a V1 file at once.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// The longest line of a V1 file that can be kept as one record, in bytes: what the log takes, less the
/// words around it.
pub const LINE_BYTES_MAX: u64 = bough_store::limits::RECORD_BYTES_MAX as u64 - 4096;

/// The largest SQLite file that is read: it is held in memory once.
pub const SQLITE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Findings that a report lists one by one; all are counted.
pub const FINDINGS_MAX: usize = 1_000;

/// Records of one batch while a log is built.
pub const BATCH_RECORDS: usize = 1_000;

/// Bytes of one batch while a log is built; one longer record is a batch of its own.
pub const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Records read at once.
pub const PAGE_RECORDS: u64 = 500;

/// Folders inside folders that a search for V1 files goes down.
pub const WALK_DEPTH_MAX: usize = 16;

/// A working directory longer than this is not copied into a session's metadata.
pub const CWD_BYTES_MAX: usize = 4 * 1024;

/// Branches that a readable transcript shows after the active one.
pub const TRANSCRIPT_BRANCHES_MAX: usize = 1_000;

/// The largest mark of a migration that is under way: an id and an address.
pub const MARK_BYTES_MAX: u64 = 256 * 1024;

/// How often the V1 files that are being served are looked at, milliseconds.
pub const FOLLOW_EVERY_MS: u64 = 100;

/// A database has to be read whole to see whether it changed; it is looked at every so many times.
pub const FOLLOW_DATABASE_EVERY: u32 = 20;

/// How often an append to a V1 file is tried again when another program writes the whole file at that moment.
pub const APPEND_ATTEMPTS_MAX: u32 = 5;

/// How long a rollback waits for programs that still have the file open that it replaced. pi opens the file for one line.
pub const LATE_WRITERS_WAIT: Duration = Duration::from_secs(10);

/// How often it looks meanwhile.
pub const LATE_WRITERS_POLL: Duration = Duration::from_millis(10);

/// A V1 file up to this size is migrated together with others.
pub const SMALL_FILE_BYTES: u64 = 1024 * 1024;

/// Small files that are planned before they are migrated together.
pub const GROUP_FILES_MAX: usize = 256;

/// Small files that are migrated at the same time.
pub const MIGRATION_WORKERS: usize = 16;
