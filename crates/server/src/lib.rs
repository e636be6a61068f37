//! HTTP, server-sent events, the Model Context Protocol and the bus socket over the service.
//!
//! Invariants:
//! - Every route, bus function and document is made from the service's function table; there is no second list.
//! - This crate has no rules about sessions, and no session's bytes: those are in the service and the store.
//! - Every request and every upgrade passes the guard (host, origin, token) before anything else reads it.
//! - Text from outside never becomes a header, a field name of a stream, or part of a log line.
//! - Disk, clock and randomness come from `bough_platform`.

pub mod config;
pub mod limits;

mod api;
mod app;
mod bare_engine;
mod bus;
mod console;
mod engine;
mod error_codes;
mod guard;
mod inspection;
mod logs;
mod mcp;
mod metrics;
mod net;
mod own_address;
mod resources;
mod run;
mod settings;
mod shutdown;
mod stores;
mod tasks;
mod worker_manifest;

pub use bare_engine::BareEngine;
pub use bough_service::Bindings;
pub use bough_service::Service;
pub use engine::{ConfigurationOffer, EngineError, EngineLink};
pub use error_codes::{ErrorCode, FUNCTION_ERRORS};
pub use guard::{
    LOCAL_KEY_FILE, NewToken, TOKENS_FILE, TokenError, TokenFile, TokenRecord, TokenText, Tokens,
};
pub use logs::start_log;
pub use run::{
    EngineConnector, NativeWrapper, ServeError, ServeOptions, Server, run, shutdown_on_signals,
};
pub use settings::Environment;
pub use shutdown::{Shutdown, ShutdownSwitch, shutdown_switch};
pub use stores::OpenError;
pub use worker_manifest::worker_manifest;
