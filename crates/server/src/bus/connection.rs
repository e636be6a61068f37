//! One connection of the bus, as the other connections use it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::ids::BusId;
use crate::guard::Caller;
use crate::limits::{BUS_EVENTS_WAITING, BUS_NOTICES_WAITING, BUS_OUTBOX_MESSAGES};

/// One connection of the bus, as the other connections use it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: BusId,
    /// Sent by a worker that reconnects after its connection broke.
    pub(crate) reattach_token: BusId,
    pub(crate) caller: Caller,
    pub(crate) remote: String,
    pub(crate) connected_at_ms: i64,
    /// Calls to its functions that it has not answered.
    pub(crate) waiting: AtomicUsize,
    notices: mpsc::Sender<String>,
    outbox: mpsc::Sender<String>,
    events: mpsc::Sender<String>,
    closing: watch::Sender<Option<Closing>>,
    worker_info: Mutex<WorkerInfo>,
}

/// Why a connection ends, as it is sent to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// A code of RFC 6455.
    pub(crate) code: CloseCode,
    /// A reason for the peer's log; at most 123 bytes.
    pub(crate) reason: String,
}

/// The information that a worker sent about itself.
#[derive(Clone, Debug, Default)]
struct WorkerInfo {
    info: Value,
    takes_bytes: Option<usize>,
}

/// The ends of a connection that its writer holds.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) notices: mpsc::Receiver<String>,
    pub(crate) outbox: mpsc::Receiver<String>,
    pub(crate) events: mpsc::Receiver<String>,
    pub(crate) closing: watch::Receiver<Option<Closing>>,
}

impl Outgoing {
    /// What is to be sent next, if anything waits.
    pub(crate) fn next(&mut self) -> Result<String, mpsc::error::TryRecvError> {
        let urgent = self.notices.try_recv().or_else(|_| self.outbox.try_recv());
        urgent.or_else(|_| self.events.try_recv())
    }
}

/// The largest message for a client of an old SDK: its library closes the connection at a larger
/// one.
const OLD_CLIENT_BYTES: usize = 1024 * 1024;

impl Connection {
    pub(crate) fn new(
        (id, reattach_token): (BusId, BusId),
        caller: Caller,
        remote: String,
        connected_at_ms: i64,
    ) -> (Self, Outgoing) {
        let (notices, notices_end) = mpsc::channel(BUS_NOTICES_WAITING);
        let (outbox, outbox_end) = mpsc::channel(BUS_OUTBOX_MESSAGES);
        let (events, events_end) = mpsc::channel(BUS_EVENTS_WAITING);
        let (closing, closing_end) = watch::channel(None);
        let connection = Self {
            id,
            reattach_token,
            caller,
            remote,
            connected_at_ms,
            waiting: AtomicUsize::new(0),
            notices,
            outbox,
            events,
            closing,
            worker_info: Mutex::default(),
        };
        let outgoing = Outgoing {
            notices: notices_end,
            outbox: outbox_end,
            events: events_end,
            closing: closing_end,
        };
        (connection, outgoing)
    }

    /// Sends a notice that the worker must not miss, without waiting. If the connection cannot take it, the connection
    /// ends: a missed notice would be worse.
    pub(crate) fn notify(&self, message: String) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.notices.try_send(message) {
            tracing::warn!(worker = %self.id, "a worker does not read its messages; its connection ends");
            let reason = "too many messages wait for this connection to take them; connect again";
            self.close_because(CloseCode::Policy, reason.to_owned());
        }
    }

    /// Sends an answer; waits while the queue is full. `false` if the connection is gone.
    pub(crate) async fn send(&self, message: String) -> bool {
        self.outbox.send(message).await.is_ok()
    }

    /// Sends without waiting; `false` if the queue is full, or the connection is gone.
    pub(crate) fn try_send(&self, message: String) -> bool {
        self.outbox.try_send(message).is_ok()
    }

    /// Sends an event; waits while the queue is full. `false` if the connection is gone.
    pub(crate) async fn send_event(&self, message: String) -> bool {
        self.events.send(message).await.is_ok()
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.close_because(CloseCode::Away, String::new());
    }

    /// Ends the connection with a reason; the first reason stays.
    pub(crate) fn close_because(&self, code: CloseCode, reason: String) {
        self.closing.send_if_modified(|closing| {
            let is_first = closing.is_none();
            closing.get_or_insert(Closing { code, reason });
            is_first
        });
    }

    /// Stores the information that the worker sent about itself.
    pub(crate) fn note(&self, info: Value) {
        let word = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or_default();
        let features = info.get("features").and_then(Value::as_array);
        let is_large =
            features.is_some_and(|list| list.iter().any(|item| item == "large-messages.v1"));
        let is_small = word("runtime") == "python" && !is_large;
        let mut worker_info = self.worker_info.lock().unwrap_or_else(PoisonError::into_inner);
        worker_info.takes_bytes = is_small.then_some(OLD_CLIENT_BYTES);
        worker_info.info = info;
    }

    /// The information that the worker sent about itself.
    pub(crate) fn info(&self) -> Value {
        self.worker_info.lock().unwrap_or_else(PoisonError::into_inner).info.clone()
    }

    /// The largest message that the worker accepts, if it accepts less than others.
    pub(crate) fn takes_bytes(&self) -> Option<usize> {
        self.worker_info.lock().unwrap_or_else(PoisonError::into_inner).takes_bytes
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
