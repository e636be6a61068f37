//! How a subscriber reads the feed of all sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_store::ChangeWatch;

use super::all::{AllItem, AllTail};
use super::cursor::{AllCursor, FeedCursor};
use super::ring::Read;
use super::subscription::{Delivery, FeedItem, GapReason, StartAt};
use crate::error::ServiceError;
use crate::limits::FEED_PAGE;
use crate::runtime::Runtime;

pub(super) struct AllSource {
    tail: Arc<AllTail>,
    watch: ChangeWatch,
    /// How far was read.
    at: AllCursor,
    /// The number of the next item in the ring.
    next: u64,
    /// Something happened that the tail has yet to follow; how many rounds it had read by then.
    wake: Option<u64>,
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
        let mut source = Self { tail, watch, at: now, next: number, wake: None };
        match start {
            StartAt::Now | StartAt::Start | StartAt::Snapshot => {}
            StartAt::After(FeedCursor::All(cursor)) => source.go_to(cursor, page),
            StartAt::After(FeedCursor::Session(_)) => {
                return Err(ServiceError::InvalidCursor {
                    reason: "the cursor is of the feed of one session".to_owned(),
                });
            }
        }
        Ok(source)
    }

    /// Goes to a place, if the ring reaches back to it; otherwise there is a gap up to now.
    fn go_to(&mut self, cursor: AllCursor, page: &mut VecDeque<FeedItem>) {
        match self.tail.find(&cursor) {
            Some(next) => {
                self.next = next;
                self.at = cursor;
            }
            None => page.push_back(FeedItem::Gap(GapReason::TooOld)),
        }
    }

    pub(super) const fn read_at(&self) -> &AllCursor {
        &self.at
    }

    /// Waits until something happened. The wake-up is kept until it was followed.
    pub(super) async fn woken(&mut self) {
        if self.watch.changed().await {
            self.wake = Some(self.tail.rounds());
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
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        if let Some(rounds) = self.wake {
            self.tail.advance(rounds).await?;
            self.wake = None;
        }
        match self.tail.read(self.next, FEED_PAGE) {
            Read::Items(items) => {
                self.next += items.len() as u64;
                self.take_in(items, page);
                Ok(true)
            }
            Read::Nothing => Ok(false),
            Read::Behind => {
                // What fell out of the ring is not to be had in order again: say so, and go on from now.
                let (now, next) = self.tail.advance_to_end().await?;
                page.push_back(FeedItem::Gap(GapReason::TooOld));
                (self.at, self.next) = (now, next);
                Ok(true)
            }
        }
    }

    fn take_in(&mut self, items: Vec<AllItem>, page: &mut VecDeque<FeedItem>) {
        for item in items {
            self.at = item.cursor.clone();
            page.push_back(match item.event {
                Some(event) => {
                    FeedItem::Event(Delivery { event, cursor: FeedCursor::All(item.cursor) })
                }
                None => FeedItem::Gap(GapReason::TooOld),
            });
        }
    }
}
