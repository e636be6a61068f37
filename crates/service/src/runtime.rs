//! One store and what the service keeps beside it; replaced as a whole when the store is swapped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bough_session::{SessionId, SessionState};
use bough_store::{Snapshot, Store, StoreExt};

use crate::error::ServiceError;
use crate::limits::SWAP_SETTLE_MS;
use crate::open_session::OpenSessions;
use crate::recording::{RecordedSessions, Recordings};
use crate::rules::staging::Staging;
use crate::scope::Scope;

pub(crate) struct Runtime {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<OpenSessions>,
    pub(crate) staging: Staging,
    pub(crate) recordings: Recordings,
    pub(crate) recorded: RecordedSessions,
    pub(crate) epoch: u64,
    /// Its sessions are those of the store before.
    pub(crate) is_renewed: bool,
    since_ms: i64,
    reopened: AtomicU64,
}

impl Runtime {
    pub(crate) fn new(store: Arc<dyn Store>, epoch: u64, now_ms: i64) -> Self {
        Self {
            sessions: Arc::new(OpenSessions::new(store.clone())),
            store,
            staging: Staging::default(),
            recordings: Recordings::default(),
            recorded: RecordedSessions::default(),
            epoch,
            is_renewed: false,
            since_ms: now_ms,
            reopened: AtomicU64::new(0),
        }
    }

    /// Whether another store was replaced a moment ago, which may still hold sessions of the same directory.
    pub(crate) const fn is_settling(&self, now_ms: i64) -> bool {
        self.epoch > 0 && now_ms.saturating_sub(self.since_ms) < SWAP_SETTLE_MS
    }

    /// The durable state of a session, if it exists for the caller.
    pub(crate) async fn visible(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Option<Snapshot>, ServiceError> {
        let snapshot = self.store.state(session).await?;
        Ok(snapshot.filter(|snapshot| is_visible(scope, &snapshot.state)))
    }

    /// The same, where a missing session is an error.
    pub(crate) async fn need(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Snapshot, ServiceError> {
        let seen = self.visible(scope, session).await?;
        seen.ok_or_else(|| ServiceError::not_found(session))
    }

    pub(crate) fn note_reopened(&self) {
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }
}

/// Whether a session exists for a caller.
pub(crate) fn is_visible(scope: &Scope, state: &SessionState) -> bool {
    // A session of another kind is no conversation: the functions of its kind read it.
    !state.deleted && state.kind.is_none() && scope.sees(state.metadata.as_ref())
}
