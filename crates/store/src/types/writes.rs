//! What is written, and the answer to it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bough_record::{Envelope, Head, Position};
use bough_session::limits::{BATCH_BYTES_MAX, check_batch_bytes, check_batch_records};
use bough_session::{Delta, NewRecord, Record, SessionState, codec};

use crate::StoreError;

/// Records to append, and what the session is after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The records, in order.
    pub records: Vec<NewRecord>,
    /// The state after the last of them, where the caller has folded it. A store that keeps states takes it over; the fold is
    /// not done twice.
    pub state: Option<Arc<SessionState>>,
}

impl From<Vec<NewRecord>> for Batch {
    fn from(records: Vec<NewRecord>) -> Self {
        Self { records, state: None }
    }
}

/// One write to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Begins the session with its first records, the first of which is a [`Record::Meta`]. All of them are one batch, however
    /// many: after a crash there is the whole session or none.
    ///
    /// `Exists` when the id is in use. The id of a deleted session is free and begins a new incarnation.
    Create(Batch),
    /// Appends a batch, if `expected` is the head that the last accepted write left.
    ///
    /// `Conflict` with that head otherwise, and nothing is written. A store may put the steps of a stream together into
    /// a record by itself, which moves the head: a caller that meets a conflict looks again and retries.
    Append {
        /// Where the log must end.
        expected: Head,
        /// What is appended.
        batch: Batch,
    },
    /// Replaces the session that ends at `expected` by one with these records: a new incarnation, and what the old one
    /// held beyond it is gone for good. Readers see one or the other, also after a crash.
    ///
    /// `Conflict` when the session ends elsewhere, and nothing is changed.
    Replace {
        /// Where the old log must end.
        expected: Head,
        /// The records of the new one, the first of which is a [`Record::Meta`].
        batch: Batch,
    },
    /// Adds one step of a stream to a message, if the message is at the revision before it, counting the steps that were
    /// accepted and are not yet durable. `RevisionConflict` otherwise.
    ///
    /// The step is acknowledged, kept and shown like a record, in space proportional to what it changes. Whether and when
    /// steps become one record is decided by the store.
    Step(Delta),
}

impl Write {
    /// Refuses what no store takes, before anything is looked at.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Create(batch) | Self::Replace { batch, .. } => check_first(&batch.records),
            Self::Append { batch, .. } => check_batch(&batch.records),
            Self::Step(_) => Ok(()),
        }
    }
}

/// An append that was accepted: it has its place, and no other can take it.
#[derive(Debug)]
pub struct Appended {
    /// The head after the batch; what the next append expects.
    pub head: Head,
    /// The feed's position after the batch.
    pub position: Position,
    /// Resolves when the batch is durable, or has failed. Only then may it be announced.
    pub durable: Durable,
}

/// The wait until an accepted batch is durable. Dropping it does not take the batch back.
pub struct Durable(Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'static>>);

impl Durable {
    /// A wait for `future`.
    pub fn new(future: impl Future<Output = Result<(), StoreError>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    /// No wait: it is durable already.
    #[must_use]
    pub fn ready() -> Self {
        Self::new(std::future::ready(Ok(())))
    }
}

impl Future for Durable {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Durable")
    }
}

/// Refuses a batch that is empty or too large.
pub(crate) fn check_batch(records: &[NewRecord]) -> Result<(), StoreError> {
    check_count(records)?;
    let sizes = records.iter().map(|new| match new.record.as_entry() {
        // As the rules count it.
        Some(entry) => entry.bytes(),
        None => codec::encode(&new.record, new.at_ms).payload.len(),
    });
    Ok(check_batch_bytes(sizes.sum())?)
}

/// The same for a batch whose stored form is known. A batch that fits as it is stored is not encoded once more to be counted.
pub(crate) fn check_stored(
    records: &[NewRecord],
    stored: &[Envelope<'_>],
) -> Result<(), StoreError> {
    /// What the names of members may add to a record where the rules count it.
    const NAMES_BYTES_MAX: usize = 16;
    check_count(records)?;
    let most = stored.iter().map(|record| record.payload.len() + NAMES_BYTES_MAX).sum::<usize>();
    // A record of a later version is stored as it came, which may be shorter than what is counted of it.
    let is_newer = |new: &NewRecord| matches!(new.record, Record::Newer { .. });
    if most <= BATCH_BYTES_MAX && !records.iter().any(is_newer) {
        return Ok(());
    }
    check_batch(records)
}

fn check_count(records: &[NewRecord]) -> Result<(), StoreError> {
    if records.is_empty() {
        return Err(StoreError::invalid("a batch must have at least one record"));
    }
    Ok(check_batch_records(records.len())?)
}

/// Refuses the first records of a session that do not begin with its own.
pub(crate) fn check_first(records: &[NewRecord]) -> Result<(), StoreError> {
    let first = records.first().map(|new| new.record.known());
    if matches!(first, Some(Record::Meta(_))) {
        return Ok(());
    }
    Err(StoreError::invalid("the first record of a session must be a meta record"))
}
