//! Binding functions to types of triggers: ours, other workers', and those that nobody has yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bough_service::FeedCursor;
use serde_json::Value;
use tokio::sync::oneshot;

use super::line::Line;
use super::room::Bound;
use super::triggers::{Binding, Deliveries, OwnType};
use super::wire::{self, TriggerFrame};
use super::{Bus, room_key};
use crate::limits::BUS_BIND_WAIT;

impl Bus {
    /// Binds a function to a type of trigger: ours, another worker's, or one that nobody has yet. A binding with the same id is replaced,
    /// also one of another connection of the room: its worker may be back while the old connection does not know that it is dead.
    pub(super) async fn register_trigger(&self, line: &Arc<Line>, frame: TriggerFrame) {
        if !self.in_room(line, |room| room.may_bind(line, &frame.id)) {
            let message = "this connection has too many bindings; unregister some first";
            let error = wire::error_body("trigger_registration_failed", message);
            line.send(wire::trigger_refused(&frame, error)).await;
            return;
        }
        match self.own_type(&frame.trigger_type) {
            Some(own_type) => self.bind_own(line, frame, own_type).await,
            None => self.bind_other(line, frame),
        }
    }

    /// Binds to a type of another worker, which is told, now or when it comes.
    fn bind_other(&self, line: &Arc<Line>, frame: TriggerFrame) {
        let bound = Bound { line: line.clone(), frame: frame.clone(), binding: None };
        self.bind(bound);
        if let Some(owner) = self.owner(line, &frame.trigger_type) {
            owner.tell(wire::register_trigger(&frame));
        }
    }

    async fn bind_own(&self, line: &Arc<Line>, frame: TriggerFrame, own_type: OwnType) {
        let scope = line.caller.scope.clone();
        let filter = match own_type.filter(&scope, &frame.config) {
            Ok(filter) => filter,
            Err(reason) => {
                let message = format!("handler error: {reason}");
                let error = wire::error_body("trigger_registration_failed", &message);
                line.send(wire::trigger_refused(&frame, error)).await;
                return;
            }
        };
        let from = self.place_of(line, &frame);
        let binding = Arc::new(Binding::at(self.0.ids.number(), from.clone()));
        let deliveries = Deliveries {
            bus: self.clone(),
            room: room_key(&scope),
            scope,
            own_type,
            filter,
            frame: frame.clone(),
            binding: binding.clone(),
        };
        self.bind(Bound { line: line.clone(), frame, binding: Some(binding) });
        let taken = self.0.app.bindings.take(usize::MAX);
        let (begun, has_begun) = oneshot::channel();
        tokio::spawn(async move {
            deliveries.run(from, begun).await;
            drop(taken);
        });
        self.wait_for(has_begun).await;
    }

    /// Waits until a binding has begun, so that the place is taken before the next frame is read: what this worker does next, it
    /// will hear of. A store that does not answer holds nobody up, and not once for each binding.
    async fn wait_for(&self, has_begun: oneshot::Receiver<()>) {
        let is_slow = &self.0.is_store_slow;
        let most = if is_slow.load(Ordering::Relaxed) { Duration::ZERO } else { BUS_BIND_WAIT };
        let is_late = tokio::time::timeout(most, has_begun).await.is_err();
        is_slow.store(is_late, Ordering::Relaxed);
    }

    /// Where a binding goes on that was there before: on a connection that broke, or on one that is about to be found dead.
    fn place_of(&self, line: &Line, frame: &TriggerFrame) -> Option<FeedCursor> {
        let room = room_key(&line.caller.scope);
        let parked = self.parking().take(&room, frame, self.0.app.clock.monotonic());
        if parked.is_some() {
            return parked;
        }
        self.in_room(line, |room| {
            let bound = room.triggers.get(&frame.id).filter(|bound| bound.frame.asks_for(frame))?;
            let binding = bound.binding.as_ref()?;
            binding.stop();
            // What was sent to the old connection and not answered may never have arrived.
            if bound.line.id == line.id { binding.sent_up_to() } else { binding.resume_from() }
        })
    }

    /// Takes a binding; what it replaces ends.
    fn bind(&self, bound: Bound) {
        let (line, trigger_type) = (bound.line.clone(), bound.frame.trigger_type.clone());
        let Some(old) = self.in_room(&line, |room| room.bind(bound)) else { return };
        match old.binding {
            Some(binding) => binding.stop(),
            // The owner of the type replaces it by its id.
            None if old.frame.trigger_type == trigger_type => {}
            None => self.tell_unbound(&line, &old.frame),
        }
    }

    fn owner(&self, line: &Line, trigger_type: &str) -> Option<Arc<Line>> {
        self.in_room(line, |room| room.types.get(trigger_type).map(|hosted| hosted.line.clone()))
    }

    fn tell_unbound(&self, line: &Line, frame: &TriggerFrame) {
        if let Some(owner) = self.owner(line, &frame.trigger_type) {
            owner.tell(wire::unregister_trigger(&frame.id, &frame.trigger_type));
        }
    }

    pub(super) fn unregister_trigger(&self, line: &Line, id: &str) {
        let Some(bound) = self.in_room(line, |room| room.unbind(line, id)) else { return };
        match bound.binding {
            Some(binding) => binding.stop(),
            None => self.tell_unbound(line, &bound.frame),
        }
    }

    /// The worker that owns a type has looked at a binding; a refusal is passed on.
    pub(super) fn trigger_registered(&self, owner: &Line, id: &str, error: Option<Value>) {
        let Some(error) = error else { return };
        let bound = self.in_room(owner, |room| {
            let bound = room.triggers.get(id)?;
            let hosted = room.types.get(&bound.frame.trigger_type)?;
            (hosted.line.id == owner.id).then(|| room.triggers.remove(id)).flatten()
        });
        if let Some(bound) = bound {
            bound.line.tell(wire::trigger_refused(&bound.frame, error));
        }
    }
}
