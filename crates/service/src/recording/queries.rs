//! Questions to recorded sessions: their loops, the way to one, groups and their winners, sub-agents.

use std::collections::{BTreeSet, VecDeque};

use bough_recorder::{
    CompactionBlock, ContinuationKind, LoopRecord, ParallelGroupRecord, RecordedMessage,
    RecordedSession, SpawnGraph, Turn,
};
use bough_session::SessionId;
use serde::{Deserialize, Serialize};

use crate::api::{
    LoopChainRequest, LoopChainResponse, LoopCompaction, LoopContinuation, LoopGroup,
    LoopGroupsRequest, LoopGroupsResponse, LoopSpawn, LoopSummary, LoopUsage, LoopsRequest,
    LoopsResponse, SpawnedSession, SpawnsRequest, SpawnsResponse, TurnSummary,
};
use crate::compaction::summarised_messages;
use crate::cursor;
use crate::error::ServiceError;
use crate::limits::SPAWN_SESSIONS_MAX;
use crate::scope::Scope;
use crate::service::Service;

/// How many loops the pages before had.
#[derive(Debug, Serialize, Deserialize)]
struct LoopCursor {
    loops: usize,
}

pub(crate) async fn loops(
    service: &Service,
    scope: &Scope,
    request: LoopsRequest,
) -> Result<LoopsResponse, ServiceError> {
    let limit = service.settings().page(request.limit);
    let before = request.cursor.as_deref().map(cursor::decode::<LoopCursor>).transpose()?;
    let before = before.map_or(0, |cursor| cursor.loops);
    let page = move |session: Option<&RecordedSession>| {
        let Some(session) = session else { return (Vec::new(), 0) };
        let page = session.loops.iter().skip(before).take(limit).map(summary);
        (page.collect::<Vec<_>>(), session.loops.len())
    };
    let (loops, all) = read_recorded(service, scope, &request.session_id, page).await?;
    let end = before + loops.len();
    let next = (end < all).then_some(LoopCursor { loops: end });
    let next_cursor = next.map(|next| cursor::encode(&next)).transpose()?;
    Ok(LoopsResponse { loops, next_cursor })
}

pub(crate) async fn loop_chain(
    service: &Service,
    scope: &Scope,
    request: LoopChainRequest,
) -> Result<LoopChainResponse, ServiceError> {
    let LoopChainRequest { session_id, loop_id } = request;
    let chain = |session: Option<&RecordedSession>| {
        let session = session.filter(|session| session.get_loop(&loop_id).is_some());
        session.map(|session| session.loop_chain_to(&loop_id))
    };
    let found = read_recorded(service, scope, &session_id, chain).await?;
    let missing =
        || ServiceError::LoopNotFound { session: session_id.to_string(), loop_id: loop_id.clone() };
    Ok(LoopChainResponse { loop_ids: found.ok_or_else(missing)? })
}

pub(crate) async fn loop_groups(
    service: &Service,
    scope: &Scope,
    request: LoopGroupsRequest,
) -> Result<LoopGroupsResponse, ServiceError> {
    let groups = |session: Option<&RecordedSession>| {
        let loops = session.into_iter().flat_map(|session| session.loops.iter());
        let mut seen = BTreeSet::new();
        let of_loops = loops.filter_map(|record| record.parallel_group.as_ref());
        of_loops.filter(|group| seen.insert(group.all_loop_ids.clone())).map(group).collect()
    };
    let groups = read_recorded(service, scope, &request.session_id, groups).await?;
    Ok(LoopGroupsResponse { groups })
}

pub(crate) async fn spawns(
    service: &Service,
    scope: &Scope,
    request: SpawnsRequest,
) -> Result<SpawnsResponse, ServiceError> {
    let mut family = Family::new(&request.session_id);
    while let Some(member) = family.waiting.pop_front() {
        if family.sessions.len() >= SPAWN_SESSIONS_MAX {
            family.more = true;
            break;
        }
        let seen = read_recorded(service, scope, &member, |session| {
            session.map(|session| (SpawnGraph::new([session]), spawned_session(session)))
        });
        match seen.await {
            Ok(Some((graph, session))) => family.add(graph, session),
            Ok(None) => {}
            // A member that is not there, or not for the caller, is known by its links only.
            Err(ServiceError::NotFound { .. }) if member != request.session_id => {}
            Err(error) => return Err(error),
        }
    }
    let spawns = family.graph.spawns().to_vec();
    Ok(SpawnsResponse { spawns, sessions: family.sessions, more: family.more })
}

