//! How a subscriber reads the feed of one session.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::{Incarnation, SessionId};
use bough_store::{SessionWatch, StoreError, StoreExt, Wake};

use super::cold_read::{Cold, read_cold};
use super::cursor::{FeedCursor, SessionCursor};
use super::event::FeedEvent;
use super::retry_read::read_until_whole;
use super::ring::Read;
use super::session_tail::SessionTail;
use super::snapshot::{self, SessionSnapshot};
use super::subscription::{Delivery, FeedItem, GapReason, StartAt};
use crate::error::ServiceError;
use crate::limits::FEED_PAGE;
use crate::runtime::{Runtime, is_visible};
use crate::scope::Scope;

pub(super) struct SessionFeedSubscriber {
    session: SessionId,
    tail: Arc<SessionTail>,
    watch: SessionWatch,
    /// How far was read; `None` while the session was never seen to exist.
    at: Option<SessionCursor>,
    reading: Reading,
    /// A wake-up that the tail has yet to follow.
    wake: Option<Wake>,
    /// Whether the session exists, but not for the caller.
    pub(super) hidden: bool,
}

/// From where a subscriber reads.
#[derive(Clone, Copy)]
enum Reading {
    /// From the ring, from this number on.
    Ring(u64),
    /// From the log, until it meets the ring.
    Log,
}

