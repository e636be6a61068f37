//! The deliveries of one binding: a subscription, and a bounded number of running calls.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};

use super::progress::{Progress, ResumePosition};
use super::{Called, EventSink};
use crate::error::ServiceError;
use crate::feed::{
    Delivery, EventFilter, FeedCursor, FeedEvent, FeedItem, GapReason, StartAt, Subscription,
};
use crate::limits::{
    BINDING_POSITION_NOTED_EVERY, EVENT_CALLS_MAX, EVENT_REPLAY_CALLS_MAX, EVENT_REPLAY_RUN_MAX,
    EVENT_RETRY_PAUSE,
};
use crate::scope::Scope;
use crate::service::Service;

/// One binding that is being delivered to.
pub(super) struct Delivering {
    service: Service,
    scope: Scope,
    filter: EventFilter,
    sink: watch::Sender<Arc<dyn EventSink>>,
    pub(super) progress: Progress,
    /// Where it began, unless with a replay.
    began: OnceLock<FeedCursor>,
    /// Whether its position moved since it was last written.
    pub(super) has_moved: AtomicBool,
    /// Held by the call that checks whether the function is back; the others wait for it, in their order.
    retry: tokio::sync::Mutex<()>,
    /// How often the function came back.
    returns: AtomicU64,
}

/// The next live item; pending for ever while nothing is replayed.
async fn next_of(live: &mut Option<Subscription>) -> Result<FeedItem, ServiceError> {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}

/// The position from which a binding with this subscription resumes, once its calls are answered.
fn position_of(subscription: &Subscription) -> ResumePosition {
    match subscription.after_replay() {
        Some(after) => ResumePosition::Replaying { after },
        None => subscription.cursor().into(),
    }
}

impl Delivering {
    pub(super) fn new(
        service: Service,
        scope: Scope,
        filter: EventFilter,
        sink: Arc<dyn EventSink>,
        position: Option<ResumePosition>,
    ) -> Self {
        Self {
            service,
            scope,
            filter,
            sink: watch::Sender::new(sink),
            progress: Progress::at(position),
            began: OnceLock::new(),
            has_moved: AtomicBool::new(false),
            retry: tokio::sync::Mutex::default(),
            returns: AtomicU64::new(0),
        }
    }

    /// Makes later calls through another sink. If its route differs, running calls are repeated, because their answers
    /// may never arrive.
    pub(super) fn replace_sink(&self, sink: Arc<dyn EventSink>, leads_elsewhere: bool) {
        self.sink.send_if_modified(|current| {
            *current = sink;
            leads_elsewhere
        });
    }

    /// Whether every event after a position was delivered by it, or will be.
    pub(super) fn delivers_all_after(&self, position: &ResumePosition) -> bool {
        match (position, self.began.get()) {
            (ResumePosition::After(cursor), Some(began)) => cursor.is_at_or_after(began),
            _ => false,
        }
    }

    fn sink(&self) -> Arc<dyn EventSink> {
        self.sink.borrow().clone()
    }

    /// Calls the function once, unless the sink is replaced meanwhile.
    async fn call_once(&self, event: &FeedEvent) -> Called {
        let mut sinks = self.sink.subscribe();
        let sink = sinks.borrow_and_update().clone();
        tokio::select! {
            called = sink.call(event) => called,
            _ = sinks.changed() => Called::Absent,
        }
    }

    /// Delivers for as long as it is polled; signals when it has begun, so that its position is known.
    pub(super) async fn run(self: Arc<Self>, begun: oneshot::Sender<()>) {
        let mut subscription = self.begin().await;
        // The caller that registered may have stopped waiting.
        let _ = begun.send(()).is_ok();
        let mut live: Option<Subscription> = None;
        let mut calls = FuturesUnordered::new();
        let mut note = tokio::time::interval(BINDING_POSITION_NOTED_EVERY);
        let mut replayed = 0;
        loop {
            // A replay leaves capacity for live events.
            let most = if live.is_some() { EVENT_REPLAY_CALLS_MAX } else { EVENT_CALLS_MAX };
            let looks = replayed >= EVENT_REPLAY_RUN_MAX && calls.len() < EVENT_CALLS_MAX;
            let looked = match live.as_mut().filter(|_| looks) {
                Some(live) => self.look(live, &mut calls).await,
                None => Ok(None),
            };
            if looks && matches!(looked, Ok(None)) {
                replayed = 0;
            }
            // Poll calls first: each is sent before the next event is taken, so they are sent in order.
            let (item, is_live) = if let Some(item) = looked.transpose() {
                (item, true)
            } else {
                tokio::select! {
                    biased;
                    Some(number) = calls.next(), if !calls.is_empty() => {
                        self.end_call(number);
                        continue;
                    }
                    item = next_of(&mut live), if calls.len() < EVENT_CALLS_MAX => (item, true),
                    item = subscription.next(), if calls.len() < most => {
                        replayed += 1;
                        (item, false)
                    }
                    // Filtered events move the position too, or a quiet binding would get a gap after a restart.
                    _ = note.tick(), if calls.is_empty() && live.is_none() => {
                        self.note(position_of(&subscription));
                        continue;
                    }
                }
            };
            match item {
                Ok(FeedItem::Event(delivery)) => calls.push(self.begin_call(delivery)),
                Ok(FeedItem::Gap(reason)) => {
                    self.sink().missed(reason.name());
                    if reason == GapReason::StoreSwapped {
                        // The store was swapped again: the live events are now part of the replay.
                        if let (true, Some(swapped)) = (is_live, live.take()) {
                            subscription = swapped;
                        }
                        live = self.begin_replay(&subscription).await;
                    }
                }
                Ok(FeedItem::Live) => {
                    if let Some(live) = live.take() {
                        subscription = live;
                    }
                    self.progress.end_replay(position_of(&subscription));
                    self.has_moved.store(true, Ordering::Release);
                }
                Ok(_) => {}
                Err(error) => self.wait_for_store(&error).await,
            }
        }
    }

