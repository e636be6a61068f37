//! A worker on the main's bus (or its engine): one connection that comes back by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bough_platform::Entropy;
use bough_session::hex;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::BridgeOptions;
use crate::StoreError;

/// Calls that wait to be sent.
const OUTBOX: usize = 256;
/// The first wait before connecting again; it doubles up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest wait before connecting again.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Calls of a function of ours that wait to be looked at.
const CALLS_WAITING: usize = 1024;
/// Largest message in either direction.
const MESSAGE_BYTES: usize = 128 * 1024 * 1024;
/// A connection from which nothing came for this long is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(10);
/// A connection from which nothing came for this long is given up.
const SILENT_MAX: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TcpStream>;

/// Calls functions of the main. Cheap to clone; the connection ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: BridgeOptions,
    outbox: mpsc::Sender<String>,
    state: watch::Sender<Link>,
    pending: Pending,
    hosted: Hosted,
    prefix: String,
    next: std::sync::atomic::AtomicU64,
}

type Pending = Arc<Mutex<HashMap<String, oneshot::Sender<Result<Value, CallError>>>>>;

/// The one function that we host, bound to one type of trigger.
#[derive(Clone, Debug, Default)]
struct Hosted(Arc<Mutex<Option<Function>>>);

#[derive(Clone, Debug)]
struct Function {
    name: String,
    trigger_type: String,
    calls: mpsc::Sender<Value>,
}

impl Hosted {
    fn get(&self) -> Option<Function> {
        lock(&self.0).clone()
    }

    /// What tells the other side of the function.
    fn frames(&self) -> Vec<String> {
        let Some(Function { name, trigger_type, .. }) = self.get() else {
            return Vec::new();
        };
        let function = json!({"type": "registerfunction", "id": name});
        let binding = json!({
            "type": "registertrigger", "id": name, "trigger_type": trigger_type,
            "function_id": name, "config": {},
        });
        vec![function.to_string(), binding.to_string()]
    }
}

/// How the connection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// Nobody answers yet, or any more, and why.
    #[default]
    Connecting,
    /// Nobody answers, and why.
    Down(String),
    /// Calls go through.
    Up,
}

/// Why a call has no result.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// The other side has no such function.
    NoFunction,
    /// It refused, with these words.
    Refused(String),
    /// Nobody answered; whether the call was done is not known.
    Lost(String),
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        let reason = match error {
            CallError::NoFunction => "the main does not know the store protocol".to_owned(),
            CallError::Refused(reason) | CallError::Lost(reason) => reason,
        };
        Self::Unavailable { reason }
    }
}

impl Client {
    /// Begins to connect.
    pub(super) fn start(options: BridgeOptions, entropy: &dyn Entropy) -> Result<Self, StoreError> {
        let mut random = [0; 6];
        entropy.fill(&mut random)?;
        let (outbox, waiting) = mpsc::channel(OUTBOX);
        let shared = Arc::new(Shared {
            options: options.clone(),
            outbox,
            state: watch::Sender::new(Link::default()),
            pending: Pending::default(),
            hosted: Hosted::default(),
            prefix: hex(&random),
            next: std::sync::atomic::AtomicU64::new(0),
        });
        let connection = Connection {
            options,
            state: shared.state.clone(),
            pending: shared.pending.clone(),
            hosted: shared.hosted.clone(),
        };
        tokio::spawn(connection.run(waiting));
        Ok(Self { shared })
    }

    /// Calls a function, within the configured time.
    pub(super) async fn call(&self, function: &str, data: Value) -> Result<Value, CallError> {
        self.call_within(function, data, self.shared.options.timeout).await
    }

    pub(super) async fn call_within(
        &self,
        function: &str,
        data: Value,
        most: Duration,
    ) -> Result<Value, CallError> {
        let called = async {
            self.connected().await;
            self.send(function, data).await
        };
        match tokio::time::timeout(most, called).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Lost(self.why_not())),
        }
    }

    async fn send(&self, function: &str, data: Value) -> Result<Value, CallError> {
        let id = self.fresh_id();
        let frame = json!({
            "type": "invokefunction", "invocation_id": id, "function_id": function, "data": data,
        });
        let (answer, waiting) = oneshot::channel();
        lock(&self.shared.pending).insert(id.clone(), answer);
        let forget = Forget { pending: &self.shared.pending, id: &id };
        if self.shared.outbox.send(frame.to_string()).await.is_err() {
            return Err(CallError::Lost("the bridge was closed".to_owned()));
        }
        let answer = waiting.await;
        drop(forget);
        answer.unwrap_or_else(|_| Err(CallError::Lost(LOST.to_owned())))
    }

    /// Waits until calls go through.
    async fn connected(&self) {
        let mut state = self.shared.state.subscribe();
        // The sender lives as long as this client, so this cannot fail.
        let _ = state.wait_for(|link| *link == Link::Up).await.is_ok();
    }

    /// Hosts a function that is bound to a type of trigger, now and after each reconnect; what it is called with.
    pub(super) async fn host(&self, name: &str, trigger_type: &str) -> mpsc::Receiver<Value> {
        let (calls, called) = mpsc::channel(CALLS_WAITING);
        let (name, trigger_type) = (name.to_owned(), trigger_type.to_owned());
        *lock(&self.shared.hosted.0) = Some(Function { name, trigger_type, calls });
        for frame in self.shared.hosted.frames() {
            // Where there is no connection, the frames are sent when there is one.
            let _ = self.shared.outbox.send(frame).await.is_ok();
        }
        called
    }

    /// Hears of the connection coming and going.
    pub(super) fn link(&self) -> watch::Receiver<Link> {
        self.shared.state.subscribe()
    }

    fn why_not(&self) -> String {
        let url = &self.shared.options.url;
        match &*self.shared.state.borrow() {
            Link::Up => format!("the main at {url} did not answer in time"),
            Link::Connecting => format!("the main at {url} does not answer"),
            Link::Down(reason) => format!("the main at {url} is not reachable ({reason})"),
        }
    }

    fn fresh_id(&self) -> String {
        let number = self.shared.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let prefix = &self.shared.prefix;
        let head = prefix.get(..8).unwrap_or_default();
        let middle = prefix.get(8..12).unwrap_or_default();
        format!("{head}-{middle}-4000-8000-{number:012x}")
    }
}

