//! Reads documents: by key, by several keys, by the beginning of their keys.

use async_trait::async_trait;
use bough_session::limits::check_at_most;
use bough_session::{Incarnation, RawJson, Record, SessionId};
use bough_store::{RecordQuery, StoreError, StoredRecord};
use serde::{Deserialize, Serialize};

use super::index::DocumentLocation;
use super::{DocumentIndex, are_visible, session_of};
use crate::api::{Document, GetDocumentRequest, ListDocumentsRequest, ListDocumentsResponse};
use crate::cursor;
use crate::error::ServiceError;
use crate::limits::{
    DOCUMENT_KEYS_PER_CALL_MAX, DOCUMENT_READ_ATTEMPTS_MAX, ENTRIES_PAGE_BYTES,
    ENTRIES_PAGE_BYTES_MAX,
};
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn get(
    service: &Service,
    scope: &Scope,
    request: GetDocumentRequest,
) -> Result<Option<Document>, ServiceError> {
    let question = Question { keys: Some(vec![request.key]), ..Question::default() };
    let page = Reading { service, scope, with_values: true }.page(&request.scope, question).await?;
    Ok(page.documents.into_iter().next())
}

pub(crate) async fn list(
    service: &Service,
    scope: &Scope,
    request: ListDocumentsRequest,
) -> Result<ListDocumentsResponse, ServiceError> {
    if let Some(keys) = &request.keys {
        check_at_most("keys", "documents", keys.len(), DOCUMENT_KEYS_PER_CALL_MAX)?;
    }
    let bytes = request.max_bytes.unwrap_or(ENTRIES_PAGE_BYTES).min(ENTRIES_PAGE_BYTES_MAX);
    let question = Question {
        prefix: request.prefix.unwrap_or_default(),
        keys: request.keys,
        limit: service.settings().page(request.limit),
        bytes,
        start: request.cursor.as_deref().map(cursor::decode).transpose()?,
    };
    let with_values = !request.keys_only.unwrap_or(false);
    Reading { service, scope, with_values }.page(&request.scope, question).await
}

/// Where the next page begins: after a key, or at an index of the list of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DocumentCursor {
    After(String),
    Index(usize),
}

/// Which documents are asked for.
#[derive(Clone, Debug)]
struct Question {
    prefix: String,
    keys: Option<Vec<String>>,
    limit: usize,
    bytes: usize,
    start: Option<DocumentCursor>,
}

impl Default for Question {
    fn default() -> Self {
        let (prefix, keys, start) = (String::new(), None, None);
        Self { prefix, keys, limit: 1, bytes: ENTRIES_PAGE_BYTES_MAX, start }
    }
}

struct Reading<'a> {
    service: &'a Service,
    scope: &'a Scope,
    with_values: bool,
}

/// Where the documents of a page are.
struct PlacedPage {
    incarnation: Option<Incarnation>,
    found: Vec<(String, DocumentLocation)>,
    next: Option<DocumentCursor>,
}

impl Reading<'_> {
    async fn page(
        &self,
        scope: &str,
        question: Question,
    ) -> Result<ListDocumentsResponse, ServiceError> {
        let session = session_of(scope)?;
        for _ in 0..DOCUMENT_READ_ATTEMPTS_MAX {
            let find = FindDocuments { scope: self.scope.clone(), question: question.clone() };
            let page = writing::run(self.service, &session, find).await?;
            let Some(documents) = self.documents(&session, &page).await? else { continue };
            let next_cursor = page.next.map(|next| cursor::encode(&next)).transpose()?;
            return Ok(ListDocumentsResponse { documents, next_cursor });
        }
        let (session, attempts) = (session.to_string(), DOCUMENT_READ_ATTEMPTS_MAX);
        Err(ServiceError::Busy { session, attempts })
    }

    /// The documents of a page. `None` if another process has compacted the log meanwhile, which changes their numbers.
    async fn documents(
        &self,
        session: &SessionId,
        page: &PlacedPage,
    ) -> Result<Option<Vec<Document>>, ServiceError> {
        let Some(incarnation) = page.incarnation.filter(|_| self.with_values) else {
            return Ok(Some(page.found.iter().map(|(key, at)| document(key, at, None)).collect()));
        };
        let numbers: Vec<u64> = page.found.iter().map(|(_, location)| location.seq).collect();
        if numbers.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let query = RecordQuery::numbers(incarnation, numbers);
        let records = match self.service.store().read_records(session, &query).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            read => read?.records,
        };
        let mut documents = Vec::with_capacity(page.found.len());
        for ((key, location), stored) in page.found.iter().zip(records) {
            let Some(value) = value_of(&stored, location) else { return Ok(None) };
            documents.push(document(key, location, Some(value)));
        }
        Ok((documents.len() == page.found.len()).then_some(documents))
    }
}

