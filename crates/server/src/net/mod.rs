//! Sockets: listening, the bounds of a connection, and ending well.

mod io;
mod serve;

pub(crate) use serve::{Connections, ListenerKind, OpenConnection, Peer, bind, serve};
