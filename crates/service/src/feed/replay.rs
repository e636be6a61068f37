//! What subscribers get when another store takes the place of the old one.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::{Canonical, Entry, Incarnation, JsonMap, SessionId};
use bough_store::{
    ListOrder, ListQuery, Position, RecordPage, Steps, Store, StoreError, StoreExt, StoredRecord,
};
use futures_util::future::try_join_all;

use super::cursor::SessionCursor;
use super::deletions::Deletion;
use super::event::FeedEvent;
use super::event_table::EventPayload;
use super::events::{CreatedEvent, MessageAddedEvent, MessageUpdatedEvent};
use super::replayed_entries::{AddedEntry, LaterChanges, added_entries};
use crate::limits::{
    FEED_RECORDS_PER_READ, REPLAY_FIRST_RECORDS, REPLAY_LOOKUPS_MAX, REPLAY_SESSIONS_AT_ONCE,
};
use crate::runtime::Runtime;

/// The difference between two stores as events, a few at a time: the sessions that are gone, then each session that is there
/// with its entries as they are now.
pub(super) struct Replay {
    /// The store before, if it is known: its sessions that are gone come first.
    old: Option<Arc<Runtime>>,
    new: Arc<Runtime>,
    /// Only this session.
    only: Option<SessionId>,
    now_ms: i64,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// Listing the old store, from this page on.
    Gone(Option<String>),
    /// Replaying the new store: the rest of the sessions that were begun, then the others.
    There(VecDeque<ReplayedSession>, Left),
    Done,
}

/// Sessions that are yet to be begun.
#[derive(Clone)]
struct Left {
    sessions: VecDeque<SessionId>,
    next_page: Option<String>,
}

/// A session of which a part was replayed.
#[derive(Clone)]
struct ReplayedSession {
    session: SessionId,
    incarnation: Incarnation,
    metadata: Option<Arc<JsonMap>>,
    position: Position,
    /// Changes of entries after the first page; `None` until they are needed.
    later: Option<Arc<LaterChanges>>,
}

type Step = (Vec<FeedEvent>, Stage);

/// How many sessions a page of a list has.
const SESSIONS_PER_READ: usize = 100;

impl Replay {
    /// The sessions of a store.
    pub(super) const fn of(new: Arc<Runtime>, only: Option<SessionId>, now_ms: i64) -> Self {
        Self { old: None, new, only, now_ms, stage: Stage::Gone(None) }
    }

    /// The same, with the sessions of the store before that are gone.
    pub(super) fn instead_of(self, old: Arc<Runtime>) -> Self {
        Self { old: Some(old), ..self }
    }

