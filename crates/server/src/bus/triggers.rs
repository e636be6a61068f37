//! Bindings to our own events: a subscription each, delivered as calls of the bound function.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bough_service::{
    Delivery, EventFilter, EventKind, FeedCursor, FeedEvent, FeedItem, Right, Scope, ServiceError,
    StartAt, Subscription,
};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::Bus;
use super::ids::BusId;
use super::wire::{self, TriggerFrame};
use crate::limits::BUS_UNANSWERED_EVENTS;

/// The type that other instances bind to hear of everything.
const STORE_EVENTS: &str = "session::store::events";

/// What a binding of our own is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnType {
    /// One type of event, as callers know it.
    Event(EventKind),
    /// All public ones in envelopes, for other instances.
    StoreEvents,
}

impl OwnType {
    /// Our own type with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            STORE_EVENTS => Some(Self::StoreEvents),
            _ => name.parse().ok().map(Self::Event),
        }
    }

    /// Every type of our own, with its name and description.
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        let events = EventKind::ALL.into_iter().map(|kind| (kind.name(), kind.description()));
        events
            .chain([(STORE_EVENTS, "Internal: every event in an envelope, for bridged instances.")])
    }

    /// The events that a configuration of this type asks for; malformed ones are refused.
    pub(crate) fn filter(self, scope: &Scope, config: &Value) -> Result<EventFilter, String> {
        scope.may_watch().map_err(|error| format!("{}: {error}", error.code()))?;
        match self {
            Self::Event(kind) => {
                EventFilter::parse(kind, config).map_err(|error| error.to_string())
            }
            Self::StoreEvents if !scope.has(Right::Bridge) => {
                Err("session/forbidden: this needs the right `bridge`".to_owned())
            }
            Self::StoreEvents => Ok(EventFilter::everything()),
        }
    }

    fn payload(self, event: &FeedEvent) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Event(_) => event.json().into(),
            Self::StoreEvents => {
                let metadata = event.metadata.as_deref();
                let metadata = metadata.map(|map| format!(",\"session_metadata\":{}", json!(map)));
                let (name, payload) = (event.kind().name(), event.json());
                let metadata = metadata.unwrap_or_default();
                format!("{{\"trigger_type\":\"{name}\",\"payload\":{payload}{metadata}}}").into()
            }
        }
    }
}

/// A binding of a function to a type of our own.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The first half of the ids of its deliveries.
    pub(crate) number: u64,
    stop: watch::Sender<bool>,
    progress: Mutex<Progress>,
}

/// How far a binding's deliveries have come.
#[derive(Debug, Default)]
struct Progress {
    /// After the last event that was sent.
    sent: Option<FeedCursor>,
    next: u64,
    /// Events that were sent and not answered, each with the place before it.
    unanswered: VecDeque<(u64, Option<FeedCursor>)>,
}

impl Binding {
    /// A binding that goes on at a place, or begins when it can.
    pub(crate) fn at(number: u64, from: Option<FeedCursor>) -> Self {
        let progress = Mutex::new(Progress { sent: from, ..Progress::default() });
        Self { number, stop: watch::Sender::new(false), progress }
    }

    /// Ends the deliveries.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// A handler has answered a delivery.
    pub(crate) fn answered(&self, number: u64) {
        self.lock().unanswered.retain(|(waiting, _)| *waiting != number);
    }

    /// Where to go on so that nothing is missed: before the first event that was not answered.
    pub(crate) fn resume_from(&self) -> Option<FeedCursor> {
        let progress = self.lock();
        match progress.unanswered.front() {
            Some((_, before)) => before.clone(),
            None => progress.sent.clone(),
        }
    }

    /// After the last event that was sent.
    pub(crate) fn sent_up_to(&self) -> Option<FeedCursor> {
        self.lock().sent.clone()
    }

    fn begin_at(&self, cursor: Option<FeedCursor>) {
        self.lock().sent = cursor;
    }

    /// Notes that an event is on its way; gives its number.
    fn sending(&self) -> u64 {
        let mut progress = self.lock();
        let number = progress.next;
        progress.next += 1;
        let before = progress.sent.clone();
        progress.unanswered.push_back((number, before));
        if progress.unanswered.len() > BUS_UNANSWERED_EVENTS {
            progress.unanswered.pop_front();
        }
        number
    }

    fn sent(&self, cursor: FeedCursor) {
        self.lock().sent = Some(cursor);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as this binding, so this cannot fail.
        let _ = stop.wait_for(|stop| *stop).await.is_ok();
    }
}

/// The deliveries of one binding.
pub(crate) struct Deliveries {
    pub(crate) bus: Bus,
    pub(crate) room: String,
    pub(crate) scope: Scope,
    pub(crate) own_type: OwnType,
    pub(crate) filter: EventFilter,
    pub(crate) frame: TriggerFrame,
    pub(crate) binding: std::sync::Arc<Binding>,
}

/// How long to wait before the store is asked again.
const PAUSE: Duration = Duration::from_secs(1);

impl Deliveries {
    /// Begins the subscription, so that what happens from now on is delivered, or what happened since a place.
    async fn begin(&self, from: Option<FeedCursor>) -> Result<Subscription, ServiceError> {
        let start = from.map_or(StartAt::Now, StartAt::After);
        let service = &self.bus.app().service;
        let subscription = service.subscribe(&self.scope, self.filter.clone(), start).await?;
        self.binding.begin_at(subscription.cursor());
        Ok(subscription)
    }

