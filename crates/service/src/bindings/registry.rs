//! The bindings of one bus: who holds each, and its position.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bough_platform::Clock;
use bough_store::shared_state::{SharedState, SharedStateError};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::EventSink;
use super::delivery::Delivering;
use super::progress::ResumePosition;
use super::spec::BindingSpec;
use super::stored_bindings::{StoredBinding, StoredBindings};
use super::table::{Claim, Hold, Left, Slot, Table};
use crate::feed::EventFilter;
use crate::limits::{
    BINDING_KEPT_FOR, BINDINGS_DROPPED_MAX, BINDINGS_KEPT_MAX, BINDINGS_SWEPT_EVERY,
    BINDINGS_WRITTEN_EVERY,
};
use crate::lock::lock;
use crate::scope::Scope;
use crate::service::Service;

/// The bindings of one bus. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Bindings(Arc<Inner>);

struct Inner {
    service: Service,
    clock: Arc<dyn Clock>,
    stored: Arc<StoredBindings>,
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    table: Table,
    running: HashMap<u64, Running>,
}

/// A binding that a registration holds.
struct Running {
    spec: BindingSpec,
    ordinal: u32,
    delivering: Arc<Delivering>,
    /// Where its calls go.
    route: String,
    /// Whether its position was ever written.
    is_written: bool,
    task: AbortHandle,
}

/// A registration. It holds its binding until it ends or another registration takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BindingId(u64);

/// What is asked for.
pub struct BindingRequest {
    /// What the binding is known by.
    pub spec: BindingSpec,
    /// The id that the client gave it; it distinguishes equal bindings.
    pub trigger_id: String,
    /// What its owner may see.
    pub scope: Scope,
    /// The events that it wants.
    pub filter: EventFilter,
    /// The route of the calls: the connection that registers. If a registration takes a binding from another route,
    /// running calls are repeated.
    pub route: String,
    /// Who calls its function.
    pub sink: Arc<dyn EventSink>,
}

/// A registration that was made.
#[derive(Debug)]
pub struct Registered {
    /// Names it.
    pub id: BindingId,
    /// Resolves when the binding has its position: later events are delivered.
    pub begun: oneshot::Receiver<()>,
}

impl Bindings {
    /// The bindings of the bus with this name, with the stored positions. Must be called on a tokio runtime.
    pub async fn open(
        service: Service,
        shared: Arc<dyn SharedState>,
        clock: Arc<dyn Clock>,
        bus: &str,
    ) -> Result<Self, SharedStateError> {
        let stored = Arc::new(StoredBindings::new(shared, bus));
        let mut table = Table::default();
        let now = clock.now_ms();
        for written in stored.read().await? {
            // It was held when the last process ended, so it is free since then.
            let since_ms = written.left_ms.unwrap_or(now);
            let hold = Hold::Left { since_ms, position: written.position() };
            let StoredBinding { spec, ordinal, trigger_id, .. } = written;
            table.restore(spec, Slot { ordinal, trigger_id, hold });
        }
        let state = Mutex::new(State { table, running: HashMap::new() });
        let next = AtomicU64::new(0);
        let inner = Inner { service, clock, stored: stored.clone(), next, state };
        let inner = Arc::new(inner);
        tokio::spawn(keep(Arc::downgrade(&inner), stored));
        Ok(Self(inner))
    }

    /// Registers a binding, which resumes at its position if it is known.
    pub fn register(&self, request: BindingRequest) -> Registered {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (begin, begun) = oneshot::channel();
        let mut state = lock(&self.0.state);
        let claim = state.table.claim(&request.spec, &request.trigger_id, id);
        let (ordinal, position) = match claim {
            Claim::Taken { ordinal, from } => match state.running.remove(&from) {
                Some(mut running) => {
                    let leads_elsewhere = running.route != request.route;
                    running.route = request.route;
                    running.delivering.replace_sink(request.sink, leads_elsewhere);
                    state.running.insert(id, running);
                    return Registered { id: BindingId(id), begun };
                }
                None => (ordinal, None),
            },
            Claim::New { ordinal } => (ordinal, None),
            Claim::Resumed { ordinal, position } => (ordinal, Some(position)),
        };
        let BindingRequest { spec, scope, filter, route, sink, .. } = request;
        let service = self.0.service.clone();
        let is_written = position.is_some();
        let delivering = Arc::new(Delivering::new(service, scope, filter, sink, position));
        let deliveries = begin_and_write(Arc::downgrade(&self.0), delivering.clone(), begin);
        let task = tokio::spawn(deliveries).abort_handle();
        state.running.insert(id, Running { spec, ordinal, delivering, route, is_written, task });
        drop(state);
        self.0.drop_surplus();
        Registered { id: BindingId(id), begun }
    }

