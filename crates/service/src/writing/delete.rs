use bough_session::{Incarnation, SessionId, SessionMeta};
use bough_store::{StoreError, StoreExt};

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
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let (scope, session) = (scope.clone(), session.clone());
    let task = async move {
        let open = runtime.sessions.open(&session);
        let mut write_state = open.lock().await;
        // Every accepted write is durable or has failed before the session is deleted.
        open.forget(&mut write_state).await;
        let Some(snapshot) = runtime.store.state(&session).await? else {
            return Ok(false);
        };
        if !is_visible(&scope, &snapshot.state) {
            return Ok(false);
        }
        // A deleted session has no log to read. Its subscribers get the records before from memory.
        runtime.sessions.catch_up(&open).await;
        let trashed = runtime.store.delete(&session, now_ms).await?;
        if let Some(trashed) = &trashed {
            runtime.sessions.deletions().remember(trashed);
        }
        Ok(trashed.is_some())
    };
    run_to_completion(task).await
}

/// Brings a deleted session back.
pub(crate) async fn undelete(
    service: &Service,
    session: &SessionId,
    incarnation: Incarnation,
) -> Result<SessionMeta, ServiceError> {
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let session = session.clone();
    let task = async move {
        let open = runtime.sessions.open(&session);
        let mut write_state = open.lock().await;
        open.forget(&mut write_state).await;
        match runtime.store.undelete(&session, incarnation, now_ms).await {
            Ok(snapshot) => Ok(snapshot.state.meta()),
            Err(StoreError::NotFound { .. }) => {
                Err(ServiceError::NotInTrash { session: session.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    };
    run_to_completion(task).await
}
