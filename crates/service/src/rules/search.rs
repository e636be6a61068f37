//! Search over the text of all sessions.
//!
//! The index names candidates; each is compared with what the store has now. So a hit is durable and present, even if the index
//! is behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bough_search::{Candidate, Document, Query, SearchAsk, parse_query, snippet};
use bough_session::limits::{STATE_LABELS_MAX, check_at_most};
use bough_session::{EntryId, Incarnation, SessionId, SessionState, metadata_matches, project_of};
use bough_store::{
    PathQuery, PathStart, Position, Sealed, Snapshot, StoreError, StoreExt, StoredEntry, seal,
    unseal,
};

use super::reading::visible_entry;
use crate::api::{
    IndexStatus, ReindexRequest, SearchHit, SearchRequest, SearchResponse, SearchSnippet,
    SearchStatusRequest,
};
use crate::error::ServiceError;
use crate::limits::{QUERY_BYTES_MAX, SEARCH_AGAIN_MAX, SEARCH_COMPARED_MAX, SEARCH_WAIT};
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::search::{Search, SessionEnd, agent_of_state, failed};
use crate::service::Service;

pub(crate) async fn search(
    service: &Service,
    scope: &Scope,
    request: SearchRequest,
) -> Result<SearchResponse, ServiceError> {
    let Some(search) = service.search_slot().get() else {
        return super::listing::search_titles(service, scope, request).await;
    };
    check_at_most("query", "bytes", request.query.len(), QUERY_BYTES_MAX)?;
    let query = parse_query(&request.query, service.now_ms());
    let mut query = query.map_err(|error| ServiceError::invalid(error.to_string()))?;
    let runtime = service.runtime();
    if let Some(session) = query.filters.session.clone() {
        let session = SessionId::from_stored(session);
        query.filters.is_whole_session = runtime.visible(scope, &session).await?.is_some();
    }
    let epoch = runtime.store.change_cursor().await?.epoch;
    let cursor = request.cursor.as_deref().map(|text| open_cursor(epoch, text)).transpose()?;
    let limit = service.settings().page(request.limit);
    let now_ms = service.now_ms();
    let mut again = SEARCH_AGAIN_MAX;
    loop {
        search.catch_up(&runtime.store, SEARCH_WAIT).await?;
        let place = search.place().await?;
        let index = status(&search, &runtime, scope).await?;
        let mut finder = Finder {
            runtime: &runtime,
            scope,
            query: &query,
            request: &request,
            sessions: HashMap::new(),
            listed: HashSet::new(),
            labelled: HashSet::new(),
        };
        let (hits, next) = finder.page(&search, limit, cursor.clone(), now_ms).await?;
        // An index that this search found to be damaged is replaced by an empty one, which has no hits.
        if again > 0 && search.has_lost(place.as_ref()).await? {
            again -= 1;
            continue;
        }
        let next_cursor = next.map(|text| close_cursor(epoch, &text));
        return Ok(SearchResponse { hits, next_cursor, index: Some(index) });
    }
}

pub(crate) async fn search_status(
    service: &Service,
    scope: &Scope,
    _: SearchStatusRequest,
) -> Result<IndexStatus, ServiceError> {
    let search = service.search_slot().get().ok_or(ServiceError::NoSearchIndex)?;
    let runtime = service.runtime();
    search.catch_up(&runtime.store, SEARCH_WAIT).await?;
    status(&search, &runtime, scope).await
}

pub(crate) async fn reindex(
    service: &Service,
    scope: &Scope,
    _: ReindexRequest,
) -> Result<IndexStatus, ServiceError> {
    let search = service.search_slot().get().ok_or(ServiceError::NoSearchIndex)?;
    search.index.clear().await.map_err(failed)?;
    status(&search, &service.runtime(), scope).await
}

async fn status(
    search: &Search,
    runtime: &Runtime,
    scope: &Scope,
) -> Result<IndexStatus, ServiceError> {
    let status = search.status(&*runtime.store).await?;
    if scope.metadata().is_empty() {
        return Ok(status);
    }
    // How much others write is not theirs to know.
    Ok(IndexStatus { is_complete: status.is_complete, ..IndexStatus::default() })
}

/// A cursor of the index counts the documents of all callers, so it is sealed.
fn close_cursor(epoch: Incarnation, text: &str) -> String {
    let mut bytes: Sealed = [0; 32];
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of_text)| *byte = of_text);
    seal(epoch, &bytes)
}

fn open_cursor(epoch: Incarnation, text: &str) -> Result<String, ServiceError> {
    let refused = || failed(bough_search::SearchError::InvalidCursor);
    let bytes = unseal(epoch, text).ok_or_else(refused)?;
    let text = bytes.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).map_err(|_| refused())
}

