//! WebSockets: the upgrade, and a reading and a writing task for each connection.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use super::Bus;
use super::connection::{Closing, Connection, Outgoing};
use super::ids::BusId;
use super::wire::{self, Frame};
use crate::api::Problem;
use crate::guard::Caller;
use crate::limits::{
    BUS_CALLS_PER_CONNECTION, BUS_CLOSE_TIMEOUT, BUS_PING_AFTER, BUS_SILENT_MAX,
    BUS_WRITE_BUFFER_BYTES,
};
use crate::net::{OpenConnection, Peer};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A worker connects.
pub(crate) async fn open(State(bus): State<Bus>, request: Request) -> Result<Response, Problem> {
    let arrival = Arrival::read(&bus, request)?;
    let response = arrival.response();
    tokio::spawn(arrival.run(bus));
    Ok(response)
}

/// Accepts and ignores a worker's telemetry; if it were refused, the worker would only try again.
pub(crate) async fn open_and_ignore(
    State(bus): State<Bus>,
    request: Request,
) -> Result<Response, Problem> {
    let arrival = Arrival::read(&bus, request)?;
    let response = arrival.response();
    tokio::spawn(arrival.ignore(bus));
    Ok(response)
}

/// A connection that asks for a WebSocket and is allowed to.
struct Arrival {
    accept: String,
    upgrade: OnUpgrade,
    caller: Caller,
    remote: String,
    reattach_token: BusId,
    config: WebSocketConfig,
    open: OpenConnection,
}

impl Arrival {
    fn read(bus: &Bus, mut request: Request) -> Result<Self, Problem> {
        let caller = request.extensions().get::<Caller>().cloned().ok_or_else(Problem::internal)?;
        let key = websocket_key(request.headers())?;
        let limits = bus.app().limits();
        let remote = request.extensions().get::<Peer>().map(|peer| peer.remote.ip().to_string());
        let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or_else(not_a_websocket)?;
        let open = bus.app().bus_connections.open(limits.connections);
        Ok(Self {
            accept: derive_accept_key(key.as_bytes()),
            upgrade,
            caller,
            remote: remote.unwrap_or_default(),
            reattach_token: bus.0.ids.secret().map_err(|_| Problem::internal())?,
            config: socket_config(limits.bus_message_bytes),
            open: open.ok_or_else(|| Problem::too_busy("connections"))?,
        })
    }

    fn response(&self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&self.accept) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        // Clients set TCP_NODELAY only if the server announces it.
        headers.insert("x-iii-capabilities", HeaderValue::from_static("tcp-nodelay"));
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }

    async fn run(self, bus: Bus) {
        let Ok(upgraded) = self.upgrade.await else { return };
        let io = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(self.config)).await;
        let ids = (bus.0.ids.fresh(), self.reattach_token);
        let now = bus.app().clock.now_ms();
        let (connection, outgoing) = Connection::new(ids, self.caller, self.remote, now);
        converse(bus, Arc::new(connection), outgoing, socket, self.open).await;
    }

    async fn ignore(self, bus: Bus) {
        let Ok(upgraded) = self.upgrade.await else { return };
        let io = TokioIo::new(upgraded);
        let mut socket =
            WebSocketStream::from_raw_socket(io, Role::Server, Some(self.config)).await;
        let shutdown = bus.app().shutdown.clone();
        let drained = async { while let Some(Ok(_)) = socket.next().await {} };
        tokio::select! {
            () = drained => {}
            () = shutdown.begun() => {}
        }
        // The peer may be gone already.
        let _ = tokio::time::timeout(BUS_CLOSE_TIMEOUT, socket.close(None)).await.is_ok();
        drop(self.open);
    }
}

fn socket_config(message_bytes: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(message_bytes);
    config.max_frame_size = Some(message_bytes);
    config.write_buffer_size = BUS_WRITE_BUFFER_BYTES;
    // One whole answer must fit. A stalled socket holds one, and what follows waits outside.
    config.max_write_buffer_size =
        message_bytes.saturating_mul(2).saturating_add(2 * BUS_WRITE_BUFFER_BYTES);
    config
}

