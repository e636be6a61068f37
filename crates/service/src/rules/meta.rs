//! What a session says of itself: title, description, metadata, status, task, archive.

use async_trait::async_trait;
use bough_session::limits::{check_reason, check_task_name};
use bough_session::{JsonMap, MetaChange, Record, SessionState, SessionStatus, StatusChange};

use super::lifecycle::check_meta;
use crate::api::{
    ArchiveRequest, ArchiveResponse, SetMetaRequest, SetMetaResponse, SetStatusRequest,
    SetStatusResponse, SetTaskRequest, SetTaskResponse,
};
use crate::error::ServiceError;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn set_meta(
    service: &Service,
    scope: &Scope,
    request: SetMetaRequest,
) -> Result<SetMetaResponse, ServiceError> {
    let change = SetMeta {
        scope: scope.clone(),
        title: request.title,
        description: request.description,
        metadata: request.metadata,
    };
    writing::run(service, &request.session_id, change).await
}

pub(crate) async fn set_status(
    service: &Service,
    scope: &Scope,
    request: SetStatusRequest,
) -> Result<SetStatusResponse, ServiceError> {
    let change = SetStatus { scope: scope.clone(), status: request.status, reason: request.reason };
    writing::run(service, &request.session_id, change).await
}

pub(crate) async fn set_task(
    service: &Service,
    scope: &Scope,
    request: SetTaskRequest,
) -> Result<SetTaskResponse, ServiceError> {
    let change =
        SetTask { scope: scope.clone(), task: request.task.filter(|task| !task.is_empty()) };
    writing::run(service, &request.session_id, change).await
}

pub(crate) async fn archive(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
) -> Result<ArchiveResponse, ServiceError> {
    set_archived(service, scope, request, true).await
}

pub(crate) async fn unarchive(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
) -> Result<ArchiveResponse, ServiceError> {
    set_archived(service, scope, request, false).await
}

async fn set_archived(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
    archived: bool,
) -> Result<ArchiveResponse, ServiceError> {
    let change = SetArchived { scope: scope.clone(), archived };
    writing::run(service, &request.session_id, change).await
}

struct SetMeta {
    scope: Scope,
    title: Option<String>,
    description: Option<String>,
    metadata: Option<JsonMap>,
}

#[async_trait]
impl Command for SetMeta {
    type Answer = SetMetaResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?;
        if self.title.is_none() && self.description.is_none() && self.metadata.is_none() {
            let meta = state.meta();
            return Ok(Decision::Nothing(SetMetaResponse { meta }));
        }
        let metadata = match self.metadata.clone() {
            Some(metadata) => self.scope.stamp(Some(metadata))?,
            None => state.metadata.clone(),
        };
        // All of it, not only what changes: the event says all of it, and is made from this record alone.
        let change = MetaChange {
            title: Some(self.title.clone().unwrap_or_else(|| state.title.clone())),
            description: Some(
                self.description.clone().unwrap_or_else(|| state.description.clone()),
            ),
            metadata,
            ..MetaChange::default()
        };
        check_meta(&change)?;
        let record = Record::Meta(change);
        let meta = after(state, &record, context.now_ms).meta();
        Ok(Decision::Append(vec![record], SetMetaResponse { meta }))
    }
}

struct SetStatus {
    scope: Scope,
    status: SessionStatus,
    reason: Option<String>,
}

#[async_trait]
impl Command for SetStatus {
    type Answer = SetStatusResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let previous_status = context.visible(&self.scope)?.status;
        let answer = SetStatusResponse { status: self.status, previous_status };
        if self.status == previous_status {
            return Ok(Decision::Nothing(answer));
        }
        let keeps_reason = self.status == SessionStatus::Error;
        let reason = self.reason.clone().filter(|_| keeps_reason);
        reason.as_deref().map_or(Ok(()), check_reason)?;
        let change = MetaChange {
            status: Some(StatusChange { status: self.status, reason }),
            ..MetaChange::default()
        };
        Ok(Decision::Append(vec![Record::Meta(change)], answer))
    }
}

struct SetTask {
    scope: Scope,
    task: Option<String>,
}

#[async_trait]
impl Command for SetTask {
    type Answer = SetTaskResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?;
        let answer = SetTaskResponse { task: self.task.clone() };
        let current = state.task_name.as_deref().filter(|task| !task.is_empty());
        if current == self.task.as_deref() {
            return Ok(Decision::Nothing(answer));
        }
        self.task.as_deref().map_or(Ok(()), check_task_name)?;
        let change = MetaChange {
            // The empty name takes the name away.
            task_name: Some(self.task.clone().unwrap_or_default()),
            ..MetaChange::default()
        };
        Ok(Decision::Append(vec![Record::Meta(change)], answer))
    }
}

struct SetArchived {
    scope: Scope,
    archived: bool,
}

#[async_trait]
impl Command for SetArchived {
    type Answer = ArchiveResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let archived = self.archived;
        let changed = context.visible(&self.scope)?.archived != archived;
        let answer = ArchiveResponse { archived, changed };
        if !changed {
            return Ok(Decision::Nothing(answer));
        }
        let change = MetaChange { archived: Some(archived), ..MetaChange::default() };
        Ok(Decision::Append(vec![Record::Meta(change)], answer))
    }
}

/// The state after one more record.
pub(crate) fn after(state: &SessionState, record: &Record, at_ms: i64) -> SessionState {
    let mut next = state.clone();
    next.apply(record, state.seq + 1, at_ms);
    next
}
