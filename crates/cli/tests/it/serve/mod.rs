//! `bough serve` as a real process: killed, stopped, cut off, and asked to end.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests make files of their own, and wait"
)]

mod bridges;
mod client;
mod engine;
mod events;
mod health;
mod logs;
mod process;
mod proxy;
mod shutdown;
mod socket;
