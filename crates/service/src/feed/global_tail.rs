//! The end of the feed of all sessions, shared by all who follow it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bough_store::{ChangeCursor, ChangeWatch, StoreError};
use tokio::time::Sleep;

use super::cursor::GlobalPosition;
use super::event::FeedEvent;
use super::global_reader::GlobalFeedReader;
use super::ring::{Read, Ring};
use crate::limits::{
    FEED_RECORDS_PER_READ, GLOBAL_PAUSE_MAX, GLOBAL_PAUSE_PER_EVENT, GLOBAL_RING_BYTES_MAX,
    GLOBAL_RING_EVENTS_MAX,
};
use crate::open_session::OpenSessions;

/// Something in the feed of all sessions, and where a reader is after it.
#[derive(Clone, Debug)]
pub(super) struct GlobalFeedItem {
    /// `None` is a gap: changes before this place are not known.
    pub(super) event: Option<Arc<FeedEvent>>,
    pub(super) place: GlobalPosition,
}

/// Reads on when something happened, once for all subscribers.
pub(crate) struct GlobalFeedTail {
    edge: tokio::sync::Mutex<GlobalFeedReader>,
    watch: ChangeWatch,
    /// Ends when the next round may begin that somebody was woken for.
    rest: tokio::sync::Mutex<Option<Pin<Box<Sleep>>>>,
    ring: Mutex<Shared>,
}

struct Shared {
    ring: Ring<GlobalFeedItem>,
    /// Where the count began that is being read, and the number of its first item in the ring.
    start: (ChangeCursor, u64),
    /// The newest wake-up that was followed to the end.
    covers: u64,
}

impl GlobalFeedTail {
    pub(crate) async fn begin(sessions: Arc<OpenSessions>) -> Result<Self, StoreError> {
        let watch = sessions.store().watch();
        let reader = GlobalFeedReader::now(sessions, FEED_RECORDS_PER_READ).await?;
        let now = reader.place().change.clone();
        let shared = Shared {
            ring: Ring::new(GLOBAL_RING_EVENTS_MAX, GLOBAL_RING_BYTES_MAX),
            start: (now, 0),
            covers: 0,
        };
        let (edge, rest) = (tokio::sync::Mutex::new(reader), tokio::sync::Mutex::default());
        Ok(Self { edge, watch, rest, ring: Mutex::new(shared) })
    }

    /// Reads on, unless somebody already did for this wake-up.
    pub(super) async fn advance(&self, wake: u64) -> Result<(), StoreError> {
        if self.lock().covers >= wake {
            return Ok(());
        }
        self.rest().await;
        let mut edge = self.edge.lock().await;
        if self.lock().covers >= wake {
            return Ok(());
        }
        self.read_on(&mut edge).await
    }

    /// Reads on to the end; says where that is, and the number that the ring's next item will have.
    pub(super) async fn advance_to_end(&self) -> Result<(GlobalPosition, u64), StoreError> {
        let mut edge = self.edge.lock().await;
        self.read_on(&mut edge).await?;
        Ok((edge.place().clone(), self.lock().ring.next()))
    }

    /// Reads on to the end. A tail that cannot read now tries again when a subscriber asks.
    pub(crate) async fn catch_up(&self) {
        drop(self.advance_to_end().await);
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<GlobalFeedItem> {
        self.lock().ring.read(from, limit)
    }

    /// Whether the item with this number has fallen out of the ring.
    pub(super) fn has_lost(&self, number: u64) -> bool {
        number < self.lock().ring.first()
    }

    /// The number of the first item after a change; `None` when the ring does not reach back to it.
    pub(super) fn find(&self, place: &GlobalPosition) -> Option<u64> {
        let shared = self.lock();
        let (start, start_number) = &shared.start;
        if place.change.epoch != start.epoch || place.inside.is_some() {
            return None;
        }
        let items = || shared.ring.iter().filter(|(number, _)| number >= start_number);
        let whole = shared.ring.first() <= *start_number && start.number <= place.change.number;
        let reaches = whole || items().any(|(_, item)| !item.is_after(place));
        let first = items().find(|(_, item)| item.is_after(place));
        reaches.then(|| first.map_or_else(|| shared.ring.next(), |(number, _)| number))
    }

    /// Reads what there is when it begins. What comes while it reads is for the next round: a store that is never still would
    /// keep it for ever.
    async fn read_on(&self, edge: &mut GlobalFeedReader) -> Result<(), StoreError> {
        let wake = self.watch.newest();
        let (mut found, mut more) = (0, true);
        loop {
            while let Some(items) = edge.step().await? {
                found += items.len();
                self.lock().push(items);
            }
            if !more {
                self.lock().covers = wake;
                self.rest_for(found);
                return Ok(());
            }
            let fetched = edge.fetch().await?;
            more = fetched.more;
            self.lock().push(fetched.gap);
        }
    }

    /// Waits until the rest after the last round is over. Who comes meanwhile waits with it.
    async fn rest(&self) {
        let mut rest = self.rest.lock().await;
        if let Some(sleep) = rest.as_mut() {
            sleep.await;
            *rest = None;
        }
    }

    /// Begins the rest after a round, unless there is one that is not over.
    fn rest_for(&self, found: usize) {
        if let Ok(mut rest) = self.rest.try_lock()
            && rest.as_ref().is_none_or(|sleep| sleep.is_elapsed())
        {
            *rest = (found > 0).then(|| Box::pin(tokio::time::sleep(rest_after(found))));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn push(&mut self, items: impl IntoIterator<Item = GlobalFeedItem>) {
        for item in items {
            let weight = item.event.as_ref().map_or(1, |event| event.weight());
            if item.event.is_none() {
                self.start = (item.place.change.clone(), self.ring.next());
            }
            self.ring.push(item, weight);
        }
    }
}

/// The rest after a round that found so many events.
fn rest_after(found: usize) -> Duration {
    let events = u32::try_from(found).unwrap_or(u32::MAX);
    GLOBAL_PAUSE_PER_EVENT.saturating_mul(events).min(GLOBAL_PAUSE_MAX)
}

impl GlobalFeedItem {
    /// Whether it is yet to be delivered to a subscriber at a place.
    fn is_after(&self, place: &GlobalPosition) -> bool {
        match &self.event {
            Some(event) => place.is_before(self.place.change.number, event),
            None => place.change.number < self.place.change.number,
        }
    }
}
