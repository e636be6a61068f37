//! Reading again what was there to see before.

use std::future::Future;

use bough_store::StoreError;

use crate::limits::{FEED_SHORT_READ_PAUSE, FEED_SHORT_READS_MAX};

/// Reads until nothing is missing, a bounded number of times; what it read last.
///
/// While a writer takes a log over that another process left, readers see it as far as it is known to be durable, which may be
/// less than was there to see before. Whoever was told of more reads it again a little later.
pub(super) async fn read_until_whole<T, Reading>(
    read: impl Fn() -> Reading,
    is_short: impl Fn(&T) -> bool,
) -> Result<T, StoreError>
where
    Reading: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..FEED_SHORT_READS_MAX {
        let found = read().await?;
        if !is_short(&found) {
            return Ok(found);
        }
        tokio::time::sleep(FEED_SHORT_READ_PAUSE).await;
    }
    read().await
}
