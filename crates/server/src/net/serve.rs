//! Listening, and one task a connection.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::Service;

use super::connections::{AnswerBody, Connections, OpenConnection, RequestBody};
use super::io::{PatientIo, Socket};
use crate::config::{Address, LimitsConfig, ends};
use crate::limits::{
    CLOSING_SILENCE, DESCRIPTORS_FREED, HEADER_BYTES_READ, HEADER_TIMEOUT, HEADERS_MAX,
    WRITE_STALL_TIMEOUT,
};
use crate::shutdown::Shutdown;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Our end.
    pub(crate) local: SocketAddr,
    /// The other end.
    pub(crate) remote: SocketAddr,
    /// How the two are connected.
    pub(crate) kind: PeerKind,
}

/// How two ends are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// Over TCP.
    Tcp,
    /// Over a Unix socket, which only the user of the server can connect to.
    LocalSocket,
}

impl Peer {
    /// An unknown connection, which counts as not on this machine.
    pub(crate) fn unknown() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { local: nowhere, remote: nowhere, kind: PeerKind::Tcp }
    }

    /// A connection over a Unix socket. It is on this machine and has no port.
    pub(crate) fn of_local_socket() -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { local: here, remote: here, kind: PeerKind::LocalSocket }
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// On a Unix socket.
    #[cfg(unix)]
    Local(super::local_socket::LocalSocket),
}

impl Listener {
    async fn accept(&self) -> io::Result<(Box<dyn Socket>, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, remote) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let local = stream.local_addr()?;
                Ok((Box::new(stream), Peer { local, remote, kind: PeerKind::Tcp }))
            }
            #[cfg(unix)]
            Self::Local(socket) => Ok((Box::new(socket.accept().await?), Peer::of_local_socket())),
        }
    }
}

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// HTTP.
    Http,
    /// The bus.
    Bus,
}

/// Binds a listener.
pub(crate) async fn bind(address: &Address) -> io::Result<TcpListener> {
    TcpListener::bind((address.host.as_str(), address.port)).await
}

/// Accepts connections until the server ends. Then open connections are asked to finish; the caller waits for them.
pub(crate) async fn serve<S>(
    listener: Listener,
    kind: ListenerKind,
    app: S,
    limits: impl Fn() -> LimitsConfig + Send + 'static,
    connections: Connections,
    shutdown: Shutdown,
) where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                recover_from(&error, &connections).await;
                continue;
            }
        };
        let limits = limits();
        let Some(open) = connections.open_waiting(limits.connections) else {
            tracing::warn!(limit = limits.connections, "connection refused: too many are at work");
            continue;
        };
        let (app, shutdown) = (app.clone(), shutdown.clone());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, peer, kind, app, limits, open, shutdown).await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
}

/// Handles a failed accept: without descriptors, waiting connections are closed; otherwise the loop pauses instead of
/// spinning.
async fn recover_from(error: &io::Error, connections: &Connections) {
    /// How long to wait before the next try.
    const PAUSE: Duration = Duration::from_millis(100);
    /// `EMFILE` and `ENFILE`: the process, or the system, has no descriptor left.
    const NO_DESCRIPTORS: [i32; 2] = [24, 23];
    tracing::warn!(%error, "cannot accept a connection");
    if error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code)) {
        connections.close_waiting(DESCRIPTORS_FREED);
    }
    tokio::time::sleep(PAUSE).await;
}

async fn connection<S>(
    stream: Box<dyn Socket>,
    peer: Peer,
    kind: ListenerKind,
    app: S,
    limits: LimitsConfig,
    open: OpenConnection,
    shutdown: Shutdown,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let activity = open.activity();
    let patience = ends(limits.write_stall_timeout, WRITE_STALL_TIMEOUT);
    let mut io = PatientIo::new(stream, patience, activity.clone());
    if kind == ListenerKind::Bus {
        io = io.acknowledging_at_once();
    }
    let of_requests = open.activity();
    let app = tower::service_fn(move |request: Request<Incoming>| {
        let activity = of_requests.clone();
        activity.work();
        let mut request = request.map(|body| Body::new(RequestBody::new(body, activity.clone())));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(activity.clone());
        let answer = app.clone().call(request);
        async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, activity)))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(ends(limits.header_timeout, HEADER_TIMEOUT))
        .max_buf_size(HEADER_BYTES_READ)
        .max_headers(HEADERS_MAX)
        .keep_alive(true);
    let service = TowerToHyperService::new(app);
    let served = builder.serve_connection(TokioIo::new(io), service).with_upgrades();
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => return Ok(ended?),
        () = activity.gives_way() => return Ok(()),
        () = shutdown.begun() => served.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = served => Ok(ended?),
        // Nothing of a request that is not there as a whole was acknowledged.
        () = activity.is_silent(CLOSING_SILENCE) => Ok(()),
    }
}
