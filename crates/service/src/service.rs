//! The handle that every surface holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bough_platform::{Clock, Entropy};
use bough_session::{EntryId, Incarnation, SessionId};
use bough_store::Store;
use tokio::sync::watch;

use crate::api::ReloadStatus;
use crate::error::ServiceError;
use crate::lock::Replaceable;
use crate::open_streams::OpenStreams;
use crate::reload::{Reload, ReloadState};
use crate::runtime::Runtime;
use crate::search::SearchSlot;
use crate::settings::Settings;
use crate::terms::{CallTerms, KeyedIds, key_window};
use crate::used_keys::UsedKeys;

/// Every session rule, over one store at a time. Cheap to clone; all clones are the same service.
///
/// The functions of the table are methods here; [`Service::call`] reaches them by name. A write that has begun runs to
/// completion even if the caller goes away, so writes must be called inside a tokio runtime.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
    /// The call that this handle is for, if it is for one.
    call: Option<Arc<Call>>,
}

/// The terms of one call, and what was found out about it.
struct Call {
    /// The source of ids, if the call may be repeated.
    keyed: Option<KeyedIds>,
    /// Names the key of the call among all keys of its tenant.
    tenant_key: Option<[u8; 32]>,
    /// The incarnation of the session that the call means.
    incarnation: Option<Incarnation>,
    /// Whether a call with the same key began before, and nobody knows whether it was carried out.
    began_before: AtomicBool,
    /// Whether the call was carried out before.
    is_replay: AtomicBool,
}

struct Shared {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    settings: Replaceable<Settings>,
    reload: ReloadState,
    runtime: Replaceable<Arc<Runtime>>,
    search: SearchSlot,
    open_streams: OnceLock<Arc<OpenStreams>>,
    used_keys: OnceLock<Arc<UsedKeys>>,
    /// Counts the stores so far, so that feeds notice a swap.
    swaps: watch::Sender<u64>,
}