    /// Delivers until the binding is stopped; says when it has begun.
    pub(crate) async fn run(self, from: Option<FeedCursor>, begun: oneshot::Sender<()>) {
        let binding = self.binding.clone();
        tokio::select! {
            () = binding.stopped() => {}
            () = self.deliver_all(from, begun) => {}
        }
    }

    async fn deliver_all(&self, from: Option<FeedCursor>, begun: oneshot::Sender<()>) {
        let first = self.begin(from.clone()).await;
        // Nobody waits any more when this took too long.
        let _ = begun.send(()).is_ok();
        let mut subscription = match first {
            Ok(subscription) => subscription,
            Err(error) => self.begin_patiently(from, error).await,
        };
        loop {
            match subscription.next().await {
                Ok(FeedItem::Event(delivery)) => self.deliver(&delivery).await,
                Ok(FeedItem::Gap(reason)) => self.missed(reason.name()),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(code = error.code(), "a binding of the bus waits for the store");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Begins as soon as the store answers, where it was to begin; a place that cannot be read is a gap.
    async fn begin_patiently(
        &self,
        mut from: Option<FeedCursor>,
        mut error: ServiceError,
    ) -> Subscription {
        loop {
            if matches!(error, ServiceError::InvalidCursor { .. }) && from.take().is_some() {
                self.missed(error.code());
            } else {
                tokio::time::sleep(PAUSE).await;
            }
            match self.begin(from.clone()).await {
                Ok(subscription) => return subscription,
                Err(again) => error = again,
            }
        }
    }

    fn missed(&self, reason: &str) {
        self.bus.app().metrics.gaps.add(1);
        tracing::warn!(reason, "a binding of the bus missed events");
    }

    /// Sends one event to whoever hosts the function; waits until somebody does.
    async fn deliver(&self, delivery: &Delivery) {
        let mut changes = self.bus.function_changes();
        loop {
            changes.mark_unchanged();
            if self.call_own(&delivery.event).await || self.send(delivery).await {
                self.bus.app().metrics.events_delivered.add(1);
                self.binding.sent(delivery.cursor.clone());
                return;
            }
            // The bus outlives its bindings, so this only ends with a change.
            let _ = changes.changed().await.is_ok();
        }
    }

    /// A binding may name one of our own functions.
    async fn call_own(&self, event: &FeedEvent) -> bool {
        let Some(function) = self.bus.own_function(&self.frame.function_id) else {
            return false;
        };
        let payload = serde_json::from_str(&self.own_type.payload(event)).unwrap_or_default();
        // Nobody waits for the answer of an event.
        let _ = self.bus.app().call(&self.scope, function, payload).await.is_ok();
        true
    }

    async fn send(&self, delivery: &Delivery) -> bool {
        let Some(line) = self.bus.host(&self.room, &self.frame.function_id) else {
            return false;
        };
        let payload = self.own_type.payload(&delivery.event);
        if line.takes_bytes().is_some_and(|most| payload.len() >= most) {
            tracing::warn!(bytes = payload.len(), "an event is larger than its subscriber takes");
            return true;
        }
        let id = BusId(self.binding.number, self.binding.sending());
        let function = Value::String(self.frame.function_id.clone());
        let metadata = self.frame.metadata.as_ref();
        let text = wire::deliver(id, &function, &payload, &self.bus.name(), metadata);
        line.send_event(text).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64) -> FeedCursor {
        format!("all.{number:064}").parse().unwrap()
    }

    #[test]
    fn a_binding_resumes_before_the_first_event_that_was_not_answered() {
        let binding = Binding::at(1, Some(place(0)));
        assert_eq!(binding.resume_from(), Some(place(0)));
        for number in 1..=3 {
            binding.sending();
            binding.sent(place(number));
        }
        assert_eq!(binding.resume_from(), Some(place(0)));
        binding.answered(1);
        assert_eq!(binding.resume_from(), Some(place(0)), "the first is still on its way");
        binding.answered(0);
        assert_eq!(binding.resume_from(), Some(place(2)));
        binding.answered(2);
        assert_eq!(binding.resume_from(), Some(place(3)));
    }

    #[test]
    fn what_nobody_answers_is_not_remembered_for_ever() {
        let binding = Binding::at(1, None);
        for number in 1..=1000 {
            binding.sending();
            binding.sent(place(number));
        }
        assert_eq!(binding.lock().unanswered.len(), BUS_UNANSWERED_EVENTS);
    }

    #[test]
    fn envelopes_are_for_bridges_only() {
        let reader = Scope::new("r", [Right::Read]);
        assert!(OwnType::StoreEvents.filter(&reader, &Value::Null).is_err());
        assert!(OwnType::StoreEvents.filter(&Scope::owner(), &Value::Null).is_ok());
        let writer = Scope::owner().only_functions(["session::append".to_owned()]);
        let created = OwnType::Event(EventKind::Created);
        assert!(
            created.filter(&writer, &Value::Null).unwrap_err().starts_with("session/forbidden")
        );
        assert_eq!(OwnType::named("session::created"), Some(OwnType::Event(EventKind::Created)));
        assert_eq!(OwnType::named("session::other"), None);
    }
}