    /// The next live event that is there, while the running calls go on. A replay is always ready with its next event, and
    /// would break off every read of the live ones before it ends.
    async fn look(
        &self,
        live: &mut Subscription,
        calls: &mut FuturesUnordered<impl Future<Output = u64>>,
    ) -> Result<Option<FeedItem>, ServiceError> {
        let mut look = pin!(live.next_ready());
        loop {
            tokio::select! {
                biased;
                Some(number) = calls.next(), if !calls.is_empty() => self.end_call(number),
                found = &mut look => return found,
            }
        }
    }

    fn begin_call(
        self: &Arc<Self>,
        delivery: Delivery,
    ) -> impl Future<Output = u64> + Send + use<> {
        let number = self.progress.begin_call(delivery.cursor);
        self.clone().call(delivery.event, number)
    }

    /// Begins to follow live events in a new store from where the replay of its sessions begins. They would wait for the
    /// replay otherwise; if it cannot be done, they do.
    async fn begin_replay(&self, replaying: &Subscription) -> Option<Subscription> {
        let after = replaying.after_replay()?;
        self.progress.begin_replay(after.clone());
        self.has_moved.store(true, Ordering::Release);
        // Without a position, the session that it watches had never existed.
        let start = after.map_or(StartAt::Start, StartAt::After);
        self.service.subscribe(&self.scope, self.filter.clone(), start).await.ok()
    }

    /// Begins at the binding's position, as soon as the store answers. A position that cannot be read is a gap.
    async fn begin(&self) -> Subscription {
        let mut position = self.progress.position();
        if position == Some(ResumePosition::Dropped) {
            self.sink().missed(GapReason::TooOld.name());
            position = None;
        }
        loop {
            let start = match position.clone() {
                None | Some(ResumePosition::Dropped) => StartAt::Now,
                Some(ResumePosition::Start) if self.filter.session_id.is_some() => StartAt::Start,
                Some(ResumePosition::Start) => StartAt::Now,
                Some(ResumePosition::After(cursor)) => StartAt::Resume(cursor),
                Some(ResumePosition::Replaying { after }) => StartAt::Replay(after),
            };
            match self.service.subscribe(&self.scope, self.filter.clone(), start).await {
                Ok(subscription) => {
                    let position = position_of(&subscription);
                    if let ResumePosition::After(cursor) = &position {
                        self.began.get_or_init(|| cursor.clone());
                    }
                    self.progress.idle_at(position);
                    // Also if it did not move: the stored document may show the binding as free.
                    self.has_moved.store(true, Ordering::Release);
                    return subscription;
                }
                Err(error @ ServiceError::InvalidCursor { .. }) if position.is_some() => {
                    position = None;
                    self.sink().missed(error.code());
                }
                Err(error) => self.wait_for_store(&error).await,
            }
        }
    }

    async fn wait_for_store(&self, error: &ServiceError) {
        tracing::warn!(code = error.code(), "a binding waits for the store");
        tokio::time::sleep(EVENT_RETRY_PAUSE).await;
    }

    fn note(&self, position: ResumePosition) {
        if self.progress.position().as_ref() != Some(&position) {
            self.progress.idle_at(position);
            self.has_moved.store(true, Ordering::Release);
        }
    }

    fn end_call(&self, number: u64) {
        if self.progress.end_call(number) {
            self.has_moved.store(true, Ordering::Release);
        }
    }

    /// Calls the function until a worker takes the call; returns its number.
    ///
    /// While the function is away, one call checks whether it is back, however many wait. New calls wait behind them: an
    /// event that overtook an older one would be delivered again if the binding left before the older one was answered.
    async fn call(self: Arc<Self>, event: Arc<FeedEvent>, number: u64) -> u64 {
        let mut turn = self.retry.lock().await;
        loop {
            let returns = self.returns.load(Ordering::Acquire);
            drop(turn);
            if self.call_once(&event).await == Called::Taken {
                return number;
            }
            turn = self.retry.lock().await;
            // If it came back meanwhile, the call is repeated together with the others that waited.
            if self.returns.load(Ordering::Acquire) == returns {
                break;
            }
        }
        while self.call_once(&event).await != Called::Taken {
            self.sink().ready().await;
        }
        self.returns.fetch_add(1, Ordering::AcqRel);
        drop(turn);
        number
    }
}