struct Finder<'a> {
    runtime: &'a Runtime,
    scope: &'a Scope,
    query: &'a Query,
    request: &'a SearchRequest,
    /// Sessions of candidates, as far as the caller may see them and the query asks for them.
    sessions: HashMap<SessionId, Option<Arc<Found>>>,
    /// Sessions with a hit on this page, where one of each is enough.
    listed: HashSet<SessionId>,
    /// Entries whose label is a hit on this page.
    labelled: HashSet<(SessionId, EntryId)>,
}

/// A session with candidates.
struct Found {
    snapshot: Snapshot,
    /// The records from the first candidate on, where they are few.
    end: Option<SessionEnd>,
}

impl Finder<'_> {
    /// A page of hits, and where the next one starts.
    async fn page(
        &mut self,
        search: &Search,
        limit: usize,
        mut cursor: Option<String>,
        now_ms: i64,
    ) -> Result<(Vec<SearchHit>, Option<String>), ServiceError> {
        let asked = self.request.metadata.iter().flatten().chain(self.scope.metadata());
        let metadata: Vec<_> = asked.map(|(key, value)| (key.as_str(), value)).collect();
        let mut hits = Vec::new();
        let mut compared = 0;
        loop {
            let ask = SearchAsk {
                query: self.query,
                metadata: metadata.clone(),
                limit: limit - hits.len(),
                cursor: cursor.as_deref(),
                now_ms,
            };
            let page = search.index.search(&ask).await.map_err(failed)?;
            compared += page.candidates.len();
            let firsts = first_numbers(&page.candidates);
            for candidate in &page.candidates {
                if !self.listed.contains(&candidate.session_id) {
                    let hit = self.hit(candidate, &firsts).await?;
                    self.note_listed(hit.as_ref());
                    hits.extend(hit);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() || hits.len() >= limit || compared >= SEARCH_COMPARED_MAX {
                return Ok((hits, cursor));
            }
        }
    }

    /// Where sessions are listed, the further candidates of one that has its hit are left out.
    fn note_listed(&mut self, hit: Option<&SearchHit>) {
        if let Some(hit) = hit.filter(|_| self.lists_sessions()) {
            self.listed.insert(hit.meta.session_id.clone());
        }
    }

    fn lists_sessions(&self) -> bool {
        self.request.by_session.unwrap_or_default()
    }

    /// The hit that a candidate is, if it is one.
    async fn hit(
        &mut self,
        candidate: &Candidate,
        firsts: &HashMap<SessionId, u64>,
    ) -> Result<Option<SearchHit>, ServiceError> {
        let Some(session) = self.session(candidate, firsts).await? else { return Ok(None) };
        let state = &session.snapshot.state;
        let found = match candidate.seq {
            0 => Some((None, Document::of_session(state))),
            _ => self.document(candidate, &session).await?,
        };
        let Some((entry, document)) = found else { return Ok(None) };
        let Some(matched) = self.query.matches(&document) else { return Ok(None) };
        let shown = snippet(&document, &matched).map(|snippet| SearchSnippet {
            kind: snippet.kind.as_str().to_owned(),
            text: snippet.text,
            highlights: snippet.highlights.iter().map(|at| (at.start, at.end)).collect(),
        });
        // A label that an entry was given twice is one hit.
        if let Some(labelled) = &document.label_of
            && !self.labelled.insert((candidate.session_id.clone(), labelled.clone()))
        {
            return Ok(None);
        }
        let entry_id = entry.map(|entry| document.label_of.clone().unwrap_or(entry));
        let on_active_path = match &entry_id {
            Some(entry) => self.is_on_path(&session, entry).await?,
            None => None,
        };
        let details = state.details();
        Ok(Some(SearchHit {
            meta: state.meta.clone(),
            preview: details.preview.clone(),
            details: self.lists_sessions().then_some(details),
            timestamp: entry_id.is_some().then_some(document.at_ms),
            entry_id,
            revision: document.old_revision,
            role: document.role,
            snippet: shown,
            on_active_path,
            // It says how often the words are in sessions of others.
            score: self.scope.metadata().is_empty().then_some(candidate.score),
        }))
    }

    /// The session of a candidate, if the caller may see it and the query asks for it.
    async fn session(
        &mut self,
        candidate: &Candidate,
        firsts: &HashMap<SessionId, u64>,
    ) -> Result<Option<Arc<Found>>, ServiceError> {
        let id = &candidate.session_id;
        if !self.sessions.contains_key(id) {
            let visible = self.runtime.visible(self.scope, id).await?;
            let found = match visible.filter(|snapshot| self.wants(&snapshot.state)) {
                Some(snapshot) => Some(Arc::new(self.found(snapshot, firsts.get(id)).await?)),
                None => None,
            };
            self.sessions.insert(id.clone(), found);
        }
        let known = self.sessions.get(id).cloned().flatten();
        Ok(known.filter(|known| known.snapshot.head.incarnation == candidate.incarnation))
    }

    async fn found(&self, snapshot: Snapshot, first: Option<&u64>) -> Result<Found, ServiceError> {
        let end = match first {
            Some(first) => SessionEnd::read(&*self.runtime.store, &snapshot, *first).await?,
            None => None,
        };
        Ok(Found { snapshot, end })
    }

    fn wants(&self, state: &SessionState) -> bool {
        let metadata = state.meta.metadata.as_ref();
        let asked = self.request.metadata.as_ref();
        asked.is_none_or(|asked| metadata_matches(asked, metadata))
            && self.query.fits_session(state.meta.session_id.as_str())
            && self.query.fits_project(project_of(metadata))
    }

    /// The entry of a candidate as it is now, or as it was where an old revision was asked for.
    async fn document(
        &self,
        candidate: &Candidate,
        session: &Found,
    ) -> Result<Option<(Option<EntryId>, Document)>, ServiceError> {
        let state = &session.snapshot.state;
        let Some(stored) = self.entry(candidate, session).await? else { return Ok(None) };
        let agent = agent_of_state(state);
        let document = Document::of_entry(stored.seq, &stored.entry, agent.as_deref());
        let Some(mut document) = document else { return Ok(None) };
        document.old_revision = candidate.old_revision;
        // A label that was changed or taken away since is no longer one.
        let is_label = document.label_of.as_ref().is_none_or(|target| {
            let now = state.labels.get(target);
            let is_forgotten = now.is_none() && state.labels.iter().count() >= STATE_LABELS_MAX;
            is_forgotten || document.fields.iter().any(|field| Some(field.text.as_str()) == now)
        });
        Ok(is_label.then_some((Some(stored.entry.id), document)))
    }

    async fn entry(
        &self,
        candidate: &Candidate,
        found: &Found,
    ) -> Result<Option<StoredEntry>, ServiceError> {
        let is_of_now = candidate.old_revision.is_none();
        let read = found.end.as_ref().filter(|_| is_of_now);
        if let Some(stored) = read.and_then(|end| end.entry(candidate.seq)) {
            return Ok(Some(stored));
        }
        let (store, session) = (&self.runtime.store, &candidate.session_id);
        let before = Position::at(candidate.seq.saturating_sub(1));
        let page = match store.records(session, before, 1).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            page => page?,
        };
        let first =
            page.records.first().filter(|first| !first.is_step() && first.seq == candidate.seq);
        let Some(added) = first.and_then(|first| first.record.as_entry()) else { return Ok(None) };
        let Some(now) = visible_entry(&**store, session, &added.id).await? else { return Ok(None) };
        let Some(revision) = candidate.old_revision else { return Ok(Some(now)) };
        if now.entry.revision <= revision {
            return Ok(None);
        }
        Ok(store.entry_at(session, candidate.incarnation, &added.id, revision).await?)
    }

    /// Whether an entry is on the active path: whether a page of it can begin there.
    async fn is_on_path(
        &self,
        found: &Found,
        entry: &EntryId,
    ) -> Result<Option<bool>, ServiceError> {
        let state = &found.snapshot.state;
        let known = found.end.as_ref().and_then(|end| end.is_active(entry));
        if known.is_some() || state.leaf.as_ref() == Some(entry) {
            return Ok(known.or(Some(true)));
        }
        let start = PathStart::After(entry.clone());
        let query = PathQuery { leaf: None, start, limit: 1 };
        match self.runtime.store.path(&state.meta.session_id, &query).await {
            Ok(_) => Ok(Some(true)),
            Err(StoreError::NotOnPath { .. }) => Ok(Some(false)),
            Err(StoreError::NotFound { .. } | StoreError::EntryNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The first record of each session that candidates name, except for the sessions themselves.
fn first_numbers(candidates: &[Candidate]) -> HashMap<SessionId, u64> {
    let mut firsts: HashMap<SessionId, u64> = HashMap::new();
    for candidate in candidates.iter().filter(|candidate| candidate.seq > 0) {
        let first = firsts.entry(candidate.session_id.clone()).or_insert(candidate.seq);
        *first = candidate.seq.min(*first);
    }
    firsts
}