    /// A connection ended: the binding stops, and its position is kept for a while.
    pub fn disconnect(&self, id: BindingId) {
        let mut state = lock(&self.0.state);
        let Some(running) = state.running.remove(&id.0) else { return };
        running.task.abort();
        let Running { spec, ordinal, delivering, is_written, .. } = running;
        let Some(position) = delivering.progress.position() else {
            // It never began, so it cannot have missed anything.
            state.table.remove(&spec, ordinal);
            return;
        };
        let mut equal = state.running.values().filter(|running| running.spec == spec);
        if equal.any(|running| running.delivering.delivers_all_after(&position)) {
            // They call the same function, so nothing is missed without this one.
            state.table.remove(&spec, ordinal);
            self.0.stored.remove(&spec, ordinal);
            return;
        }
        let now = self.0.clock.now_ms();
        let trigger_id = state.table.get(&spec, ordinal).map(|slot| slot.trigger_id.clone());
        let named = (ordinal, trigger_id.as_deref().unwrap_or_default());
        self.0.stored.put(&StoredBinding::new(&spec, named, &position, Some(now)), !is_written);
        state.table.leave(&spec, ordinal, position, now);
        drop(state);
        self.0.drop_surplus();
    }

    /// Ends a binding that is not wanted any more, and drops its position.
    pub fn unregister(&self, id: BindingId) {
        let mut state = lock(&self.0.state);
        let Some(running) = state.running.remove(&id.0) else { return };
        running.task.abort();
        state.table.remove(&running.spec, running.ordinal);
        self.0.stored.remove(&running.spec, running.ordinal);
    }

    /// Writes every present position; for the end of the process.
    pub async fn flush(&self) -> Result<(), SharedStateError> {
        self.0.collect();
        self.0.stored.write().await
    }
}

impl std::fmt::Debug for Bindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bindings")
            .field("kept", &lock(&self.0.state).table.kept())
            .finish_non_exhaustive()
    }
}

/// Delivers; writes the first position of a binding as soon as it is known.
async fn begin_and_write(
    inner: Weak<Inner>,
    delivering: Arc<Delivering>,
    begun: oneshot::Sender<()>,
) {
    let (begin, has_begun) = oneshot::channel();
    let write_first = async {
        // The sender is dropped only together with this.
        let _ = has_begun.await.is_ok();
        if let Some(inner) = inner.upgrade() {
            inner.collect();
        }
        // The caller that registered may have stopped waiting.
        let _ = begun.send(()).is_ok();
        std::future::pending::<()>().await;
    };
    tokio::join!(delivering.run(begin), write_first);
}

/// Writes positions and drops old ones until the bindings are gone.
async fn keep(inner: Weak<Inner>, stored: Arc<StoredBindings>) {
    let mut sweep = tokio::time::interval(BINDINGS_SWEPT_EVERY);
    loop {
        let is_time_to_sweep = tokio::select! {
            () = stored.urgent() => false,
            () = tokio::time::sleep(BINDINGS_WRITTEN_EVERY) => false,
            _ = sweep.tick() => true,
        };
        // Hold it only for a moment, so that bindings without an owner can end.
        let Some(bindings) = inner.upgrade() else { return };
        if is_time_to_sweep {
            bindings.drop_old();
        }
        bindings.collect();
        drop(bindings);
        if let Err(error) = stored.write().await {
            tracing::error!(%error, "the positions of bindings were not written; trying again");
        }
    }
}

impl Inner {
    /// Queues the positions that moved.
    fn collect(&self) {
        let mut state = lock(&self.state);
        let State { table, running } = &mut *state;
        for held in running.values_mut() {
            if !held.delivering.has_moved.swap(false, Ordering::AcqRel) {
                continue;
            }
            let Some(position) = held.delivering.progress.position() else { continue };
            let Some(slot) = table.get(&held.spec, held.ordinal) else { continue };
            let named = (held.ordinal, slot.trigger_id.as_str());
            self.stored
                .put(&StoredBinding::new(&held.spec, named, &position, None), !held.is_written);
            held.is_written = true;
        }
    }

    fn drop_old(&self) {
        let kept_ms = i64::try_from(BINDING_KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let mut state = lock(&self.state);
        let before = self.clock.now_ms().saturating_sub(kept_ms);
        for left in state.table.left_before(before) {
            self.drop_position(&mut state.table, &left);
        }
        self.forget_surplus(&mut state.table);
    }

    /// Drops positions of free bindings while there are too many.
    fn drop_surplus(&self) {
        let mut state = lock(&self.state);
        while state.table.kept() > BINDINGS_KEPT_MAX {
            let Some(left) = state.table.left_longest() else { break };
            tracing::warn!("too many bindings left; the position of the oldest is dropped");
            self.drop_position(&mut state.table, &left);
        }
        self.forget_surplus(&mut state.table);
    }

    /// Drops the position of a free binding. The binding stays known, so that it gets a gap when it comes back.
    fn drop_position(&self, table: &mut Table, Left { spec, ordinal, since_ms }: &Left) {
        let (ordinal, since_ms) = (*ordinal, *since_ms);
        let Some(slot) = table.get(spec, ordinal) else { return };
        let (position, named) = (ResumePosition::Dropped, (ordinal, slot.trigger_id.as_str()));
        self.stored.put(&StoredBinding::new(spec, named, &position, Some(since_ms)), false);
        table.leave(spec, ordinal, position, since_ms);
    }

    /// Forgets bindings without a position while there are too many; they are new ones when they come back.
    fn forget_surplus(&self, table: &mut Table) {
        while table.dropped() > BINDINGS_DROPPED_MAX {
            let Some(Left { spec, ordinal, .. }) = table.dropped_longest() else { return };
            table.remove(&spec, ordinal);
            self.stored.remove(&spec, ordinal);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }
}
