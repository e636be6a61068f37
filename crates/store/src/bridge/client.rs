//! A worker on the main's bus (or its engine), with one connection that reconnects by itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bough_platform::Entropy;
use bough_session::hex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::BridgeOptions;
use super::connection::Connection;
use crate::StoreError;
use crate::sync::lock;

/// Calls that wait to be sent.
const OUTBOX: usize = 256;
/// Calls of a function of ours that wait to be handled.
const CALLS_WAITING: usize = 1024;

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
    signs: Arc<Signs>,
    prefix: String,
    next: AtomicU64,
}

/// Whether the main answers.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// How many messages of any kind arrived.
    pub(super) heard: AtomicU64,
    /// A caller waits: an idle connection pings the main, and a broken one reconnects without waiting out its pause.
    pub(super) wanted: Notify,
}

impl Signs {
    fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

pub(super) type Pending = Arc<Mutex<HashMap<String, oneshot::Sender<Result<Value, CallError>>>>>;

/// The one function that we host, bound to one type of trigger.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosted(Arc<Mutex<Option<Function>>>);

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    trigger_type: String,
    pub(super) calls: mpsc::Sender<Value>,
}

impl Hosted {
    pub(super) fn get(&self) -> Option<Function> {
        lock(&self.0).clone()
    }

    /// The frames that register the function.
    pub(super) fn frames(&self) -> Vec<String> {
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
    /// Not known yet: the first attempt to connect decides.
    #[default]
    Connecting,
    /// It just broke, and why: the next attempt to connect decides.
    Broken(String),
    /// The main does not answer, and why. Calls fail at once, so that they do not wait one after the other.
    Down(String),
    /// The main refuses us, and why. The same, and retrying does not help until its settings change.
    Refused(String),
    /// Connected, but a call was not answered and nothing else arrived. Calls fail at once until something arrives.
    Silent,
    /// Calls go through.
    Up,
}

impl Link {
    const fn is_decided(&self) -> bool {
        matches!(self, Self::Down(_) | Self::Refused(_) | Self::Silent | Self::Up)
    }
}

/// Why a call has no result.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// The other side has no such function.
    NoFunction,
    /// It refused this call, with these words.
    Refused(String),
    /// It refuses every call of ours: why, and what to change.
    Denied(String),
    /// The main did not answer; whether the call took effect is not known.
    Lost(String),
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NoFunction => {
                Self::Unavailable { reason: "the main does not know the store protocol".to_owned() }
            }
            CallError::Refused(reason) | CallError::Lost(reason) => Self::Unavailable { reason },
            CallError::Denied(reason) => Self::Refused { reason },
        }
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
            signs: Arc::default(),
            prefix: hex(&random),
            next: AtomicU64::new(0),
        });
        let connection = Connection {
            options,
            state: shared.state.clone(),
            pending: shared.pending.clone(),
            hosted: shared.hosted.clone(),
            signs: shared.signs.clone(),
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
        let heard = self.shared.signs.heard();
        let called = async {
            self.usable().await?;
            self.send(function, data).await
        };
        let in_doubt = async {
            tokio::time::sleep(most / 2).await;
            // A main that is alive but slow with this call answers a ping.
            self.shared.signs.wanted.notify_one();
            tokio::time::sleep(most / 2).await;
        };
        tokio::select! {
            biased;
            answer = called => answer,
            () = in_doubt => Err(CallError::Lost(self.not_in_time(heard))),
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

    /// Waits until it is known whether calls can be made.
    async fn usable(&self) -> Result<(), CallError> {
        let mut state = self.shared.state.subscribe();
        // This client holds the sender, so this cannot fail.
        let link = state.wait_for(Link::is_decided).await.map(|link| link.clone());
        if link.is_ok_and(|link| link == Link::Up) {
            return Ok(());
        }
        self.shared.signs.wanted.notify_one();
        match &*self.shared.state.borrow() {
            Link::Refused(reason) => Err(CallError::Denied(reason.clone())),
            _ => Err(CallError::Lost(self.why_not())),
        }
    }

    /// Waits until calls go through, without hurrying.
    pub(super) async fn connected(&self) {
        let mut state = self.shared.state.subscribe();
        // This client holds the sender, so this cannot fail.
        let _ = state.wait_for(|link| *link == Link::Up).await.is_ok();
    }

    /// The message about a call that was not answered in time. If nothing arrived since its beginning, the link becomes
    /// silent.
    fn not_in_time(&self, heard: u64) -> String {
        let why = self.why_not();
        self.shared.state.send_if_modified(|link| {
            let is_silent = *link == Link::Up && self.shared.signs.heard() == heard;
            if is_silent {
                *link = Link::Silent;
            }
            is_silent
        });
        why
    }

    /// Hosts a function that is bound to a type of trigger, now and after each reconnect; returns the receiver of its
    /// calls.
    pub(super) async fn host(&self, name: &str, trigger_type: &str) -> mpsc::Receiver<Value> {
        let (calls, called) = mpsc::channel(CALLS_WAITING);
        let (name, trigger_type) = (name.to_owned(), trigger_type.to_owned());
        *lock(&self.shared.hosted.0) = Some(Function { name, trigger_type, calls });
        for frame in self.shared.hosted.frames() {
            // Without a connection, the frames are sent when there is one.
            let _ = self.shared.outbox.send(frame).await.is_ok();
        }
        called
    }

    /// Watches the state of the connection.
    pub(super) fn link(&self) -> watch::Receiver<Link> {
        self.shared.state.subscribe()
    }

    fn why_not(&self) -> String {
        let url = &self.shared.options.url;
        match &*self.shared.state.borrow() {
            Link::Up | Link::Silent => format!("the main at {url} did not answer in time"),
            Link::Connecting => format!("the main at {url} does not answer"),
            Link::Broken(reason) | Link::Down(reason) | Link::Refused(reason) => {
                format!("the main at {url} is not reachable ({reason})")
            }
        }
    }

    fn fresh_id(&self) -> String {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let prefix = &self.shared.prefix;
        let head = prefix.get(..8).unwrap_or_default();
        let middle = prefix.get(8..12).unwrap_or_default();
        format!("{head}-{middle}-4000-8000-{number:012x}")
    }
}

pub(super) const LOST: &str =
    "the connection to the main broke; whether the call was done is not known";

/// Removes a call when its caller stops waiting.
struct Forget<'a> {
    pending: &'a Pending,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.pending).remove(self.id);
    }
}