const LOST: &str = "the connection to the main broke; whether the call was done is not known";

/// Forgets a call that nobody waits for any more.
struct Forget<'a> {
    pending: &'a Pending,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.pending).remove(self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task that holds the connection.
struct Connection {
    options: BridgeOptions,
    state: watch::Sender<Link>,
    pending: Pending,
    hosted: Hosted,
}

impl Connection {
    async fn run(self, mut outbox: mpsc::Receiver<String>) {
        let mut retry = RETRY_FIRST;
        loop {
            let reason = match self.connect().await {
                Ok(socket) => {
                    retry = RETRY_FIRST;
                    self.state.send_replace(Link::Up);
                    self.converse(socket, &mut outbox).await
                }
                Err(reason) => reason,
            };
            self.state.send_replace(Link::Down(reason));
            for (_, answer) in lock(&self.pending).drain() {
                // Who asked may have stopped waiting.
                let _ = answer.send(Err(CallError::Lost(LOST.to_owned()))).is_ok();
            }
            if outbox.is_closed() {
                return;
            }
            tokio::time::sleep(retry).await;
            retry = (retry * 2).min(RETRY_MAX);
        }
    }

    async fn connect(&self) -> Result<Socket, String> {
        let options = &self.options;
        let address = (options.host.as_str(), options.port);
        let connected = async {
            let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let host = if options.host.contains(':') {
                format!("[{}]", options.host)
            } else {
                options.host.clone()
            };
            let url = format!("ws://{host}:{}/", options.port);
            let mut request = url.into_client_request().map_err(|error| error.to_string())?;
            if let Some(token) = &options.token {
                let value = format!("Bearer {token}").parse();
                let value = value.map_err(|_| "the token is not a header's text".to_owned())?;
                request.headers_mut().insert("authorization", value);
            }
            let mut config = WebSocketConfig::default();
            config.max_message_size = Some(MESSAGE_BYTES);
            config.max_frame_size = Some(MESSAGE_BYTES);
            let made =
                tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
            made.map(|(socket, _)| socket).map_err(|error| error.to_string())
        };
        match tokio::time::timeout(options.timeout, connected).await {
            Ok(made) => made,
            Err(_) => Err("connecting took too long".to_owned()),
        }
    }

    /// Sends and receives until the connection breaks; says why it did.
    async fn converse(&self, socket: Socket, outbox: &mut mpsc::Receiver<String>) -> String {
        let (mut sink, mut stream) = socket.split();
        let mut quiet = Duration::ZERO;
        for frame in self.hosted.frames() {
            if let Err(error) = sink.send(Message::text(frame)).await {
                return error.to_string();
            }
        }
        loop {
            tokio::select! {
                text = outbox.recv() => {
                    let Some(text) = text else { return "the bridge was closed".to_owned() };
                    if let Err(error) = sink.send(Message::text(text)).await {
                        return error.to_string();
                    }
                }
                received = tokio::time::timeout(PING_AFTER, stream.next()) => {
                    match received {
                        Ok(Some(Ok(Message::Text(text)))) => {
                            quiet = Duration::ZERO;
                            match self.take(&text) {
                                Ok(None) => {}
                                Ok(Some(answer)) => {
                                    if let Err(error) = sink.send(Message::text(answer)).await {
                                        return error.to_string();
                                    }
                                }
                                Err(reason) => return reason,
                            }
                        }
                        Ok(Some(Ok(Message::Close(_)))) | Ok(None) => return "the main closed the connection".to_owned(),
                        Ok(Some(Ok(_))) => quiet = Duration::ZERO,
                        Ok(Some(Err(error))) => return error.to_string(),
                        Err(_) => {
                            quiet += PING_AFTER;
                            if quiet >= SILENT_MAX {
                                return "the main is silent".to_owned();
                            }
                            if sink.send(Message::Ping(Vec::new().into())).await.is_err() {
                                return "the main is gone".to_owned();
                            }
                        }
                    }
                }
            }
        }
    }

    /// Takes a frame in; what to answer, or why the connection must end.
    fn take(&self, text: &str) -> Result<Option<String>, String> {
        let Ok(mut frame) = serde_json::from_str::<Value>(text) else { return Ok(None) };
        let word = |name: &str| frame.get(name).and_then(Value::as_str).unwrap_or_default();
        match word("type") {
            "invocationresult" => {
                let waiting = lock(&self.pending).remove(word("invocation_id"));
                if let Some(answer) = waiting {
                    // Who asked may have stopped waiting.
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
                // A call that is not heard would be an event that is missed; after a reconnect everything is looked at.
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
        _ => Err(CallError::Refused(word("message"))),
    }
}
