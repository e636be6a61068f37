//! Whole sessions in a store of logs.
//!
//! What is saved becomes the events that the log lacks, so that a saved session is a session like any other: listed,
//! read, forked and watched. What no event says (a loop of a file that holds no events, a record changed by hand)
//! follows as a fact, and then the fold of the log is the session that was saved, always.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Clock;
use bough_session::{NewRecord, Record, SessionId};
use bough_store::{Head, ListOrder, ListQuery, Listed, Store, StoreError};
use serde_json::Value;

use super::StoreSink;
use crate::durable::RecordSink;
use crate::fact::Fact;
use crate::files::{AgentSessions, SessionError, SessionStore, missing_from};
use crate::limits::{LOG_APPEND_TRIES, LOG_PAGE_SESSIONS};
use crate::lineage::{FileMark, Lineage};
use crate::loops::Loops;
use crate::model::Session;
use crate::replay::Replay;
use crate::translate::{AGENT_KEY, Translator, fold_records};

/// Whole sessions in a store of logs, by the same rules as in files.
#[derive(Clone)]
pub struct LogSessionStore {
    sink: StoreSink,
    clock: Arc<dyn Clock>,
}

impl LogSessionStore {
    /// The sessions of a store. The clock says when one is deleted.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { sink: StoreSink::new(store), clock }
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>, StoreError> {
        let snapshot = self.sink.store.state(session).await?;
        Ok(snapshot.map(|snapshot| snapshot.head))
    }

    /// One try of a save: where the log ends now, or `Conflict` if somebody else was faster.
    async fn try_save(&self, id: &SessionId, session: &Session) -> Result<Head, SaveError> {
        let head = self.head(id).await?;
        let log = self.sink.load(id.as_str()).await?;
        let is_known = head.is_some() && session.lineage.mark() == head.as_ref().map(mark);
        if !is_known
            && let Some(stored) = fold_records(id.as_str(), &log)
            && let Some(missing) = missing_from(session, &stored)
        {
            return Err(SaveError::Lost(missing));
        }
        let records = what_is_new(session, &log);
        match head {
            Some(head) if records.is_empty() => Ok(head),
            head => Ok(self.sink.append_after(id, head.as_ref(), records).await?),
        }
    }

    /// The sessions that were recorded, last changed first.
    async fn recorded(&self) -> Result<Vec<Listed>, StoreError> {
        let mut query = ListQuery {
            order: ListOrder::UpdatedDesc,
            limit: LOG_PAGE_SESSIONS,
            ..ListQuery::default()
        };
        let mut found: Vec<Listed> = Vec::new();
        loop {
            let page = self.sink.store.list(&query).await?;
            let recorded = page.sessions.into_iter().filter(|listed| {
                listed.details.task_status.is_some() || agent_of(listed).is_some()
            });
            found.extend(recorded);
            if page.next_cursor.is_none() {
                // One that changed while the pages were read may be on two of them.
                let mut seen = std::collections::HashSet::new();
                found.retain(|listed| seen.insert(listed.meta.session_id.clone()));
                return Ok(found);
            }
            query.cursor = page.next_cursor;
        }
    }
}

