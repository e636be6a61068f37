//! The store protocol: how a bridged instance stores through this one.
//!
//! It has no rules: the bridged instance has applied them. Its writes become records like any other, and the feed makes
//! events from them, so each event reaches every subscriber once, whichever instance wrote it.

use async_trait::async_trait;
use bough_session::limits::check_at_most;
use bough_session::{
    ContentChange, Delta, Entry, MetaChange, Record, Revision, SessionEntry, SessionId,
    SessionMeta, SessionState, StatusChange, codec,
};
use bough_store::bridge::host;
use bough_store::bridge::protocol::{Accepted, CommitRequest, ReadRequest, StoreAnswer};
use bough_store::{ListOrder, ListQuery, Store, StoreError, StoreExt, Write};
use std::sync::Arc;

use super::staging::Staged;
use crate::api::{
    ActiveLeafResponse, EntryIdRequest, EventEnvelope, ListEntriesResponse, ListMetasRequest,
    ListMetasResponse, OkResponse, PublishEventsRequest, PublishEventsResponse, PutEntryRequest,
    PutMetaRequest, SessionIdRequest,
};
use crate::error::ServiceError;
use crate::feed::EventKind;
use crate::limits::{FEED_RECORDS_PER_READ, PUBLISH_EVENTS_MAX};
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

const OK: OkResponse = OkResponse { ok: true };

pub(crate) async fn get_meta(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<Option<SessionMeta>, ServiceError> {
    let runtime = authoritative(service)?;
    let seen = runtime.visible(scope, &request.session_id).await?;
    Ok(seen.map(|snapshot| snapshot.state.meta.clone()))
}

pub(crate) async fn put_meta(
    service: &Service,
    scope: &Scope,
    request: PutMetaRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let session_id = request.meta.session_id.clone();
    let staged = runtime.staging.take(&session_id);
    let change = PutMeta { scope: scope.clone(), meta: request.meta, staged: staged.clone() };
    let put = writing::run(service, &session_id, change).await;
    if put.is_err() && staged != Staged::default() {
        // Keep what waited for this: the call may be repeated.
        runtime.staging.change(&session_id, |waiting| {
            *waiting = staged;
            Ok(())
        })?;
    }
    put
}

pub(crate) async fn delete_meta(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    drop(runtime.staging.take(&request.session_id));
    writing::delete(service, scope, &request.session_id).await?;
    Ok(OK)
}

pub(crate) async fn list_metas(
    service: &Service,
    scope: &Scope,
    _: ListMetasRequest,
) -> Result<ListMetasResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let mut metas = Vec::new();
    let mut query = ListQuery {
        order: ListOrder::CreatedAsc,
        scope: scope.metadata().clone(),
        limit: FEED_RECORDS_PER_READ,
        ..ListQuery::default()
    };
    loop {
        let page = runtime.store.list(&query).await?;
        metas.extend(page.sessions.into_iter().map(|listed| listed.meta));
        if page.next_cursor.is_none() {
            return Ok(ListMetasResponse { metas });
        }
        query.cursor = page.next_cursor;
    }
}

pub(crate) async fn get_entry(
    service: &Service,
    scope: &Scope,
    request: EntryIdRequest,
) -> Result<Option<SessionEntry>, ServiceError> {
    let runtime = authoritative(service)?;
    let staged = runtime.staging.get(&request.session_id);
    if staged.entries_gone {
        return Ok(None);
    }
    if runtime.visible(scope, &request.session_id).await?.is_none() {
        let found = staged.entries.into_iter().find(|entry| *entry.id() == request.entry_id);
        return Ok(found);
    }
    let stored = runtime.store.entry(&request.session_id, &request.entry_id).await?;
    Ok(stored.map(|stored| stored.entry.to_wire()))
}

pub(crate) async fn put_entry(
    service: &Service,
    scope: &Scope,
    request: PutEntryRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let session_id = request.session_id;
    if runtime.store.state(&session_id).await?.is_none() {
        runtime.staging.put_entry(&session_id, request.entry)?;
        return Ok(OK);
    }
    let change = PutEntry { scope: scope.clone(), entry: request.entry.into() };
    writing::run(service, &session_id, change).await
}

pub(crate) async fn list_entries(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<ListEntriesResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let staged = runtime.staging.get(&request.session_id);
    if staged.entries_gone {
        return Ok(ListEntriesResponse::default());
    }
    if runtime.visible(scope, &request.session_id).await?.is_none() {
        return Ok(ListEntriesResponse { entries: staged.entries });
    }
    let entries = all_entries(&*runtime.store, &request).await?;
    Ok(ListEntriesResponse { entries })
}

pub(crate) async fn delete_entries(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let exists = runtime.visible(scope, &request.session_id).await?.is_some();
    runtime.staging.change(&request.session_id, |staged| {
        staged.clear_entries();
        staged.entries_gone = exists;
        Ok(())
    })?;
    Ok(OK)
}

