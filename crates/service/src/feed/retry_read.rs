//! Repeating a read that shows less than an earlier one.

use crate::limits::{FEED_SHORT_READ_PAUSE, FEED_SHORT_READS_MAX};

/// A bounded number of reads, with a pause between two.
///
/// While a writer takes over a log that another process left, readers get the part that is known to be durable, which may be
/// less than an earlier read returned. A reader that knows of more repeats the read a little later.
#[derive(Default)]
pub(super) struct ShortReads(u32);

impl ShortReads {
    /// Waits before a short read is repeated; `false` when it was repeated often enough.
    pub(super) async fn may_repeat(&mut self) -> bool {
        self.0 += 1;
        if self.0 < FEED_SHORT_READS_MAX {
            tokio::time::sleep(FEED_SHORT_READ_PAUSE).await;
        }
        self.0 < FEED_SHORT_READS_MAX
    }
}
