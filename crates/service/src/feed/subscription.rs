//! What a subscriber holds.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::SessionMeta;
use bough_store::{ListOrder, ListQuery};
use tokio::sync::watch;

use super::cursor::{FeedCursor, SessionCursor};
use super::event::FeedEvent;
use super::filter::EventFilter;
use super::replay::Replay;
use super::snapshot::SessionSnapshot;
use super::subscriber::{Begun, Subscriber};
use crate::error::ServiceError;
use crate::limits::SNAPSHOT_SESSIONS;
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::service::Service;

/// Where a subscription begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// With what happens from now on.
    Now,
    /// With the first event of a session. For all sessions together, with the oldest change that is kept; a gap comes first
    /// when there were older ones.
    Start,
    /// After the position of an earlier subscription.
    After(FeedCursor),
    /// The same, for a subscriber that must not miss anything: if the position is of another store, the sessions of this
    /// one are replayed first, as after a swap.
    Resume(FeedCursor),
    /// With a replay of the sessions that are there, as after a swap, then after a position in this store; without one,
    /// with what happens from now on.
    Replay(Option<FeedCursor>),
    /// With everything as it is, then what happens from there on.
    Snapshot,
}

/// What a subscriber gets.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// Something happened.
    Event(Delivery),
    /// Something before this may be missing: read the sessions again.
    Gap(GapReason),
    /// The session as it is; once, when the subscription begins with a snapshot of one session.
    Session(Box<SessionSnapshot>),
    /// Sessions as they are; page by page, when it begins with a snapshot of all.
    Sessions(Vec<SessionMeta>),
    /// The snapshot, or what a new store replayed, is complete; from here on it is live.
    Live,
}

/// An event, and where the subscriber is after it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The event.
    pub event: Arc<FeedEvent>,
    /// Where to go on after it.
    pub cursor: FeedCursor,
}

/// Why something may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// The cursor is of another incarnation of the session.
    OtherIncarnation,
    /// The cursor is older than the oldest event that is kept.
    TooOld,
    /// The cursor is after the end of the session: the records up to it are lost, by a power cut in the weaker durability or because
    /// the data was replaced by an older copy.
    Ahead,
    /// Another store took the place of the old one.
    StoreSwapped,
}

impl FeedItem {
    /// Roughly how many bytes it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Event(delivery) => delivery.event.weight(),
            Self::Session(snapshot) => snapshot.weight(),
            Self::Sessions(_) | Self::Gap(_) | Self::Live => 0,
        }
    }
}

impl GapReason {
    /// Every one.
    pub const ALL: [Self; 4] =
        [Self::OtherIncarnation, Self::TooOld, Self::Ahead, Self::StoreSwapped];

    /// A stable name for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherIncarnation => "other_incarnation",
            Self::TooOld => "too_old",
            Self::Ahead => "ahead",
            Self::StoreSwapped => "store_swapped",
        }
    }
}

/// A cursor in a feed and a wake-up. It holds no events but the page it is handing out.
pub struct Subscription {
    service: Service,
    scope: Scope,
    filter: EventFilter,
    runtime: Arc<Runtime>,
    swaps: watch::Receiver<u64>,
    subscriber: Box<Subscriber>,
    /// The cursor after the last event that was returned, while the page has more.
    delivered: Option<FeedCursor>,
    /// Items that were read and not yet returned.
    page: VecDeque<FeedItem>,
    /// The events of a new store that come before the subscriber goes on.
    replay: Option<Replay>,
    /// A list that is still being shown, from this page on.
    listing: Option<Option<String>>,
}

impl Service {
    /// Begins a subscription.
    ///
    /// The scope is part of the filter: what does not exist for the caller is not delivered. A session that does not exist yet
    /// may be subscribed to.
    pub async fn subscribe(
        &self,
        scope: &Scope,
        filter: EventFilter,
        start: StartAt,
    ) -> Result<Subscription, ServiceError> {
        scope.may_watch()?;
        filter.check()?;
        let swaps = self.swaps();
        let runtime = self.runtime();
        let shows_all = filter.session_id.is_none() && start == StartAt::Snapshot;
        let session = filter.session_id.as_ref();
        let (after, replays) = match &start {
            StartAt::After(cursor) | StartAt::Resume(cursor) => (Some(cursor.clone()), false),
            StartAt::Replay(after) => (after.clone(), true),
            StartAt::Now | StartAt::Start | StartAt::Snapshot => (None, false),
        };
        let must_reach = matches!(start, StartAt::Resume(_));
        let (subscriber, mut page) = Subscriber::begin(&runtime, scope, session, start).await?;
        let is_out_of_reach = matches!(page.front(), Some(FeedItem::Gap(_)));
        let mut replay = None;
        if replays || (must_reach && is_out_of_reach) {
            page = VecDeque::from([FeedItem::Gap(GapReason::StoreSwapped)]);
            replay = Some(Replay::of(runtime.clone(), session.cloned(), self.now_ms()));
        }
        Ok(Subscription {
            service: self.clone(),
            scope: scope.clone(),
            // A gap that the cursor leads to is not delivered yet.
            delivered: after.or_else(|| subscriber.read_at()),
            filter,
            runtime,
            swaps,
            subscriber,
            page,
            replay,
            listing: shows_all.then_some(None),
        })
    }
}

