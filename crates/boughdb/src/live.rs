use bough_service::{Delivery, FeedCursor, FeedItem, Subscription};

use crate::Error;

/// Sessions as they change: a cursor and a wake-up. Nothing is queued for it, so that a slow reader slows nobody.
#[derive(Debug)]
pub struct Live {
    subscription: Subscription,
}

impl Live {
    pub(crate) const fn new(subscription: Subscription) -> Self {
        Self { subscription }
    }

    /// The next event; waits for it. A gap, where there is one, is passed over: use [`Live::next_item`] to hear of it.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        loop {
            if let FeedItem::Event(delivery) = self.subscription.next().await? {
                return Ok(delivery);
            }
        }
    }

    /// The next item: an event, a gap, or a part of a snapshot.
    pub async fn next_item(&mut self) -> Result<FeedItem, Error> {
        Ok(self.subscription.next().await?)
    }

    /// Where to go on later, with [`StartAt::After`](crate::StartAt::After).
    #[must_use]
    pub fn cursor(&self) -> Option<FeedCursor> {
        self.subscription.cursor()
    }
}