impl fmt::Debug for LogSessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSessionStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl SessionStore for LogSessionStore {
    async fn save(&self, session: &Session) -> Result<(), SessionError> {
        let session_id = session.session_id.clone();
        let id = named(&session_id)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_save(&id, session).await {
                Ok(head) => {
                    session.lineage.set(mark(&head));
                    return Ok(());
                }
                Err(SaveError::Lost(missing)) => {
                    return Err(SessionError::LostUpdate { session_id, missing });
                }
                Err(SaveError::Store(StoreError::Conflict { .. } | StoreError::Exists { .. }))
                    if tries < LOG_APPEND_TRIES => {}
                Err(SaveError::Store(error)) => return Err(failed("save", &session_id)(error)),
            }
        }
    }

    async fn load(&self, session_id: &str) -> Result<Session, SessionError> {
        let id = named(session_id)?;
        let head = self.head(&id).await.map_err(failed("read", session_id))?;
        let log = self.sink.load(session_id).await.map_err(failed("read", session_id))?;
        let folded = fold_records(session_id, &log);
        let (Some(head), Some(mut session)) = (head, folded) else {
            return Err(SessionError::NotFound { session_id: session_id.to_owned() });
        };
        session.lineage = Lineage::of(mark(&head));
        Ok(session)
    }

    async fn list_ids(&self) -> Result<Vec<String>, SessionError> {
        let recorded = self.recorded().await.map_err(failed("list", ""))?;
        Ok(recorded.into_iter().map(|listed| listed.meta.session_id.to_string()).collect())
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionError> {
        let deleted = self.sink.store.delete(&named(session_id)?, self.clock.now_ms()).await;
        match deleted.map_err(failed("delete", session_id))? {
            Some(_) => Ok(()),
            None => Err(SessionError::NotFound { session_id: session_id.to_owned() }),
        }
    }

    /// Sessions that the list knows to be another agent's are not read.
    async fn list_for_agent(&self, agent_id: &str) -> Result<AgentSessions, SessionError> {
        let mut found = AgentSessions::default();
        for listed in self.recorded().await.map_err(failed("list", ""))? {
            if agent_of(&listed).is_some_and(|agent| agent != agent_id) {
                continue;
            }
            let id = listed.meta.session_id.as_str();
            match self.load(id).await {
                Ok(session) if session.agent_id == agent_id => found.sessions.push(session),
                Ok(_) | Err(SessionError::NotFound { .. }) => {}
                Err(error) => {
                    found.unreadable.insert(id.to_owned(), error);
                }
            }
        }
        Ok(found)
    }
}

/// Why a try to save failed.
enum SaveError {
    Lost(String),
    Store(StoreError),
}

impl From<StoreError> for SaveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn named(session_id: &str) -> Result<SessionId, SessionError> {
    SessionId::parse(session_id)
        .map_err(|_| SessionError::UnsafeId { session_id: session_id.to_owned() })
}

fn failed(action: &'static str, session_id: &str) -> impl FnOnce(StoreError) -> SessionError {
    let session_id = session_id.to_owned();
    move |error| match error {
        StoreError::Locked { .. } => SessionError::Locked { session_id },
        StoreError::NotFound { .. } => SessionError::NotFound { session_id },
        source => SessionError::Store { action, session_id, source },
    }
}

/// A head as a session value remembers it.
fn mark(head: &Head) -> FileMark {
    let [a, b, c, d, ..] = head.chain.bytes();
    FileMark { len: head.seq, crc: u32::from_be_bytes([a, b, c, d]) }
}

fn agent_of(listed: &Listed) -> Option<&str> {
    listed.meta.metadata.as_ref()?.get(AGENT_KEY).and_then(Value::as_str)
}

/// The records that make the fold of a log the session that is wanted.
fn what_is_new(wanted: &Session, log: &[Record]) -> Vec<NewRecord> {
    let (mut translator, stored) = Translator::of_log(&wanted.session_id, log);
    let mut records = Vec::new();
    let missing = Replay::of(wanted).since(stored.as_ref());
    for event in missing.events() {
        let batches = translator.on_event(event).batches;
        records.extend(batches.into_iter().flat_map(|batch| batch.records));
    }
    for is_whole in [false, true] {
        let held = translator.recorder().held(&wanted.session_id);
        if held == Some(wanted) {
            break;
        }
        let loops: Loops = match held.filter(|_| !is_whole) {
            Some(held) => {
                let differs = |id: &str| held.get_loop(id) != wanted.get_loop(id);
                wanted.loops.iter().filter(|record| differs(&record.loop_id)).cloned().collect()
            }
            None => wanted.loops.clone(),
        };
        let session = Box::new(Session { loops, ..wanted.clone() });
        let batches = translator.on_event(Fact::Stored { session, is_whole }.into()).batches;
        records.extend(batches.into_iter().flat_map(|batch| batch.records));
    }
    records
}
