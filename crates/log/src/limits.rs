//! Every bound of the log, named. What is over a bound is refused with the name of the bound, before
//! anything is written.

use std::time::Duration;

/// A log's id (a session id), in bytes.
pub const ID_BYTES_MAX: usize = 1024;
/// An entry's id, its parent's or its target's, in bytes.
pub const ENTRY_ID_BYTES_MAX: usize = 512;
/// A record's kind, in bytes.
pub const KIND_BYTES_MAX: usize = 16;
/// One record's payload, in bytes.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// One batch: records.
pub const BATCH_RECORDS_MAX: usize = 100_000;
/// One batch: bytes of payload.
pub const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes that wait for one sync at the most; a caller whose batch does not fit waits for the next.
pub const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A segment is closed and the next one begun when it has this many bytes.
pub const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A checkpoint is due after this many bytes of frames.
pub const CHECKPOINT_EVERY_BYTES: u64 = 4 * 1024 * 1024;
/// A log of at most this many bytes keeps neither an index nor checkpoint files while it is idle.
pub const TINY_BYTES: u64 = 64 * 1024;
/// Records of one log, as the width of an offset row allows.
pub const RECORDS_MAX: u64 = 999_999_999;
/// Segments of one log, as the width of an offset row allows.
pub const SEGMENTS_MAX: u64 = 99_999;
/// Bytes of one segment, as the width of an offset row allows.
pub const SEGMENT_OFFSET_MAX: u64 = 9_999_999_999;
/// One frame line, in bytes, as the width of an offset row allows.
pub const FRAME_BYTES_MAX: usize = 99_999_999;
/// A manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// A checkpoint, in bytes.
pub const CHECKPOINT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Branch heads that a checkpoint names; with more, they are found by reading the index.
pub const BRANCH_HEADS_MAX: usize = 20_000;
/// Rows after the id tables that a checkpoint may leave to be read at opening.
pub const TAIL_ROWS_MAX: u64 = 256;
/// What is kept in memory of one id table, in bytes (one for each id); a larger table is asked on the disk.
pub const BLOOM_BYTES_MAX: usize = 1024 * 1024;
/// Rows of the index that are looked at for damage: opening for writing looks at the newest ones and at as many others, each
/// round after it at as many.
pub const INDEX_CHECK_ROWS: u64 = 16_384;
/// Bytes of each id table that opening for writing looks at for damage.
pub const TABLE_CHECK_BYTES: u64 = 1024 * 1024;
/// Logs kept in memory as they were made again from their segments, while something derived of them is damaged.
pub const REBUILT_LOGS_MAX: usize = 4;
/// Checkpoints kept.
pub const CHECKPOINTS_KEPT: u64 = 2;
/// The stream log: the caller has to settle the streams when it is larger than this.
pub const STREAM_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// One delta's payload, in bytes.
pub const DELTA_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of frames that a page of entries holds at the most; a single entry that is larger is a page of its own.
pub const PAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of frames that a page of records holds at the most; a single record that is larger is a page of its own. Those who follow a
/// log hold one such page each.
pub const RECORDS_PAGE_BYTES_MAX: u64 = 1024 * 1024;
/// A folder in `staging/` is marked as in use this often.
pub const STAGING_ALIVE_EVERY: Duration = Duration::from_secs(60);
/// A ledger, in bytes.
pub const LEDGER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Logs that one process holds open for writing; the longest idle ones are closed beyond it, except those that
/// [keep their lock](bough_record::Fold::keeps_lock).
pub const OPEN_LOGS_MAX: usize = 512;
