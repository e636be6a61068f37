//! V1 files of pi: read, served, migrated, exported and rolled back, also under faults.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod beside_pi;
mod common;
mod crash;
mod export;
mod kill;
mod live;
mod mapping;
mod migration;
mod named_files;
mod property;
mod reading;
mod rollback;
mod served;
mod transcript;
mod v1_index;
mod v1_session;
mod ways_out;
