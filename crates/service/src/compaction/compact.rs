//! Writes compactions and takes them back.

use bough_recorder::RecordSink;
use bough_session::{Bookkeeping, EntryId, NewRecord, SessionState};

use super::blocks::undo_blocks;
use super::planning::{PathRead, Planned, Planner};
use super::undo::{Undo, undo};
use crate::api::{
    AppendRequest, ClearActiveLeafRequest, CompactRequest, CompactionResponse,
    SetActiveLeafRequest, UndoCompactionRequest, UndoCompactionResponse,
};
use crate::error::ServiceError;
use crate::recording::RecordingSink;
use crate::rules::append::{append, check_leaf};
use crate::rules::branching::{clear_active_leaf, set_active_leaf};
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::run_to_completion;

pub(crate) async fn compact(
    service: &Service,
    scope: &Scope,
    request: CompactRequest,
) -> Result<CompactionResponse, ServiceError> {
    let summary = given_summary(&request)?;
    let state = service.runtime().need(scope, &request.session_id).await?.state;
    check_leaf(&state, request.expected_leaf.as_deref())?;
    let planner = Planner::new(service, state, request.keep_recent_tokens);
    let planned = planner.plan(request.only_if_due.unwrap_or(false)).await?;
    let mut answer = planner.answer(&planned, summary);
    match planned {
        Ok(Planned::Path { plan, .. }) => {
            let note = plan.entry(answer.summary.clone().unwrap_or_default());
            let entry = append_note(service, scope, &planner.state, &note).await?;
            answer.active_leaf = Some(entry.clone());
            answer.entry_id = Some(entry);
            answer.written = true;
        }
        Ok(Planned::Loops(loops)) => {
            let plan = match summary {
                Some(text) => loops.plan.with_summary(text),
                None => loops.plan,
            };
            let records = plan.records(service.now_ms());
            append_blocks(service, scope, &planner.state, records).await?;
            answer.written = true;
        }
        Err(_) => {}
    }
    Ok(answer)
}

pub(crate) async fn undo_compaction(
    service: &Service,
    scope: &Scope,
    request: UndoCompactionRequest,
) -> Result<UndoCompactionResponse, ServiceError> {
    let state = service.runtime().need(scope, &request.session_id).await?.state;
    check_leaf(&state, request.expected_leaf.as_deref())?;
    let planner = Planner::new(service, state, None);
    let mut answer = UndoCompactionResponse {
        session_id: request.session_id,
        undone: None,
        entry_id: None,
        loops: Vec::new(),
        nothing_to_do: None,
    };
    match planner.read_path(|_| false).await? {
        PathRead::InLoop(loop_id) => {
            answer.loops = remove_blocks(service, scope, &planner.state, &loop_id).await?;
        }
        PathRead::Entries(path) => {
            if let Some(undo) = undo(&path) {
                let (undone, entry) = undo_entry(service, scope, &planner.state, undo).await?;
                answer.undone = Some(undone);
                answer.entry_id = entry;
            }
        }
    }
    if answer.undone.is_none() && answer.loops.is_empty() {
        answer.nothing_to_do = Some("no compaction is in force".to_owned());
    }
    Ok(answer)
}

/// Undoes the compaction of a path; returns its entry, and the one that undoes it.
async fn undo_entry(
    service: &Service,
    scope: &Scope,
    state: &SessionState,
    undo: Undo,
) -> Result<(EntryId, Option<EntryId>), ServiceError> {
    match undo {
        Undo::MoveLeaf { compaction, to } => {
            move_leaf(service, scope, state, to).await?;
            Ok((compaction, None))
        }
        Undo::Append { compaction, entry } => {
            let appended = append_note(service, scope, state, &entry).await?;
            Ok((compaction, Some(appended)))
        }
    }
}

/// The summary that a request brings; `None` if the fixed rules write it.
fn given_summary(request: &CompactRequest) -> Result<Option<&str>, ServiceError> {
    match (request.summary.as_deref().map(str::trim), request.digest == Some(true)) {
        (None, true) => Ok(None),
        (Some(""), false) => Err(ServiceError::invalid("the summary is empty")),
        (Some(text), false) => Ok(Some(text)),
        _ => Err(ServiceError::invalid("supply exactly one of `summary` and `digest`: true")),
    }
}

/// Appends bookkeeping, unless the conversation went on since its state was read.
async fn append_note(
    service: &Service,
    scope: &Scope,
    state: &SessionState,
    note: &Bookkeeping,
) -> Result<EntryId, ServiceError> {
    let request = AppendRequest {
        session_id: state.meta.session_id.clone(),
        entry_id: None,
        parent_id: None,
        message: None,
        custom: Some(note.to_payload()),
        origin: None,
        stream: None,
        expected_leaf: Some(leaf_of(state)),
    };
    Ok(append(service, scope, request).await?.entry_id)
}

async fn move_leaf(
    service: &Service,
    scope: &Scope,
    state: &SessionState,
    to: Option<EntryId>,
) -> Result<(), ServiceError> {
    let (session_id, expected_leaf) = (state.meta.session_id.clone(), Some(leaf_of(state)));
    match to {
        Some(entry_id) => {
            let request = SetActiveLeafRequest { session_id, entry_id, expected_leaf };
            set_active_leaf(service, scope, request).await?;
        }
        None => {
            let request = ClearActiveLeafRequest { session_id, expected_leaf };
            clear_active_leaf(service, scope, request).await?;
        }
    }
    Ok(())
}

fn leaf_of(state: &SessionState) -> String {
    state.leaf.as_ref().map_or("", EntryId::as_str).to_owned()
}

/// Takes the blocks off the loops that lead to a loop; returns those loops.
async fn remove_blocks(
    service: &Service,
    scope: &Scope,
    state: &SessionState,
    loop_id: &str,
) -> Result<Vec<String>, ServiceError> {
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let undone = runtime.recorded.read(&*runtime.store, &state.meta.session_id, |session| {
        session.map(|session| undo_blocks(session, loop_id, now_ms)).unwrap_or_default()
    });
    let (loops, records): (Vec<String>, Vec<NewRecord>) = undone.await?.into_iter().unzip();
    if !records.is_empty() {
        append_blocks(service, scope, state, records).await?;
    }
    Ok(loops)
}

/// Appends records of a recorder, unless the conversation went on since its state was read.
async fn append_blocks(
    service: &Service,
    scope: &Scope,
    state: &SessionState,
    records: Vec<NewRecord>,
) -> Result<(), ServiceError> {
    let (runtime, expected) = (service.runtime(), service.expected_incarnation());
    let (scope, session, leaf) = (scope.clone(), state.meta.session_id.clone(), leaf_of(state));
    let sink = RecordingSink::new(service, &scope);
    run_to_completion(async move {
        // While a session is being recorded, its recorder owns it and would overwrite the block.
        let (mut claim, _) = sink.claim(session.as_str()).await?;
        let now = runtime.need(&scope, &session).await?;
        if expected.is_some_and(|expected| expected != now.head.incarnation) {
            return Err(ServiceError::OtherIncarnation { session: session.to_string() });
        }
        check_leaf(&now.state, Some(&leaf))?;
        sink.append(&mut claim, records).await
    })
    .await
}
