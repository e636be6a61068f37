//! Entries are read: paths in pages, in both directions, and single entries.

use bough_session::{Canonical, EntryId, Role, SessionId, SessionState, StreamTally};
use bough_store::{PathPage, PathQuery, PathStart, ReadStore, StoreError, StoreExt, StoredEntry};

use super::entries::ItemShape;
use super::siblings::add_siblings;
use crate::api::{
    GetMessageRequest, GetMessageResponse, MessageItem, MessagesRequest, MessagesResponse,
    PathRequest, PathResponse,
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
    messages_in(service, scope, request, Direction::OldestFirst).await
}

pub(crate) async fn messages_tail(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
) -> Result<MessagesResponse, ServiceError> {
    messages_in(service, scope, request, Direction::NewestFirst).await
}

async fn messages_in(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
    direction: Direction,
) -> Result<MessagesResponse, ServiceError> {
    let Page { entries, next_cursor, .. } = page(service, scope, request, direction).await?;
    let messages = entries.iter().map(|stored| {
        let entry_id = stored.entry.id.clone();
        match stored.entry.canonical() {
            Canonical::Message(message) => {
                MessageItem { entry_id, message: Some(message), custom: None }
            }
            Canonical::Custom(custom) => {
                MessageItem { entry_id, message: None, custom: Some(custom) }
            }
        }
    });
    Ok(MessagesResponse { messages: messages.collect(), next_cursor })
}

pub(crate) async fn path(
    service: &Service,
    scope: &Scope,
    request: PathRequest,
) -> Result<PathResponse, ServiceError> {
    path_in(service, scope, request, Direction::OldestFirst).await
}

pub(crate) async fn path_tail(
    service: &Service,
    scope: &Scope,
    request: PathRequest,
) -> Result<PathResponse, ServiceError> {
    path_in(service, scope, request, Direction::NewestFirst).await
}

async fn path_in(
    service: &Service,
    scope: &Scope,
    request: PathRequest,
    direction: Direction,
) -> Result<PathResponse, ServiceError> {
    let format = request.format;
    let request = MessagesRequest {
        session_id: request.session_id,
        limit: request.limit,
        cursor: request.cursor,
        roles: request.roles,
        from_entry_id: request.from_entry_id,
        include_custom: request.include_custom,
    };
    let session = request.session_id.clone();
    let Page { entries, next_cursor, streams: before } =
        page(service, scope, request, direction).await?;
    let runtime = service.runtime();
    let state = runtime.need(scope, &session).await?.state;
    let shape = ItemShape { format, streams: &[&before, &state.streams] };
    let mut messages: Vec<_> = entries.iter().map(|stored| shape.item(&stored.entry)).collect();
    add_siblings(&*runtime.store, &session, state.forks.as_deref(), &mut messages).await?;
    Ok(PathResponse { messages, next_cursor })
}

pub(crate) async fn get_message(
    service: &Service,
    scope: &Scope,
    request: GetMessageRequest,
) -> Result<Option<GetMessageResponse>, ServiceError> {
    let runtime = service.runtime();
    if runtime.visible(scope, &request.session_id).await?.is_none() {
        return Ok(None);
    }
    let stored = visible_entry(&*runtime.store, &request.session_id, &request.entry_id).await?;
    Ok(stored.map(|stored| GetMessageResponse { entry: stored.entry.to_wire() }))
}

/// An entry at its newest revision, if it is there and was not hidden.
pub(crate) async fn visible_entry(
    store: &dyn ReadStore,
    session: &SessionId,
    entry: &EntryId,
) -> Result<Option<StoredEntry>, StoreError> {
    let stored = store.entry(session, entry).await?;
    Ok(stored.filter(|stored| !stored.entry.is_hidden()))
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
    fn shows(&self, stored: &StoredEntry) -> bool {
        match stored.entry.role() {
            Some(role) => self.roles.as_ref().is_none_or(|roles| roles.contains(&role)),
            None => self.custom && self.roles.is_none(),
        }
    }
}

