use bough_service::{Delivery, FeedCursor, FeedItem, Subscription as FeedSubscription};

use crate::Error;

/// A subscription to the changes of sessions: a cursor and a wake-up. Nothing is queued for it, so a slow reader
/// does not slow others down.
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
