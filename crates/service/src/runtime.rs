//! One store and what the service keeps beside it; replaced as a whole when the store is swapped.

use std::sync::Arc;

use bough_session::{SessionId, SessionState};
use bough_store::{Snapshot, Store, StoreExt};

use crate::error::ServiceError;
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
}

impl Runtime {
    pub(crate) fn new(store: Arc<dyn Store>, epoch: u64, now_ms: i64) -> Self {
        let replaced_at_ms = (epoch > 0).then_some(now_ms);
        Self {
            sessions: Arc::new(OpenSessions::new(store.clone(), replaced_at_ms)),
            store,
            staging: Staging::default(),
            recordings: Recordings::default(),
            recorded: RecordedSessions::default(),
            epoch,
            is_renewed: false,
        }
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
}

/// Whether a session exists for a caller.
pub(crate) fn is_visible(scope: &Scope, state: &SessionState) -> bool {
    // A session of another kind is no conversation: the functions of its kind read it.
    !state.deleted && state.kind.is_none() && scope.sees(state.meta.metadata.as_ref())
}
