//! Bounds of blobs, by name.

/// Largest blob, in bytes.
pub const BLOB_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How old an unfinished file must be to count as the leftover of a process that ended.
pub const UNFINISHED_AGE_MS_MAX: i64 = 60 * 60 * 1000;
