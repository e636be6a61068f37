//! Every bound of this crate, in one place.

/// How many drained sessions a recorder keeps, so that it can continue one that comes back.
pub const RETAINED_SESSIONS_MAX: usize = 1024;
/// How many loops all drained sessions that a recorder keeps may have together.
pub const RETAINED_LOOPS_MAX: usize = 65_536;
/// How many ids of refused and dropped sessions and loops a recorder remembers for its notices.
pub const REMEMBERED_IDS_MAX: usize = 65_536;
/// The largest session file that is read.
pub const SESSION_FILE_BYTES_MAX: u64 = 4 << 30;
/// How long a session id may be that names a file: the names made of it stay below 255 bytes.
pub const FILE_ID_BYTES_MAX: usize = 200;
/// How many events may wait to be stored before the agent has to wait.
pub const DURABLE_BUFFER_EVENTS: usize = 1024;
/// The most records that a durable recorder appends at once.
pub const DURABLE_BATCH_RECORDS_MAX: usize = 4096;
/// How many characters of a message a summary keeps.
pub const SUMMARY_LINE_CHARS: usize = 200;
/// How many sessions a durable recorder keeps in memory before it drops those that are complete.
pub const DURABLE_HELD_SESSIONS_MAX: usize = 1024;
/// How many loops a durable recorder remembers the sessions of (loops whose ids do not contain the session), and how
/// many named loops that are not known yet.
pub const REMEMBERED_LOOPS_MAX: usize = 65_536;
/// How many sessions a durable recorder keeps in memory for links.
pub const DURABLE_LINKED_SESSIONS_MAX: usize = 64;
/// How large the pieces are in which a session file is written.
pub const SAVE_PIECE_BYTES: usize = 1 << 18;
/// How many pieces of a session file may wait to be written.
pub const SAVE_PIECES_WAITING_MAX: usize = 64;
/// How many pieces of a session file are written before they are synced.
pub const SAVE_UNSYNCED_PIECES_MAX: usize = 64;
/// The least part of a session file that is worth a thread of its own.
pub const LOAD_PART_BYTES_MIN: usize = 4 << 20;
/// How many threads read a session file, at most.
pub const LOAD_PARTS_MAX: usize = 4;
