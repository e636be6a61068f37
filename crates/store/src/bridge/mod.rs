//! The adapter that stores through another instance: the rules stay here, the records go there.
//!
//! The main is the one place that orders records, makes them durable and announces them. Every write is one atomic
//! call, and an instance learns what others wrote by following the main's changes. So two instances that append to one
//! session get a conflict and read again, and each event reaches each instance's subscribers once.

pub mod host;
pub mod protocol;

mod asking;
mod client;
mod connection;
mod follow;
mod kind;
mod session_manager;
mod store;

use std::time::Duration;

pub use asking::{ReadTransport, RemoteReads};
pub use store::BridgeStore;

/// The address of the main, and the options of the connection.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The main's bus, or the engine that it is attached to: a name or an IP address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The address as the configuration spells it, for messages.
    pub url: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// A bearer token, if the main needs one.
    pub token: Option<String>,
    /// The name of this process: a main that answers to this name is this process itself.
    pub instance: String,
}

impl std::fmt::Debug for BridgeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BridgeOptions")
            .field("url", &self.url)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
