//! Bounds of the shared documents, by name.

/// Longest key of a document, in bytes.
pub const KEY_BYTES_MAX: usize = 512;
/// Largest document, as JSON, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// Most changes of one call.
pub const CHANGES_PER_CALL_MAX: usize = 16_384;
