//! Bounds of the adapters, by name. What a session may hold is bounded in `bough_session::limits`.

use std::time::Duration;

/// One record in its stored form, and one delta of a message that streams, in bytes.
pub use bough_log::limits::{DELTA_BYTES_MAX, RECORD_BYTES_MAX};

/// Sessions of a session-manager main that an instance keeps in memory, beside those that are in use or watched.
pub const MANAGED_SESSIONS_MAX: usize = 256;
/// Sessions of a session-manager main that are no longer kept and of which lists still know the details.
pub const MANAGED_DETAILS_MAX: usize = 16_384;
/// Threads that commit at once before a further commit waits for one of them.
pub const COMMIT_THREADS_BUSY: usize = 4;
/// Threads that commit at the most.
pub const COMMIT_THREADS_MAX: usize = 128;
/// How long a commit waits while no thread becomes free, before another one is called.
pub const COMMIT_WAIT: Duration = Duration::from_millis(1);
/// A thread that has had nothing to commit for this long ends.
pub const COMMITTER_IDLE: Duration = Duration::from_secs(10);
/// How often a process tries again to open a catalogue that another one is just making.
pub const CONNECT_RETRIES_MAX: u32 = 500;
/// The pause between two such tries.
pub const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// Records that are read at a time to fold a session as it was at a position.
pub const FOLD_RECORDS_PER_READ: usize = 256;
/// Records of a draft in a store that has no place to build a session out of sight; a larger one is refused.
pub const BUFFERED_DRAFT_RECORDS_MAX: usize = 100_000;
