//! The configuration: its status, and reloading it.

use crate::api::{ConfigStatusRequest, OnConfigChangeEvent, OnConfigChangeResponse, ReloadStatus};
use crate::error::ServiceError;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn config_status(
    service: &Service,
    _: &Scope,
    _: ConfigStatusRequest,
) -> Result<ReloadStatus, ServiceError> {
    Ok(service.reload_status())
}

pub(crate) async fn on_config_change(
    service: &Service,
    _: &Scope,
    _: OnConfigChangeEvent,
) -> Result<OnConfigChangeResponse, ServiceError> {
    let reloaded = service.reload_state().run(service).await;
    reloaded.map_err(|error| ServiceError::storage(error.to_string()))?;
    Ok(OnConfigChangeResponse { ok: true })
}