fn document(key: &str, location: &DocumentLocation, value: Option<RawJson>) -> Document {
    Document {
        key: key.to_owned(),
        version: location.version,
        created_at: location.created_at,
        updated_at: location.updated_at,
        value,
    }
}

/// The value of a record, if it is the record at a location.
pub(super) fn value_of(stored: &StoredRecord, location: &DocumentLocation) -> Option<RawJson> {
    match stored.record.known() {
        Record::Document(document) if document.version == location.version => {
            document.value.clone()
        }
        _ => None,
    }
}

struct FindDocuments {
    scope: Scope,
    question: Question,
}

#[async_trait]
impl Command for FindDocuments {
    type Answer = PlacedPage;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<PlacedPage>, ServiceError> {
        if !context.state().is_some_and(|state| are_visible(&self.scope, state)) {
            let nothing = PlacedPage { incarnation: None, found: Vec::new(), next: None };
            return Ok(Decision::Nothing(nothing));
        }
        let index = context.documents().await?;
        let (found, next) = self.question.answer(index)?;
        let incarnation = Some(index.incarnation);
        Ok(Decision::Nothing(PlacedPage { incarnation, found, next }))
    }
}

type Found = (Vec<(String, DocumentLocation)>, Option<DocumentCursor>);

impl Question {
    fn answer(&self, index: &DocumentIndex) -> Result<Found, ServiceError> {
        match &self.keys {
            Some(keys) => self.by_keys(index, keys),
            None => self.by_prefix(index),
        }
    }

    fn by_keys(&self, index: &DocumentIndex, keys: &[String]) -> Result<Found, ServiceError> {
        let first = match &self.start {
            None => 0,
            Some(DocumentCursor::Index(location)) => *location,
            Some(DocumentCursor::After(_)) => return Err(wrong_cursor()),
        };
        let mut page = PageBounds::of(self);
        for (location, key) in keys.iter().enumerate().skip(first) {
            let Some(at) = index.get(key).filter(|_| key.starts_with(&self.prefix)) else {
                continue;
            };
            if !page.take(key, at) {
                return Ok((page.found, Some(DocumentCursor::Index(location))));
            }
        }
        Ok((page.found, None))
    }

    fn by_prefix(&self, index: &DocumentIndex) -> Result<Found, ServiceError> {
        let after = match &self.start {
            None => None,
            Some(DocumentCursor::After(key)) => Some(key.as_str()),
            Some(DocumentCursor::Index(_)) => return Err(wrong_cursor()),
        };
        let mut page = PageBounds::of(self);
        for (key, at) in index.after(&self.prefix, after) {
            if !page.take(key, at) {
                let last = page.found.last().map(|(key, _)| DocumentCursor::After(key.clone()));
                return Ok((page.found, last));
            }
        }
        Ok((page.found, None))
    }
}

fn wrong_cursor() -> ServiceError {
    ServiceError::InvalidCursor { reason: "the cursor is of another question".to_owned() }
}

/// A page that ends before it is too large.
struct PageBounds {
    limit: usize,
    bytes_left: usize,
    found: Vec<(String, DocumentLocation)>,
}

impl PageBounds {
    const fn of(question: &Question) -> Self {
        Self { limit: question.limit, bytes_left: question.bytes, found: Vec::new() }
    }

    /// Adds a document, unless it does not fit. The first one always does.
    fn take(&mut self, key: &str, location: &DocumentLocation) -> bool {
        let size = key.len().saturating_add(location.bytes);
        let is_full = self.found.len() >= self.limit || size > self.bytes_left;
        if is_full && !self.found.is_empty() {
            return false;
        }
        self.bytes_left = self.bytes_left.saturating_sub(size);
        self.found.push((key.to_owned(), location.clone()));
        true
    }
}