    /// The next events; `None` at the end. Called again after an error, or after its future was dropped, it returns
    /// the same.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<FeedEvent>>, StoreError> {
        let (events, next) = match self.stage.clone() {
            Stage::Gone(page) => self.gone_sessions(page).await?,
            Stage::There(begun, left) => self.go_on(begun, left).await?,
            Stage::Done => return Ok(None),
        };
        self.stage = next;
        Ok(Some(events))
    }

    async fn gone_sessions(&self, page: Option<String>) -> Result<Step, StoreError> {
        let Some(before) = &self.old else { return self.first_page(Vec::new()).await };
        let (sessions, next) = list(&*before.store, self.only.as_ref(), page).await?;
        let mut events = Vec::new();
        for session in sessions {
            if self.new.store.state(&session).await?.is_some() {
                continue;
            }
            if let Some(old) = before.store.state(&session).await? {
                let last = SessionCursor::at(old.head.incarnation, old.position);
                let deletion = Deletion {
                    deleted_at: self.now_ms,
                    seq: Some(old.position.seq),
                    metadata: old.state.meta.metadata.clone().map(Arc::new),
                };
                events.push(deletion.event(&session, last));
            }
        }
        if next.is_some() {
            return Ok((events, Stage::Gone(next)));
        }
        self.first_page(events).await
    }

    async fn first_page(&self, events: Vec<FeedEvent>) -> Result<Step, StoreError> {
        let (sessions, next_page) = list(&*self.new.store, self.only.as_ref(), None).await?;
        let left = Left { sessions: sessions.into(), next_page };
        Ok((events, Stage::There(VecDeque::new(), left)))
    }

    async fn go_on(
        &self,
        mut begun: VecDeque<ReplayedSession>,
        mut left: Left,
    ) -> Result<Step, StoreError> {
        if let Some(replayed) = begun.pop_front() {
            let (events, rest) = self.entries(replayed, FEED_RECORDS_PER_READ).await?;
            rest.into_iter().for_each(|rest| begun.push_front(rest));
            return Ok((events, Stage::There(begun, left)));
        }
        // Together, because each is a round trip where the store is elsewhere.
        let next = left.sessions.drain(..left.sessions.len().min(REPLAY_SESSIONS_AT_ONCE));
        let next: Vec<_> = next.collect();
        if next.is_empty() {
            return self.next_page(left).await;
        }
        let (mut events, mut rest) = (Vec::new(), VecDeque::new());
        for (first, unread) in try_join_all(next.iter().map(|id| self.begin(id))).await? {
            events.extend(first);
            rest.extend(unread);
        }
        Ok((events, Stage::There(rest, left)))
    }

    /// The first events of a session, and the session if there may be more.
    async fn begin(
        &self,
        session: &SessionId,
    ) -> Result<(Vec<FeedEvent>, Option<ReplayedSession>), StoreError> {
        let Some(now) = self.new.store.state(session).await? else {
            return Ok((Vec::new(), None));
        };
        let created = EventPayload::Created(CreatedEvent::of(&now.state.meta));
        let (metadata, incarnation) =
            (now.state.meta.metadata.clone().map(Arc::new), now.head.incarnation);
        let whose = (session.clone(), incarnation);
        let mut events = vec![FeedEvent::new(whose, (1, Steps::None), metadata.clone(), created)];
        let (session, position) = (session.clone(), Position::default());
        let replayed = ReplayedSession { session, incarnation, metadata, position, later: None };
        let (entries, rest) = self.entries(replayed, REPLAY_FIRST_RECORDS).await?;
        events.extend(entries);
        Ok((events, rest))
    }

    async fn next_page(&self, left: Left) -> Result<Step, StoreError> {
        let Some(page) = left.next_page else {
            return Ok((Vec::new(), Stage::Done));
        };
        let (sessions, next_page) = list(&*self.new.store, self.only.as_ref(), Some(page)).await?;
        let left = Left { sessions: sessions.into(), next_page };
        Ok((Vec::new(), Stage::There(VecDeque::new(), left)))
    }

    /// The events of a page of records, and the session if there may be more.
    async fn entries(
        &self,
        mut replayed: ReplayedSession,
        limit: usize,
    ) -> Result<(Vec<FeedEvent>, Option<ReplayedSession>), StoreError> {
        let Some(page) = self.records(&replayed, replayed.position, limit).await? else {
            return Ok((Vec::new(), None));
        };
        replayed.position = page.position_after(replayed.position);
        let later = match &replayed.later {
            Some(later) => later.clone(),
            None if goes_on(&page) => Arc::new(self.later_changes(&replayed).await?),
            None => Arc::default(),
        };
        replayed.later = Some(later.clone());
        let entries = added_entries(&page.records);
        let mut events = Vec::new();
        for some in entries.chunks(REPLAY_LOOKUPS_MAX) {
            let newest = some.iter().map(|added| {
                let is_newest = added.is_whole && !later.has(&added.entry.id, replayed.position);
                self.newest(&replayed, added, is_newest)
            });
            let newest = try_join_all(newest).await?;
            let shown = some.iter().zip(newest).filter(|(_, entry)| !entry.is_hidden());
            events.extend(shown.map(|(added, entry)| replayed.event(added.stored, entry)));
        }
        Ok((events, goes_on(&page).then_some(replayed)))
    }

    /// Records of a session; `None` if that incarnation is gone.
    async fn records(
        &self,
        replayed: &ReplayedSession,
        after: Position,
        limit: usize,
    ) -> Result<Option<RecordPage>, StoreError> {
        match self.new.store.records(&replayed.session, after, limit).await {
            Ok(read) if read.incarnation == replayed.incarnation => Ok(Some(read)),
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the changes of entries after a position.
    async fn later_changes(&self, replayed: &ReplayedSession) -> Result<LaterChanges, StoreError> {
        let mut found = LaterChanges::default();
        let mut after = replayed.position;
        while let Some(page) = self.records(replayed, after, FEED_RECORDS_PER_READ).await? {
            after = page.position_after(after);
            if !found.add(&page.records) || !goes_on(&page) {
                break;
            }
        }
        Ok(found)
    }

    /// An entry as it is now.
    async fn newest(
        &self,
        replayed: &ReplayedSession,
        added: &AddedEntry<'_>,
        is_newest: bool,
    ) -> Result<Entry, StoreError> {
        if is_newest {
            return Ok(added.entry.clone());
        }
        let newest = self.new.store.entry(&replayed.session, &added.entry.id).await?;
        Ok(newest.map_or_else(|| added.entry.clone(), |newest| newest.entry))
    }
}

impl ReplayedSession {
    /// An entry as it is now: added, or, when it has changed since, updated.
    fn event(&self, stored: &StoredRecord, entry: Entry) -> FeedEvent {
        let payload = as_now(&self.session, entry);
        let whose = (self.session.clone(), self.incarnation);
        FeedEvent::new(whose, (stored.seq, stored.steps), self.metadata.clone(), payload)
    }
}

/// Whether a page leads to another one. A store may show less than it has for a moment.
fn goes_on(page: &RecordPage) -> bool {
    page.more && !page.records.is_empty()
}

fn as_now(session: &SessionId, entry: Entry) -> EventPayload {
    let (session_id, timestamp) = (session.clone(), entry.timestamp);
    match entry.canonical() {
        Canonical::Message(message) if entry.revision > 0 => {
            EventPayload::MessageUpdated(Box::new(MessageUpdatedEvent {
                session_id,
                entry_id: entry.id,
                message,
                revision: entry.revision,
                origin: entry.origin,
                timestamp,
            }))
        }
        _ => {
            let added = MessageAddedEvent::of(session_id, &entry, timestamp);
            EventPayload::MessageAdded(Box::new(added))
        }
    }
}

async fn list(
    store: &dyn Store,
    only: Option<&SessionId>,
    page: Option<String>,
) -> Result<(Vec<SessionId>, Option<String>), StoreError> {
    if let Some(session) = only {
        return Ok((vec![session.clone()], None));
    }
    let query = ListQuery {
        order: ListOrder::CreatedAsc,
        limit: SESSIONS_PER_READ,
        cursor: page,
        ..ListQuery::default()
    };
    let page = store.list(&query).await?;
    let sessions = page.sessions.into_iter().map(|listed| listed.meta.session_id);
    Ok((sessions.collect(), page.next_cursor))
}
