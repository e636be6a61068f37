//! Sessions are listed and searched.

use bough_session::limits::check_at_most;
use bough_store::{ListOrder, ListPage, ListQuery, Listed};

use crate::api::{
    ArchivedFilter, ListRequest, ListResponse, SearchHit, SearchRequest, SearchResponse,
    SessionItem, SessionsResponse,
};
use crate::error::ServiceError;
use crate::limits::QUERY_BYTES_MAX;
use crate::scope::Scope;
use crate::service::Service;

/// A page of the sessions that a request asks for.
async fn page(
    service: &Service,
    scope: &Scope,
    request: ListRequest,
) -> Result<ListPage, ServiceError> {
    let text = request.query.as_deref().map(searched).transpose()?;
    let query = ListQuery {
        order: request.order.unwrap_or_default(),
        status: request.status,
        task_status: request.task_status,
        task_name: request.task,
        id_prefix: request.id_prefix,
        archived: match request.archived.unwrap_or_default() {
            ArchivedFilter::Exclude => Some(false),
            ArchivedFilter::Only => Some(true),
            ArchivedFilter::Include => None,
        },
        metadata: request.metadata.unwrap_or_default(),
        scope: scope.metadata().clone(),
        text,
        limit: service.settings().page(request.limit),
        cursor: request.cursor,
    };
    Ok(service.runtime().store.list(&query).await?)
}

pub(crate) async fn list(
    service: &Service,
    scope: &Scope,
    request: ListRequest,
) -> Result<ListResponse, ServiceError> {
    let has_details = request.include_details.unwrap_or_default();
    let page = page(service, scope, request).await?;
    let (sessions, details): (Vec<_>, Vec<_>) =
        page.sessions.into_iter().map(|listed| (listed.meta, listed.details)).unzip();
    let details = has_details.then_some(details);
    Ok(ListResponse { sessions, details, next_cursor: page.next_cursor })
}

/// The same page as one array.
pub(crate) async fn sessions(
    service: &Service,
    scope: &Scope,
    request: ListRequest,
) -> Result<SessionsResponse, ServiceError> {
    let has_details = request.include_details.unwrap_or_default();
    let page = page(service, scope, request).await?;
    let sessions = page.sessions.into_iter().map(|Listed { meta, details, .. }| SessionItem {
        meta,
        details: has_details.then_some(details),
    });
    Ok(SessionsResponse { sessions: sessions.collect(), next_cursor: page.next_cursor })
}

/// The text to look for.
fn searched(text: &str) -> Result<String, ServiceError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ServiceError::invalid("`query` must contain a word to look for"));
    }
    check_at_most("query", "bytes", text.len(), QUERY_BYTES_MAX)?;
    Ok(text.to_owned())
}

/// Finds sessions by what they say of themselves, where there is no index.
pub(crate) async fn search_titles(
    service: &Service,
    scope: &Scope,
    request: SearchRequest,
) -> Result<SearchResponse, ServiceError> {
    let query = ListRequest {
        order: Some(ListOrder::UpdatedDesc),
        archived: Some(ArchivedFilter::Include),
        metadata: request.metadata,
        query: Some(request.query),
        limit: request.limit,
        cursor: request.cursor,
        ..ListRequest::default()
    };
    let page = page(service, scope, query).await?;
    let lists_sessions = request.by_session.unwrap_or_default();
    let hits = page.sessions.into_iter().map(|listed| SearchHit {
        meta: listed.meta,
        preview: listed.details.preview.clone(),
        details: lists_sessions.then_some(listed.details),
        entry_id: None,
        revision: None,
        role: None,
        timestamp: None,
        snippet: None,
        on_active_path: None,
        score: None,
    });
    Ok(SearchResponse { hits: hits.collect(), next_cursor: page.next_cursor, index: None })
}