impl Subscription {
    /// Where the subscriber is: after the last item that it was handed.
    ///
    /// `None` while the session that it watches has never existed.
    #[must_use]
    pub fn cursor(&self) -> Option<FeedCursor> {
        // With nothing left to hand out, what was read and filtered out is behind the subscriber too. But what the caller may
        // not see must not move the cursor.
        if self.page.is_empty()
            && !self.subscriber.is_hidden()
            && self.replay.is_none()
            && self.listing.is_none()
        {
            return self.subscriber.read_at();
        }
        self.delivered.clone()
    }

    /// Where the subscriber goes on when the replay that is under way is complete; `None` if nothing is replayed.
    pub(crate) fn after_replay(&self) -> Option<Option<FeedCursor>> {
        self.replay.as_ref().map(|_| self.subscriber.read_at())
    }

    /// The next item; waits for it. May be given up and called again: nothing is lost.
    ///
    /// After an error the next call tries again from the same position.
    pub async fn next(&mut self) -> Result<FeedItem, ServiceError> {
        loop {
            self.wait().await?;
            if let Some(item) = self.take() {
                return Ok(item);
            }
        }
    }

    /// Waits until there is an item, and leaves it where it is: [`next_available`](Self::next_available) takes it.
    ///
    /// May be given up and called again, as [`next`](Self::next).
    pub async fn wait(&mut self) -> Result<(), ServiceError> {
        while !self.fill().await? {
            tokio::select! {
                _ = self.swaps.changed() => {}
                () = self.subscriber.woken() => {}
            }
        }
        Ok(())
    }

    /// The next item if there is one to be had without waiting for something to happen.
    pub async fn next_ready(&mut self) -> Result<Option<FeedItem>, ServiceError> {
        let is_there = self.is_ready().await?;
        Ok(if is_there { self.take() } else { None })
    }

    /// Whether there is an item to be had without waiting for something to happen; reads it, and leaves it where it is.
    pub async fn is_ready(&mut self) -> Result<bool, ServiceError> {
        if self.fill().await? {
            return Ok(true);
        }
        self.subscriber.catch_up().await?;
        self.fill().await
    }

    /// The next item if it was read already, by this subscriber or by another. Begins nothing that would have to be waited
    /// for.
    pub fn next_available(&mut self) -> Option<FeedItem> {
        self.peek_available()?;
        self.take()
    }

    /// The item that [`next_available`](Self::next_available) takes.
    pub fn peek_available(&mut self) -> Option<&FeedItem> {
        while !self.skip_unwanted() {
            if !self.read_available() {
                return None;
            }
        }
        self.page.front()
    }