impl SessionFeedSubscriber {
    pub(super) async fn begin(
        runtime: &Arc<Runtime>,
        scope: &Scope,
        session: &SessionId,
        start: StartAt,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<Self, ServiceError> {
        // The watch comes first: what happens while we look around wakes it.
        let watch = runtime.store.watch_session(session);
        let tail = runtime.sessions.open(session).tail().await?;
        let (now, number) = tail.advance_to_end().await?;
        let seen = runtime.store.state(session).await?;
        let hidden = seen.is_some_and(|snapshot| !is_visible(scope, &snapshot.state));
        let (at, reading) = match start {
            StartAt::Now | StartAt::Start if hidden => (now, Reading::Ring(number)),
            StartAt::Now => (now, Reading::Ring(number)),
            StartAt::Start => match now {
                Some(now) => from_log(SessionCursor::start(now.incarnation)),
                None => (None, Reading::Ring(number)),
            },
            StartAt::After(FeedCursor::Session(cursor)) => from_log(cursor),
            StartAt::After(FeedCursor::All(_)) => {
                return Err(ServiceError::InvalidCursor {
                    reason: "the cursor is of the feed of all sessions".to_owned(),
                });
            }
            StartAt::Snapshot => {
                let shown = visible_snapshot(runtime, scope, session).await?;
                let began = shown.map(|(snapshot, cursor)| {
                    page.push_back(FeedItem::Session(Box::new(snapshot)));
                    from_log(cursor)
                });
                page.push_back(FeedItem::Live);
                began.unwrap_or((now, Reading::Ring(number)))
            }
        };
        Ok(Self { session: session.clone(), tail, watch, at, reading, wake: None, hidden })
    }

    pub(super) const fn read_at(&self) -> Option<SessionCursor> {
        self.at
    }

    /// Waits until something happened. The wake-up is kept until it was followed, so that giving up in between loses
    /// nothing.
    pub(super) async fn woken(&mut self) {
        match self.watch.changed().await {
            Some(wake) => self.wake = Some(wake),
            // The store is gone; so is whatever could happen.
            None => std::future::pending().await,
        }
    }

    pub(super) async fn catch_up(&mut self) -> Result<(), ServiceError> {
        self.tail.advance_to_end().await?;
        Ok(())
    }

    /// Reads a page; says whether there was something to read.
    pub(super) async fn read(
        &mut self,
        runtime: &Runtime,
        scope: &Scope,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        if let Some(wake) = self.wake {
            self.tail.advance(wake).await?;
            self.wake = None;
        }
        match self.reading {
            Reading::Ring(number) => Ok(self.read_ring(number, page)),
            Reading::Log => self.read_log(runtime, scope, page).await,
        }
    }

    /// Whether the next page is read from the log.
    pub(super) fn is_behind(&self) -> bool {
        match self.reading {
            Reading::Ring(number) => self.tail.has_lost(number),
            Reading::Log => true,
        }
    }

    /// Takes a page that the ring has; says whether there is something to read.
    pub(super) fn read_at_hand(&mut self, page: &mut VecDeque<FeedItem>) -> bool {
        match self.reading {
            Reading::Ring(number) => self.read_ring(number, page),
            Reading::Log => false,
        }
    }

    fn read_ring(&mut self, number: u64, page: &mut VecDeque<FeedItem>) -> bool {
        match self.tail.read(number, FEED_PAGE) {
            Read::Items(events) => {
                self.reading = Reading::Ring(number + events.len() as u64);
                for event in events {
                    self.take_in(event, page);
                }
                true
            }
            Read::Nothing => false,
            Read::Behind => {
                self.reading = Reading::Log;
                true
            }
        }
    }

    fn take_in(&mut self, event: Arc<FeedEvent>, page: &mut VecDeque<FeedItem>) {
        // Where the log and the ring overlap, the log may have delivered it already.
        let is_known =
            self.at.is_some_and(|at| at.incarnation == event.incarnation && !at.is_before(&event));
        if is_known {
            return;
        }
        let at = self.at.filter(|at| at.incarnation == event.incarnation);
        let cursor = at.unwrap_or(SessionCursor::start(event.incarnation)).after(&event);
        self.at = Some(cursor);
        page.push_back(FeedItem::Event(Delivery { event, cursor: FeedCursor::Session(cursor) }));
    }

    async fn read_log(
        &mut self,
        runtime: &Runtime,
        scope: &Scope,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<bool, ServiceError> {
        let (end, number) = self.end_of_tail().await?;
        // A session that came to be since, and ran ahead of the ring, is read from its beginning.
        let Some(cursor) = self.at.or(end.map(|end| SessionCursor::start(end.incarnation))) else {
            self.reading = Reading::Ring(number);
            return Ok(true);
        };
        let is_ahead = is_ahead(&cursor, end);
        if let Some(number) = self.tail.find(&cursor).filter(|_| !is_ahead) {
            self.reading = Reading::Ring(number);
            return Ok(true);
        }
        if !self.is_visible_or_absent(runtime, scope).await? {
            self.hidden = true;
            self.at = Some(cursor);
            self.reading = Reading::Ring(number);
            return Ok(true);
        }
        if is_ahead {
            // The records that led here are lost, and others will take their numbers.
            page.push_back(FeedItem::Gap(GapReason::Ahead));
            (self.at, self.reading) = (end, Reading::Ring(number));
            return Ok(true);
        }
        match self.read_as_far_as(runtime, cursor, end).await? {
            Cold::Page(cold) => {
                self.at = Some(cursor);
                for event in cold.events {
                    self.take_in(Arc::new(event), page);
                }
                self.at = Some(cold.cursor);
                if end == Some(cold.cursor) {
                    self.reading = Reading::Ring(number);
                } else if !cold.more && !reaches(&cold.cursor, end) {
                    // Going over to the ring now would pass over what the log does not show yet.
                    return Ok(!page.is_empty());
                }
            }
            Cold::Gone => self.leave(runtime, cursor, None, number, page).await?,
            Cold::OtherIncarnation(incarnation) => {
                self.leave(runtime, cursor, Some(incarnation), number, page).await?;
            }
        }
        Ok(true)
    }

    /// Where the tail is once it has read on, and the number of its next event. A log that ends before the subscriber is given
    /// some time: a writer may be taking it over.
    async fn end_of_tail(&self) -> Result<(Option<SessionCursor>, u64), StoreError> {
        let read = || self.tail.advance_to_end();
        let at = self.at;
        read_until_whole(read, |(end, _)| at.is_some_and(|at| is_ahead(&at, *end))).await
    }

    /// Reads a page from the log, of which the tail has seen at least so much.
    async fn read_as_far_as(
        &self,
        runtime: &Runtime,
        cursor: SessionCursor,
        end: Option<SessionCursor>,
    ) -> Result<Cold, StoreError> {
        let read = || read_cold(&*runtime.store, &self.session, cursor);
        let is_short = |found: &Cold| match found {
            Cold::Page(cold) => !cold.more && !reaches(&cold.cursor, end),
            Cold::Gone | Cold::OtherIncarnation(_) => false,
        };
        read_until_whole(read, is_short).await
    }

    /// The incarnation of the cursor is over: delivers that, and goes on with the next.
    async fn leave(
        &mut self,
        runtime: &Runtime,
        cursor: SessionCursor,
        next: Option<Incarnation>,
        number: u64,
        page: &mut VecDeque<FeedItem>,
    ) -> Result<(), ServiceError> {
        let deletion = runtime.sessions.deletions().event(&self.session, cursor, None).await?;
        let is_known = deletion.as_ref().is_some_and(|event| !cursor.is_before(event));
        let follows = deletion
            .as_ref()
            .is_some_and(|event| event.seq <= cursor.position.seq.saturating_add(1));
        if !follows {
            page.push_back(FeedItem::Gap(GapReason::OtherIncarnation));
        }
        if let Some(event) = deletion.filter(|_| !is_known) {
            self.take_in(Arc::new(event), page);
        }
        match next {
            Some(incarnation) => self.at = Some(SessionCursor::start(incarnation)),
            None => self.reading = Reading::Ring(number),
        }
        Ok(())
    }

    /// Whether the session exists for the caller, or for nobody.
    async fn is_visible_or_absent(
        &self,
        runtime: &Runtime,
        scope: &Scope,
    ) -> Result<bool, ServiceError> {
        let state = runtime.store.state(&self.session).await?;
        Ok(state.is_none_or(|snapshot| is_visible(scope, &snapshot.state)))
    }
}

/// Whether a place is not before another of the same incarnation.
fn reaches(cursor: &SessionCursor, end: Option<SessionCursor>) -> bool {
    end.is_none_or(|end| {
        end.incarnation != cursor.incarnation || cursor.position.covers(end.position)
    })
}

/// Whether a place is after the end of the same incarnation.
fn is_ahead(cursor: &SessionCursor, end: Option<SessionCursor>) -> bool {
    end.is_some_and(|end| {
        end.incarnation == cursor.incarnation && !end.position.covers(cursor.position)
    })
}

const fn from_log(cursor: SessionCursor) -> (Option<SessionCursor>, Reading) {
    (Some(cursor), Reading::Log)
}

async fn visible_snapshot(
    runtime: &Runtime,
    scope: &Scope,
    session: &SessionId,
) -> Result<Option<(SessionSnapshot, SessionCursor)>, ServiceError> {
    let taken = snapshot::take(&*runtime.store, session).await?;
    Ok(taken.filter(|(snapshot, _)| scope.sees(snapshot.meta.metadata.as_ref())))
}
