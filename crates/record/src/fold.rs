use std::fmt::Debug;

use crate::StoredEnvelope;

/// What a log's owner makes of its records: a value that every record, in order, changes.
///
/// The log keeps the value of the durable head, writes its snapshot into checkpoints and gives it back at
/// opening. Who appends usually has the value after the batch already and hands it over; the log applies
/// records itself only where it reads them from the disk.
pub trait Fold: Clone + Debug + Send + Sync + 'static {
    /// The value of a log before its first record.
    fn start(id: &str) -> Self;

    /// The value of a snapshot; `None` when it cannot be used, so that all records are applied again.
    fn restore(snapshot: &str) -> Option<Self>;

    /// Takes one more record into account. A record that it does not understand changes nothing.
    fn apply(&mut self, record: &StoredEnvelope<'_>);

    /// The value as one JSON value, from which [`restore`](Self::restore) makes an equal one.
    fn snapshot(&self) -> String;
}

/// For logs whose owner keeps no value.
impl Fold for () {
    fn start(_: &str) -> Self {}

    fn restore(_: &str) -> Option<Self> {
        Some(())
    }

    fn apply(&mut self, _: &StoredEnvelope<'_>) {}

    fn snapshot(&self) -> String {
        "null".to_owned()
    }
}
