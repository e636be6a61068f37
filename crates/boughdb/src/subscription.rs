use bough_service::{Delivery, FeedCursor, FeedItem, Subscription as FeedSubscription};

use crate::Error;

/// A subscription to the changes of sessions: a cursor and a wake-up. Nothing is queued for it, so a slow reader
/// does not slow others down.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::{Bough, EventKind, StartAt, user};
///
/// let session = Bough::in_memory()?.create("Weather").await?;
/// let mut live = session.watch().await?;
/// session.append(user("Will it rain?")).await?;
/// let added = live.next().await?;
/// assert_eq!(added.event.kind(), EventKind::MessageAdded);
///
/// // A reader that went away goes on after the last event that it saw.
/// drop(live);
/// session.append(user("Tomorrow, I mean.")).await?;
/// let mut again = session.watch_from(StartAt::After(added.cursor)).await?;
/// assert_eq!(again.next().await?.event.kind(), EventKind::MessageAdded);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    feed: FeedSubscription,
}

impl Subscription {
    pub(crate) const fn new(feed: FeedSubscription) -> Self {
        Self { feed }
    }

    /// Waits for the next event. This skips gaps; [`Subscription::next_item`] reports them.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        loop {
            if let FeedItem::Event(delivery) = self.feed.next().await? {
                return Ok(delivery);
            }
        }
    }

    /// Waits for the next item: an event, a gap, or a part of a snapshot.
    pub async fn next_item(&mut self) -> Result<FeedItem, Error> {
        Ok(self.feed.next().await?)
    }

    /// Where to resume later, with [`StartAt::After`](crate::StartAt::After).
    #[must_use]
    pub fn cursor(&self) -> Option<FeedCursor> {
        self.feed.cursor()
    }
}
