//! What a session is, from outside: records, folds, the tree, limits and foreign messages. One program, because each one is
//! linked anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod codec;
#[path = "../common/mod.rs"]
mod common;
mod context;
mod fold;
mod limits;
mod pi_and_phi;
mod revision;
mod shapes;
mod tree;
