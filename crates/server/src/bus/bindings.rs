//! Binding functions to types of triggers: ours, those of other workers, and those that no worker
//! has registered yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bough_service::{BindingRequest, BindingSpec, TriggerType};
use serde_json::Value;
use tokio::sync::oneshot;

use super::connection::Connection;
use super::event_calls::EventCaller;
use super::namespace::{Bound, BoundTo};
use super::wire::{self, ObserveFrame, TriggerFrame};
use super::{Bus, namespace_key};
use crate::limits::BUS_BIND_WAIT;

impl Bus {
    /// Binds a function to a type of trigger. A binding with the same id is replaced, also one of another connection of
    /// the namespace: its worker may have reconnected before the old connection is known to be dead.
    pub(super) async fn register_trigger(&self, connection: &Arc<Connection>, frame: TriggerFrame) {
        if !self.in_namespace(connection, |namespace| namespace.may_bind(connection, &frame.id)) {
            let message = "this connection has too many bindings; unregister some first";
            let error = wire::error_body("trigger_registration_failed", message);
            connection.send(wire::trigger_refused(&frame, error)).await;
            return;
        }
        match self.own_type(&frame.trigger_type) {
            Some(own_type) => self.bind_own(connection, frame, own_type).await,
            None => self.bind_other(connection, frame),
        }
    }

    /// Binds to a type of another worker. That worker is notified, now or when it registers the
    /// type.
    fn bind_other(&self, connection: &Arc<Connection>, frame: TriggerFrame) {
        self.bind(Bound {
            connection: connection.clone(),
            frame: frame.clone(),
            to: BoundTo::Worker,
        });
        if let Some(owner) = self.owner(connection, &frame.trigger_type) {
            owner.notify(wire::register_trigger(&frame));
        }
    }

    async fn bind_own(
        &self,
        connection: &Arc<Connection>,
        frame: TriggerFrame,
        own_type: TriggerType,
    ) {
        if let Err(reason) = self.bind_session(connection, frame.clone(), own_type).await {
            let message = format!("handler error: {reason}");
            let error = wire::error_body("trigger_registration_failed", &message);
            connection.send(wire::trigger_refused(&frame, error)).await;
        }
    }

    /// Binds a function to one of our own types in the words of SDK 0.26.
    pub(super) async fn observe(&self, connection: &Arc<Connection>, frame: ObserveFrame) {
        let (id, target) = (frame.binding.id.clone(), frame.binding.function_id.clone());
        let error = self.try_observe(connection, frame).await.err();
        let error = error.map(|(code, reason)| wire::error_body(code, &reason));
        let namespace = namespace_key(&connection.caller.scope);
        let is_hosted =
            self.own_function(&target).is_some() || self.host(&namespace, &target).is_some();
        connection.send(wire::observe_result(&id, is_hosted, error)).await;
    }

    async fn try_observe(
        &self,
        connection: &Arc<Connection>,
        frame: ObserveFrame,
    ) -> Result<(), (&'static str, String)> {
        let ObserveFrame { binding, refused } = frame;
        if let Some((code, reason)) = refused {
            return Err((code, reason.to_owned()));
        }
        let Some(own_type) = self.own_type(&binding.trigger_type) else {
            let reason = "only the events of sessions can be observed here".to_owned();
            return Err(("UNSUPPORTED", reason));
        };
        if !self.in_namespace(connection, |namespace| namespace.may_bind(connection, &binding.id)) {
            let reason = "this connection has too many observers; unobserve some first".to_owned();
            return Err(("LIMIT_EXCEEDED", reason));
        }
        let bound = self.bind_session(connection, binding, own_type).await;
        bound.map_err(|reason| ("INVALID_ARGS", reason))
    }

    /// Notifies the observers whose target has a host from now on.
    pub(super) fn notify_observers(&self, connection: &Connection, function_id: &str) {
        let waiting: Vec<_> = self.in_namespace(connection, |namespace| {
            let bound = namespace.triggers.values().filter(|bound| {
                bound.frame.observer.is_some() && bound.frame.function_id == function_id
            });
            bound.map(|bound| (bound.connection.clone(), bound.frame.id.clone())).collect()
        });
        for (observer, id) in waiting {
            observer.notify(wire::observer_active(&id));
        }
    }

