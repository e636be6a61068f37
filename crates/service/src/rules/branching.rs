//! The tree: fork, move the leaf, list branches, name entries.

use async_trait::async_trait;
use bough_session::limits::check_label;
use bough_session::{
    Bookkeeping, BranchHead, CustomPayload, Entry, EntryBody, EntryId, Label, MetaChange, Record,
    SessionState,
};
use bough_store::{Store, StoreError, StoreExt};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::append::check_leaf;
use super::lifecycle::check_meta;
use super::reading::{Direction, Walk};
use crate::api::{
    Branch, BranchesRequest, BranchesResponse, ClearActiveLeafRequest, ClearActiveLeafResponse,
    ForkRequest, ForkResponse, SetActiveLeafRequest, SetActiveLeafResponse, SetLabelRequest,
    SetLabelResponse,
};
use crate::cursor::EntryCursor;
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, SessionBuilder, WriteContext};

pub(crate) async fn fork(
    service: &Service,
    scope: &Scope,
    request: ForkRequest,
) -> Result<ForkResponse, ServiceError> {
    let runtime = service.runtime();
    let session_id = service.fresh_session_id()?;
    if service.may_repeat()
        && let Some(there) = runtime.seen(scope, &session_id).await?
    {
        return Ok(ForkResponse { session_id, meta: there.state.meta() });
    }
    let source = runtime.need(scope, &request.session_id).await?.state;
    let first = MetaChange {
        title: Some(request.title.unwrap_or(source.title)),
        description: Some(source.description),
        metadata: source.metadata,
        forked_from: Some(request.session_id.clone()),
        ..MetaChange::default()
    };
    check_meta(&first)?;
    let mut builder = SessionBuilder::begin(service, &session_id);
    builder.add(Record::Meta(first)).await?;
    let mut copies = Copies { fresh: FreshIds::draw(service)?, last: None };
    let mut walk = Walk::new(&*runtime.store, &request.session_id, Direction::OldestFirst)
        .ending_at(Some(request.entry_id));
    while let Some(entries) = walk.next(SCAN_ENTRIES).await? {
        for stored in entries {
            builder.add(Record::Entry(copies.next(stored.entry))).await?;
        }
    }
    // The leaf is there already; saying so marks where the copies end, for the feed does not tell of them.
    builder.add(Record::Leaf(copies.last)).await?;
    let meta = match builder.finish().await {
        // The same call, made twice at once: the other was first.
        Err(ServiceError::AlreadyExists { .. }) if service.may_repeat() => {
            runtime.need(scope, &session_id).await?.state.meta()
        }
        made => made?,
    };
    Ok(ForkResponse { session_id, meta })
}

pub(crate) async fn set_active_leaf(
    service: &Service,
    scope: &Scope,
    request: SetActiveLeafRequest,
) -> Result<SetActiveLeafResponse, ServiceError> {
    let change = MoveLeaf {
        scope: scope.clone(),
        to: Some(request.entry_id.clone()),
        expected_leaf: request.expected_leaf,
    };
    writing::run(service, &request.session_id, change).await?;
    Ok(SetActiveLeafResponse { active_leaf: request.entry_id })
}

/// Moves the leaf before the first entry: what a person does who wants to say the first message anew.
pub(crate) async fn clear_active_leaf(
    service: &Service,
    scope: &Scope,
    request: ClearActiveLeafRequest,
) -> Result<ClearActiveLeafResponse, ServiceError> {
    let expected_leaf = request.expected_leaf;
    let change = MoveLeaf { scope: scope.clone(), to: None, expected_leaf };
    let moved = writing::run(service, &request.session_id, change).await?;
    Ok(ClearActiveLeafResponse { moved })
}

pub(crate) async fn set_label(
    service: &Service,
    scope: &Scope,
    request: SetLabelRequest,
) -> Result<SetLabelResponse, ServiceError> {
    let change = SetLabel {
        scope: scope.clone(),
        fresh_id: service.fresh_entry_id()?,
        may_repeat: service.may_repeat(),
        entry_id: request.entry_id,
        label: request.label.filter(|label| !label.is_empty()),
    };
    writing::run(service, &request.session_id, change).await
}

pub(crate) async fn branches(
    service: &Service,
    scope: &Scope,
    request: BranchesRequest,
) -> Result<BranchesResponse, ServiceError> {
    let limit = service.settings().page(request.limit);
    let runtime = service.runtime();
    let state = runtime.need(scope, &request.session_id).await?.state;
    let before = EntryCursor::read(request.cursor.as_deref())?;
    // One more than the page tells whether there are more.
    let heads = runtime.store.branch_heads(&request.session_id, before.as_ref(), limit + 1).await;
    let mut heads = heads.map_err(|error| match error {
        StoreError::EntryNotFound { entry } => ServiceError::InvalidCursor {
            reason: format!("the cursor's entry {entry} is not in this session"),
        },
        other => other.into(),
    })?;
    let more = heads.len() > limit;
    heads.truncate(limit);
    let last = heads.last().filter(|_| more);
    let next_cursor = EntryCursor::after(last.map(|head| &head.entry_id))?;
    let mut branches = Vec::with_capacity(heads.len());
    for head in heads {
        branches.push(branch(&*runtime.store, &state, head).await?);
    }
    Ok(BranchesResponse { branches, active_leaf: state.leaf, next_cursor })
}

