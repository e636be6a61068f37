//! Forks: copies a path, or a whole tree, into a new session.
//!
//! The copies are written in parts and appear together, so a fork of any length needs little memory.

use bough_session::{
    Bookkeeping, CustomPayload, Entry, EntryBody, EntryId, MetaChange, Record, SessionId,
    SessionMeta, SessionState,
};
use bough_store::{PathQuery, PathStart, Position, Snapshot, Store, StoreError, StoreExt};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::lifecycle::check_meta;
use super::reading::{Direction, Walk, visible_entry};
use super::repeats::{FirstDrawn, RepeatCheck, find_first_use};
use crate::api::{ForkRequest, ForkResponse};
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::SessionBuilder;

pub(crate) async fn fork(
    service: &Service,
    scope: &Scope,
    request: ForkRequest,
) -> Result<ForkResponse, ServiceError> {
    let runtime = service.runtime();
    if request.new_session_id.is_none() {
        find_first_use(service, FirstDrawn::Session).await?;
    }
    let session_id = new_id(service, request.new_session_id.as_ref())?;
    let repeat = RepeatCheck::of(service, "session::fork", &request);
    let source = &request.session_id;
    // An id that was just drawn is not in use.
    if (request.new_session_id.is_some() || repeat.is_some())
        && let Some(meta) = made_before(service, scope, &session_id, source, repeat).await?
    {
        return Ok(ForkResponse { session_id, meta });
    }
    let source = runtime.need(scope, &request.session_id).await?;
    if let Some(end) = &request.entry_id
        && visible_entry(&*runtime.store, &request.session_id, end).await?.is_none()
    {
        return Err(ServiceError::entry_not_found(&request.session_id, end));
    }
    let mut first = first_record(&source.state, request.title);
    first.digest = repeat.map(|repeat| repeat.digest);
    check_meta(&first)?;
    let builder = SessionBuilder::begin(service, &session_id);
    let mut copy = Copy { builder, ids: CopyIds::of(service, request.keep_ids)? };
    copy.builder.add(Record::Meta(first)).await?;
    let leaf = if request.whole.unwrap_or(false) {
        copy.tree(&*runtime.store, &source, request.entry_id).await?
    } else {
        copy.path(&*runtime.store, &request.session_id, request.entry_id).await?
    };
    // Even if the leaf is there already, this record marks the end of the copies, which the feed does not deliver.
    copy.builder.add(Record::Leaf(leaf)).await?;
    let meta = match copy.builder.finish().await {
        // The same call was made twice at once, and the other was first.
        Err(ServiceError::AlreadyExists { session }) => {
            let made =
                made_before(service, scope, &session_id, &request.session_id, repeat).await?;
            made.ok_or(ServiceError::AlreadyExists { session })?
        }
        made => made?,
    };
    Ok(ForkResponse { session_id, meta })
}

fn new_id(service: &Service, chosen: Option<&SessionId>) -> Result<SessionId, ServiceError> {
    match chosen {
        Some(chosen) => Ok(SessionId::parse(chosen.as_str())?),
        None => service.fresh_session_id(),
    }
}

/// The session with the new id, if this call may have made it before. Any other session makes the call fail.
async fn made_before(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
    source: &SessionId,
    repeat: Option<RepeatCheck>,
) -> Result<Option<SessionMeta>, ServiceError> {
    let runtime = service.runtime();
    let Some(there) = runtime.store.state(session).await? else { return Ok(None) };
    let is_fork = there.state.meta.forked_from.as_ref() == Some(source);
    if let Some(repeat) = repeat.filter(|_| is_fork && is_visible(scope, &there.state)) {
        repeat.check(service, session).await?;
        return Ok(Some(there.state.meta.clone()));
    }
    Err(ServiceError::AlreadyExists { session: session.to_string() })
}

fn first_record(source: &SessionState, title: Option<String>) -> MetaChange {
    MetaChange {
        title: Some(title.unwrap_or_else(|| source.meta.title.clone())),
        description: Some(source.meta.description.clone()),
        metadata: source.meta.metadata.clone(),
        forked_from: Some(source.meta.session_id.clone()),
        ..MetaChange::default()
    }
}

/// A fork that is being made.
struct Copy {
    builder: SessionBuilder,
    ids: CopyIds,
}