/// Reads a recorded session that exists for the caller.
async fn read_recorded<T>(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
    read: impl FnOnce(Option<&RecordedSession>) -> T,
) -> Result<T, ServiceError> {
    let runtime = service.runtime();
    runtime.need(scope, session).await?;
    Ok(runtime.recorded.read(&*runtime.store, session, read).await?)
}

/// The sessions that spawned each other, as far as they were read.
struct Family {
    graph: SpawnGraph,
    sessions: Vec<SpawnedSession>,
    known: BTreeSet<String>,
    waiting: VecDeque<SessionId>,
    more: bool,
}

impl Family {
    fn new(session: &SessionId) -> Self {
        Self {
            graph: SpawnGraph::default(),
            sessions: Vec::new(),
            known: BTreeSet::from([session.to_string()]),
            waiting: VecDeque::from([session.clone()]),
            more: false,
        }
    }

    /// Takes in a member; those that it is linked to are read later.
    fn add(&mut self, graph: SpawnGraph, session: SpawnedSession) {
        for spawn in graph.spawns() {
            for id in [&spawn.parent_session_id, &spawn.child_session_id] {
                if !id.is_empty() && self.known.insert(id.clone()) {
                    self.waiting.push_back(SessionId::from_stored(id.clone()));
                }
            }
        }
        self.graph.join(graph);
        self.sessions.push(session);
    }
}

fn spawned_session(session: &RecordedSession) -> SpawnedSession {
    SpawnedSession {
        session_id: session.session_id.clone(),
        agent_id: session.agent_id.clone(),
        loops: session.loops.len() as u64,
        usage: LoopUsage::from(&session.whole_usage()),
    }
}

fn summary(record: &LoopRecord) -> LoopSummary {
    let (continuation, tag) = continuation(&record.continuation_kind);
    let model = record.config.as_ref().map(|config| config.model.clone());
    let spawned = record.child_loop_refs.iter().map(|child| LoopSpawn {
        tool_call_id: child.tool_call_id.clone(),
        tool_name: child.tool_name.clone(),
        session_id: child.child_session_id.clone(),
        loop_id: child.child_loop_id.clone(),
    });
    LoopSummary {
        loop_id: record.loop_id.clone(),
        agent_id: record.agent_id.clone(),
        parent_loop_id: record.parent_loop_id.clone(),
        continuation,
        tag,
        status: record.status.into(),
        started_at: record.started_at.unix_ms(),
        ended_at: record.ended_at.map(bough_recorder::Timestamp::unix_ms),
        rejection: record.rejection.clone(),
        model: model.filter(|model| !model.is_empty()),
        messages: record.messages.len() as u64,
        turns: record.turns.iter().map(turn).collect(),
        usage: LoopUsage::from(&record.usage),
        children_loop_ids: record.children_loop_ids.clone(),
        group: record.parallel_group.as_ref().map(group),
        spawned: spawned.collect(),
        is_compacted: record.compaction_block.is_some(),
        compaction: record.compaction_block.as_ref().map(|block| compaction(record, block)),
    }
}

fn compaction(record: &LoopRecord, block: &CompactionBlock) -> LoopCompaction {
    let section = block.keep_compacted.as_ref();
    let hidden = summarised_messages(block, &record.messages);
    let texts =
        section.into_iter().flat_map(|section| &section.messages).map(RecordedMessage::text);
    LoopCompaction {
        created_at: block.created_at.unix_ms(),
        hidden_messages: hidden.len() as u64,
        kept_before: hidden.start as u64,
        summary: texts.collect::<Vec<_>>().join("\n\n"),
    }
}

fn turn(turn: &Turn) -> TurnSummary {
    TurnSummary {
        turn_index: turn.turn_id.turn_index,
        started_at: turn.started_at.unix_ms(),
        ended_at: turn.ended_at.unix_ms(),
        tool_results: turn.tool_results.len() as u64,
        usage: LoopUsage::from(&turn.usage),
    }
}

fn group(group: &ParallelGroupRecord) -> LoopGroup {
    LoopGroup {
        loop_ids: group.all_loop_ids.clone(),
        winner: Some(group.selected_loop_id.clone()).filter(|winner| !winner.is_empty()),
        evaluation_usage: LoopUsage::from(&group.evaluation_usage),
    }
}

fn continuation(kind: &ContinuationKind) -> (LoopContinuation, Option<String>) {
    match kind {
        ContinuationKind::Initial => (LoopContinuation::Initial, None),
        ContinuationKind::Default => (LoopContinuation::Default, None),
        ContinuationKind::Rerun { tag } => (LoopContinuation::Rerun, Some(tag.clone())),
        ContinuationKind::Branch { tag } => (LoopContinuation::Branch, Some(tag.clone())),
        ContinuationKind::Compaction => (LoopContinuation::Compaction, None),
    }
}
