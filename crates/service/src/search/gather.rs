//! The new content of a session, as documents.

use std::collections::{BTreeMap, BTreeSet};

use bough_search::{Document, IndexedSession, SessionFacts, SessionPut};
use bough_session::{
    Bookkeeping, ContentChange, EntryId, Incarnation, Record, SessionId, SessionState, agent_of,
    project_of,
};
use bough_store::{Position, RecordPage, Snapshot, Store, StoreError, StoreExt, StoredRecord};

use crate::error::ServiceError;
use crate::limits::INDEX_RECORDS_PER_READ;

/// How much text a round may still index.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self, document: &Document) {
        let bytes: usize = document.fields.iter().map(|field| field.text.len()).sum();
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// What to do about a session.
pub(super) enum Gathered {
    /// It is completely indexed.
    Nothing,
    /// It is not there any more.
    Gone,
    /// It changed while it was read.
    Later,
    /// It has come further.
    Put {
        put: Box<SessionPut>,
        /// Its state in the index after that.
        indexed: IndexedSession,
        /// Whether a message of it is streaming.
        is_streaming: bool,
    },
}

/// The content of a session's new records.
#[derive(Default)]
struct News {
    documents: BTreeMap<(u64, Option<u64>), Document>,
    /// Numbers of entries that were hidden.
    hidden: Vec<u64>,
    /// Entries that were changed.
    changed: BTreeSet<EntryId>,
    /// Revisions that were left behind.
    left: Vec<(EntryId, u64)>,
    /// Whether the session's own fields may have changed.
    is_meta: bool,
    to: Position,
    has_more: bool,
    is_streaming: bool,
}

pub(super) async fn gather(
    store: &dyn Store,
    session: &SessionId,
    known: Option<&IndexedSession>,
    budget: &mut Budget,
) -> Result<Gathered, ServiceError> {
    let after = known.map_or(Position::default(), |known| known.place);
    let page = match store.records(session, after, INDEX_RECORDS_PER_READ).await {
        Err(StoreError::NotFound { .. }) => return Ok(Gathered::Gone),
        page => page?,
    };
    match known {
        Some(known) if known.incarnation == page.incarnation && page.end.covers(after) => {
            if page.records.is_empty() {
                return Ok(settled(known));
            }
            let agent = known.agent.as_deref();
            let news = read(&page, after, agent, budget);
            finish(store, session, (page.incarnation, after, agent), news, budget).await
        }
        _ => from_the_beginning(store, session, budget).await,
    }
}

/// Nothing is new. A session that was marked as stale is not.
fn settled(known: &IndexedSession) -> Gathered {
    if !known.is_stale {
        return Gathered::Nothing;
    }
    let put = SessionPut {
        session_id: known.session_id.clone(),
        incarnation: known.incarnation,
        from: known.place,
        to: known.place,
        is_stale: false,
        facts: None,
        documents: Vec::new(),
        hidden: Vec::new(),
    };
    let indexed = IndexedSession { is_stale: false, ..known.clone() };
    Gathered::Put { put: Box::new(put), indexed, is_streaming: false }
}

async fn from_the_beginning(
    store: &dyn Store,
    session: &SessionId,
    budget: &mut Budget,
) -> Result<Gathered, ServiceError> {
    let Some(snapshot) = store.state(session).await? else { return Ok(Gathered::Gone) };
    let agent = agent_of_state(&snapshot.state);
    let page = match store.records(session, Position::default(), INDEX_RECORDS_PER_READ).await {
        Err(StoreError::NotFound { .. }) => return Ok(Gathered::Gone),
        page => page?,
    };
    if page.incarnation != snapshot.head.incarnation {
        return Ok(Gathered::Later);
    }
    let mut news = read(&page, Position::default(), agent.as_deref(), budget);
    news.is_meta = true;
    let start = (page.incarnation, Position::default(), agent.as_deref());
    finish(store, session, start, news, budget).await
}

/// Makes documents of records, until the budget is spent.
fn read(page: &RecordPage, from: Position, agent: Option<&str>, budget: &mut Budget) -> News {
    let mut news = News { to: from, ..News::default() };
    let mut left = page.records.len();
    for stored in &page.records {
        news.take(stored, agent, budget);
        news.to = news.to.join(stored.position());
        left -= 1;
        if budget.is_spent() {
            break;
        }
    }
    news.has_more = page.more || left > 0;
    news
}

