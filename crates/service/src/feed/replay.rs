//! What subscribers get when another store takes the place of the old one.

use std::collections::VecDeque;
use std::sync::Arc;

use bough_session::{Canonical, Entry, Incarnation, JsonMap, SessionId};
use bough_store::{
    ListOrder, ListQuery, Position, Steps, Store, StoreError, StoreExt, StoredRecord,
};
use futures_util::future::try_join_all;

use super::cursor::SessionCursor;
use super::deletions::Deletion;
use super::event::{EventPayload, FeedEvent};
use super::events::{CreatedEvent, MessageAddedEvent, MessageUpdatedEvent};
use crate::limits::{FEED_RECORDS_PER_READ, REPLAY_LOOKUPS_MAX};
use crate::runtime::Runtime;

/// The difference between two stores as events, a few at a time: the sessions that are gone, then each session that is there
/// with its entries as they are now.
pub(super) struct Replay {
    old: Arc<Runtime>,
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
    /// Replaying the new store: these sessions, then the pages after.
    There(Left),
    /// Replaying the entries of a session, then the rest.
    Entries(ReplayedSession, Left),
    Done,
}

/// Sessions that are yet to be replayed.
#[derive(Clone)]
struct Left {
    sessions: VecDeque<SessionId>,
    next_page: Option<String>,
}

#[derive(Clone)]
struct ReplayedSession {
    session: SessionId,
    incarnation: Incarnation,
    metadata: Option<Arc<JsonMap>>,
    position: Position,
}

type Step = (Vec<FeedEvent>, Stage);

/// How many sessions a page of a list has.
const SESSIONS_PER_READ: usize = 100;

impl Replay {
    pub(super) const fn new(
        old: Arc<Runtime>,
        new: Arc<Runtime>,
        only: Option<SessionId>,
        now_ms: i64,
    ) -> Self {
        Self { old, new, only, now_ms, stage: Stage::Gone(None) }
    }

    /// The next events; `None` at the end. Called again after an error, or after its future was dropped, it returns
    /// the same.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<FeedEvent>>, StoreError> {
        let (events, next) = match self.stage.clone() {
            Stage::Gone(page) => self.gone_sessions(page).await?,
            Stage::There(left) => self.next_session(left).await?,
            Stage::Entries(replayed, left) => self.entries(replayed, left).await?,
            Stage::Done => return Ok(None),
        };
        self.stage = next;
        Ok(Some(events))
    }

    async fn gone_sessions(&self, page: Option<String>) -> Result<Step, StoreError> {
        let (sessions, next) = list(&*self.old.store, self.only.as_ref(), page).await?;
        let mut events = Vec::new();
        for session in sessions {
            if self.new.store.state(&session).await?.is_some() {
                continue;
            }
            if let Some(old) = self.old.store.state(&session).await? {
                let last = SessionCursor::at(old.head.incarnation, old.position);
                let deletion = Deletion {
                    deleted_at: self.now_ms,
                    seq: Some(old.position.seq),
                    metadata: old.state.metadata.map(Arc::new),
                };
                events.push(deletion.event(&session, last));
            }
        }
        if next.is_some() {
            return Ok((events, Stage::Gone(next)));
        }
        let (sessions, next_page) = list(&*self.new.store, self.only.as_ref(), None).await?;
        let left = Left { sessions: sessions.into(), next_page };
        Ok((events, Stage::There(left)))
    }

    async fn next_session(&self, mut left: Left) -> Result<Step, StoreError> {
        let Some(session) = left.sessions.pop_front() else {
            return self.next_page(left).await;
        };
        let Some(now) = self.new.store.state(&session).await? else {
            return Ok((Vec::new(), Stage::There(left)));
        };
        let created = EventPayload::Created(CreatedEvent::from(&now.state.meta()));
        let metadata = now.state.metadata.map(Arc::new);
        let whose = (session.clone(), now.head.incarnation);
        let event = FeedEvent::new(whose, (1, Steps::None), metadata.clone(), created);
        let replayed = ReplayedSession {
            session,
            incarnation: now.head.incarnation,
            metadata,
            position: Position::default(),
        };
        Ok((vec![event], Stage::Entries(replayed, left)))
    }

    async fn next_page(&self, left: Left) -> Result<Step, StoreError> {
        let Some(page) = left.next_page else {
            return Ok((Vec::new(), Stage::Done));
        };
        let (sessions, next_page) = list(&*self.new.store, self.only.as_ref(), Some(page)).await?;
        let left = Left { sessions: sessions.into(), next_page };
        Ok((Vec::new(), Stage::There(left)))
    }

    async fn entries(&self, mut replayed: ReplayedSession, left: Left) -> Result<Step, StoreError> {
        let read = self
            .new
            .store
            .records(&replayed.session, replayed.position, FEED_RECORDS_PER_READ)
            .await;
        let records = match read {
            Ok(read) if read.incarnation == replayed.incarnation => read.records,
            Ok(_) | Err(StoreError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let Some(last) = records.last().map(StoredRecord::position) else {
            return Ok((Vec::new(), Stage::There(left)));
        };
        let mut events = Vec::new();
        for some in records.chunks(REPLAY_LOOKUPS_MAX) {
            // Together, because each is a round trip where the store is elsewhere.
            let lookups: Vec<_> =
                some.iter().map(|stored| self.entry_event(&replayed, stored)).collect();
            events.extend(try_join_all(lookups).await?.into_iter().flatten());
        }
        replayed.position = replayed.position.join(last);
        Ok((events, Stage::Entries(replayed, left)))
    }

    /// An entry as it is now: added, or, when it has changed since, updated.
    async fn entry_event(
        &self,
        replayed: &ReplayedSession,
        stored: &StoredRecord,
    ) -> Result<Option<FeedEvent>, StoreError> {
        let Some(entry) = stored.record.as_entry() else {
            return Ok(None);
        };
        let newest = self.new.store.entry(&replayed.session, &entry.id).await?;
        let entry = newest.map_or_else(|| entry.clone(), |newest| newest.entry);
        if entry.is_hidden() {
            return Ok(None);
        }
        let payload = as_now(&replayed.session, entry);
        let whose = (replayed.session.clone(), replayed.incarnation);
        let metadata = replayed.metadata.clone();
        Ok(Some(FeedEvent::new(whose, (stored.seq, stored.steps), metadata, payload)))
    }
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
