use bough_session::{Incarnation, SessionId, SessionMeta};
use bough_store::StoreError;

use super::to_the_end::to_the_end;
use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;

/// Deletes a session, if it exists for the caller; says whether it did.
pub(crate) async fn delete(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
) -> Result<bool, ServiceError> {
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let (scope, session) = (scope.clone(), session.clone());
    let task = async move {
        let desk = runtime.desks.desk(&session);
        let mut work = desk.work.lock().await;
        // Everything that was accepted is durable or has failed before the session goes.
        desk.forget(&mut work).await;
        let Some(snapshot) = runtime.store.state(&session).await? else {
            return Ok(false);
        };
        if !is_visible(&scope, &snapshot.state) {
            return Ok(false);
        }
        // A deleted session has no log to read; who watches it gets what came before from here.
        runtime.hub.catch_up(&session).await;
        let trashed = runtime.store.delete(&session, now_ms).await?;
        if let Some(trashed) = &trashed {
            runtime.hub.remember_deletion(trashed);
        }
        Ok(trashed.is_some())
    };
    to_the_end(task).await
}

/// Brings a deleted session back.
pub(crate) async fn undelete(
    service: &Service,
    session: &SessionId,
    life: Incarnation,
) -> Result<SessionMeta, ServiceError> {
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let session = session.clone();
    let task = async move {
        let desk = runtime.desks.desk(&session);
        let mut work = desk.work.lock().await;
        desk.forget(&mut work).await;
        match runtime.store.undelete(&session, life, now_ms).await {
            Ok(snapshot) => Ok(snapshot.state.meta()),
            Err(StoreError::NotFound { .. }) => {
                Err(ServiceError::NotInTrash { session: session.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    };
    to_the_end(task).await
}
