//! Sessions are listed and searched.

use bough_session::limits::check_at_most;
use bough_store::{ListOrder, ListQuery, Listed, Store};

use crate::api::{
    ArchivedFilter, ListRequest, ListResponse, SearchHit, SearchRequest, SearchResponse,
};
use crate::error::ServiceError;
use crate::limits::QUERY_BYTES_MAX;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn list(
    service: &Service,
    scope: &Scope,
    request: ListRequest,
) -> Result<ListResponse, ServiceError> {
    let query = ListQuery {
        order: request.order.unwrap_or_default(),
        status: request.status,
        task_status: request.task_status,

        archived: match request.archived.unwrap_or_default() {
            ArchivedFilter::Exclude => Some(false),
            ArchivedFilter::Only => Some(true),
            ArchivedFilter::Include => None,
        },
        metadata: request.metadata.unwrap_or_default(),
        scope: scope.metadata().clone(),
        text: None,
        limit: service.settings().page(request.limit),
        cursor: request.cursor,
    };
    let runtime = service.runtime();
    if let Some(task) = &request.task {
        return list_by_task(&*runtime.store, query, task).await;
    }
    let page = runtime.store.list(&query).await?;
    Ok(ListResponse {
        sessions: page.sessions.into_iter().map(|listed| listed.meta).collect(),
        next_cursor: page.next_cursor,
    })
}

/// A page of the sessions with a task of this name. Stores do not know tasks by name, so each session is looked at; one at
/// a time, because a page may end after any of them.
async fn list_by_task(
    store: &dyn Store,
    mut query: ListQuery,
    task: &str,
) -> Result<ListResponse, ServiceError> {
    let limit = std::mem::replace(&mut query.limit, 1);
    let mut answer = ListResponse::default();
    let mut place = None;
    loop {
        let page = store.list(&query).await?;
        let matches = |listed: &Listed| listed.details.task_name.as_deref() == Some(task);
        if let Some(listed) = page.sessions.into_iter().find(matches) {
            if answer.sessions.len() == limit {
                answer.next_cursor = place;
                return Ok(answer);
            }
            answer.sessions.push(listed.meta);
            place.clone_from(&page.next_cursor);
        }
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(answer);
        }
    }
}

pub(crate) async fn search(
    service: &Service,
    scope: &Scope,
    request: SearchRequest,
) -> Result<SearchResponse, ServiceError> {
    let text = request.query.trim();
    if text.is_empty() {
        return Err(ServiceError::invalid("`query` must contain a word to look for"));
    }
    check_at_most("query", "bytes", text.len(), QUERY_BYTES_MAX)?;
    let query = ListQuery {
        order: ListOrder::UpdatedDesc,
        metadata: request.metadata.unwrap_or_default(),
        scope: scope.metadata().clone(),
        text: Some(text.to_owned()),
        limit: service.settings().page(request.limit),
        cursor: request.cursor,
        ..ListQuery::default()
    };
    let page = service.runtime().store.list(&query).await?;
    let hits = page
        .sessions
        .into_iter()
        .map(|listed| SearchHit { meta: listed.meta, preview: listed.details.preview });
    Ok(SearchResponse { hits: hits.collect(), next_cursor: page.next_cursor })
}
