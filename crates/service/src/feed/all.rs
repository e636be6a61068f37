//! The end of the feed of all sessions, shared by all who watch it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bough_store::{ChangeCursor, ChangeWatch, Store, StoreError};

use super::all_reader::AllReader;
use super::cursor::AllPlace;
use super::event::FeedEvent;
use super::hub::FeedHub;
use super::ring::{Read, Ring};
use crate::limits::{ALL_RING_BYTES_MAX, ALL_RING_EVENTS_MAX, FEED_RECORDS_PER_READ};

/// Something in the feed of all sessions, and where a reader is after it.
#[derive(Clone, Debug)]
pub(super) struct AllItem {
    /// `None` tells of a gap: changes before this place are not known.
    pub(super) event: Option<Arc<FeedEvent>>,
    pub(super) place: AllPlace,
}

/// Reads on when something happened, once for all subscribers.
pub(super) struct AllTail {
    edge: tokio::sync::Mutex<AllReader>,
    watch: ChangeWatch,
    ring: Mutex<Shared>,
}

struct Shared {
    ring: Ring<AllItem>,
    /// Where the count began that is being read, and the number of its first item in the ring.
    start: (ChangeCursor, u64),
    /// The newest wake-up that was followed to the end.
    covers: u64,
}

impl AllTail {
    pub(super) async fn begin(
        store: Arc<dyn Store>,
        hub: Weak<FeedHub>,
    ) -> Result<Self, StoreError> {
        let watch = store.watch();
        let reader = AllReader::now(store, hub, FEED_RECORDS_PER_READ).await?;
        let now = reader.place().change.clone();
        let shared = Shared {
            ring: Ring::new(ALL_RING_EVENTS_MAX, ALL_RING_BYTES_MAX),
            start: (now, 0),
            covers: 0,
        };
        Ok(Self { edge: tokio::sync::Mutex::new(reader), watch, ring: Mutex::new(shared) })
    }

    /// Reads on, unless somebody already did for this wake-up.
    pub(super) async fn advance(&self, wake: u64) -> Result<(), StoreError> {
        if self.lock().covers >= wake {
            return Ok(());
        }
        let mut edge = self.edge.lock().await;
        if self.lock().covers >= wake {
            return Ok(());
        }
        self.read_on(&mut edge).await
    }

    /// Reads on to the end; says where that is, and the number that the ring's next item will have.
    pub(super) async fn advance_to_end(&self) -> Result<(AllPlace, u64), StoreError> {
        let mut edge = self.edge.lock().await;
        self.read_on(&mut edge).await?;
        Ok((edge.place().clone(), self.lock().ring.next()))
    }

    pub(super) fn read(&self, from: u64, limit: usize) -> Read<AllItem> {
        self.lock().ring.read(from, limit)
    }

    /// The number of the first item after a place; `None` when the ring does not reach back to it.
    pub(super) fn find(&self, place: &AllPlace) -> Option<u64> {
        let shared = self.lock();
        let (start, start_number) = &shared.start;
        if place.change.epoch != start.epoch {
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
    async fn read_on(&self, edge: &mut AllReader) -> Result<(), StoreError> {
        let wake = self.watch.newest();
        let mut more = true;
        loop {
            while let Some(items) = edge.step().await? {
                self.lock().push(items);
            }
            if !more {
                self.lock().covers = wake;
                return Ok(());
            }
            let fetched = edge.fetch().await?;
            more = fetched.more;
            self.lock().push(fetched.gap);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn push(&mut self, items: impl IntoIterator<Item = AllItem>) {
        for item in items {
            let weight = item.event.as_ref().map_or(1, |event| event.weight());
            if item.event.is_none() {
                self.start = (item.place.change.clone(), self.ring.next());
            }
            self.ring.push(item, weight);
        }
    }
}

impl AllItem {
    /// Whether it is yet to be told to who is at a place.
    fn is_after(&self, place: &AllPlace) -> bool {
        match &self.event {
            Some(event) => place.is_before(self.place.change.number, event),
            None => place.change.number < self.place.change.number,
        }
    }
}
