//! How a subscriber reads the feed of all sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_store::{ChangeCursor, ChangeWatch};

use super::cursor::{FeedCursor, GlobalCursor, GlobalPosition};
use super::event::FeedEvent;
use super::global_reader::GlobalFeedReader;
use super::global_tail::{GlobalFeedItem, GlobalFeedTail};
use super::ring::Read;
use super::subscription::{Delivery, FeedItem, GapReason, StartAt};
use crate::error::ServiceError;
use crate::limits::{FEED_COLD_RECORDS_PER_READ, FEED_PAGE};
use crate::runtime::Runtime;

pub(super) struct GlobalFeedSubscriber {
    tail: Arc<GlobalFeedTail>,
    watch: ChangeWatch,
    /// How far was read.
    at: GlobalPosition,
    reading: Reading,
    /// The newest thing that happened and that the tail has yet to follow.
    wake: Option<u64>,
}

/// From where a subscriber reads.
enum Reading {
    /// From the ring, from this number on.
    Ring(u64),
    /// From the store, until it meets the ring.
    Store(Box<GlobalFeedReader>),
}

impl GlobalFeedSubscriber {
    pub(super) async fn begin(
        runtime: &Arc<Runtime>,
        start: StartAt,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<Self, ServiceError> {
        // The watch comes first: what happens while we look around wakes it.
        let watch = runtime.store.watch();
        let tail = runtime.sessions.global_tail().await?;
        let (now, number) = tail.advance_to_end().await?;
        let mut source = Self { tail, watch, at: now, reading: Reading::Ring(number), wake: None };
        match start {
            StartAt::Now | StartAt::Snapshot => {}
            StartAt::Start => source.go_to_start(runtime),
            StartAt::After(FeedCursor::All(cursor)) => source.go_to(runtime, &cursor, page),
            StartAt::After(FeedCursor::Session(_)) => {
                return Err(ServiceError::InvalidCursor {
                    reason: "the cursor is of the feed of one session".to_owned(),
                });
            }
        }
        Ok(source)
    }

    /// Goes to a place. One that cannot be read is of another count: there is a gap up to now.
    fn go_to(
        &mut self,
        runtime: &Arc<Runtime>,
        cursor: &GlobalCursor,
        page: &mut VecDeque<FeedItem>,
    ) {
        match cursor.place(self.at.change.epoch) {
            Some(place) => {
                self.at = place;
                self.leave_ring(runtime);
            }
            None => page.push_back(FeedItem::Gap(GapReason::TooOld)),
        }
    }

    /// Goes to the oldest change that is kept; the store says so when there were older ones.
    fn go_to_start(&mut self, runtime: &Arc<Runtime>) {
        let epoch = self.at.change.epoch;
        self.at = GlobalPosition::after(ChangeCursor { epoch, number: 0 });
        self.leave_ring(runtime);
    }

    /// Goes on from the store: it keeps more than the ring does, and says so where it does not.
    fn leave_ring(&mut self, runtime: &Arc<Runtime>) {
        self.reading = Reading::Store(Box::new(GlobalFeedReader::at(
            self.at.clone(),
            runtime.sessions.clone(),
            FEED_COLD_RECORDS_PER_READ,
        )));
    }

    pub(super) const fn read_at(&self) -> &GlobalPosition {
        &self.at
    }

    /// Waits until something happened. The wake-up is kept until it was followed.
    pub(super) async fn woken(&mut self) {
        if self.watch.changed().await {
            self.wake = Some(self.watch.newest());
        } else {
            // The store is gone; so is whatever could happen.
            std::future::pending().await
        }
    }

    pub(super) async fn catch_up(&mut self) -> Result<(), ServiceError> {
        self.tail.advance_to_end().await?;
        Ok(())
    }

    /// Reads a page; says whether there was something to read.
    pub(super) async fn read(
        &mut self,
        runtime: &Arc<Runtime>,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        if let Some(wake) = self.wake {
            self.tail.advance(wake).await?;
            self.wake = None;
        }
        self.meet_ring();
        if let Some(found) = self.read_ring(page) {
            return Ok(found);
        }
        let Reading::Store(reader) = &mut self.reading else {
            self.leave_ring(runtime);
            return Ok(true);
        };
        let items = reader.next().await?;
        if items.is_empty() {
            // The ring reaches back to its own end, at the latest.
            self.tail.advance_to_end().await?;
        }
        self.take_in(items, page);
        Ok(true)
    }

    /// Goes over to the ring, at the end of a change, where it reaches back to that.
    fn meet_ring(&mut self) {
        let Reading::Store(reader) = &self.reading else { return };
        let place = reader.place();
        if let Some(number) = self.tail.find(place) {
            self.at = place.clone();
            self.reading = Reading::Ring(number);
        }
    }

    /// Whether the next page is read from the store.
    pub(super) fn is_behind(&self) -> bool {
        match &self.reading {
            Reading::Ring(number) => self.tail.has_lost(*number),
            Reading::Store(_) => true,
        }
    }

    /// Takes a page that the ring has; says whether it had one.
    pub(super) fn read_at_hand(&mut self, page: &mut VecDeque<FeedItem>) -> bool {
        self.read_ring(page) == Some(true)
    }

    /// Takes a page from the ring; `None` when the store has to be read.
    fn read_ring(&mut self, page: &mut VecDeque<FeedItem>) -> Option<bool> {
        let Reading::Ring(next) = &mut self.reading else { return None };
        match self.tail.read(*next, FEED_PAGE) {
            Read::Items(items) => {
                *next += items.len() as u64;
                self.take_in(items, page);
                Some(true)
            }
            Read::Nothing => Some(false),
            Read::Behind => None,
        }
    }

    fn is_known(&self, place: &GlobalPosition, event: &FeedEvent) -> bool {
        let (at, change) = (&self.at, &place.change);
        at.change.epoch == change.epoch && !at.is_before(change.number, event)
    }

    fn take_in(&mut self, items: Vec<GlobalFeedItem>, page: &mut VecDeque<FeedItem>) {
        for GlobalFeedItem { event, place } in items {
            // A subscriber that read from the store may be ahead of the ring, which then repeats what it has.
            if event.as_ref().is_some_and(|event| self.is_known(&place, event)) {
                continue;
            }
            self.at = place.clone();
            page.push_back(match event {
                Some(event) => {
                    let cursor = FeedCursor::All(GlobalCursor::at(place));
                    FeedItem::Event(Delivery { event, cursor })
                }
                None => FeedItem::Gap(GapReason::TooOld),
            });
        }
    }
}
