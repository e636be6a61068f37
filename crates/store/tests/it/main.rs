//! The adapters that keep sessions in files and in memory, under faults and beside a model.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "in a test a panic is the message"
)]

mod blobs;
mod changes;
mod fs;
mod fs_crash;
mod fs_faults;
mod fs_model;
mod fs_session_manager;
mod fs_skipped;
mod memory;
mod support;