fn websocket_key(headers: &HeaderMap) -> Result<String, Problem> {
    let has_word = |name: http::HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let is_asked = has_word(UPGRADE, "websocket")
        && has_word(CONNECTION, "upgrade")
        && has_word(SEC_WEBSOCKET_VERSION, "13");
    key.filter(|_| is_asked).map(str::to_owned).ok_or_else(not_a_websocket)
}

fn not_a_websocket() -> Problem {
    let detail = "workers of the iii bus connect here with a WebSocket (version 13)";
    let hint = "Connect with an iii SDK, or use the HTTP API on its own port.";
    Problem::new(StatusCode::UPGRADE_REQUIRED, "http/upgrade_required", detail, hint)
}

/// Reads and writes until the connection ends, then removes everything that it registered.
async fn converse(
    bus: Bus,
    connection: Arc<Connection>,
    outgoing: Outgoing,
    socket: Socket,
    open: OpenConnection,
) {
    let (sink, mut stream) = socket.split();
    bus.enter(&connection);
    tracing::debug!(worker = %connection.id, "a worker connected");
    connection.send(wire::worker_registered(connection.id, connection.reattach_token)).await;
    let shutdown = bus.app().shutdown.clone();
    let closing = outgoing.closing.clone();
    let writing = tokio::spawn(write(sink, outgoing));
    let calls = Arc::new(Semaphore::new(BUS_CALLS_PER_CONNECTION));
    tokio::select! {
        () = read(&bus, &connection, &mut stream, &calls) => {}
        () = is_closing(closing) => {}
        () = shutdown.begun() => {}
    }
    bus.leave(&connection);
    if shutdown.has_begun() {
        answer_all(&calls).await;
    }
    connection.close();
    let written = tokio::time::timeout(BUS_CLOSE_TIMEOUT, writing).await;
    // Nothing is done for this connection any more: a server that ends can close its store, and a successor write,
    // whether or not the peer answers the close.
    let _closing = bus.app().bus_closing.open(usize::MAX);
    let open = Some(open).filter(|_| !shutdown.has_begun());
    match written {
        Ok(Ok(sink)) => drain(stream, sink).await,
        Ok(Err(_)) => {}
        Err(_) => {
            tracing::debug!(worker = %connection.id, "a worker did not take its last messages")
        }
    }
    tracing::debug!(worker = %connection.id, "a worker is gone");
    drop(open);
}

/// Waits until the running calls of a connection are answered.
async fn answer_all(calls: &Semaphore) {
    let all = u32::try_from(BUS_CALLS_PER_CONNECTION).unwrap_or(u32::MAX);
    // One that waits for another worker may never be answered.
    let _ = tokio::time::timeout(BUS_CLOSE_TIMEOUT, calls.acquire_many(all)).await.is_ok();
}

/// Waits until the connection is to be closed.
async fn is_closing(mut closing: watch::Receiver<Option<Closing>>) {
    // If the connection's sender is dropped, it has ended too.
    let _ = closing.wait_for(Option::is_some).await.is_ok();
}

/// Ends our side, then reads what is still on its way. A connection that is closed with unread bytes is reset, and the
/// last frames, such as the reason of the end, may be lost with it.
async fn drain(stream: SplitStream<Socket>, sink: SplitSink<Socket, Message>) {
    let Ok(socket) = stream.reunite(sink) else { return };
    let mut io = socket.into_inner();
    let drained = async {
        // The peer waits for the server to close first, so reading alone would wait for ever.
        io.shutdown().await?;
        tokio::io::copy(&mut io, &mut tokio::io::sink()).await
    };
    // Whatever it sends, it had its time.
    let _ = tokio::time::timeout(BUS_CLOSE_TIMEOUT, drained).await.is_ok();
}

async fn read(
    bus: &Bus,
    connection: &Arc<Connection>,
    stream: &mut SplitStream<Socket>,
    calls: &Arc<Semaphore>,
) {
    loop {
        let message = match tokio::time::timeout(BUS_SILENT_MAX, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return note_end(bus, connection, &error),
            Ok(None) | Err(_) => return,
        };
        if !bus.app().guard.may_stay(&connection.caller) {
            return;
        }
        let text = match &message {
            Message::Text(text) => text.as_str(),
            // Some clients send their JSON in binary frames.
            Message::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => continue,
            },
            Message::Close(_) => {
                // The answer to a close frame is sent when the socket is read once more.
                let _ = tokio::time::timeout(BUS_CLOSE_TIMEOUT, stream.next()).await.is_ok();
                return;
            }
            _ => continue,
        };
        take(bus, connection, text, calls).await;
    }
}

