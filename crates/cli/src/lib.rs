//! The `bough` command and its terminal screens.
//!
//! Invariants:
//! - This crate knows no storage format: sessions are reached through the functions of the service, in a data directory
//!   or behind a server, and every command works on either.
//! - Only `output` and the terminal of `screens` print, and no text of a transcript reaches a terminal without being
//!   sanitised.
//! - A screen is a state, a function from events to states and a function from states to frames; it touches neither the
//!   store nor the terminal.
//! - Every bound is in `limits`.

mod app;
mod args;
mod backend;
mod command_error;
mod commands;
mod demo;
mod editor;
#[cfg(feature = "engine")]
mod engine_link;
mod files;
mod fork_file;
mod globals;
mod limits;
mod output;
mod resolve;
mod screens;
mod search_hit;
mod summarise;
mod text;
mod transcript;

pub use app::run;
