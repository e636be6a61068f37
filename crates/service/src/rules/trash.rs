//! Deletes sessions, restores them, and removes them for good.

use bough_session::{Incarnation, SessionId};
use bough_store::Trashed;

use crate::api::{
    DeleteRequest, DeleteResponse, ListTrashRequest, ListTrashResponse, PurgeRequest,
    PurgeResponse, TrashItem, UndeleteRequest, UndeleteResponse,
};
use crate::cursor::{self, TrashCursor};
use crate::error::ServiceError;
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::service::Service;
use crate::settings::Settings;
use crate::writing;

pub(crate) async fn delete(
    service: &Service,
    scope: &Scope,
    request: DeleteRequest,
) -> Result<DeleteResponse, ServiceError> {
    let deleted = writing::delete(service, scope, &request.session_id).await?;
    Ok(DeleteResponse { deleted })
}

pub(crate) async fn list_trash(
    service: &Service,
    scope: &Scope,
    request: ListTrashRequest,
) -> Result<ListTrashResponse, ServiceError> {
    let settings = service.settings();
    let limit = settings.page(request.limit);
    let wanted = request.metadata.unwrap_or_default();
    let mut trash = visible_trash(&service.runtime(), scope, None).await?;
    trash.retain(|trashed| {
        bough_session::metadata_matches(&wanted, trashed.state.meta.metadata.as_ref())
    });
    // Most recently deleted first; of one moment, by incarnation, so that pages have one order.
    trash.sort_by_key(|trashed| std::cmp::Reverse(place(trashed)));
    if let Some(text) = &request.cursor {
        let after = cursor::decode::<TrashCursor>(text)?;
        trash.retain(|trashed| place(trashed) < after);
    }
    let more = trash.len() > limit;
    trash.truncate(limit);
    let next_cursor = match trash.last().filter(|_| more) {
        Some(last) => Some(cursor::encode(&place(last))?),
        None => None,
    };
    let sessions = trash.into_iter().map(|trashed| item(&settings, trashed));
    Ok(ListTrashResponse { sessions: sessions.collect(), next_cursor })
}

pub(crate) async fn undelete(
    service: &Service,
    scope: &Scope,
    request: UndeleteRequest,
) -> Result<UndeleteResponse, ServiceError> {
    let session = request.session_id;
    let runtime = service.runtime();
    let incarnation =
        chosen_incarnation(&runtime, scope, &session, request.incarnation.as_deref()).await?;
    let Some(incarnation) = incarnation else {
        return Err(ServiceError::NotInTrash { session: session.to_string() });
    };
    let meta = writing::undelete(service, &session, incarnation).await?;
    Ok(UndeleteResponse { meta })
}

pub(crate) async fn purge(
    service: &Service,
    scope: &Scope,
    request: PurgeRequest,
) -> Result<PurgeResponse, ServiceError> {
    let session = request.session_id;
    let runtime = service.runtime();
    let incarnation =
        chosen_incarnation(&runtime, scope, &session, request.incarnation.as_deref()).await?;
    let purged = match incarnation {
        Some(incarnation) => runtime.store.purge(&session, incarnation, None).await?,
        None => false,
    };
    Ok(PurgeResponse { purged })
}

impl Service {
    /// Removes deleted sessions whose retention has ended; returns how many. To be called now and then.
    pub async fn purge_expired(&self) -> Result<u64, ServiceError> {
        let (settings, now) = (self.settings(), self.now_ms());
        let runtime = self.runtime();
        let (mut purged, mut failed) = (0, None);
        for trashed in runtime.store.trash(None).await? {
            let (session, incarnation) = (&trashed.session_id, trashed.incarnation);
            let Some(deleted_at) = trashed.deleted_at else {
                // An interrupted restore. What prevents it now may be gone at the next call.
                drop(runtime.store.undelete(session, incarnation, now).await);
                continue;
            };
            let expired =
                settings.expires_at(deleted_at).is_some_and(|expires_at| expires_at <= now);
            if !expired {
                continue;
            }
            match runtime.store.purge(session, incarnation, Some(deleted_at)).await {
                Ok(is_gone) => purged += u64::from(is_gone),
                // A session that cannot be removed does not stop the others.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(purged), |error| Err(error.into()))
    }
}

/// The incarnation that a caller means: the named one, or the most recently deleted.
async fn chosen_incarnation(
    runtime: &Runtime,
    scope: &Scope,
    session: &SessionId,
    named: Option<&str>,
) -> Result<Option<Incarnation>, ServiceError> {
    let incarnations = visible_trash(runtime, scope, Some(session)).await?;
    let chosen = incarnations
        .iter()
        .filter(|trashed| named.is_none_or(|named| trashed.incarnation.to_string() == named))
        .max_by_key(|trashed| place(trashed));
    Ok(chosen.map(|trashed| trashed.incarnation))
}

/// Deleted sessions that exist for the caller.
async fn visible_trash(
    runtime: &Runtime,
    scope: &Scope,
    session: Option<&SessionId>,
) -> Result<Vec<Trashed>, ServiceError> {
    let mut trash = runtime.store.trash(session).await?;
    trash.retain(|trashed| scope.sees(trashed.state.meta.metadata.as_ref()));
    Ok(trash)
}

fn place(trashed: &Trashed) -> TrashCursor {
    TrashCursor { deleted_at: shown_at(trashed), incarnation: trashed.incarnation.to_string() }
}

/// When a session went into the trash, for showing; for an interrupted restore, the time of that.
fn shown_at(trashed: &Trashed) -> i64 {
    trashed.deleted_at.unwrap_or(trashed.state.meta.updated_at)
}

fn item(settings: &Settings, trashed: Trashed) -> TrashItem {
    TrashItem {
        incarnation: trashed.incarnation.to_string(),
        deleted_at: shown_at(&trashed),
        expires_at: trashed.deleted_at.and_then(|at| settings.expires_at(at)),
        meta: trashed.state.meta.clone(),
        name: trashed.state.name.clone(),
        preview: trashed.state.preview.clone(),
    }
}
