//! Sessions come to be: create, ensure; and are looked at: get.

use async_trait::async_trait;
use bough_session::limits::{check_description, check_metadata, check_title};
use bough_session::{JsonMap, MetaChange, Record, SessionId, SessionMeta, SessionState};
use bough_store::Snapshot;

use super::meta::version;
use super::repeats::{FirstDrawn, RepeatCheck, find_first_use};
use crate::api::{
    CreateRequest, CreateResponse, DescribeResponse, EnsureRequest, EnsureResponse, GetRequest,
    GetResponse,
};
use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn create(
    service: &Service,
    scope: &Scope,
    request: CreateRequest,
) -> Result<CreateResponse, ServiceError> {
    let repeat = RepeatCheck::of(service, "session::create", &request);
    let first = first_record(scope, request.title, request.description, request.metadata)?;
    find_first_use(service, FirstDrawn::Session).await?;
    let session_id = service.fresh_session_id()?;
    if let Some(repeat) = repeat {
        let first = Record::Meta(MetaChange { digest: Some(repeat.digest), ..first });
        let change = Ensure { scope: scope.clone(), first };
        let made = writing::run(service, &session_id, change).await?;
        if !made.created {
            repeat.check(service, &session_id).await?;
        }
        return Ok(CreateResponse { session_id, meta: made.meta });
    }
    let meta = writing::create(service, &session_id, vec![Record::Meta(first)]).await?;
    Ok(CreateResponse { session_id, meta })
}

pub(crate) async fn ensure(
    service: &Service,
    scope: &Scope,
    request: EnsureRequest,
) -> Result<EnsureResponse, ServiceError> {
    let session_id = request.session_id;
    // An id that we would not give out today may still be one that an old store holds.
    if let Err(refused) = SessionId::parse(session_id.as_str()) {
        return match service.runtime().visible(scope, &session_id).await {
            Ok(Some(snapshot)) => Ok(ensured(snapshot.state.meta.clone(), false)),
            Ok(None) | Err(_) => Err(refused.into()),
        };
    }
    let first = first_record(scope, request.title, request.description, request.metadata)?;
    let change = Ensure { scope: scope.clone(), first: Record::Meta(first) };
    writing::run(service, &session_id, change).await
}

pub(crate) async fn get(
    service: &Service,
    scope: &Scope,
    request: GetRequest,
) -> Result<Option<GetResponse>, ServiceError> {
    let seen = service.runtime().visible(scope, &request.session_id).await?;
    Ok(seen.map(|snapshot| GetResponse { meta: snapshot.state.meta.clone() }))
}

/// What a session says of itself, where its active path ends, and its version.
pub(crate) async fn describe(
    service: &Service,
    scope: &Scope,
    request: GetRequest,
) -> Result<Option<DescribeResponse>, ServiceError> {
    let seen = service.runtime().visible(scope, &request.session_id).await?;
    Ok(seen.map(|Snapshot { state, .. }| DescribeResponse {
        meta: state.meta.clone(),
        details: state.details(),
        version: version(&state),
        active_leaf: state.leaf_without_labels().cloned(),
    }))
}

struct Ensure {
    scope: Scope,
    first: Record,
}

#[async_trait]
impl Command for Ensure {
    type Answer = EnsureResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let Some(state) = context.state().filter(|state| !state.deleted) else {
            let mut state = SessionState::new(context.session().clone());
            state.apply(&self.first, 1, context.now_ms);
            let answer = ensured(state.meta.clone(), true);
            return Ok(Decision::Create(vec![self.first.clone()], answer));
        };
        if !is_visible(&self.scope, state) {
            // Neither created nor shown. The words do not say why the id cannot be used.
            return Err(ServiceError::Forbidden {
                reason: format!("the session id {} cannot be used", context.session()),
            });
        }
        Ok(Decision::Nothing(ensured(state.meta.clone(), false)))
    }
}

fn ensured(meta: SessionMeta, created: bool) -> EnsureResponse {
    EnsureResponse { session_id: meta.session_id.clone(), meta, created }
}

pub(crate) fn first_record(
    scope: &Scope,
    title: Option<String>,
    description: Option<String>,
    metadata: Option<JsonMap>,
) -> Result<MetaChange, ServiceError> {
    let change = MetaChange {
        title: Some(title.unwrap_or_default()),
        description: Some(description.unwrap_or_default()),
        metadata: scope.stamp(metadata)?,
        ..MetaChange::default()
    };
    check_meta(&change)?;
    Ok(change)
}

/// Checks the bounds of what a change of a session's own record says.
pub(crate) fn check_meta(change: &MetaChange) -> Result<(), ServiceError> {
    change.title.as_deref().map_or(Ok(()), check_title)?;
    change.description.as_deref().map_or(Ok(()), check_description)?;
    change.metadata.as_ref().map_or(Ok(()), check_metadata)?;
    Ok(())
}
