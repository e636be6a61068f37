//! The connection of a bridge: made, used until it breaks, and made again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use super::BridgeOptions;
use super::client::{CallError, Hosted, LOST, Link, Pending, Signs};
use crate::sync::lock;

/// The first wait before connecting again; it doubles up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest wait before connecting again.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Largest message in either direction.
const MESSAGE_BYTES: usize = 128 * 1024 * 1024;
/// How often the main is pinged.
const PING_AFTER: Duration = Duration::from_secs(10);
/// A connection from which nothing came for this long, or that accepts nothing, is closed.
const SILENT_MAX: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TcpStream>;

/// The task that holds the connection.
pub(super) struct Connection {
    pub(super) options: BridgeOptions,
    pub(super) state: watch::Sender<Link>,
    pub(super) pending: Pending,
    pub(super) hosted: Hosted,
    pub(super) signs: Arc<Signs>,
}

impl Connection {
    pub(super) async fn run(self, mut outbox: mpsc::Receiver<String>) {
        let mut retry = RETRY_FIRST;
        loop {
            let link = match self.connect().await {
                Ok(socket) => {
                    retry = RETRY_FIRST;
                    self.state.send_replace(Link::Up);
                    Link::Broken(self.converse(socket, &mut outbox).await)
                }
                Err(link) => link,
            };
            self.state.send_replace(link);
            for (_, answer) in lock(&self.pending).drain() {
                // The caller may have stopped waiting.
                let _ = answer.send(Err(CallError::Lost(LOST.to_owned()))).is_ok();
            }
            if outbox.is_closed() {
                return;
            }
            self.pause(retry).await;
            retry = (retry * 2).min(RETRY_MAX);
        }
    }

    /// Waits before reconnecting; only briefly if a call was made meanwhile.
    async fn pause(&self, most: Duration) {
        tokio::time::sleep(RETRY_FIRST).await;
        let rest = most.saturating_sub(RETRY_FIRST);
        // Over in either case.
        let _ = tokio::time::timeout(rest, self.signs.wanted.notified()).await.is_ok();
    }

    /// Something came from the main.
    fn heard(&self) {
        self.signs.heard.fetch_add(1, Ordering::Relaxed);
        self.state.send_if_modified(|link| {
            let was_silent = *link == Link::Silent;
            if was_silent {
                *link = Link::Up;
            }
            was_silent
        });
    }

    /// Connects, or says how the link is.
    async fn connect(&self) -> Result<Socket, Link> {
        let options = &self.options;
        let address = (options.host.as_str(), options.port);
        let connected = async {
            let stream = TcpStream::connect(address).await.map_err(down)?;
            stream.set_nodelay(true).map_err(down)?;
            let host = if options.host.contains(':') {
                format!("[{}]", options.host)
            } else {
                options.host.clone()
            };
            let url = format!("ws://{host}:{}/", options.port);
            let mut request = url.into_client_request().map_err(down)?;
            if let Some(token) = &options.token {
                let value = format!("Bearer {token}").parse();
                let value = value.map_err(|_| down("the token is not a header's text"))?;
                request.headers_mut().insert("authorization", value);
            }
            let mut config = WebSocketConfig::default();
            config.max_message_size = Some(MESSAGE_BYTES);
            config.max_frame_size = Some(MESSAGE_BYTES);
            let made =
                tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
            made.map(|(socket, _)| socket).map_err(|error| match error {
                WsError::Http(answer) => self.turned_away(answer.status().as_u16()),
                error => down(error),
            })
        };
        match tokio::time::timeout(options.timeout, connected).await {
            Ok(made) => made,
            Err(_) => Err(down("connecting took too long")),
        }
    }

    /// The meaning of an answer other than a socket.
    fn turned_away(&self, status: u16) -> Link {
        let url = &self.options.url;
        match (status, &self.options.token) {
            (401 | 403, None) => Link::Refused(format!(
                "the main at {url} asks for a token; give adapter.config.token one with the right `bridge`"
            )),
            (401 | 403, Some(_)) => Link::Refused(format!(
                "the main at {url} does not take the token in adapter.config.token; make another with the \
                 right `bridge`"
            )),
            _ => down(format!("it answered with status {status}")),
        }
    }

