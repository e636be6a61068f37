//! How a subscriber reads a feed: from the tail where it reaches, else from the store until it meets the tail.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::SessionId;
use bough_store::Wake;

use super::cursor::{FeedCursor, FeedPosition};
use super::reader::{Feed, FeedReader, ReadItem, Watch};
use super::retry_read::ShortReads;
use super::snapshot;
use super::subscription::{Delivery, FeedItem, GapReason, StartAt};
use super::tail::FeedTail;
use crate::error::ServiceError;
use crate::limits::FEED_PAGE;
use crate::ring::Read;
use crate::runtime::Runtime;
use crate::scope::Scope;

/// A position in a feed and a wake-up.
pub(super) struct Subscriber {
    tail: Arc<FeedTail>,
    watch: Watch,
    /// How far was read; `None` while the session has never existed.
    at: Option<FeedPosition>,
    reading: Reading,
    /// A wake-up that the tail has yet to follow.
    wake: Option<Wake>,
    /// Whether the last thing read was in a session that exists, but not for the caller.
    hidden: bool,
}

/// A subscriber, and the items that it begins with.
pub(super) type Begun = (Box<Subscriber>, VecDeque<FeedItem>);

/// From where a subscriber reads.
enum Reading {
    /// From the tail, from this number on.
    Tail(u64),
    /// From the store, until it meets the tail.
    Store(FeedReader),
}

impl Subscriber {
    /// Begins to read the feed of a session, or of all.
    pub(super) async fn begin(
        runtime: &Runtime,
        scope: &Scope,
        session: Option<&SessionId>,
        start: StartAt,
    ) -> Result<Begun, ServiceError> {
        let feed = Feed::of(&runtime.sessions, session);
        // The watch comes first, so that nothing that happens from here on is missed.
        let watch = feed.watch();
        let tail = feed.tail().await?;
        let (at, number) = tail.advance_to_end().await?;
        let hidden = feed.is_hidden_from(scope).await?;
        let reading = Reading::Tail(number);
        let mut subscriber = Box::new(Self { tail, watch, at, reading, wake: None, hidden });
        let mut page = VecDeque::new();
        match start {
            StartAt::Now | StartAt::Replay(None) => {}
            StartAt::Start if hidden => {}
            StartAt::Start => {
                let start = subscriber.at.as_ref().map(FeedPosition::start_of);
                start.into_iter().for_each(|start| subscriber.go_to(start));
            }
            StartAt::After(cursor) | StartAt::Resume(cursor) | StartAt::Replay(Some(cursor)) => {
                match subscriber.position_of(&cursor)? {
                    Some(position) => subscriber.go_to(position),
                    None => page.push_back(FeedItem::Gap(GapReason::TooOld)),
                }
            }
            StartAt::Snapshot => subscriber.show_session(scope, &mut page).await?,
        }
        Ok((subscriber, page))
    }

    /// The position of a cursor; `None` when it is of another count of changes, which leaves a gap up to now.
    fn position_of(&self, cursor: &FeedCursor) -> Result<Option<FeedPosition>, ServiceError> {
        let other = match (cursor, &self.tail.feed, &self.at) {
            (FeedCursor::Session(cursor), Feed::Session(_), _) => {
                return Ok(Some(FeedPosition::Session(*cursor)));
            }
            (FeedCursor::All(cursor), _, Some(FeedPosition::All(now))) => {
                return Ok(cursor.position(now.change.epoch).map(FeedPosition::All));
            }
            (FeedCursor::Session(_), ..) => "one session",
            (FeedCursor::All(_), ..) => "all sessions",
        };
        let reason = format!("the cursor is of the feed of {other}");
        Err(ServiceError::InvalidCursor { reason })
    }

