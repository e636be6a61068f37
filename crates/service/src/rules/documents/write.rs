//! Puts and deletes documents: one or several in one durable write, compared with the versions that the caller expects.

use std::collections::HashSet;

use async_trait::async_trait;
use bough_session::limits::{check_batch_bytes, check_batch_records, check_document};
use bough_session::{
    DocumentRecord, Incarnation, KIND_DOCUMENTS, MetaChange, Record, RequestDigest, SessionId,
};
use bough_store::RecordQuery;
use sha2::{Digest, Sha256};

use super::compact::Compact;
use super::index::DocumentLocation;
use super::read::value_of;
use super::{DocumentIndex, are_visible, session_of};
use crate::api::{
    DeleteDocumentRequest, DeleteDocumentResponse, DocumentRemoval, NewDocument,
    PutDocumentRequest, PutDocumentResponse, WriteDocumentsRequest, WriteDocumentsResponse,
};
use crate::error::ServiceError;
use crate::limits::DOCUMENT_KEY_OVERHEAD;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn put(
    service: &Service,
    scope: &Scope,
    request: PutDocumentRequest,
) -> Result<PutDocumentResponse, ServiceError> {
    let PutDocumentRequest { scope: name, key, value, expected_version } = request;
    let put = vec![NewDocument { key: key.clone(), value, expected_version }];
    let request = WriteDocumentsRequest { scope: name, put, delete: Vec::new() };
    let written = write(service, scope, request).await?;
    let version = written.documents.first().map_or(0, |document| document.version);
    Ok(PutDocumentResponse { key, version })
}

pub(crate) async fn delete(
    service: &Service,
    scope: &Scope,
    request: DeleteDocumentRequest,
) -> Result<DeleteDocumentResponse, ServiceError> {
    let DeleteDocumentRequest { scope: name, key, expected_version } = request;
    let delete = vec![DocumentRemoval { key, expected_version }];
    let request = WriteDocumentsRequest { scope: name, put: Vec::new(), delete };
    let written = write(service, scope, request).await?;
    Ok(DeleteDocumentResponse { deleted: written.deleted > 0 })
}

pub(crate) async fn write(
    service: &Service,
    scope: &Scope,
    request: WriteDocumentsRequest,
) -> Result<WriteDocumentsResponse, ServiceError> {
    let session = session_of(&request.scope)?;
    let changes = Changes::of(service, request)?;
    let first = MetaChange {
        metadata: scope.stamp(None)?,
        kind: Some(KIND_DOCUMENTS.to_owned()),
        ..MetaChange::default()
    };
    let command = WriteDocuments { scope: scope.clone(), first, changes };
    let written = writing::run(service, &session, command).await?;
    if written.is_replay {
        service.note_replay();
    }
    if written.is_wasteful {
        // The write is durable; a compaction that fails is retried later.
        drop(writing::run(service, &session, Compact).await);
    }
    Ok(written.answer)
}

/// What a call changes.
struct Changes {
    put: Vec<NewDocument>,
    delete: Vec<DocumentRemoval>,
    /// Identifies each put of a call that may be repeated.
    requests: Vec<Option<RequestDigest>>,
}

impl Changes {
    fn of(service: &Service, request: WriteDocumentsRequest) -> Result<Self, ServiceError> {
        let WriteDocumentsRequest { put, delete, .. } = request;
        check_batch_records(put.len().saturating_add(delete.len()))?;
        check_batch_bytes(put.iter().map(|new| new.key.len() + new.value.get().len()).sum())?;
        let mut seen = HashSet::new();
        let values = put.iter().map(|new| (&new.key, Some(&new.value)));
        for (key, value) in values.chain(delete.iter().map(|gone| (&gone.key, None))) {
            check_document(key, value)?;
            if !seen.insert(key.as_str()) {
                return Err(ServiceError::invalid(format!("the key {key} is there twice")));
            }
        }
        let name =
            |new: &NewDocument| service.keyed().map(|call| request_of(&call.key(), &new.key));
        let requests = put.iter().map(name).collect();
        Ok(Self { put, delete, requests })
    }
}

/// Identifies a put of a call that may be repeated.
fn request_of(call: &[u8; 32], key: &str) -> RequestDigest {
    let mut hash = Sha256::new();
    hash.update(call);
    hash.update(key);
    RequestDigest(hash.finalize().into())
}

struct WriteDocuments {
    scope: Scope,
    first: MetaChange,
    changes: Changes,
}

struct Written {
    answer: WriteDocumentsResponse,
    is_replay: bool,
    /// Whether more of the log is overwritten than live.
    is_wasteful: bool,
}

