//! What a caller holds between the acceptance of an append and its durability.

use std::sync::Arc;

use crate::error::Result;
use crate::store::LogStore;
use crate::writer::{Ticket, Writer};
use bough_record::{Fold, Head};

/// An append that has its place in the order and is not durable yet.
#[derive(Clone, Debug)]
pub struct Pending<F: Fold = ()> {
    pub(crate) writer: Arc<Writer<F>>,
    pub(crate) ticket: Ticket,
    pub(crate) store: LogStore<F>,
}

impl<F: Fold> Pending<F> {
    /// The head that the log has with this append.
    #[must_use]
    pub fn head(&self) -> Head {
        self.ticket.head
    }

    /// The number of the delta, for a delta; 0 for records.
    #[must_use]
    pub fn delta(&self) -> u64 {
        self.ticket.delta
    }

    /// Waits until it is durable. Commits while no other thread does.
    pub fn wait(&self) -> Result<Head> {
        let head = self.writer.wait(self.ticket)?;
        self.store.maintain(&self.writer);
        Ok(head)
    }

    /// Calls `notify` once, when it is durable or never will be. This does not commit; see [`Pending::claim`].
    pub fn on_durable(&self, notify: impl FnOnce(Result<Head>) + Send + 'static) {
        self.writer.on_durable(self.ticket, Box::new(notify));
    }

    /// For callers that do not wait: `Some` when no other thread commits this log. The caller then runs the task where
    /// blocking is allowed.
    #[must_use]
    pub fn claim(&self) -> Option<CommitTask<F>> {
        let claimed = self.writer.claim_drive();
        claimed.then(|| CommitTask { writer: Arc::clone(&self.writer), store: self.store.clone() })
    }
}

/// The duty to commit one log until nothing of it waits.
#[derive(Debug)]
#[must_use]
pub struct CommitTask<F: Fold = ()> {
    writer: Arc<Writer<F>>,
    store: LogStore<F>,
}

impl<F: Fold> CommitTask<F> {
    /// Commits; blocks on the disk.
    pub fn run(self) {
        self.writer.drive_claimed();
        self.store.maintain(&self.writer);
    }
}