    /// Shows a session as it is, and goes on from there.
    async fn show_session(
        &mut self,
        scope: &Scope,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<(), ServiceError> {
        let Feed::Session(open) = &self.tail.feed else { return Ok(()) };
        let taken = snapshot::take(open.store(), open.id()).await?;
        let seen = taken.filter(|(snapshot, _)| scope.sees(snapshot.meta.metadata.as_ref()));
        if let Some((snapshot, cursor)) = seen {
            page.push_back(FeedItem::Session(Box::new(snapshot)));
            self.go_to(FeedPosition::Session(cursor));
        }
        page.push_back(FeedItem::Live);
        Ok(())
    }

    /// Goes on from a position: from the store, unless the tail reaches back to it.
    fn go_to(&mut self, position: FeedPosition) {
        self.at = Some(position);
        self.leave_tail();
    }

    fn leave_tail(&mut self) {
        if let Some(reader) = self.tail.feed.reader_at(self.at.clone()) {
            self.reading = Reading::Store(reader);
        }
    }

    /// How far was read; `None` if that is hidden from the caller, or the session has never existed.
    pub(super) fn read_at(&self) -> Option<FeedCursor> {
        self.at.clone().filter(|_| !self.hidden).map(FeedCursor::from)
    }

    pub(super) const fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Notes whether the last thing read was in a session that is not there for the caller. The feed of all sessions counts
    /// the changes of all callers; its cursors are sealed.
    pub(super) fn set_hidden(&mut self, hidden: bool) {
        self.hidden = hidden && matches!(self.tail.feed, Feed::Session(_));
    }

    /// Waits until something happened. The wake-up is kept until it was followed, so that giving up in between loses
    /// nothing.
    pub(super) async fn woken(&mut self) {
        self.wake = Some(self.watch.changed().await);
    }

    pub(super) async fn catch_up(&mut self) -> Result<(), ServiceError> {
        self.tail.advance_to_end().await?;
        Ok(())
    }

    /// Reads a page; says whether there was something to read.
    pub(super) async fn read(
        &mut self,
        scope: &Scope,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        if let Some(wake) = self.wake {
            self.tail.advance(wake).await?;
            self.wake = None;
        }
        self.meet_tail();
        match self.reading {
            Reading::Tail(number) => Ok(self.read_tail(number, page)),
            Reading::Store(_) => self.read_store(scope, page).await,
        }
    }

    /// Whether the next page is read from the store.
    pub(super) fn is_behind(&self) -> bool {
        match self.reading {
            Reading::Tail(number) => self.tail.has_lost(number),
            Reading::Store(_) => true,
        }
    }

    /// Takes a page that the tail has; says whether there is something to read.
    pub(super) fn read_available(&mut self, page: &mut VecDeque<FeedItem>) -> bool {
        match self.reading {
            Reading::Tail(number) => self.read_tail(number, page),
            Reading::Store(_) => false,
        }
    }

    fn read_tail(&mut self, number: u64, page: &mut VecDeque<FeedItem>) -> bool {
        match self.tail.read(number, FEED_PAGE) {
            Read::Items(items) => {
                self.reading = Reading::Tail(number + items.len() as u64);
                self.take_in(items, page);
                true
            }
            Read::Nothing => false,
            Read::Behind => {
                self.leave_tail();
                true
            }
        }
    }

    /// Reads a page from the store, or goes over to the tail at the end of what the store shows.
    async fn read_store(
        &mut self,
        scope: &Scope,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        if self.tail.feed.is_hidden_from(scope).await? {
            let (_, number) = self.tail.advance_to_end().await?;
            (self.hidden, self.reading) = (true, Reading::Tail(number));
            return Ok(true);
        }
        let mut reads = ShortReads::default();
        loop {
            let is_ahead = self.tail.ends_before(self.at.as_ref());
            if !is_ahead && self.read_page(page).await? {
                return Ok(true);
            }
            let (end, number) = self.tail.advance_to_end().await?;
            if self.meet_tail() {
                return Ok(true);
            }
            // The store shows less than the tail or the subscriber has read. A writer may be taking a log over.
            if reads.may_repeat().await {
                continue;
            }
            if is_ahead {
                // The records that led here are lost, and others will take their numbers.
                page.push_back(FeedItem::Gap(GapReason::Ahead));
                (self.at, self.reading) = (end, Reading::Tail(number));
            }
            // Otherwise the subscriber stays: going over to the tail would pass over what the store does not show yet.
            return Ok(is_ahead);
        }
    }

    /// Reads a page from the store; says whether it was not the end.
    async fn read_page(&mut self, page: &mut VecDeque<FeedItem>) -> Result<bool, ServiceError> {
        let Reading::Store(reader) = &mut self.reading else { return Ok(true) };
        let found = reader.read(None).await?;
        reader.forget_messages();
        let (position, is_end) = (reader.position(), found.items.is_empty() && !found.more);
        self.take_in(found.items, page);
        // What has no events is behind the subscriber too.
        self.at = position.or(self.at.take());
        Ok(!is_end)
    }

    /// Goes over to the tail where it reaches back to the position; says whether it does.
    fn meet_tail(&mut self) -> bool {
        let Reading::Store(reader) = &self.reading else { return false };
        let number = self.tail.find(reader.position().as_ref());
        if let Some(number) = number {
            self.reading = Reading::Tail(number);
        }
        number.is_some()
    }

    fn take_in(&mut self, items: Vec<ReadItem>, page: &mut VecDeque<FeedItem>) {
        for item in items {
            // Where the store and the tail overlap, the store may have delivered it already.
            let is_known = self.at.as_ref().is_some_and(|at| at.knows(&item));
            if item.event.is_ok() && is_known {
                continue;
            }
            self.at = Some(item.position.clone());
            page.push_back(match item.event {
                Ok(event) => FeedItem::Event(Delivery { event, cursor: item.position.into() }),
                Err(reason) => FeedItem::Gap(reason),
            });
        }
    }
}