async fn branch(
    store: &dyn Store,
    state: &SessionState,
    head: BranchHead,
) -> Result<Branch, ServiceError> {
    Ok(Branch {
        active: state.leaf.as_ref() == Some(&head.entry_id),
        label: label_of(store, state, &head.entry_id).await?,
        entry_id: head.entry_id,
        depth: head.depth,
        last_activity: head.last_at,
    })
}

/// The label of an entry. Labelling the end of a branch adds an entry there, which is then the end: its label is
/// that of what it labels.
async fn label_of(
    store: &dyn Store,
    state: &SessionState,
    entry: &EntryId,
) -> Result<Option<String>, ServiceError> {
    if state.labels.is_empty() {
        return Ok(None);
    }
    if let Some(label) = state.labels.get(entry) {
        return Ok(Some(label.to_owned()));
    }
    let stored = store.entry(&state.session_id, entry).await?;
    let target = match stored.and_then(|stored| stored.entry.bookkeeping()) {
        Some(Bookkeeping::Label(label)) => label.target_id,
        _ => return Ok(None),
    };
    Ok(state.labels.get(&target).map(ToOwned::to_owned))
}

/// Copies of a path under fresh ids, one after the other.
struct Copies {
    fresh: FreshIds,
    last: Option<EntryId>,
}

impl Copies {
    fn next(&mut self, entry: Entry) -> Entry {
        let id = self.fresh.id_for(&entry.id);
        let parent = self.last.replace(id.clone());
        let renamed = self.with_fresh_references(&entry);
        let mut copy = entry.into_copy(id, parent);
        if let Some(payload) = renamed {
            copy.body = EntryBody::Custom(payload);
        }
        copy
    }

    /// Bookkeeping that names an entry must name its copy, or the fork's context would lose what the compaction kept. `None`
    /// when there is nothing to rename.
    fn with_fresh_references(&self, entry: &Entry) -> Option<CustomPayload> {
        let (field, named) = match entry.bookkeeping()? {
            Bookkeeping::Compaction(data) => ("first_kept_entry_id", data.first_kept_entry_id),
            Bookkeeping::Label(data) => ("target_id", data.target_id),
            _ => return None,
        };
        let bough_session::Canonical::Custom(mut payload) = entry.canonical() else {
            return None;
        };
        let slot = payload.data.get_mut(field)?;
        *slot = Value::String(self.fresh.id_for(&named).to_string());
        Some(payload)
    }
}

/// Fresh ids that are a function of the old ones, under a secret drawn for one fork: a path of any length needs no table of
/// who became whom.
struct FreshIds {
    secret: EntryId,
}

impl FreshIds {
    fn draw(service: &Service) -> Result<Self, ServiceError> {
        Ok(Self { secret: service.fresh_entry_id()? })
    }

    fn id_for(&self, old: &EntryId) -> EntryId {
        let mut hash = Sha256::new();
        hash.update(self.secret.as_str());
        hash.update(old.as_str());
        let whole: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(whole.split_at(16).0);
        EntryId::generate(crate::service::marked(bytes))
    }
}

struct MoveLeaf {
    scope: Scope,
    /// `None` is before the first entry.
    to: Option<EntryId>,
    expected_leaf: Option<String>,
}

#[async_trait]
impl Command for MoveLeaf {
    /// Whether the leaf was elsewhere.
    type Answer = bool;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<bool>, ServiceError> {
        let state = context.visible(&self.scope)?;
        check_leaf(state, self.expected_leaf.as_deref())?;
        if state.leaf == self.to {
            return Ok(Decision::Nothing(false));
        }
        if let Some(entry) = &self.to
            && context.find(entry).await?.is_none()
        {
            return Err(ServiceError::entry_not_found(context.session(), entry));
        }
        Ok(Decision::Append(vec![Record::Leaf(self.to.clone())], true))
    }
}

struct SetLabel {
    scope: Scope,
    fresh_id: EntryId,
    /// The entry that says so may be there already.
    may_repeat: bool,
    entry_id: EntryId,
    label: Option<String>,
}

#[async_trait]
impl Command for SetLabel {
    type Answer = SetLabelResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?;
        let (leaf, current) = (state.leaf.clone(), state.labels.get(&self.entry_id));
        let same = current == self.label.as_deref();
        self.label.as_deref().map_or(Ok(()), check_label)?;
        if context.find(&self.entry_id).await?.is_none() {
            return Err(ServiceError::entry_not_found(context.session(), &self.entry_id));
        }
        let answer =
            SetLabelResponse { entry_id: self.entry_id.clone(), label: self.label.clone() };
        if same || (self.may_repeat && context.find(&self.fresh_id).await?.is_some()) {
            return Ok(Decision::Nothing(answer));
        }
        let label = Bookkeeping::Label(Label {
            target_id: self.entry_id.clone(),
            label: self.label.clone(),
        });
        let entry = Entry::new(
            self.fresh_id.clone(),
            leaf,
            context.now_ms,
            EntryBody::Custom(label.to_payload()),
        );
        Ok(Decision::Append(vec![Record::Entry(entry)], answer))
    }
}