    pub(super) async fn unobserve(&self, connection: &Connection, id: &str) {
        self.unregister_trigger(connection, id);
        connection.send(wire::observer_disposed(id)).await;
    }

    /// Binds a function to one of our own types. Returns the reason if its filter is refused.
    async fn bind_session(
        &self,
        connection: &Arc<Connection>,
        frame: TriggerFrame,
        own_type: TriggerType,
    ) -> Result<(), String> {
        let scope = connection.caller.scope.clone();
        let filter = own_type.filter(&scope, &frame.config)?;
        let namespace = namespace_key(&scope);
        let known_in = format!("{namespace} {}", frame.namespace.as_deref().unwrap_or_default());
        let spec =
            BindingSpec::new(&frame.trigger_type, &frame.function_id, &known_in, &frame.config);
        let sink = EventCaller {
            bus: self.clone(),
            namespace,
            scope: scope.clone(),
            trigger_type: own_type,
            frame: frame.clone(),
        };
        let trigger_id = frame.id.clone();
        let (route, sink) = (connection.id.to_string(), Arc::new(sink));
        let request = BindingRequest { spec, trigger_id, scope, filter, route, sink };
        let registered = self.0.bindings.register(request);
        let counted = self.0.app.bindings.take(usize::MAX);
        let to = BoundTo::Session { id: registered.id, _counted: counted };
        self.bind(Bound { connection: connection.clone(), frame, to });
        self.wait_for(registered.begun).await;
        Ok(())
    }

    /// Waits until a binding has begun before the next frame is read, so that this worker receives the events of its
    /// own next calls. A slow store delays no client for long, and not once for each binding.
    async fn wait_for(&self, begun: oneshot::Receiver<()>) {
        let is_slow = &self.0.is_store_slow;
        let most = if is_slow.load(Ordering::Relaxed) { Duration::ZERO } else { BUS_BIND_WAIT };
        let is_late = tokio::time::timeout(most, begun).await.is_err();
        is_slow.store(is_late, Ordering::Relaxed);
    }

    /// Adds a binding; the one that it replaces ends.
    fn bind(&self, bound: Bound) {
        let (connection, trigger_type) =
            (bound.connection.clone(), bound.frame.trigger_type.clone());
        let old = self.in_namespace(&connection, |namespace| namespace.bind(bound));
        let Some(old) = old else { return };
        match old.to {
            // If the new binding is equal, it has taken the old one's place already, and this ends nothing.
            BoundTo::Session { id, .. } => self.0.bindings.unregister(id),
            // The owner of the type replaces it by its id.
            BoundTo::Worker if old.frame.trigger_type == trigger_type => {}
            BoundTo::Worker => self.notify_unbound(&connection, &old.frame),
        }
    }

    fn owner(&self, connection: &Connection, trigger_type: &str) -> Option<Arc<Connection>> {
        self.in_namespace(connection, |namespace| {
            namespace.types.get(trigger_type).map(|hosted| hosted.connection.clone())
        })
    }

    fn notify_unbound(&self, connection: &Connection, frame: &TriggerFrame) {
        if let Some(owner) = self.owner(connection, &frame.trigger_type) {
            owner.notify(wire::unregister_trigger(&frame.id, &frame.trigger_type));
        }
    }

    pub(super) fn unregister_trigger(&self, connection: &Connection, id: &str) {
        let bound = self.in_namespace(connection, |namespace| namespace.unbind(connection, id));
        let Some(bound) = bound else { return };
        match bound.to {
            BoundTo::Session { id, .. } => self.0.bindings.unregister(id),
            BoundTo::Worker => self.notify_unbound(connection, &bound.frame),
        }
    }

    /// The worker that owns a type has answered a binding; a refusal is passed on.
    pub(super) fn trigger_registered(&self, owner: &Connection, id: &str, error: Option<Value>) {
        let Some(error) = error else { return };
        let bound = self.in_namespace(owner, |namespace| {
            let bound = namespace.triggers.get(id)?;
            let hosted = namespace.types.get(&bound.frame.trigger_type)?;
            (hosted.connection.id == owner.id).then(|| namespace.triggers.remove(id)).flatten()
        });
        if let Some(bound) = bound {
            bound.connection.notify(wire::trigger_refused(&bound.frame, error));
        }
    }
}
