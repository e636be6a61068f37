//! A session as its store keeps it, for callers that may see the session.

use bough_store::bridge::host;
use bough_store::bridge::protocol::StoreAnswer;

use crate::api::RawRequest;
use crate::error::ServiceError;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn raw(
    service: &Service,
    scope: &Scope,
    request: RawRequest,
) -> Result<StoreAnswer, ServiceError> {
    let runtime = service.runtime();
    runtime.need(scope, &request.session_id).await?;
    let settings = service.settings();
    let read = request.read.of(request.session_id, |limit| settings.page(Some(limit)));
    Ok(host::read(&*runtime.store, read).await)
}
