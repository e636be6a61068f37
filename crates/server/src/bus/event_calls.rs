//! Events on their way to workers: each is a call of the bound function, whose answer says that it arrived.

use async_trait::async_trait;
use bough_service::limits::{EVENT_ANSWER_WAIT, EVENT_RETRY_PAUSE};
use bough_service::{Called, EventSink, FeedEvent, Function, Request, Scope, TriggerType};
use tokio::sync::oneshot;

use super::Bus;
use super::ids::BusId;
use super::wire::{self, Deliver, TriggerFrame};

/// Calls the function of one binding.
pub(crate) struct EventCaller {
    pub(crate) bus: Bus,
    pub(crate) namespace: String,
    pub(crate) scope: Scope,
    pub(crate) trigger_type: TriggerType,
    pub(crate) frame: TriggerFrame,
}

/// A call that waits for its answer until this is dropped.
struct Waiting<'a> {
    bus: &'a Bus,
    namespace: &'a str,
    id: BusId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.bus.forget_event_call(self.namespace, self.id);
    }
}

#[async_trait]
impl EventSink for EventCaller {
    async fn call(&self, event: &FeedEvent) -> Called {
        let called = match self.bus.own_function(&self.frame.function_id) {
            Some(function) => self.call_own(function, event).await,
            None => self.call_worker(event).await,
        };
        if called == Called::Taken {
            self.bus.app().metrics.events_delivered.add(1);
        }
        called
    }

    async fn ready(&self) {
        let mut changes = self.bus.function_changes();
        // A worker may have come between the call and this, so it is never waited for without an end.
        let _ = tokio::time::timeout(EVENT_RETRY_PAUSE, changes.changed()).await.is_ok();
    }

    fn missed(&self, reason: &'static str) {
        self.bus.app().metrics.gaps.add(1);
        let trigger_type = self.trigger_type.name();
        tracing::warn!(reason, trigger_type, "a binding of the bus missed events");
    }
}

impl EventCaller {
    /// A binding may name one of our own functions. Its answer is dropped.
    async fn call_own(&self, function: &'static Function, event: &FeedEvent) -> Called {
        if let Ok(request) = Request::from_body(self.trigger_type.payload(event).as_bytes()) {
            drop(self.bus.app().call(&self.scope, function, request).await);
        }
        Called::Taken
    }

    async fn call_worker(&self, event: &FeedEvent) -> Called {
        let Some(host) = self.bus.host(&self.namespace, &self.frame.function_id) else {
            return Called::Absent;
        };
        let payload = self.trigger_type.payload(event);
        if host.takes_bytes().is_some_and(|most| payload.len() >= most) {
            // It would be as large the next time.
            self.missed("too_large");
            return Called::Taken;
        }
        let id = self.bus.fresh_id();
        let (answer, answered) = oneshot::channel();
        // It waits before it is sent: no answer can come too early.
        self.bus.begin_event_call(&self.namespace, id, &host, answer);
        let _waiting = Waiting { bus: &self.bus, namespace: &self.namespace, id };
        let payload = match self.frame.observer {
            Some(Deliver::Envelope) => {
                let now = self.bus.app().clock.now_ms();
                wire::envelope(&self.frame, id, &payload, now).into()
            }
            _ => payload,
        };
        let text = wire::deliver(id, &self.frame, &payload, &self.bus.name());
        if !host.send_event(text).await {
            return Called::Absent;
        }
        outcome(answered).await
    }
}

/// What became of a call whose host has it. One handler that never answers must not stop the binding.
async fn outcome(answered: oneshot::Receiver<()>) -> Called {
    match tokio::time::timeout(EVENT_ANSWER_WAIT, answered).await {
        Ok(Ok(())) | Err(_) => Called::Taken,
        // Its host left without an answer.
        Ok(Err(_)) => Called::Absent,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SHORTLY: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_does_not_answer_counts_as_delivered_after_its_time() {
        let (_unanswered, answered) = oneshot::channel();
        let mut called = Box::pin(outcome(answered));
        let before = tokio::time::timeout(EVENT_ANSWER_WAIT - SHORTLY, &mut called).await;
        assert!(before.is_err(), "it is waited for until then");
        let after = tokio::time::timeout(SHORTLY * 2, called).await;
        assert_eq!(after.ok(), Some(Called::Taken));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_host_left_is_made_again() {
        let (answer, answered) = oneshot::channel();
        drop(answer);
        assert_eq!(outcome(answered).await, Called::Absent);
    }
}