impl Copy {
    /// Copies the path to an entry, or to the active leaf. Returns the copy of its end. A label of an entry on another
    /// branch is left out: it would name nothing.
    async fn path(
        &mut self,
        store: &dyn Store,
        source: &SessionId,
        end: Option<EntryId>,
    ) -> Result<Option<EntryId>, ServiceError> {
        let mut walk = Walk::new(store, source, Direction::OldestFirst).ending_at(end);
        let mut last = None;
        while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
            for stored in entries {
                let kind = stored.entry.bookkeeping();
                if let Some(Bookkeeping::Label(label)) = &kind
                    && !is_on_path(store, source, &label.target_id, &stored.entry.id).await?
                {
                    continue;
                }
                let parent = last.take();
                last = Some(self.add(stored.entry, kind, parent).await?);
            }
        }
        Ok(last)
    }

    /// Copies every branch. Returns the copy of the active leaf, or of the requested one.
    async fn tree(
        &mut self,
        store: &dyn Store,
        source: &Snapshot,
        leaf: Option<EntryId>,
    ) -> Result<Option<EntryId>, ServiceError> {
        let session = &source.state.meta.session_id;
        let mut after = Position::default();
        loop {
            let page = store.records(session, after, SCAN_ENTRIES).await?;
            after = page.position_after(after);
            let is_last = !page.more || after.seq >= source.state.seq;
            // Entries that were added since the source was read are not part of the fork.
            let records = page.records.iter().filter(|stored| stored.seq <= source.state.seq);
            let added = records.filter_map(|stored| stored.record.as_entry());
            let added: Vec<EntryId> = added.map(|entry| entry.id.clone()).collect();
            // Each entry is read again at its newest revision, so the page is released.
            drop(page);
            for id in &added {
                let Some(stored) = store.entry(session, id).await? else { continue };
                let parent = stored.entry.parent_id.as_ref().map(|parent| self.ids.id_for(parent));
                let kind = stored.entry.bookkeeping();
                self.add(stored.entry, kind, parent).await?;
            }
            if is_last {
                break;
            }
        }
        let leaf = leaf.as_ref().or(source.state.leaf.as_ref());
        Ok(leaf.map(|leaf| self.ids.id_for(leaf)))
    }

    /// Adds the copy of an entry, and returns its id.
    async fn add(
        &mut self,
        entry: Entry,
        kind: Option<Bookkeeping>,
        parent: Option<EntryId>,
    ) -> Result<EntryId, ServiceError> {
        let id = self.ids.id_for(&entry.id);
        let renamed = self.with_copied_references(&entry, kind);
        let mut copy = entry.into_copy(id.clone(), parent);
        if let Some(payload) = renamed {
            copy.body = EntryBody::Custom(payload);
        }
        copy.marks.previous = self.builder.newest_of_type(&copy.body);
        self.builder.add(Record::Entry(copy)).await?;
        Ok(id)
    }

    /// Bookkeeping that names an entry must name its copy, or the fork's context would lose what the compaction kept.
    /// `None` if there is nothing to rename.
    fn with_copied_references(
        &self,
        entry: &Entry,
        kind: Option<Bookkeeping>,
    ) -> Option<CustomPayload> {
        let (field, named) = match kind? {
            Bookkeeping::Compaction(data) => ("first_kept_entry_id", data.first_kept_entry_id),
            Bookkeeping::Label(data) => ("target_id", data.target_id),
            _ => return None,
        };
        let copied = self.ids.id_for(&named);
        if copied == named {
            return None;
        }
        let bough_session::Canonical::Custom(mut payload) = entry.canonical() else {
            return None;
        };
        *payload.data.get_mut(field)? = Value::String(copied.to_string());
        Some(payload)
    }
}

/// Whether an entry is visible and on the path to another one.
async fn is_on_path(
    store: &dyn Store,
    session: &SessionId,
    entry: &EntryId,
    end: &EntryId,
) -> Result<bool, ServiceError> {
    if visible_entry(store, session, entry).await?.is_none() {
        return Ok(false);
    }
    let start = PathStart::After(entry.clone());
    let query = PathQuery { leaf: Some(end.clone()), start, limit: 1 };
    match store.path(session, &query).await {
        Ok(_) => Ok(true),
        Err(StoreError::NotOnPath { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What the copies are called.
enum CopyIds {
    /// As in the source.
    Same,
    /// Fresh ids that are a function of the old ones, with a secret drawn for one fork: a tree of any size needs no
    /// table of ids.
    Fresh { secret: EntryId },
}

impl CopyIds {
    fn of(service: &Service, keep: Option<bool>) -> Result<Self, ServiceError> {
        if keep.unwrap_or(false) {
            return Ok(Self::Same);
        }
        Ok(Self::Fresh { secret: service.fresh_entry_id()? })
    }

    fn id_for(&self, old: &EntryId) -> EntryId {
        let Self::Fresh { secret } = self else { return old.clone() };
        let mut hash = Sha256::new();
        hash.update(secret.as_str());
        hash.update(old.as_str());
        let whole: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(whole.split_at(16).0);
        EntryId::generate(crate::service::marked(bytes))
    }
}
