//! A real server on loopback, asked by real clients.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod bridge;
mod bus;
mod client;
mod events;
mod guard;
mod http;
mod original;
mod place;
mod reload;
mod tenants;
mod walk;