#[async_trait]
impl Command for WriteDocuments {
    type Answer = Written;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Written>, ServiceError> {
        let now_ms = context.now_ms;
        let Some(state) = context.state().filter(|state| !state.deleted) else {
            let (records, answer) = self.changes.records(None, now_ms)?;
            if records.is_empty() {
                return Ok(Decision::Nothing(answer));
            }
            let first = Record::Meta(self.first.clone());
            let records = std::iter::once(first).chain(records).collect();
            return Ok(Decision::Create(records, answer));
        };
        if !are_visible(&self.scope, state) {
            // Neither write nor show it. The message does not say why the scope cannot be used.
            return Err(ServiceError::Forbidden { reason: "the scope cannot be used".to_owned() });
        }
        let session = context.session().clone();
        let index = context.documents().await?;
        if let Some((answer, matched)) = self.changes.carried_out(index) {
            let (incarnation, is_wasteful) = (index.incarnation, false);
            context.flush().await?;
            self.changes.check_same(context, &session, incarnation, &matched).await?;
            return Ok(Decision::Nothing(Written { answer, is_replay: true, is_wasteful }));
        }
        let (records, answer) = self.changes.records(Some(&*index), now_ms)?;
        if records.is_empty() {
            return Ok(Decision::Nothing(answer));
        }
        Ok(Decision::Append(records, answer))
    }
}

impl Changes {
    /// The records to write, if every document has the version that is expected of it.
    fn records(
        &self,
        index: Option<&DocumentIndex>,
        now_ms: i64,
    ) -> Result<(Vec<Record>, Written), ServiceError> {
        let location = |key: &str| index.and_then(|index| index.get(key));
        let mut version = index.map_or(0, |index| index.newest.0);
        let mut next = || {
            version += 1;
            version
        };
        let (mut records, mut documents, mut new_keys) = (Vec::new(), Vec::new(), 0);
        for (new, request) in self.put.iter().zip(&self.requests) {
            let now = location(&new.key);
            check_version(&new.key, new.expected_version, now)?;
            let created_at = now.map(|now| now.created_at).filter(|created| *created != now_ms);
            new_keys += now.map_or(new.key.len() + DOCUMENT_KEY_OVERHEAD, |_| 0);
            let version = next();
            documents.push(PutDocumentResponse { key: new.key.clone(), version });
            let (key, value) = (new.key.clone(), Some(new.value.clone()));
            let request = *request;
            let document = DocumentRecord { key, version, created_at, request, value };
            records.push(Record::Document(document));
        }
        if let Some(index) = index {
            index.check_key_count(new_keys)?;
        }
        let mut deleted = 0;
        for gone in &self.delete {
            let Some(now) = location(&gone.key) else { continue };
            check_version(&gone.key, gone.expected_version, Some(now))?;
            deleted += 1;
            let (key, created_at, request, value) = (gone.key.clone(), None, None, None);
            let document = DocumentRecord { key, version: next(), created_at, request, value };
            records.push(Record::Document(document));
        }
        let answer = WriteDocumentsResponse { documents, deleted };
        let is_wasteful = index.is_some_and(DocumentIndex::is_wasteful);
        Ok((records, Written { answer, is_replay: false, is_wasteful }))
    }

    /// The answer of the call if it was carried out before, and the documents that show it. The versions of one call
    /// are consecutive, so one document that is still as the call left it gives all of them.
    fn carried_out(&self, index: &DocumentIndex) -> Option<(WriteDocumentsResponse, Matched)> {
        let mut matched = Vec::new();
        for (at, (new, request)) in self.put.iter().zip(&self.requests).enumerate() {
            let location = index.get(&new.key).filter(|location| location.request == *request);
            if let (Some(location), Some(_)) = (location, request) {
                matched.push((at, location.clone()));
            }
        }
        let (at, location) = matched.first()?;
        let first = location.version.saturating_sub(*at as u64);
        let answer = |(at, new): (usize, &NewDocument)| PutDocumentResponse {
            key: new.key.clone(),
            version: first.saturating_add(at as u64),
        };
        let documents = self.put.iter().enumerate().map(answer).collect();
        let deleted = self.delete.len();
        Some((WriteDocumentsResponse { documents, deleted }, matched))
    }

    /// Refuses a call with the key of another one, whose documents differ.
    async fn check_same(
        &self,
        context: &WriteContext<'_>,
        session: &SessionId,
        incarnation: Incarnation,
        matched: &[(usize, DocumentLocation)],
    ) -> Result<(), ServiceError> {
        let numbers = matched.iter().map(|(_, location)| location.seq).collect();
        let query = RecordQuery::numbers(incarnation, numbers);
        let page = context.store().read_records(session, &query).await?;
        for ((at, location), stored) in matched.iter().zip(page.records) {
            let given = self.put.get(*at);
            if value_of(&stored, location).as_ref() != given.map(|new| &new.value) {
                let key = given.map_or("", |new| &new.key);
                return Err(ServiceError::OtherContent { what: format!("document {key}") });
            }
        }
        Ok(())
    }
}

type Matched = Vec<(usize, DocumentLocation)>;

fn check_version(
    key: &str,
    expected: Option<u64>,
    now: Option<&DocumentLocation>,
) -> Result<(), ServiceError> {
    let version = now.map_or(0, |now| now.version);
    if expected.is_none_or(|expected| expected == version) {
        return Ok(());
    }
    Err(ServiceError::DocumentConflict { key: key.to_owned(), version })
}