    /// Roughly how many bytes the items take that were read and not yet handed out. Other subscribers may share them.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page.iter().map(FeedItem::weight).sum()
    }

    /// Whether the next items have to be read from the store, for this subscriber alone.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.page.is_empty() && self.subscriber.is_behind()
    }

    /// Drops the items that were read and not yet handed out: they are read again when they are asked for. Says whether it
    /// did; items that cannot be read again are kept.
    pub async fn drop_page(&mut self) -> Result<bool, ServiceError> {
        let is_live = self.replay.is_none() && self.listing.is_none();
        let Some(position) = self.delivered.clone().filter(|_| is_live) else { return Ok(false) };
        (self.subscriber, self.page) =
            self.begin_in(&self.runtime, StartAt::After(position)).await?;
        Ok(true)
    }

    /// Reads until there is an item that the subscriber wants; says whether there is one.
    async fn fill(&mut self) -> Result<bool, ServiceError> {
        while !self.skip_unwanted() {
            if *self.swaps.borrow() != self.runtime.epoch {
                self.enter_new_store().await?;
            } else if !self.read().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes over items that the subscriber does not want; says whether there is one that it wants.
    fn skip_unwanted(&mut self) -> bool {
        while let Some(item) = self.page.front() {
            let FeedItem::Event(delivery) = item else { return true };
            let sees = self.scope.sees(delivery.event.metadata.as_deref());
            if sees && self.filter.wants(&delivery.event.facts()) {
                return true;
            }
            self.subscriber.set_hidden(!sees);
            if sees {
                self.delivered = Some(delivery.cursor.clone());
            }
            self.page.pop_front();
        }
        false
    }

    /// Takes the first item of the page, which the subscriber wants.
    fn take(&mut self) -> Option<FeedItem> {
        let item = self.page.pop_front()?;
        if let FeedItem::Event(delivery) = &item {
            self.subscriber.set_hidden(false);
            self.delivered = Some(delivery.cursor.clone());
        }
        Some(item)
    }

    /// Goes over to the new store: delivers a gap, then the difference, then the new store's events.
    async fn enter_new_store(&mut self) -> Result<(), ServiceError> {
        let new = self.service.runtime();
        if let Some(position) = self.position_in(&new) {
            return self.go_on_in(new, position).await;
        }
        let (begun, _) = self.begin_in(&new, StartAt::Now).await?;
        self.delivered = self.cursor();
        let old = std::mem::replace(&mut self.runtime, new.clone());
        self.subscriber = begun;
        self.listing = None;
        let session = self.filter.session_id.clone();
        self.replay = Some(Replay::of(new, session, self.service.now_ms()).instead_of(old));
        self.page.push_back(FeedItem::Gap(GapReason::StoreSwapped));
        Ok(())
    }

    /// Where a subscriber goes on in a store with the same sessions; `None` where it gets the difference.
    fn position_in(&self, new: &Runtime) -> Option<FeedCursor> {
        let is_next = new.is_renewed && new.epoch == self.runtime.epoch + 1;
        let is_live = self.replay.is_none() && self.listing.is_none();
        if is_next && is_live { self.subscriber.read_at() } else { None }
    }

    async fn go_on_in(
        &mut self,
        new: Arc<Runtime>,
        position: FeedCursor,
    ) -> Result<(), ServiceError> {
        let (begun, mut page) = self.begin_in(&new, StartAt::After(position)).await?;
        self.page.append(&mut page);
        (self.subscriber, self.runtime) = (begun, new);
        Ok(())
    }

    /// Another subscriber of the same feed, in a store, with what it begins with.
    async fn begin_in(&self, runtime: &Runtime, start: StartAt) -> Result<Begun, ServiceError> {
        Subscriber::begin(runtime, &self.scope, self.filter.session_id.as_ref(), start).await
    }

    /// Reads a page; says whether there was something to read.
    async fn read(&mut self) -> Result<bool, ServiceError> {
        if self.replay.is_some() {
            self.read_replay().await?;
            return Ok(true);
        }
        if let Some(page) = self.listing.clone() {
            self.list(page).await?;
            return Ok(true);
        }
        self.subscriber.read(&self.scope, &mut self.page).await
    }

    /// Takes a page that was read for all; says whether there was one.
    fn read_available(&mut self) -> bool {
        let live = self.replay.is_none()
            && self.listing.is_none()
            && *self.swaps.borrow() == self.runtime.epoch;
        live && self.subscriber.read_available(&mut self.page)
    }

    async fn read_replay(&mut self) -> Result<(), ServiceError> {
        let Some(replay) = &mut self.replay else {
            return Ok(());
        };
        let Some(events) = replay.next().await? else {
            self.replay = None;
            self.page.push_back(FeedItem::Live);
            return Ok(());
        };
        // Until the replay is complete, a cursor must not claim that it is: who resumes meets the gap again.
        let before = self.delivered.clone().or_else(|| self.subscriber.read_at());
        for event in events {
            let event = Arc::new(event);
            let cursor = before.clone().unwrap_or_else(|| {
                FeedCursor::Session(SessionCursor::start(event.incarnation).after(&event))
            });
            self.page.push_back(FeedItem::Event(Delivery { event, cursor }));
        }
        Ok(())
    }

    /// Shows a page of the sessions that are there.
    async fn list(&mut self, page: Option<String>) -> Result<(), ServiceError> {
        let query = ListQuery {
            order: ListOrder::CreatedAsc,
            metadata: self.filter.metadata.clone(),
            scope: self.scope.metadata().clone(),
            limit: SNAPSHOT_SESSIONS,
            cursor: page,
            ..ListQuery::default()
        };
        let listed = self.runtime.store.list(&query).await?;
        let metas: Vec<_> = listed.sessions.into_iter().map(|listed| listed.meta).collect();
        if !metas.is_empty() {
            self.page.push_back(FeedItem::Sessions(metas));
        }
        self.listing = listed.next_cursor.map(Some);
        if self.listing.is_none() {
            self.page.push_back(FeedItem::Live);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("filter", &self.filter)
            .field("cursor", &self.cursor())
            .finish_non_exhaustive()
    }
}
