use bough_session::{Incarnation, SessionId, SessionMeta};
use bough_store::{Snapshot, StoreError, StoreExt, Trashed};

use super::run_to_completion::run_to_completion;
use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;

/// Deletes a session, if it exists for the caller; returns whether it did.
pub(crate) async fn delete(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
) -> Result<bool, ServiceError> {
    let scope = scope.clone();
    let is_callers = move |found: &Snapshot| is_visible(&scope, &found.state);
    Ok(delete_if(service, session, service.now_ms(), is_callers).await?.is_some())
}

/// Deletes a session for an instance that stores through this one.
pub(crate) async fn delete_stored(
    service: &Service,
    session: &SessionId,
    at_ms: i64,
) -> Result<Option<Trashed>, StoreError> {
    delete_if(service, session, at_ms, |_| true).await
}

async fn delete_if(
    service: &Service,
    session: &SessionId,
    at_ms: i64,
    is_meant: impl Fn(&Snapshot) -> bool + Send + 'static,
) -> Result<Option<Trashed>, StoreError> {
    let (runtime, session) = (service.runtime(), session.clone());
    let task = async move {
        let open = runtime.sessions.open(&session);
        let mut write_state = open.lock().await;
        // Every accepted write is durable or has failed before the session is deleted.
        open.forget(&mut write_state).await;
        if !runtime.store.state(&session).await?.is_some_and(|found| is_meant(&found)) {
            return Ok(None);
        }
        // A deleted session has no log to read. Its subscribers get the records before from memory.
        runtime.sessions.catch_up(&open).await;
        let trashed = runtime.store.delete(&session, at_ms).await?;
        if let Some(trashed) = &trashed {
            runtime.sessions.deletions().remember(trashed);
        }
        Ok(trashed)
    };
    run_to_completion(task).await
}

/// Brings a deleted session back.
pub(crate) async fn undelete(
    service: &Service,
    session: &SessionId,
    incarnation: Incarnation,
) -> Result<SessionMeta, ServiceError> {
    match undelete_stored(service, session, incarnation, service.now_ms()).await {
        Ok(snapshot) => Ok(snapshot.state.meta.clone()),
        Err(StoreError::NotFound { .. }) => {
            Err(ServiceError::NotInTrash { session: session.to_string() })
        }
        Err(error) => Err(error.into()),
    }
}

/// The same for an instance that stores through this one.
pub(crate) async fn undelete_stored(
    service: &Service,
    session: &SessionId,
    incarnation: Incarnation,
    at_ms: i64,
) -> Result<Snapshot, StoreError> {
    let (runtime, session) = (service.runtime(), session.clone());
    let task = async move {
        let open = runtime.sessions.open(&session);
        let mut write_state = open.lock().await;
        open.forget(&mut write_state).await;
        runtime.store.undelete(&session, incarnation, at_ms).await
    };
    run_to_completion(task).await
}