    /// Sends and receives until the connection breaks; returns why.
    async fn converse(&self, socket: Socket, outbox: &mut mpsc::Receiver<String>) -> String {
        let (mut sink, mut stream) = socket.split();
        for frame in self.hosted.frames() {
            if let Err(reason) = send(&mut sink, Message::text(frame)).await {
                return reason;
            }
        }
        let mut beat = tokio::time::interval(PING_AFTER);
        beat.reset();
        let mut quiet = Duration::ZERO;
        loop {
            let next = tokio::select! {
                text = outbox.recv() => match text {
                    Some(text) => Some(Message::text(text)),
                    None => return "the bridge was closed".to_owned(),
                },
                received = stream.next() => {
                    quiet = Duration::ZERO;
                    match self.received(received) {
                        Ok(answer) => answer.map(Message::text),
                        Err(reason) => return reason,
                    }
                }
                () = self.signs.wanted.notified() => Some(ping()),
                _ = beat.tick() => {
                    quiet += PING_AFTER;
                    if quiet >= SILENT_MAX {
                        return "the main is silent".to_owned();
                    }
                    Some(ping())
                }
            };
            if let Some(message) = next
                && let Err(reason) = send(&mut sink, message).await
            {
                return reason;
            }
        }
    }

    /// Handles a message; returns the answer, or why the connection must end.
    fn received(
        &self,
        received: Option<Result<Message, WsError>>,
    ) -> Result<Option<String>, String> {
        match received {
            None | Some(Ok(Message::Close(_))) => Err("the main closed the connection".to_owned()),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(message)) => {
                self.heard();
                message.to_text().map_or(Ok(None), |text| self.take(text))
            }
        }
    }

    /// Handles a frame; returns the answer, or why the connection must end.
    fn take(&self, text: &str) -> Result<Option<String>, String> {
        let Ok(mut frame) = serde_json::from_str::<Value>(text) else { return Ok(None) };
        let word = |name: &str| frame.get(name).and_then(Value::as_str).unwrap_or_default();
        match word("type") {
            "invocationresult" => {
                let waiting = lock(&self.pending).remove(word("invocation_id"));
                if let Some(answer) = waiting {
                    // The caller may have stopped waiting.
                    let _ = answer.send(read_answer(frame)).is_ok();
                }
                Ok(None)
            }
            "invokefunction" => {
                let hosted = self.hosted.get();
                let Some(function) = hosted.filter(|hosted| hosted.name == word("function_id"))
                else {
                    return Ok(None);
                };
                let answer = frame.get("invocation_id").filter(|id| !id.is_null()).map(|id| {
                    let (kind, name) = ("invocationresult", &function.name);
                    json!({"type": kind, "invocation_id": id, "function_id": name, "result": {"ok": true}})
                        .to_string()
                });
                let data = frame.get_mut("data").map(Value::take).unwrap_or_default();
                // A dropped call would be a missed event; after a reconnect everything is checked.
                let taken = function.calls.try_send(data);
                taken.map_err(|_| "the main's events are not taken".to_owned()).map(|()| answer)
            }
            _ => Ok(None),
        }
    }
}

fn read_answer(mut frame: Value) -> Result<Value, CallError> {
    let Some(error) = frame.get("error").filter(|error| !error.is_null()) else {
        return Ok(frame.get_mut("result").map(Value::take).unwrap_or_default());
    };
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match word("code").as_str() {
        "function_not_found" => Err(CallError::NoFunction),
        _ => Err(refusal(word("message"))),
    }
}

/// Whether a refusal is about one call or about all.
fn refusal(words: String) -> CallError {
    if words.contains("session/forbidden") {
        let reason = "the main does not let this bridge store there; give adapter.config.token a token with the \
                      right `bridge` that sees all sessions";
        return CallError::Denied(format!("{reason} ({words})"));
    }
    if words.contains("session/not_authoritative") {
        let reason =
            "the bridge's url names an instance that is a bridge itself; name the main instance";
        return CallError::Denied(reason.to_owned());
    }
    CallError::Refused(words)
}

fn down(reason: impl std::fmt::Display) -> Link {
    Link::Down(reason.to_string())
}

fn ping() -> Message {
    Message::Ping(Vec::new().into())
}

async fn send(sink: &mut SplitSink<Socket, Message>, message: Message) -> Result<(), String> {
    match tokio::time::timeout(SILENT_MAX, sink.send(message)).await {
        Ok(sent) => sent.map_err(|error| error.to_string()),
        Err(_) => Err("the main takes nothing".to_owned()),
    }
}
