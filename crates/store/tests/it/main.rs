//! The adapters that keep sessions in files and in memory, under faults and beside a model.

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
