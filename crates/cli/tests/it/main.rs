//! The built program from outside: its commands, its screens and its server.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod commands;
mod common;
mod demo;
mod odd_files;
mod old_stores;
mod pi_files;
mod record;
mod recorded_compaction;
mod screens;
mod search;
mod serve;
mod serving;
mod terminal_answers;
mod tokens;
