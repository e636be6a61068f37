//! A conversation over lines: each message of either side is one line of JSON.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::host::{Changes, Host};
use crate::limits::{CHANGES_RETRY, END_WAIT, LINE_BYTES_MAX, REQUESTS_AT_ONCE, SUBSCRIPTIONS_MAX};
use crate::protocol::{Wire, answer, check_stateless, named_in};
use crate::rpc::{Message, Request, RpcError, error_text, result_text};
use crate::subscriptions::{LISTEN, Subscriptions};

/// A line of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes, without the line break.
    Bytes(Vec<u8>),
    /// It had more than [`LINE_BYTES_MAX`] bytes.
    TooLong,
}

/// Serves one client until its input ends, or our output is closed.
///
/// Requests run concurrently. When the client goes, running requests are completed, within a time limit.
pub async fn converse(
    host: Arc<dyn Host>,
    mut incoming: mpsc::Receiver<Line>,
    outgoing: mpsc::Sender<String>,
) {
    let mut talk = Conversation::new(host, outgoing.clone());
    loop {
        tokio::select! {
            () = outgoing.closed() => return,
            line = incoming.recv(), if talk.working.len() < REQUESTS_AT_ONCE => match line {
                Some(line) => talk.take(line).await,
                None => break,
            },
            Some(done) = talk.working.next() => talk.finish(done).await,
            Some(changes) = talk.changes.recv() => talk.notify(&changes).await,
        }
    }
    let rest = async {
        while let Some(done) = talk.working.next().await {
            talk.finish(done).await;
        }
    };
    // A later one ends with the process; a write that has begun is whole or not there.
    drop(tokio::time::timeout(END_WAIT, rest).await);
}

/// The id of a request, and its answer; `None` if the client cancelled it.
type Done = (Value, Option<Result<Value, RpcError>>);
type Working = Pin<Box<dyn Future<Output = Done> + Send>>;

struct Conversation {
    host: Arc<dyn Host>,
    outgoing: mpsc::Sender<String>,
    /// Whether the client shook hands.
    has_shaken: bool,
    working: FuturesUnordered<Working>,
    /// Cancels a request, by its id.
    abort: HashMap<String, AbortHandle>,
    /// What a client that shook hands follows.
    followed: Subscriptions,
    /// What requests listen to, by their ids.
    listeners: HashMap<String, Subscriptions>,
    changes: mpsc::Receiver<Changes>,
    /// Taken by the task that polls for changes, once the client subscribes.
    notify_changes: Option<mpsc::Sender<Changes>>,
}

impl Conversation {
    fn new(host: Arc<dyn Host>, outgoing: mpsc::Sender<String>) -> Self {
        let (notify_changes, changes) = mpsc::channel(1);
        Self {
            host,
            outgoing,
            has_shaken: false,
            working: FuturesUnordered::new(),
            abort: HashMap::new(),
            followed: Subscriptions::of_handshake(),
            listeners: HashMap::new(),
            changes,
            notify_changes: Some(notify_changes),
        }
    }

    async fn say(&self, text: String) {
        // If this fails, the client is gone.
        drop(self.outgoing.send(text).await);
    }

    async fn take(&mut self, line: Line) {
        let Line::Bytes(bytes) = line else {
            let text = format!("a message has at most {LINE_BYTES_MAX} bytes; send less at once");
            let error = RpcError::new(RpcError::INVALID_REQUEST, text);
            return self.say(error_text(&Value::Null, &error)).await;
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match Message::parse(&bytes) {
            Ok(Message::Request(request)) => self.begin(request).await,
            Ok(Message::Notification { method, params }) => self.note(&method, &params),
            Ok(Message::Answer) => {}
            Err((id, error)) => self.say(error_text(&id, &error)).await,
        }
    }

    /// How a request is to be understood.
    fn wire_of(&self, request: &Request) -> Result<Wire, RpcError> {
        let handshake = Wire::Handshake { subscribes: true };
        match request.method.as_str() {
            "initialize" | "ping" if named_in(&request.params).is_none() => Ok(handshake),
            _ if self.has_shaken && named_in(&request.params).is_none() => Ok(handshake),
            "server/discover" => check_stateless(request).map(|()| Wire::Stateless),
            _ if named_in(&request.params).is_some() => {
                check_stateless(request).map(|()| Wire::Stateless)
            }
            _ => {
                let text = "send `initialize` first, or name the version in `params._meta`";
                Err(RpcError::new(RpcError::INVALID_REQUEST, text))
            }
        }
    }

    async fn begin(&mut self, request: Request) {
        let wire = match self.wire_of(&request) {
            Ok(wire) => wire,
            Err(error) => return self.say(error_text(&request.id, &error)).await,
        };
        let now = match (wire, request.method.as_str()) {
            (Wire::Stateless, LISTEN) => return self.listen(request).await,
            (Wire::Stateless, _) => None,
            (Wire::Handshake { .. }, _) => self.followed.change(&*self.host, &request).await,
        };
        if let Some(done) = now {
            return self.finish((request.id, Some(done))).await;
        }
        if request.method == "initialize" {
            self.has_shaken = true;
            self.watch().await;
        }
        let (handle, registration) = AbortHandle::new_pair();
        self.abort.insert(request.id.to_string(), handle);
        let host = self.host.clone();
        self.working.push(Box::pin(async move {
            let work = Abortable::new(answer(&*host, wire, &request), registration);
            let done = work.await.ok();
            (request.id, done)
        }));
    }

    async fn finish(&mut self, (id, done): Done) {
        self.abort.remove(&id.to_string());
        match done {
            Some(Ok(result)) => self.say(result_text(&id, &result)).await,
            Some(Err(error)) => self.say(error_text(&id, &error)).await,
            None => {}
        }
    }

    /// Cancels a request that the client does not want answered any more.
    fn note(&mut self, method: &str, params: &Map<String, Value>) {
        if method != "notifications/cancelled" {
            return;
        }
        let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
        self.listeners.remove(&id);
        if let Some(handle) = self.abort.remove(&id) {
            handle.abort();
        }
    }

    async fn listen(&mut self, request: Request) {
        self.watch().await;
        let wanted = if self.listeners.len() < SUBSCRIPTIONS_MAX {
            Subscriptions::listen(&*self.host, &request).await
        } else {
            let text = format!("at most {SUBSCRIPTIONS_MAX} requests can listen at once");
            Err(RpcError::bad_params(text))
        };
        match wanted {
            Ok((wanted, acknowledged)) => {
                self.listeners.insert(request.id.to_string(), wanted);
                self.say(acknowledged).await;
            }
            Err(error) => self.say(error_text(&request.id, &error)).await,
        }
    }

    /// Starts to poll for changes, unless that was started before.
    async fn watch(&mut self) {
        let Some(notify) = self.notify_changes.take() else { return };
        let host = self.host.clone();
        let mut position = host.changes(None).await.ok().map(|changes| changes.next);
        drop(tokio::spawn(async move {
            loop {
                let changes = tokio::select! {
                    () = notify.closed() => return,
                    changes = host.changes(position.as_deref()) => changes,
                };
                match changes {
                    Ok(changes) => {
                        position = Some(changes.next.clone());
                        if notify.send(changes).await.is_err() {
                            return;
                        }
                    }
                    Err(_) => tokio::time::sleep(CHANGES_RETRY).await,
                }
            }
        }));
    }

    async fn notify(&self, changes: &Changes) {
        let followed = self.has_shaken.then_some(&self.followed);
        for wanted in followed.into_iter().chain(self.listeners.values()) {
            for text in wanted.notifications(changes) {
                self.say(text).await;
            }
        }
    }
}