pub(crate) async fn get_active_leaf(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<ActiveLeafResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let staged = runtime.staging.get(&request.session_id);
    if staged.leaf_gone {
        return Ok(ActiveLeafResponse::default());
    }
    let entry_id = match runtime.visible(scope, &request.session_id).await? {
        Some(snapshot) => snapshot.state.leaf.clone(),
        None => staged.leaf,
    };
    Ok(ActiveLeafResponse { entry_id })
}

pub(crate) async fn set_active_leaf(
    service: &Service,
    scope: &Scope,
    request: EntryIdRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    if runtime.store.state(&request.session_id).await?.is_none() {
        runtime.staging.change(&request.session_id, |staged| {
            staged.leaf = Some(request.entry_id);
            Ok(())
        })?;
        return Ok(OK);
    }
    let leaf = Some(request.entry_id);
    writing::change(service, scope, &request.session_id, move |state, _| {
        if state.leaf == leaf {
            return Ok(Decision::Nothing(OK));
        }
        Ok(Decision::Append(vec![Record::Leaf(leaf.clone())], OK))
    })
    .await
}

pub(crate) async fn delete_active_leaf(
    service: &Service,
    scope: &Scope,
    request: SessionIdRequest,
) -> Result<OkResponse, ServiceError> {
    let runtime = authoritative(service)?;
    let exists = runtime.visible(scope, &request.session_id).await?.is_some();
    runtime.staging.change(&request.session_id, |staged| {
        staged.leaf = None;
        staged.leaf_gone = exists;
        Ok(())
    })?;
    Ok(OK)
}

/// One atomic write of a store, for an instance whose rules have been applied.
pub(crate) async fn commit(
    service: &Service,
    scope: &Scope,
    request: CommitRequest,
) -> Result<StoreAnswer, ServiceError> {
    let runtime = authoritative(service)?;
    refuse_tenants(scope)?;
    Ok(match request {
        CommitRequest::Create { session_id, records } => {
            write_stored(service, &session_id, Write::Create(records.into())).await
        }
        CommitRequest::Append { session_id, expected, records } => {
            let write = Write::Append { expected, batch: records.into() };
            write_stored(service, &session_id, write).await
        }
        CommitRequest::Replace { session_id, expected, records } => {
            let write = Write::Replace { expected, batch: records.into() };
            write_stored(service, &session_id, write).await
        }
        CommitRequest::Delta { session_id, delta } => match codec::decode_delta(&delta) {
            Some(delta) => write_stored(service, &session_id, Write::Step(delta)).await,
            None => Err::<(), _>(StoreError::invalid("this is no step of a stream")).into(),
        },
        CommitRequest::Delete { session_id, at_ms } => {
            writing::delete_stored(service, &session_id, at_ms).await.into()
        }
        CommitRequest::Undelete { session_id, incarnation, at_ms } => {
            writing::undelete_stored(service, &session_id, incarnation, at_ms).await.into()
        }
        CommitRequest::Purge { session_id, incarnation, deleted_at } => {
            runtime.store.purge(&session_id, incarnation, deleted_at).await.into()
        }
    })
}

async fn write_stored(service: &Service, session: &SessionId, write: Write) -> StoreAnswer {
    let written = writing::write_stored(service, session, write).await;
    written.map(|(head, position)| Accepted { head, position }).into()
}

/// One read of a store, for an instance whose rules will be applied.
pub(crate) async fn read(
    service: &Service,
    scope: &Scope,
    request: ReadRequest,
) -> Result<StoreAnswer, ServiceError> {
    let runtime = authoritative(service)?;
    refuse_tenants(scope)?;
    Ok(host::read(&*runtime.store, request).await)
}

/// A store knows no scopes, so a caller who may not see everything may not use it.
fn refuse_tenants(scope: &Scope) -> Result<(), ServiceError> {
    if scope.metadata().is_empty() {
        return Ok(());
    }
    Err(ServiceError::Forbidden {
        reason: "a token that sees only some sessions cannot store for an instance".to_owned(),
    })
}

/// Accepts the envelopes of a bridged instance. The events themselves are made from the records that it wrote; here
/// they are only counted, so that no event is delivered twice.
pub(crate) async fn publish_events(
    service: &Service,
    _: &Scope,
    request: PublishEventsRequest,
) -> Result<PublishEventsResponse, ServiceError> {
    drop(authoritative(service)?);
    check_at_most("batch", "events", request.events.len(), PUBLISH_EVENTS_MAX)?;
    let published = request.events.iter().filter(|event| is_well_formed(event)).count();
    Ok(PublishEventsResponse { published })
}

fn is_well_formed(envelope: &EventEnvelope) -> bool {
    let public = envelope
        .trigger_type
        .parse::<EventKind>()
        .is_ok_and(|kind| EventKind::PUBLIC.contains(&kind));
    let session = envelope.payload.get("session_id");
    public && session.is_some_and(serde_json::Value::is_string)
}

