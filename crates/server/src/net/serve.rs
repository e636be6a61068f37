//! Listening, and one task a connection.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tower::Service;

use super::io::PatientIo;
use crate::config::{Address, LimitsConfig, ends};
use crate::limits::{HEADER_BYTES_MAX, HEADER_TIMEOUT, HEADERS_MAX, WRITE_STALL_TIMEOUT};
use crate::shutdown::Shutdown;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Our end.
    pub(crate) local: SocketAddr,
    /// The other end.
    pub(crate) remote: SocketAddr,
}

impl Peer {
    /// A connection of which nothing is known; it is not on this machine.
    pub(crate) fn nobody() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { local: nowhere, remote: nowhere }
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

/// How many connections there are, and a way to wait until there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<ConnectionCount>);

#[derive(Debug, Default)]
struct ConnectionCount {
    open: AtomicUsize,
    changed: Notify,
}

/// One open connection; dropping it takes it from the count.
#[derive(Debug)]
pub(crate) struct OpenConnection(Connections);

impl Connections {
    /// Counts one more, unless there are `most` already.
    pub(crate) fn open(&self, most: usize) -> Option<OpenConnection> {
        let taken = self.0.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
            (open < most).then_some(open + 1)
        });
        taken.is_ok().then(|| OpenConnection(self.clone()))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.open.load(Ordering::Acquire)
    }

    /// Waits until none is open, but not longer than `most`; says whether none is.
    pub(crate) async fn drained(&self, most: Duration) -> bool {
        let drained = async {
            loop {
                let changed = self.0.changed.notified();
                if self.count() == 0 {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(most, drained).await.is_ok()
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::AcqRel);
        self.0.0.changed.notify_waiters();
    }
}

/// Binds a listener.
pub(crate) async fn bind(address: &Address) -> io::Result<TcpListener> {
    TcpListener::bind((address.host.as_str(), address.port)).await
}

/// Accepts connections until the server ends. Connections that are open then are told to finish; the caller waits for
/// them.
pub(crate) async fn serve<S>(
    listener: TcpListener,
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
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let limits = limits();
        let Some(open) = connections.open(limits.connections) else {
            tracing::warn!(limit = limits.connections, "connection refused: too many are open");
            continue;
        };
        let (app, shutdown) = (app.clone(), shutdown.clone());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, remote, kind, app, limits, shutdown).await {
                tracing::debug!(%error, "connection ended");
            }
            drop(open);
        });
    }
}

/// Out of descriptors or the like: waiting helps, spinning does not.
async fn pause_after(error: &io::Error) {
    /// How long to wait before the next try.
    const PAUSE: Duration = Duration::from_millis(100);
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(PAUSE).await;
}

async fn connection<S>(
    stream: TcpStream,
    remote: SocketAddr,
    kind: ListenerKind,
    app: S,
    limits: LimitsConfig,
    shutdown: Shutdown,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    stream.set_nodelay(true)?;
    let peer = Peer { local: stream.local_addr()?, remote };
    let stall = ends(limits.write_stall_timeout, WRITE_STALL_TIMEOUT);
    let mut io = PatientIo::new(stream, stall);
    if kind == ListenerKind::Bus {
        io = io.acknowledging_at_once();
    }
    let app = tower::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        app.clone().call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(ends(limits.header_timeout, HEADER_TIMEOUT))
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(true);
    let service = TowerToHyperService::new(app);
    let served = builder.serve_connection(TokioIo::new(io), service).with_upgrades();
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => return Ok(ended?),
        () = shutdown.begun() => served.as_mut().graceful_shutdown(),
    }
    Ok(served.await?)
}
