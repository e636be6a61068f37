//! The end of a feed, shared by its subscribers.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bough_store::{StoreError, Wake};
use tokio::time::Sleep;

use super::cursor::{FeedPosition, SessionCursor};
use super::reader::{Feed, FeedReader, ReadItem, Watch};
use crate::lock::lock;
use crate::ring::{Read, Ring};

/// Reads on when something happened, once for all subscribers, and keeps the newest items for them.
pub(crate) struct FeedTail {
    pub(super) feed: Feed,
    reader: tokio::sync::Mutex<FeedReader>,
    watch: Watch,
    /// The pause after a round; the next one may begin when it is over.
    pause: tokio::sync::Mutex<Option<Pin<Box<Sleep>>>>,
    shared: Mutex<Shared>,
}

/// The tail of a feed, while it has a subscriber.
#[derive(Default)]
pub(crate) struct SharedTail(Mutex<Weak<FeedTail>>);

struct Shared {
    ring: Ring<ReadItem>,
    /// Where the first item follows that was ever in the ring.
    start: Option<FeedPosition>,
    /// Where a reader is after the newest item of the ring.
    end: Option<FeedPosition>,
    /// The newest wake-up after which everything was read.
    newest_handled: u64,
}

impl SharedTail {
    /// The tail that others share, or a new one that begins now.
    pub(crate) async fn follow(&self, feed: Feed) -> Result<Arc<FeedTail>, StoreError> {
        if let Some(tail) = self.current() {
            return Ok(tail);
        }
        let begun = Arc::new(FeedTail::begin(feed).await?);
        let mut shared = lock(&self.0);
        if let Some(theirs) = shared.upgrade() {
            return Ok(theirs);
        }
        *shared = Arc::downgrade(&begun);
        Ok(begun)
    }

    /// The tail, if it has a subscriber.
    fn current(&self) -> Option<Arc<FeedTail>> {
        lock(&self.0).upgrade()
    }

    pub(crate) fn is_followed(&self) -> bool {
        lock(&self.0).strong_count() > 0
    }

    /// Reads on to the end, if it has a subscriber. A tail that cannot read now tries again when a subscriber asks.
    pub(crate) async fn catch_up(&self) {
        if let Some(tail) = self.current() {
            drop(tail.advance_to_end().await);
        }
    }
}

impl FeedTail {
    /// A tail that begins now.
    async fn begin(feed: Feed) -> Result<Self, StoreError> {
        let watch = feed.watch();
        let reader = feed.reader_now().await?;
        let now = reader.position();
        let shared = Shared { ring: feed.ring(), start: now.clone(), end: now, newest_handled: 0 };
        Ok(Self {
            feed,
            reader: tokio::sync::Mutex::new(reader),
            watch,
            pause: tokio::sync::Mutex::default(),
            shared: Mutex::new(shared),
        })
    }

    /// Reads on, unless another subscriber already did for this wake-up.
    pub(super) async fn advance(&self, wake: Wake) -> Result<(), StoreError> {
        if self.shared().newest_handled >= wake.count {
            return Ok(());
        }
        self.end_pause().await;
        let mut reader = self.reader.lock().await;
        if self.shared().newest_handled >= wake.count {
            return Ok(());
        }
        // How far a session is durable, if the wake-up says that and nothing else happened.
        let announced = wake.end.filter(|end| !end.deleted);
        let announced = announced.map(|end| SessionCursor::at(end.incarnation, end.position));
        let end = reader.position().zip(announced.map(FeedPosition::Session));
        if end.is_none_or(|(end, announced)| end.covers(&announced) != Some(true)) {
            self.read_on(&mut reader, announced).await?;
        }
        let mut shared = self.shared();
        shared.newest_handled = shared.newest_handled.max(wake.count);
        Ok(())
    }

    /// Reads on to the end, whatever was woken; says where that is, and the number that the ring's next item will have.
    pub(super) async fn advance_to_end(&self) -> Result<(Option<FeedPosition>, u64), StoreError> {
        let mut reader = self.reader.lock().await;
        self.read_on(&mut reader, None).await?;
        let shared = self.shared();
        Ok((shared.end.clone(), shared.ring.next()))
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<ReadItem> {
        self.shared().ring.read(from, limit)
    }

    /// Whether the item with this number has fallen out of the ring.
    pub(super) fn has_lost(&self, number: u64) -> bool {
        number < self.shared().ring.first()
    }

    /// Whether the tail of a session has not read as far as a position.
    pub(super) fn ends_before(&self, position: Option<&FeedPosition>) -> bool {
        position.is_some_and(|position| self.shared().ends_before(position))
    }

    /// The number of the first item that a subscriber at a position does not know; `None` when the ring does not reach back to
    /// it, or not as far as the position yet. An item that the subscriber knows proves that it reaches back.
    pub(super) fn find(&self, position: Option<&FeedPosition>) -> Option<u64> {
        let shared = self.shared();
        let next = shared.ring.next();
        if position == shared.end.as_ref() {
            return Some(next);
        }
        let position = position.filter(|position| !position.is_inside_change())?;
        if shared.ends_before(position) {
            return None;
        }
        let covers_start = |start| position.covers(start) == Some(true);
        let mut reaches =
            shared.ring.first() == 0 && shared.start.as_ref().is_some_and(covers_start);
        for (number, item) in shared.ring.iter() {
            let is_known = position.knows(item);
            if reaches && !is_known {
                return Some(number);
            }
            reaches |= is_known;
        }
        reaches.then_some(next)
    }

    /// Reads what there is when it begins. What comes while it reads is for the next round: a store that is never still would
    /// keep it for ever.
    async fn read_on(
        &self,
        reader: &mut FeedReader,
        announced: Option<SessionCursor>,
    ) -> Result<(), StoreError> {
        let newest = self.watch.newest();
        let (mut found, mut more) = (0, true);
        while more {
            let page = reader.read(announced).await?;
            (found, more) = (found + page.items.len(), page.more);
            self.shared().push(page.items, reader.position());
        }
        let mut shared = self.shared();
        shared.newest_handled = shared.newest_handled.max(newest);
        drop(shared);
        self.begin_pause(found);
        Ok(())
    }

    /// Waits until the pause after the last round is over. Callers that come meanwhile wait too.
    async fn end_pause(&self) {
        let mut pause = self.pause.lock().await;
        if let Some(sleep) = pause.as_mut() {
            sleep.await;
            *pause = None;
        }
    }

    /// Begins the pause after a round, unless there is one that is not over.
    fn begin_pause(&self, found: usize) {
        let length = self.feed.pause_after(found);
        if let Ok(mut pause) = self.pause.try_lock()
            && pause.as_ref().is_none_or(|sleep| sleep.is_elapsed())
        {
            *pause = (!length.is_zero()).then(|| Box::pin(tokio::time::sleep(length)));
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

impl Shared {
    fn push(&mut self, items: Vec<ReadItem>, end: Option<FeedPosition>) {
        for item in items {
            let weight = item.weight();
            self.ring.push(item, weight);
        }
        self.end = end;
    }

    fn ends_before(&self, position: &FeedPosition) -> bool {
        // For the changes of all sessions, the store itself reports that they end before a position.
        let is_before = |end: &FeedPosition| end.covers(position) == Some(false);
        matches!(position, FeedPosition::Session(_)) && self.end.as_ref().is_some_and(is_before)
    }
}