/// The runtime, if its store is the main one.
fn authoritative(service: &Service) -> Result<Arc<Runtime>, ServiceError> {
    /// The adapter that stores elsewhere.
    const BRIDGE: &str = "bridge";
    let runtime = service.runtime();
    if runtime.store.capabilities().name == BRIDGE {
        return Err(ServiceError::NotAuthoritative);
    }
    Ok(runtime)
}

/// Every entry of a session in its present form, in the order in which they were added.
async fn all_entries(
    store: &dyn Store,
    request: &SessionIdRequest,
) -> Result<Vec<SessionEntry>, ServiceError> {
    let session = &request.session_id;
    let mut entries = Vec::new();
    let mut position = bough_store::Position::default();
    loop {
        let page = store.records(session, position, FEED_RECORDS_PER_READ).await?;
        for added in page.records.iter().filter_map(|stored| stored.record.as_entry()) {
            if let Some(stored) = store.entry(session, &added.id).await? {
                entries.push(stored.entry.to_wire());
            }
        }
        if !page.more {
            return Ok(entries);
        }
        position = page.position_after(position);
    }
}

struct PutMeta {
    scope: Scope,
    meta: SessionMeta,
    staged: Staged,
}

#[async_trait]
impl Command for PutMeta {
    type Answer = OkResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<OkResponse>, ServiceError> {
        if context.state().is_none() {
            return Ok(Decision::Create(self.first_records()?, OK));
        }
        let state = context.visible(&self.scope)?;
        let mut records = Vec::new();
        if let Some(change) = difference(state, &self.meta) {
            records.push(Record::Meta(change));
        }
        // A leaf that was deleted and not put back, on a session that stays.
        if self.staged.leaf_gone && state.leaf.is_some() {
            records.push(Record::Leaf(None));
        }
        if records.is_empty() {
            return Ok(Decision::Nothing(OK));
        }
        Ok(Decision::Append(records, OK))
    }
}

impl PutMeta {
    /// A session that a bridged instance created: its own record, then the entries that came before it.
    fn first_records(&self) -> Result<Vec<Record>, ServiceError> {
        let meta = &self.meta;
        let metadata = self.scope.stamp(meta.metadata.clone())?;
        let first = MetaChange { metadata, ..meta.clone().into() };
        let entries = self.staged.entries.iter().cloned().map(Entry::from);
        let mut records = vec![Record::Meta(first)];
        records.extend(entries.map(Record::Entry));
        if self.staged.leaf.is_some() || meta.forked_from.is_some() {
            records.push(Record::Leaf(self.staged.leaf.clone()));
        }
        Ok(records)
    }
}

/// What a metadata record changes; counts and times follow from the entries.
fn difference(state: &SessionState, meta: &SessionMeta) -> Option<MetaChange> {
    let mut change = MetaChange::default();
    if (state.meta.status, &state.meta.status_reason) != (meta.status, &meta.status_reason) {
        change.status =
            Some(StatusChange { status: meta.status, reason: meta.status_reason.clone() });
    }
    let fields = (&state.meta.title, &state.meta.description, &state.meta.metadata);
    if fields != (&meta.title, &meta.description, &meta.metadata) {
        change.title = Some(meta.title.clone());
        change.description = Some(meta.description.clone());
        change.metadata.clone_from(&meta.metadata);
    }
    (!change.is_empty()).then_some(change)
}

struct PutEntry {
    scope: Scope,
    entry: Entry,
}

#[async_trait]
impl Command for PutEntry {
    type Answer = OkResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<OkResponse>, ServiceError> {
        context.visible(&self.scope)?;
        let now_ms = context.now_ms;
        let Some(stream) = context.streaming_message(&self.entry.id).await? else {
            return Ok(Decision::Append(vec![Record::Entry(self.entry.clone())], OK));
        };
        let stored = &stream.entry;
        let (Some(old), Some(new)) = (stored.message(), self.entry.message()) else {
            return Ok(Decision::Nothing(OK));
        };
        if stored.revision == self.entry.revision && old == new {
            return Ok(Decision::Nothing(OK));
        }
        let from = stored.revision;
        // A bridge that missed another's update sends a revision that exists: its own is the next one.
        let to = self.entry.revision.max(from + 1);
        let change = ContentChange::between(old.content(), new.content());
        let details = new.details().filter(|new| old.details() != Some(new)).cloned();
        let entry_id = self.entry.id.clone();
        if to == from + 1 {
            let delta =
                Delta { at_ms: now_ms, entry_id, revision: to, change, details, origin: None };
            return Ok(Decision::Step(Box::new(delta), OK));
        }
        let revision = Revision { entry_id, from, to, change, details, origin: None, finish: None };
        Ok(Decision::Append(vec![Record::Revision(revision)], OK))
    }
}
