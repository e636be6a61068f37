//! A real server on loopback, asked by real clients.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may"
)]

mod admission;
mod bridge;
mod bus;
mod client;
mod compaction;
mod configuration;
mod console;
mod delta_requests;
mod documents;
mod entries;
mod events;
mod guard;
mod http;
mod integration_page;
mod killed;
mod kv;
mod original;
mod panics;
mod recording;
mod reload;
mod reload_fields;
mod repeats;
mod rights;
mod stalled;
mod stats;
mod streams;
mod strict_requests;
mod subscribers;
mod tenants;
mod test_server;
mod viewer;
mod walk;