fn note_end(bus: &Bus, connection: &Connection, error: &WsError) {
    match error {
        WsError::Capacity(_) => {
            tracing::warn!("a worker sent a message that is too large");
            let most = bus.app().limits().bus_message_bytes;
            let reason = format!("a message may have at most {most} bytes; send less at once");
            connection.close_because(CloseCode::Size, reason);
        }
        _ => tracing::debug!("a worker's connection broke"),
    }
}

/// Handles one frame. Registrations are done when this returns; calls run concurrently.
async fn take(bus: &Bus, connection: &Arc<Connection>, text: &str, calls: &Arc<Semaphore>) {
    let frame = match wire::read(text) {
        Ok(frame) => frame,
        Err(bad) => return bus.misread(connection, bad).await,
    };
    match frame {
        Frame::Invoke(invoke) => {
            // A worker that does not wait for answers is slowed down here.
            let Ok(permit) = calls.clone().acquire_owned().await else { return };
            let (bus, connection) = (bus.clone(), connection.clone());
            tokio::spawn(async move {
                bus.invoke(&connection, invoke).await;
                drop(permit);
            });
        }
        Frame::Result(result) => bus.answered(connection, result).await,
        Frame::RegisterFunction { id, info } => bus.register_function(connection, id, info),
        Frame::UnregisterFunction { id } => {
            bus.in_namespace(connection, |namespace| namespace.remove_function(connection, &id))
        }
        Frame::RegisterTriggerType { id, info } => bus.register_type(connection, id, info),
        Frame::UnregisterTriggerType { id } => {
            bus.in_namespace(connection, |namespace| namespace.remove_type(connection, &id))
        }
        Frame::RegisterTrigger(frame) => bus.register_trigger(connection, frame).await,
        Frame::UnregisterTrigger { id } => bus.unregister_trigger(connection, &id),
        Frame::Observe(frame) => bus.observe(connection, frame).await,
        Frame::Unobserve { id } => bus.unobserve(connection, &id).await,
        Frame::TriggerRegistrationResult { id, error } => {
            bus.trigger_registered(connection, &id, error)
        }
        Frame::Reattach { previous, token } => bus.reattach(connection, &previous, &token),
        Frame::Ping => {
            connection.send(wire::PONG.to_owned()).await;
        }
        Frame::Other => {}
    }
}

/// Writes answers first, then events; several in one go when several wait.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: Outgoing,
) -> SplitSink<Socket, Message> {
    let mut ping = tokio::time::interval(BUS_PING_AFTER);
    ping.reset();
    loop {
        let text = tokio::select! {
            biased;
            Some(text) = outgoing.notices.recv() => text,
            Some(text) = outgoing.outbox.recv() => text,
            Some(text) = outgoing.events.recv() => text,
            () = is_closing(outgoing.closing.clone()) => break,
            _ = ping.tick() => {
                if sink.send(Message::Ping(Vec::new().into())).await.is_err() {
                    return sink;
                }
                continue;
            }
        };
        if write_all(&mut sink, text, &mut outgoing).await.is_err() {
            return sink;
        }
    }
    while let Ok(text) = outgoing.notices.try_recv().or_else(|_| outgoing.outbox.try_recv()) {
        if sink.feed(Message::text(text)).await.is_err() {
            return sink;
        }
    }
    let closing = outgoing.closing.borrow().clone();
    let (code, reason) = match closing {
        Some(Closing { code, reason }) => (code, reason),
        None => (CloseCode::Away, String::new()),
    };
    // The peer may be gone already.
    let _ =
        sink.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await.is_ok();
    sink
}

async fn write_all(
    sink: &mut SplitSink<Socket, Message>,
    first: String,
    outgoing: &mut Outgoing,
) -> Result<(), WsError> {
    sink.feed(Message::text(first)).await?;
    while let Ok(text) = outgoing.next() {
        sink.feed(Message::text(text)).await?;
    }
    sink.flush().await
}
