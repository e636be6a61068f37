//! The tree: move the leaf, list branches, name entries.

use async_trait::async_trait;
use bough_session::limits::check_label;
use bough_session::{
    Bookkeeping, BranchHead, Entry, EntryBody, EntryId, Label, Record, SessionState,
};
use bough_store::{PathQuery, PathStart, Store, StoreError, StoreExt};

use super::append::check_leaf;
use super::reading::{Direction, Walk};
use super::repeats::{FirstDrawn, find_first_use};
use crate::api::{
    Branch, BranchesRequest, BranchesResponse, ClearActiveLeafRequest, ClearActiveLeafResponse,
    SetActiveLeafRequest, SetActiveLeafResponse, SetLabelRequest, SetLabelResponse,
};
use crate::cursor::EntryCursor;
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

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

/// Moves the leaf before the first entry, to write the first message anew.
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
    find_first_use(service, FirstDrawn::Entry(&request.session_id, 0)).await?;
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
    // One more than the page shows whether there are more.
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
    for head in visible_ends(&*runtime.store, &state, heads).await? {
        branches.push(branch(&*runtime.store, &state, head).await?);
    }
    Ok(BranchesResponse { branches, active_leaf: state.leaf.clone(), next_cursor })
}

/// The visible ends of branches: the last entry that is not hidden, unless another branch continues from there.
async fn visible_ends(
    store: &dyn Store,
    state: &SessionState,
    heads: Vec<BranchHead>,
) -> Result<Vec<BranchHead>, ServiceError> {
    if state.hidden_count == 0 {
        return Ok(heads);
    }
    let mut ends: Vec<BranchHead> = Vec::new();
    for head in &heads {
        let Some(end) = visible_end(store, state, head).await? else { continue };
        let is_known = ends.iter().any(|other| other.entry_id == end.entry_id);
        if !is_known && (end == *head || !goes_on(store, state, &end, head, &heads).await?) {
            ends.push(end);
        }
    }
    Ok(ends)
}

/// The last entry of a branch that was not hidden.
async fn visible_end(
    store: &dyn Store,
    state: &SessionState,
    head: &BranchHead,
) -> Result<Option<BranchHead>, ServiceError> {
    let walk = Walk::new(store, &state.meta.session_id, Direction::NewestFirst);
    let mut walk = walk.ending_at(Some(head.entry_id.clone())).with_hidden();
    let mut depth = head.depth;
    // Most branches end with an entry that is visible.
    let mut limit = 1;
    while let Some(entries) = walk.next(limit).await? {
        for stored in entries {
            if !stored.entry.is_hidden() {
                return Ok(Some(BranchHead { entry_id: stored.entry.id, depth, ..head.clone() }));
            }
            depth = depth.saturating_sub(1);
        }
        limit = SCAN_ENTRIES;
    }
    Ok(None)
}

/// Whether an entry is on the path to the end of another branch.
async fn goes_on(
    store: &dyn Store,
    state: &SessionState,
    end: &BranchHead,
    of: &BranchHead,
    heads: &[BranchHead],
) -> Result<bool, ServiceError> {
    for other in heads.iter().filter(|other| other.entry_id != of.entry_id) {
        let start = PathStart::After(end.entry_id.clone());
        let query = PathQuery { leaf: Some(other.entry_id.clone()), start, limit: 1 };
        match store.path(&state.meta.session_id, &query).await {
            Ok(_) if visible_end(store, state, other).await?.as_ref() != Some(end) => {
                return Ok(true);
            }
            Ok(_) | Err(StoreError::NotOnPath { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
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

/// The label of an entry. Labelling the end of a branch adds an entry there, which is then the end: its label is that
/// of the labelled entry.
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
    let stored = store.entry(&state.meta.session_id, entry).await?;
    let target = match stored.and_then(|stored| stored.entry.bookkeeping()) {
        Some(Bookkeeping::Label(label)) => label.target_id,
        _ => return Ok(None),
    };
    Ok(state.labels.get(&target).map(ToOwned::to_owned))
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
            && context.find_visible(entry).await?.is_none()
        {
            return Err(ServiceError::entry_not_found(context.session(), entry));
        }
        Ok(Decision::Append(vec![Record::Leaf(self.to.clone())], true))
    }
}

struct SetLabel {
    scope: Scope,
    fresh_id: EntryId,
    /// Whether the entry of the label may exist already.
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
        if context.find_visible(&self.entry_id).await?.is_none() {
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
