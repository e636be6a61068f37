//! Reading again what was there to see before.

use crate::limits::{FEED_SHORT_READ_PAUSE, FEED_SHORT_READS_MAX};

/// A bounded number of reads, with a pause between two.
///
/// While a writer takes a log over that another process left, readers see it as far as it is known to be durable, which may be
/// less than was there to see before. Whoever was told of more reads it again a little later.
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
