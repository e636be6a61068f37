//! Sums over a path.

use bough_session::UsageByModel;

use super::reading::{Direction, Walk};
use crate::api::{UsageRequest, UsageResponse};
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn usage(
    service: &Service,
    scope: &Scope,
    request: UsageRequest,
) -> Result<UsageResponse, ServiceError> {
    let runtime = service.runtime();
    let state = runtime.need(scope, &request.session_id).await?.state;
    let mut branch = UsageByModel::default();
    let mut walk = Walk::new(&*runtime.store, &request.session_id, Direction::NewestFirst)
        .ending_at(request.from_entry_id);
    while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
        // As in the state, a message counts when it is finished.
        let finished = entries.iter().filter(|stored| !state.streams.is_open(&stored.entry.id));
        finished.for_each(|stored| branch.add_entry(&stored.entry));
    }
    Ok(UsageResponse { session: state.usage.clone(), branch })
}
