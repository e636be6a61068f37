use std::cmp::Ordering;
use std::collections::HashSet;

use bough_session::{SessionId, metadata_matches};

use super::{ListCursor, Phase};
use crate::StoreError;
use crate::types::{ChangeCursor, ListOrder, ListPage, ListQuery, Listed};

/// A session that a list may show, with the number of its newest change.
#[derive(Clone, Debug)]
pub(crate) struct ListItem {
    pub(crate) listed: Listed,
    pub(crate) change: u64,
}

/// A page of a list over sessions that are all in memory. `now` is where the feed of all sessions is.
pub(crate) fn list(
    items: &[ListItem],
    query: &ListQuery,
    now: ChangeCursor,
) -> Result<ListPage, StoreError> {
    let cursor = ListCursor::of(query)?;
    let first_page =
        cursor.as_ref().map_or_else(|| now.clone(), |cursor| cursor.first_page(now.epoch));
    let matching: Vec<&ListItem> =
        items.iter().filter(|item| matches(query, &item.listed)).collect();
    let in_order = ordered(&matching, query.order, cursor.as_ref());
    let since = match &cursor {
        Some(cursor) if query.order == ListOrder::UpdatedDesc => {
            changed(&matching, cursor, first_page.number)
        }
        _ => Vec::new(),
    };
    let listed =
        |items: Vec<&ListItem>| items.into_iter().map(|item| item.listed.clone()).collect();
    Ok(compose(query, &first_page, listed(in_order), listed(since)))
}

/// A page of what follows in order and then of what changed since the first page. One more than fits
/// says that the list goes on.
pub(crate) fn compose(
    query: &ListQuery,
    first_page: &ChangeCursor,
    in_order: Vec<Listed>,
    changed: Vec<Listed>,
) -> ListPage {
    let limit = query.limit.max(1);
    let here: HashSet<SessionId> = in_order.iter().map(|listed| id_of(listed).clone()).collect();
    let changed = changed.into_iter().filter(|listed| !here.contains(id_of(listed)));
    let mut rest: Vec<(Phase, Listed)> = in_order
        .into_iter()
        .map(|listed| (Phase::Ordered, listed))
        .chain(changed.map(|listed| (Phase::Changed, listed)))
        .collect();
    let more = rest.len() > limit;
    rest.truncate(limit);
    let next = rest.last().filter(|_| more).map(|(phase, last)| {
        let key = key_of(query.order, last);
        ListCursor::new(query.order, key, first_page, *phase).encode()
    });
    ListPage { sessions: rest.into_iter().map(|(_, listed)| listed).collect(), next_cursor: next }
}

/// Whether a query matches a session.
pub(crate) fn matches(query: &ListQuery, listed: &Listed) -> bool {
    let Listed { meta, details, .. } = listed;
    let same = |wanted: Option<bool>| wanted.is_none_or(|wanted| wanted == details.archived);
    !id_of(listed).is_documents()
        && query.status.is_none_or(|status| status == meta.status)
        && (query.task_status.is_none() || query.task_status == details.task_status)
        && (query.task_name.is_none() || query.task_name == details.task_name)
        && query.id_prefix.as_ref().is_none_or(|prefix| id_of(listed).as_str().starts_with(prefix))
        && same(query.archived)
        && metadata_matches(&query.metadata, meta.metadata.as_ref())
        && metadata_matches(&query.scope, meta.metadata.as_ref())
        && query.text.as_ref().is_none_or(|text| has_text(listed, text))
}

/// The text that a search looks into, in small letters.
pub(crate) fn search_text(listed: &Listed) -> String {
    let Listed { meta, details, .. } = listed;
    let directory = meta.metadata.as_ref().and_then(|metadata| metadata.get("cwd")?.as_str());
    let parts = [
        Some(meta.title.as_str()),
        Some(meta.description.as_str()),
        details.name.as_deref(),
        details.task_name.as_deref(),
        details.preview.as_deref(),
        details.model.as_ref().map(|model| model.model.as_str()),
        directory,
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n").to_lowercase()
}

/// The time and id by which a list is ordered.
pub(crate) fn key_of(order: ListOrder, listed: &Listed) -> (i64, SessionId) {
    let meta = &listed.meta;
    let time = match order {
        ListOrder::CreatedAsc | ListOrder::CreatedDesc => meta.created_at,
        ListOrder::UpdatedDesc => meta.updated_at,
    };
    (time, meta.session_id.clone())
}

/// What follows the cursor in the list's own order.
fn ordered<'a>(
    items: &[&'a ListItem],
    order: ListOrder,
    cursor: Option<&ListCursor>,
) -> Vec<&'a ListItem> {
    if cursor.is_some_and(|cursor| cursor.phase == Phase::Changed) {
        return Vec::new();
    }
    let direction = |ordering: Ordering| match order {
        ListOrder::CreatedAsc => ordering,
        ListOrder::CreatedDesc | ListOrder::UpdatedDesc => ordering.reverse(),
    };
    let last = cursor.map(|cursor| (cursor.key, cursor.id.clone()));
    let mut found: Vec<((i64, SessionId), &ListItem)> = items
        .iter()
        .map(|item| (key_of(order, &item.listed), *item))
        .filter(|(key, _)| last.as_ref().is_none_or(|last| direction(key.cmp(last)).is_gt()))
        .collect();
    found.sort_by(|(a, _), (b, _)| direction(a.cmp(b)));
    found.into_iter().map(|(_, item)| item).collect()
}

/// What changed since the first page, by id.
fn changed<'a>(items: &[&'a ListItem], cursor: &ListCursor, since: u64) -> Vec<&'a ListItem> {
    let after = (cursor.phase == Phase::Changed).then_some(&cursor.id);
    let mut found: Vec<&ListItem> = items
        .iter()
        .filter(|item| item.change > since)
        .filter(|item| after.is_none_or(|after| id_of(&item.listed) > after))
        .copied()
        .collect();
    found.sort_by(|a, b| id_of(&a.listed).cmp(id_of(&b.listed)));
    found
}

const fn id_of(listed: &Listed) -> &SessionId {
    &listed.meta.session_id
}

fn has_text(listed: &Listed, text: &str) -> bool {
    search_text(listed).contains(&text.to_lowercase())
}
