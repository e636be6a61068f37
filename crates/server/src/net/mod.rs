//! Sockets: listening, the bounds of a connection, and an orderly end.

mod connections;
mod io;
#[cfg(unix)]
mod local_socket;
#[cfg(not(unix))]
mod no_local_socket;
mod serve;

pub(crate) use connections::{Activity, Connections, OpenConnection, RequestBody};
#[cfg(unix)]
pub(crate) use local_socket::{LocalSocketError, SocketClaim, claim};
#[cfg(not(unix))]
pub(crate) use no_local_socket::SocketClaim;
pub(crate) use serve::{Listener, ListenerKind, Peer, PeerKind, bind, serve};
