//! How a subscriber reads the feed of all sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_store::{ChangeCursor, ChangeWatch};

use super::all::{AllItem, AllTail};
use super::all_reader::AllReader;
use super::cursor::{AllCursor, AllPlace, FeedCursor};
use super::event::FeedEvent;
use super::ring::Read;
use super::subscription::{Delivery, FeedItem, GapReason, StartAt};
use crate::error::ServiceError;
use crate::limits::{FEED_COLD_RECORDS_PER_READ, FEED_PAGE};
use crate::runtime::Runtime;

pub(super) struct AllSource {
    tail: Arc<AllTail>,
    watch: ChangeWatch,
    /// How far was read.
    at: AllPlace,
    reading: Reading,
    /// Up to this change it reads from the store: before, it was told things that it does not know any more. The ring may tell a
    /// stream otherwise: one step by step, the other as the records that took their place, which lie behind them.
    from_store: ChangeCursor,
    /// The newest thing that happened and that the tail has yet to follow.
    wake: Option<u64>,
}

/// From where a subscriber reads.
enum Reading {
    /// From the ring, from this number on.
    Ring(u64),
    /// From the store, until it meets the ring.
    Store(Box<AllReader>),
}

impl AllSource {
    pub(super) async fn begin(
        runtime: &Arc<Runtime>,
        start: StartAt,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<Self, ServiceError> {
        // The watch comes first: what happens while we look around wakes it.
        let watch = runtime.store.watch();
        let tail = runtime.hub.all_tail().await?;
        let (now, number) = tail.advance_to_end().await?;
        let (reading, from_store) = (Reading::Ring(number), now.change.clone());
        let mut source = Self { tail, watch, at: now, reading, from_store, wake: None };
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
    fn go_to(&mut self, runtime: &Arc<Runtime>, cursor: &AllCursor, page: &mut VecDeque<FeedItem>) {
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
        self.at = AllPlace::after(ChangeCursor { epoch, number: 0 });
        self.leave_ring(runtime);
    }

    /// Goes on from the store: it keeps more than the ring does, and says so where it does not.
    fn leave_ring(&mut self, runtime: &Arc<Runtime>) {
        self.reading = Reading::Store(Box::new(AllReader::at(
            self.at.clone(),
            runtime.store.clone(),
            Arc::downgrade(&runtime.hub),
            FEED_COLD_RECORDS_PER_READ,
        )));
    }

    pub(super) const fn read_at(&self) -> &AllPlace {
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
            if reader.is_ahead() {
                // The change that brings it to where it was told is yet to be announced.
                return Ok(false);
            }
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
        let (from_store, change) = (&self.from_store, &place.change);
        let is_before = change.epoch == from_store.epoch && change.number < from_store.number;
        if reader.is_ahead() || is_before {
            return;
        }
        if let Some(number) = self.tail.find(place) {
            self.at = place.clone();
            self.reading = Reading::Ring(number);
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

    fn is_told(&self, place: &AllPlace, event: &FeedEvent) -> bool {
        let (at, change) = (&self.at, &place.change);
        at.change.epoch == change.epoch && !at.is_before(change.number, event)
    }

    fn take_in(&mut self, items: Vec<AllItem>, page: &mut VecDeque<FeedItem>) {
        for AllItem { event, place } in items {
            // A subscriber that read from the store may be ahead of the ring, which then tells what it was told already.
            if event.as_ref().is_some_and(|event| self.is_told(&place, event)) {
                continue;
            }
            self.at = place.clone();
            page.push_back(match event {
                Some(event) => {
                    let cursor = FeedCursor::All(AllCursor::at(place));
                    FeedItem::Event(Delivery { event, cursor })
                }
                None => FeedItem::Gap(GapReason::TooOld),
            });
        }
    }
}