impl News {
    fn take(&mut self, stored: &StoredRecord, agent: Option<&str>, budget: &mut Budget) {
        self.is_streaming = stored.is_step();
        match stored.record.known() {
            Record::Entry(entry) => {
                let seq = stored.seq;
                self.is_meta |= matches!(entry.bookkeeping(), Some(Bookkeeping::SessionInfo(_)));
                if let Some(document) = Document::of_entry(seq, entry, agent) {
                    self.put(document, budget);
                }
            }
            Record::Revision(revision) => {
                self.changed.insert(revision.entry_id.clone());
                // If text was only added, the new revision contains the old one.
                if !matches!(revision.change, ContentChange::Append(_)) {
                    self.left.push((revision.entry_id.clone(), revision.from));
                }
            }
            Record::Removed(removal) => drop(self.changed.insert(removal.entry_id.clone())),
            Record::Meta(_) => self.is_meta = true,
            _ => {}
        }
    }

    fn put(&mut self, document: Document, budget: &mut Budget) {
        budget.spend(&document);
        self.documents.insert((document.seq, document.old_revision), document);
    }

    /// Removes the documents of an entry, whatever its earlier content.
    fn hide(&mut self, seq: u64) {
        self.documents.retain(|(of, _), _| *of != seq);
        self.hidden.push(seq);
    }
}

/// Adds what the records only refer to: changed entries in their present form, and the session
/// itself.
async fn finish(
    store: &dyn Store,
    session: &SessionId,
    (incarnation, from, agent): (Incarnation, Position, Option<&str>),
    mut news: News,
    budget: &mut Budget,
) -> Result<Gathered, ServiceError> {
    for id in std::mem::take(&mut news.changed) {
        let Some(stored) = store.entry(session, &id).await? else { return Ok(Gathered::Later) };
        if stored.entry.is_hidden() {
            news.hide(stored.seq);
            continue;
        }
        // An empty document is added too, so that the old one is replaced.
        let now = Document::of_entry(stored.seq, &stored.entry, agent);
        let nothing = Document { seq: stored.seq, ..Document::default() };
        news.put(now.unwrap_or(nothing), budget);
    }
    for (id, revision) in std::mem::take(&mut news.left) {
        add_old(store, session, (incarnation, &id, revision), agent, &mut news, budget).await?;
    }
    let mut facts = None;
    if news.is_meta {
        let Some(snapshot) = store.state(session).await? else { return Ok(Gathered::Gone) };
        if snapshot.head.incarnation != incarnation {
            return Ok(Gathered::Later);
        }
        if from != Position::default() && agent_of_state(&snapshot.state).as_deref() != agent {
            // Every document has the session's agent.
            return Box::pin(from_the_beginning(store, session, budget)).await;
        }
        facts = Some(facts_of(&snapshot));
        news.put(Document::of_session(&snapshot.state), budget);
    }
    let agent = facts.as_ref().map_or(agent.map(str::to_owned), |facts| facts.agent.clone());
    let indexed = IndexedSession {
        session_id: session.clone(),
        incarnation,
        place: news.to,
        is_stale: news.has_more,
        agent,
    };
    let put = SessionPut {
        session_id: session.clone(),
        incarnation,
        from,
        to: news.to,
        is_stale: news.has_more,
        facts,
        documents: news.documents.into_values().collect(),
        hidden: news.hidden,
    };
    Ok(Gathered::Put { put: Box::new(put), indexed, is_streaming: news.is_streaming })
}

/// Adds the earlier content of a changed entry, for searches in old revisions. Text that only grew is in the new one.
async fn add_old(
    store: &dyn Store,
    session: &SessionId,
    (incarnation, id, revision): (Incarnation, &EntryId, u64),
    agent: Option<&str>,
    news: &mut News,
    budget: &mut Budget,
) -> Result<(), ServiceError> {
    let Some(stored) = store.entry_at(session, incarnation, id, revision).await? else {
        return Ok(());
    };
    if news.hidden.contains(&stored.seq) {
        return Ok(());
    }
    let Some(mut old) = Document::of_entry(stored.seq, &stored.entry, agent) else {
        return Ok(());
    };
    let is_in = |now: &Document| {
        old.fields.iter().all(|old| now.fields.iter().any(|now| now.text.starts_with(&old.text)))
    };
    if news.documents.get(&(stored.seq, None)).is_some_and(is_in) {
        return Ok(());
    }
    old.old_revision = Some(revision);
    news.put(old, budget);
    Ok(())
}

fn facts_of(snapshot: &Snapshot) -> SessionFacts {
    let metadata = snapshot.state.meta.metadata.as_ref();
    SessionFacts {
        metadata: metadata.cloned().unwrap_or_default(),
        project: project_of(metadata).map(str::to_owned),
        agent: agent_of_state(&snapshot.state),
    }
}

/// The agent of a session, for all of its entries.
pub(crate) fn agent_of_state(state: &SessionState) -> Option<String> {
    state.meta.metadata.as_ref().and_then(agent_of)
}
