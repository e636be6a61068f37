//! Writes that the store has accepted but not made durable yet.

use std::collections::HashMap;

use bough_session::{Entry, EntryId, RequestDigest};
use bough_store::{Head, Position, StoreError};
use tokio::sync::watch;

/// Where a session is after a write.
pub(crate) type WriteEnd = (Head, Position);

type Outcome = Option<Result<(), StoreError>>;

/// The wait for one accepted write, shared by all who depend on it.
#[derive(Clone)]
pub(crate) struct CommitWaiter(watch::Receiver<Outcome>);

/// The other end of a [`CommitWaiter`].
pub(crate) struct CommitNotifier {
    /// The number of the write in its session.
    pub(super) number: u64,
    /// What the store announces when the write is durable.
    pub(crate) announced: WriteEnd,
    outcome: watch::Sender<Outcome>,
}

/// Entries of writes that are not durable yet, so that no read shows them; each with the number of its write.
pub(super) type UncommittedEntries = HashMap<EntryId, (u64, UncommittedEntry)>;

/// What a command needs to know of such an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UncommittedEntry {
    pub(crate) parent_id: Option<EntryId>,
    pub(crate) timestamp: i64,
    pub(crate) revision: u64,
    pub(crate) digest: Option<RequestDigest>,
    /// Whether it is hidden. Only a caller that adds it again finds it.
    pub(crate) is_hidden: bool,
}

impl From<&Entry> for UncommittedEntry {
    fn from(entry: &Entry) -> Self {
        Self {
            parent_id: entry.parent_id.clone(),
            timestamp: entry.timestamp,
            revision: entry.revision,
            digest: entry.marks.digest,
            is_hidden: entry.is_hidden(),
        }
    }
}

impl UncommittedEntry {
    /// An entry that is being hidden.
    pub(crate) const fn hidden() -> Self {
        Self { parent_id: None, timestamp: 0, revision: 0, digest: None, is_hidden: true }
    }
}

impl CommitNotifier {
    /// The two ends of the wait for a write.
    pub(super) fn new(number: u64, announced: WriteEnd) -> (Self, CommitWaiter) {
        let (outcome, receiver) = watch::channel(None);
        (Self { number, announced, outcome }, CommitWaiter(receiver))
    }

    /// Wakes all who wait.
    pub(super) fn notify(self, outcome: Result<(), StoreError>) {
        self.outcome.send_replace(Some(outcome));
    }
}

impl CommitWaiter {
    /// Waits until the write is durable, or has failed.
    pub(crate) async fn wait(mut self) -> Result<(), StoreError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            // The task that waited for the disk is gone, because the runtime is shutting down.
            Err(_) => {
                Err(StoreError::Unavailable { reason: "the service is shutting down".to_owned() })
            }
        }
    }
}
