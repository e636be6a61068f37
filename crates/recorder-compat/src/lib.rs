//! Nothing but tests: our session files are held against the original program's own reader and writer.
//!
//! Invariants:
//! - The original is a development dependency of this crate only, and of no other.