/// A page of a path.
struct Page {
    entries: Vec<StoredEntry>,
    /// The cursor for the next one.
    next_cursor: Option<String>,
    /// The messages that streamed before the entries were read.
    streams: StreamTally,
}

async fn page(
    service: &Service,
    scope: &Scope,
    request: MessagesRequest,
    direction: Direction,
) -> Result<Page, ServiceError> {
    let limit = service.settings().page(request.limit);
    let runtime = service.runtime();
    let state = runtime.need(scope, &request.session_id).await?.state;
    if let Some(end) = &request.from_entry_id {
        check_visible(&*runtime.store, &state, end).await?;
    }
    let shown = Shown { roles: request.roles, custom: request.include_custom.unwrap_or(false) };
    let after = EntryCursor::read(request.cursor.as_deref())?;
    if let Some(after) = &after {
        check_shown(&*runtime.store, &request.session_id, after, &shown).await?;
    }
    let mut walk = Walk::new(&*runtime.store, &request.session_id, direction)
        .ending_at(request.from_entry_id)
        .after(after);
    let mut shown_entries: Vec<StoredEntry> = Vec::new();
    // One entry more than the page holds shows whether anything remains.
    while shown_entries.len() <= limit {
        let wanted = (limit + 1 - shown_entries.len()).min(SCAN_ENTRIES);
        let Some(entries) = walk.next(wanted).await? else {
            break;
        };
        shown_entries.extend(entries.into_iter().filter(|stored| shown.shows(stored)));
    }
    let more = shown_entries.len() > limit;
    shown_entries.truncate(limit);
    let last = shown_entries.last().filter(|_| more);
    let next_cursor = EntryCursor::after(last.map(|stored| &stored.entry.id))?;
    Ok(Page { entries: shown_entries, next_cursor, streams: state.streams.clone() })
}

/// Refuses a path that ends at an entry which was hidden.
pub(crate) async fn check_visible(
    store: &dyn ReadStore,
    state: &SessionState,
    end: &EntryId,
) -> Result<(), ServiceError> {
    if state.hidden_count == 0 || visible_entry(store, &state.meta.session_id, end).await?.is_some()
    {
        return Ok(());
    }
    Err(ServiceError::entry_not_found(&state.meta.session_id, end))
}

/// A cursor names an entry that its page showed; with other filters it may name one that this page would not.
async fn check_shown(
    store: &dyn ReadStore,
    session: &SessionId,
    after: &EntryId,
    shown: &Shown,
) -> Result<(), ServiceError> {
    let stored = store.entry(session, after).await?;
    // One that was hidden since is passed over, as all hidden ones are.
    if stored.is_some_and(|stored| stored.entry.is_hidden() || shown.shows(&stored)) {
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
    store: &'a dyn ReadStore,
    session: &'a SessionId,
    direction: Direction,
    leaf: Option<EntryId>,
    at: Option<EntryId>,
    ended: bool,
    shows_hidden: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        store: &'a dyn ReadStore,
        session: &'a SessionId,
        direction: Direction,
    ) -> Self {
        Self { store, session, direction, leaf: None, at: None, ended: false, shows_hidden: false }
    }

    /// Along the path to this entry, instead of the active leaf.
    pub(crate) fn ending_at(mut self, leaf: Option<EntryId>) -> Self {
        self.leaf = leaf;
        self
    }

    /// Includes hidden entries, without their content: other entries may name them.
    pub(crate) fn with_hidden(mut self) -> Self {
        self.shows_hidden = true;
        self
    }

    /// On from this entry of the path.
    pub(crate) fn after(mut self, entry: Option<EntryId>) -> Self {
        self.at = entry;
        self
    }

    /// The next entries, at most `limit` and without those that were hidden; `None` at the end.
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
        let mut entries = page.entries;
        entries.retain(|stored| self.shows_hidden || !stored.entry.is_hidden());
        Ok(Some(entries))
    }

    /// Whether all of it was read.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
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
