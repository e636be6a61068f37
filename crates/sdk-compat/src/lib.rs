//! Tests with the published Rust SDKs of iii. Not part of the product.
//!
//! Invariants:
//! - Nothing depends on this crate, and there is no code in it: only `tests/`.
