//! The Model Context Protocol (MCP): sessions as tools and resources for agents.
//!
//! A [`Host`] has tools and resources; [`SessionHost`] has Bough's, made from rows of the function table. [`answer`]
//! answers one request of a client, and [`converse`] serves a whole conversation over lines, as `bough mcp` does on its
//! standard streams. The server's `/mcp` answers the same requests over HTTP.
//!
//! There are two kinds of clients: those that begin with a handshake ([`Wire::Handshake`], the protocol of 2025) and
//! those whose every request is complete in itself ([`Wire::Stateless`], the protocol of 2026).
//!
//! Invariants:
//! - It knows no HTTP and no disk: a transport passes requests in and takes answers out.
//! - It has no rules about sessions. Every tool is a row of the service's function table.
//! - The answer of one call is bounded: see [`limits`].
//! - It keeps nothing of a client but its subscriptions, for as long as its connection.

pub mod limits;

mod conversation;
mod host;
mod protocol;
mod rpc;
mod sessions;
mod subscriptions;

pub use conversation::{Line, converse};
pub use host::{Changes, Host};
pub use protocol::{
    HANDSHAKE_VERSIONS, STATELESS_VERSION, Wire, answer, check_stateless, named_in, versions,
};
pub use rpc::{Message, Request, RpcError, error_text, result_text};
pub use sessions::{CallRefused, Functions, SessionHost};
pub use subscriptions::{LISTEN, Subscriptions};
