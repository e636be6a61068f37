//! The feed, asked for instead of pushed.

use std::time::Duration;

use crate::api::{WatchEvent, WatchRequest, WatchResponse};
use crate::error::ServiceError;
use crate::feed::{Delivery, EventFilter, EventKind, FeedItem, StartAt, Subscription};
use crate::limits::WATCH_WAIT_MAX;
use crate::scope::Scope;
use crate::service::Service;

/// The word for the position before everything that is stored.
const START: &str = "start";

pub(crate) async fn watch(
    service: &Service,
    scope: &Scope,
    request: WatchRequest,
) -> Result<WatchResponse, ServiceError> {
    let limit = service.settings().page(request.limit);
    let wait = Duration::from_millis(request.wait_ms.unwrap_or(0)).min(WATCH_WAIT_MAX);
    let start = match request.after.as_deref() {
        None => StartAt::Now,
        Some(START) => StartAt::Start,
        Some(cursor) => StartAt::After(cursor.parse()?),
    };
    let subscription = service.subscribe(scope, filter(request), start).await?;
    collect(subscription, limit, wait).await
}

fn filter(request: WatchRequest) -> EventFilter {
    let kinds = request.types.unwrap_or_else(|| EventKind::PUBLIC.to_vec());
    let mut filter = EventFilter::of(kinds);
    filter.session_id = request.session_id;
    filter.roles = request.roles;
    filter.metadata = request.metadata.unwrap_or_default();
    filter
}

async fn collect(
    mut subscription: Subscription,
    limit: usize,
    wait: Duration,
) -> Result<WatchResponse, ServiceError> {
    let mut answer = WatchResponse::default();
    let mut waited = wait.is_zero();
    while answer.events.len() < limit {
        let item = match subscription.next_ready().await? {
            Some(item) => item,
            None if answer.events.is_empty() && !waited => {
                waited = true;
                match tokio::time::timeout(wait, subscription.next()).await {
                    Ok(item) => item?,
                    Err(_) => break,
                }
            }
            None => break,
        };
        match item {
            FeedItem::Event(delivery) => answer.events.push(shown(&delivery)),
            FeedItem::Gap(_) => answer.gap = true,
            FeedItem::Session(_) | FeedItem::Sessions(_) | FeedItem::Live => {}
        }
    }
    let cursor = subscription.cursor();
    answer.next = cursor.map_or_else(|| START.to_owned(), |cursor| cursor.to_string());
    Ok(answer)
}

fn shown(delivery: &Delivery) -> WatchEvent {
    let event = &delivery.event;
    WatchEvent {
        kind: event.kind(),
        cursor: delivery.cursor.to_string(),
        seq: event.seq,
        step: event.position().step,
        payload: event.value(),
    }
}