impl Service {
    /// A service over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let runtime = Runtime::new(store, 0, clock.now_ms());
        let shared = Shared {
            clock,
            entropy,
            settings: Replaceable::default(),
            reload: ReloadState::default(),
            runtime: Replaceable::new(Arc::new(runtime)),
            search: SearchSlot::default(),
            open_streams: OnceLock::new(),
            used_keys: OnceLock::new(),
            swaps: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared), call: None }
    }

    /// The same service, for one call on these terms.
    #[must_use]
    pub fn on_terms(&self, terms: CallTerms) -> Self {
        let window = || key_window(self.now_ms(), self.settings().idempotency_keys);
        let call = Call {
            keyed: terms.key.map(|key| KeyedIds::new(key, window())),
            tenant_key: terms.tenant_key,
            incarnation: terms.incarnation,
            began_before: AtomicBool::new(false),
            is_replay: AtomicBool::new(false),
        };
        Self { shared: self.shared.clone(), call: Some(Arc::new(call)) }
    }

    fn call_terms(&self) -> Option<&Call> {
        self.call.as_deref()
    }

    /// Names the key of this call among all keys of its tenant.
    pub(crate) fn tenant_key(&self) -> Option<[u8; 32]> {
        self.call_terms()?.tenant_key
    }

    /// Notes that a call with the same key began before, and did not end as far as is known.
    pub(crate) fn note_began_before(&self) {
        if let Some(call) = self.call_terms() {
            call.began_before.store(true, Ordering::Relaxed);
        }
    }

    /// Whether what this call finds may be its own first try.
    pub(crate) fn began_before(&self) -> bool {
        self.call_terms().is_some_and(|call| call.began_before.load(Ordering::Relaxed))
    }

    /// Notes that this call was carried out before, and changed nothing now.
    pub(crate) fn note_replay(&self) {
        if let Some(call) = self.call_terms() {
            call.is_replay.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this call was carried out before.
    pub(crate) fn is_replay(&self) -> bool {
        self.call_terms().is_some_and(|call| call.is_replay.load(Ordering::Relaxed))
    }

    /// Whether this call may have been made before, so that its results may exist already.
    pub(crate) fn may_repeat(&self) -> bool {
        self.keyed().is_some()
    }

    /// The source of this call's ids, if it has a key.
    pub(crate) fn keyed(&self) -> Option<&KeyedIds> {
        self.call_terms()?.keyed.as_ref()
    }

    pub(crate) fn expected_incarnation(&self) -> Option<Incarnation> {
        self.call_terms()?.incarnation
    }

    /// The settings now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.shared.settings.get()
    }

    /// Replaces the settings for calls that begin from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.shared.settings.set(settings);
    }

    /// The present store of the service.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.runtime().store.clone()
    }

    /// Replaces the store and returns the old one.
    ///
    /// Calls that began on the old store end there; later calls see only the new one. Each subscriber receives a gap,
    /// then the deletion of missing sessions and all present ones, and then live events. No session is moved.
    pub fn swap_store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.put_store(store, false)
    }

    /// Replaces the store by one with the same sessions, opened again with other settings, and returns the old one.
    ///
    /// Calls are as with [`swap_store`](Self::swap_store); subscribers continue where they are.
    pub fn renew_store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.put_store(store, true)
    }

    fn put_store(&self, store: Arc<dyn Store>, is_renewed: bool) -> Arc<dyn Store> {
        let old = self.shared.runtime.replace_with(|old| {
            let runtime = Runtime::new(store, old.epoch + 1, self.now_ms());
            Arc::new(Runtime { is_renewed, ..runtime })
        });
        self.shared.swaps.send_replace(old.epoch + 1);
        old.store.clone()
    }

    /// The outcome of the last reload of the configuration.
    #[must_use]
    pub fn reload_status(&self) -> ReloadStatus {
        self.shared.reload.status()
    }

    /// Notes the outcome of a reload: applied, or refused with a reason while the old configuration stays in use.
    pub fn note_reload(&self, outcome: Result<(), String>) {
        self.shared.reload.note(outcome);
    }

    /// Notes which changed fields of the configuration need a restart.
    pub fn note_waiting(&self, fields: Vec<String>) {
        self.shared.reload.note_waiting(fields);
    }

    /// Sets the function that reads the configuration for `session::on-config-change`; once. `false` if there is one
    /// already.
    pub fn set_reload(&self, reload: Arc<dyn Reload>) -> bool {
        self.shared.reload.set_hook(reload)
    }

    /// How many sessions had to be reopened after a failed write, since the store was set.
    #[must_use]
    pub fn reopened_sessions(&self) -> u64 {
        self.runtime().sessions.reopened()
    }

    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        self.shared.runtime.get()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock.clone()
    }

    pub(crate) fn search_slot(&self) -> &SearchSlot {
        &self.shared.search
    }

    pub(crate) fn open_streams_slot(&self) -> &OnceLock<Arc<OpenStreams>> {
        &self.shared.open_streams
    }

    pub(crate) fn used_keys_slot(&self) -> &OnceLock<Arc<UsedKeys>> {
        &self.shared.used_keys
    }

    pub(crate) fn swaps(&self) -> watch::Receiver<u64> {
        self.shared.swaps.subscribe()
    }

    pub(crate) fn reload_state(&self) -> &ReloadState {
        &self.shared.reload
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.shared.clock.now_ms()
    }

    pub(crate) fn fresh_session_id(&self) -> Result<SessionId, ServiceError> {
        self.fresh().map(SessionId::generate)
    }

    pub(crate) fn fresh_entry_id(&self) -> Result<EntryId, ServiceError> {
        self.fresh().map(EntryId::generate)
    }

    fn fresh(&self) -> Result<[u8; 16], ServiceError> {
        match self.keyed() {
            Some(keyed) => Ok(keyed.next()),
            None => fresh(&*self.shared.entropy),
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let store = self.runtime().store.capabilities().name;
        f.debug_struct("Service").field("store", &store).finish()
    }
}

/// 16 random bytes with the marks of a version 4 UUID, as session-manager's ids have them.
fn fresh(entropy: &dyn Entropy) -> Result<[u8; 16], ServiceError> {
    let mut bytes = [0; 16];
    entropy
        .fill(&mut bytes)
        .map_err(|error| ServiceError::storage(format!("no randomness for a new id: {error}")))?;
    Ok(marked(bytes))
}

/// The same bytes with the marks of a version 4 UUID.
pub(crate) const fn marked(mut bytes: [u8; 16]) -> [u8; 16] {
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    bytes
}
