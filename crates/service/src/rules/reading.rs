//! Entries are read: paths in pages, in both directions, and single entries.

use bough_session::{Canonical, EntryId, Role, SessionId};
use bough_store::{PathPage, PathQuery, PathStart, Store, StoreError, StoreExt, StoredEntry};

use crate::api::{
    GetMessageRequest, GetMessageResponse, MessageItem, MessagesRequest, MessagesResponse,
};
use crate::cursor::EntryCursor;
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn messages(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
) -> Result<MessagesResponse, ServiceError> {
    page(service, scope, request, Direction::OldestFirst).await
}

pub(crate) async fn messages_tail(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
) -> Result<MessagesResponse, ServiceError> {
    page(service, scope, request, Direction::NewestFirst).await
}

pub(crate) async fn get_message(
    service: &Service,
    scope: &Scope,
    request: GetMessageRequest,
) -> Result<Option<GetMessageResponse>, ServiceError> {
    let runtime = service.runtime();
    if runtime.seen(scope, &request.session_id).await?.is_none() {
        return Ok(None);
    }
    let stored = runtime.store.entry(&request.session_id, &request.entry_id).await?;
    Ok(stored.map(|stored| GetMessageResponse { entry: stored.entry.to_wire() }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    OldestFirst,
    NewestFirst,
}

/// Which entries of a path are shown.
struct Shown {
    roles: Option<Vec<Role>>,
    custom: bool,
}

impl Shown {
    fn item(&self, stored: &StoredEntry) -> Option<MessageItem> {
        let entry_id = stored.entry.id.clone();
        // The role is known without copying the message, where it is stored as it is shown.
        if let (Some(roles), Some(role)) = (&self.roles, stored.entry.role())
            && !roles.contains(&role)
        {
            return None;
        }
        match stored.entry.canonical() {
            Canonical::Message(message) => {
                Some(MessageItem { entry_id, message: Some(message), custom: None })
            }
            Canonical::Custom(custom) => (self.custom && self.roles.is_none())
                .then_some(MessageItem { entry_id, message: None, custom: Some(custom) }),
        }
    }
}

async fn page(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
    direction: Direction,
) -> Result<MessagesResponse, ServiceError> {
    let limit = service.settings().page(request.limit);
    let runtime = service.runtime();
    runtime.need(scope, &request.session_id).await?;
    let shown = Shown { roles: request.roles, custom: request.include_custom.unwrap_or(false) };
    let after = EntryCursor::read(request.cursor.as_deref())?;
    if let Some(after) = &after {
        check_shown(&*runtime.store, &request.session_id, after, &shown).await?;
    }
    let mut walk = Walk::new(&*runtime.store, &request.session_id, direction)
        .ending_at(request.from_entry_id)
        .after(after);
    let mut messages = Vec::new();
    // One more than the page tells whether anything remains.
    while messages.len() <= limit {
        let wanted = (limit + 1 - messages.len()).min(SCAN_ENTRIES);
        let Some(entries) = walk.next(wanted).await? else {
            break;
        };
        messages.extend(entries.iter().filter_map(|stored| shown.item(stored)));
    }
    let more = messages.len() > limit;
    messages.truncate(limit);
    let last = messages.last().filter(|_| more);
    let next_cursor = EntryCursor::after(last.map(|item| &item.entry_id))?;
    Ok(MessagesResponse { messages, next_cursor })
}

/// A cursor names an entry that its page showed; with other filters it may name one that this page would not.
async fn check_shown(
    store: &dyn Store,
    session: &SessionId,
    after: &EntryId,
    shown: &Shown,
) -> Result<(), ServiceError> {
    let stored = store.entry(session, after).await?;
    if stored.is_some_and(|stored| shown.item(&stored).is_some()) {
        return Ok(());
    }
    Err(cursor_left_the_path(after))
}

fn cursor_left_the_path(entry: &EntryId) -> ServiceError {
    ServiceError::InvalidCursor {
        reason: format!("the cursor's entry {entry} is not on this path with these filters"),
    }
}

/// A walk along a path, a part at a time.
pub(crate) struct Walk<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    direction: Direction,
    leaf: Option<EntryId>,
    at: Option<EntryId>,
    ended: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(store: &'a dyn Store, session: &'a SessionId, direction: Direction) -> Self {
        Self { store, session, direction, leaf: None, at: None, ended: false }
    }

    /// Along the path to this entry, instead of the active leaf.
    pub(crate) fn ending_at(mut self, leaf: Option<EntryId>) -> Self {
        self.leaf = leaf;
        self
    }

    /// On from this entry of the path.
    fn after(mut self, entry: Option<EntryId>) -> Self {
        self.at = entry;
        self
    }

    /// The next entries, at most `limit`; `None` at the end.
    pub(crate) async fn next(
        &mut self,
        limit: usize,
    ) -> Result<Option<Vec<StoredEntry>>, ServiceError> {
        if self.ended {
            return Ok(None);
        }
        let query = PathQuery { leaf: self.leaf.clone(), start: self.start(), limit };
        let page = self.store.path(self.session, &query).await;
        let page = page.map_err(|error| self.explain(error))?;
        self.note(&page);
        Ok(Some(page.entries))
    }

    fn start(&self) -> PathStart<EntryId> {
        match (self.direction, self.at.clone()) {
            (Direction::OldestFirst, None) => PathStart::Root,
            (Direction::OldestFirst, Some(at)) => PathStart::After(at),
            (Direction::NewestFirst, None) => PathStart::Leaf,
            (Direction::NewestFirst, Some(at)) => PathStart::Before(at),
        }
    }

    fn note(&mut self, page: &PathPage) {
        // The rest of the walk is along the same path, also when the active leaf moves meanwhile.
        self.leaf = self.leaf.take().or_else(|| page.leaf.clone());
        self.ended = !page.more || page.entries.is_empty();
        if let Some(last) = page.entries.last() {
            self.at = Some(last.entry.id.clone());
        }
    }

    fn explain(&self, error: StoreError) -> ServiceError {
        match error {
            StoreError::EntryNotFound { entry } if Some(&entry) == self.leaf.as_ref() => {
                ServiceError::entry_not_found(self.session, &entry)
            }
            StoreError::EntryNotFound { entry } | StoreError::NotOnPath { entry } => {
                cursor_left_the_path(&entry)
            }
            other => other.into(),
        }
    }
}
