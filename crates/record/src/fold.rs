use std::fmt::Debug;

use crate::StoredEnvelope;

/// A value that the owner of a log computes from its records, one record at a time and in order.
///
/// The log keeps the value of the durable head, writes its snapshot into checkpoints and returns it when the log is
/// opened. A caller that appends usually knows the value after the batch and passes it along. The log applies records
/// itself only when it reads them from the disk.
pub trait Fold: Clone + Debug + Send + Sync + 'static {
    /// The value of a log before its first record.
    fn start(id: &str) -> Self;

    /// The value of a snapshot. Returns `None` if the snapshot cannot be used; then all records are applied again.
    fn restore(snapshot: &str) -> Option<Self>;

    /// Applies one more record. A record that the fold does not understand changes nothing.
    fn apply(&mut self, record: &StoredEnvelope<'_>);

    /// The value as one JSON value, from which [`restore`](Self::restore) makes an equal one.
    fn snapshot(&self) -> String;

    /// Whether the log stays locked while nobody appends to it. Otherwise an idle log may be closed, and then another
    /// process may write it.
    fn keeps_lock(&self) -> bool {
        false
    }
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
