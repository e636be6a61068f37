//! What a compaction of a session would do: the plan for its path, or for its loops if it is a recorded one.

use std::sync::Arc;

use bough_recorder::RecordedSession;
use bough_session::{Bookkeeping, Entry, EntryId, SessionId, SessionState};
use bough_store::StoredEntry;

use super::blocks::{BlockPlan, loop_of, plan_blocks};
use super::context::LoopPath;
use super::cut::{NothingToCompact, Plan, plan};
use super::digest::digest;
use super::path::PathItem;
use super::tokens::{context_tokens, reported_tokens};
use super::transcript::summariser_input;
use super::{CompactionSettings, Files};
use crate::api::{CompactionResponse, PlanCompactionRequest};
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::rules::reading::{Direction, Walk};
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn plan_compaction(
    service: &Service,
    scope: &Scope,
    request: PlanCompactionRequest,
) -> Result<CompactionResponse, ServiceError> {
    let state = service.runtime().need(scope, &request.session_id).await?.state;
    let planner = Planner::new(service, state, request.keep_recent_tokens);
    let planned = planner.plan(request.only_if_due.unwrap_or(false)).await?;
    let mut answer = planner.answer(&planned, None);
    if request.include_conversation == Some(true) {
        answer.conversation = planned.ok().map(|planned| planned.conversation());
    }
    Ok(answer)
}

/// Plans the compaction of a session as it was when its state was read.
pub(super) struct Planner<'a> {
    service: &'a Service,
    runtime: Arc<Runtime>,
    pub(super) state: Arc<SessionState>,
    settings: Arc<CompactionSettings>,
    keep_recent_tokens: u64,
    window: Option<u64>,
}

/// The active path of a session.
pub(super) enum PathRead {
    /// Its entries, the oldest first.
    Entries(Vec<PathItem>),
    /// It ends in this recorded loop.
    InLoop(String),
}

/// What would be summarised.
pub(super) enum Planned {
    /// Entries of a path.
    Path { path: Vec<PathItem>, plan: Box<Plan> },
    /// Turns of recorded loops.
    Loops(Box<LoopsPlan>),
}

/// What would be summarised of recorded loops.
pub(super) struct LoopsPlan {
    pub(super) plan: BlockPlan,
    /// The text of what is summarised.
    conversation: String,
    path: LoopPath,
    session: RecordedSession,
}

/// Why nothing would be.
pub(super) struct Nothing {
    reason: NothingToCompact,
    tokens: Option<u64>,
    /// Whether the context exceeds its window all the same.
    is_due: bool,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        service: &'a Service,
        state: Arc<SessionState>,
        keep_recent_tokens: Option<u64>,
    ) -> Self {
        let settings = service.settings().compaction;
        Self {
            service,
            runtime: service.runtime(),
            keep_recent_tokens: keep_recent_tokens.unwrap_or(settings.keep_recent_tokens),
            window: settings.windows.of_session(&state.details()),
            settings,
            state,
        }
    }

    /// Plans a compaction. `only_if_due` reads no more than it needs to know that the context fits.
    pub(super) async fn plan(
        &self,
        only_if_due: bool,
    ) -> Result<Result<Planned, Nothing>, ServiceError> {
        if only_if_due && let Some(reason) = self.never_due() {
            return Ok(Err(Nothing { reason, tokens: None, is_due: false }));
        }
        let fits =
            |end: &[PathItem]| reported_tokens(end).is_some_and(|tokens| !self.is_due(tokens));
        let path = match self.read_path(|end| only_if_due && fits(end)).await? {
            PathRead::Entries(path) => path,
            PathRead::InLoop(loop_id) => return self.plan_loops(&loop_id, only_if_due).await,
        };
        let tokens = context_tokens(&path);
        if only_if_due && !self.is_due(tokens) {
            return Ok(Err(self.nothing(NothingToCompact::Fits, tokens, true)));
        }
        Ok(match plan(&path, self.keep_recent_tokens) {
            Ok(plan) => Ok(Planned::Path { path, plan: Box::new(plan) }),
            Err(reason) => Err(self.nothing(reason, tokens, only_if_due)),
        })
    }

    /// Reads the active path, unless it ends in a recorded loop. Its end alone, if that `is_enough`.
    pub(super) async fn read_path(
        &self,
        is_enough: impl Fn(&[PathItem]) -> bool + Send,
    ) -> Result<PathRead, ServiceError> {
        let mut path: Vec<PathItem> = Vec::new();
        let Some(leaf) = self.state.leaf.clone() else { return Ok(PathRead::Entries(path)) };
        let (store, session) = (&*self.runtime.store, &self.state.meta.session_id);
        let walk = Walk::new(store, session, Direction::NewestFirst).with_hidden();
        let mut walk = walk.ending_at(Some(leaf));
        let mut first_kept = None;
        while let Some(mut entries) = walk.next(SCAN_ENTRIES).await? {
            let is_end = path.is_empty();
            entries.retain(|stored| counts(&stored.entry, &mut first_kept));
            if is_end && let Some(loop_id) = self.loop_at_end(&entries).await? {
                return Ok(PathRead::InLoop(loop_id));
            }
            path.extend(entries.iter().map(|stored| PathItem::of_entry(&stored.entry)));
            if is_end {
                let end: Vec<PathItem> = path.iter().rev().cloned().collect();
                if is_enough(&end) {
                    return Ok(PathRead::Entries(end));
                }
            }
        }
        path.reverse();
        Ok(PathRead::Entries(path))
    }

    async fn plan_loops(
        &self,
        loop_id: &str,
        only_if_due: bool,
    ) -> Result<Result<Planned, Nothing>, ServiceError> {
        let (store, session) = (&*self.runtime.store, &self.state.meta.session_id);
        let path = LoopPath::read(store, session, self.state.leaf.clone()).await?;
        let recorded = &self.runtime.recorded;
        let tokens = recorded.read(store, session, |session| session.map(|now| path.tokens(now)));
        let tokens = tokens.await?.unwrap_or_default();
        if only_if_due && !self.is_due(tokens) {
            return Ok(Err(self.nothing(NothingToCompact::Fits, tokens, true)));
        }
        let (keep, now_ms) = (self.keep_recent_tokens, self.service.now_ms());
        let planned = recorded.read(store, session, |session| {
            let session = session?;
            let plan =
                BlockPlan { tokens_before: tokens, ..plan_blocks(session, loop_id, keep, now_ms)? };
            let conversation = plan.summarised_text(session);
            Some(LoopsPlan { plan, conversation, path, session: session.clone() })
        });
        let nothing = || self.nothing(NothingToCompact::AllIsRecent, tokens, only_if_due);
        Ok(planned.await?.map(|plan| Planned::Loops(Box::new(plan))).ok_or_else(nothing))
    }

    /// The recorded loop that the newest message of a path belongs to.
    async fn loop_at_end(
        &self,
        newest_first: &[StoredEntry],
    ) -> Result<Option<String>, ServiceError> {
        // A session without loops has no task status.
        if self.state.task_status().is_none() {
            return Ok(None);
        }
        let entries = newest_first.iter().map(|stored| &stored.entry);
        let Some(loop_id) = loop_of_newest(entries) else { return Ok(None) };
        let (store, session) = (&*self.runtime.store, &self.state.meta.session_id);
        let is_known = self.runtime.recorded.read(store, session, |session| {
            session.is_some_and(|session| session.get_loop(loop_id).is_some())
        });
        Ok(is_known.await?.then(|| loop_id.to_owned()))
    }

    /// The answer to a caller; `summary` is what somebody else wrote.
    pub(super) fn answer(
        &self,
        planned: &Result<Planned, Nothing>,
        summary: Option<&str>,
    ) -> CompactionResponse {
        let mut answer = CompactionResponse {
            window: self.window,
            active_leaf: self.state.leaf.clone(),
            ..CompactionResponse::of_session(&self.state.meta.session_id)
        };
        match planned {
            Ok(Planned::Path { path, plan }) => describe_path(&mut answer, path, plan, summary),
            Ok(Planned::Loops(loops)) => describe_loops(&mut answer, loops, summary),
            Err(nothing) => {
                answer.reason = Some(nothing.reason);
                answer.nothing_to_do = Some(nothing.sentence());
                answer.tokens_before = nothing.tokens;
                answer.tokens_after = nothing.tokens;
            }
        }
        answer
    }

    /// Why the session is never compacted by itself.
    fn never_due(&self) -> Option<NothingToCompact> {
        if !self.settings.enabled {
            return Some(NothingToCompact::SwitchedOff);
        }
        self.window.is_none().then_some(NothingToCompact::NoWindow)
    }

    fn is_due(&self, tokens: u64) -> bool {
        self.settings.is_due(tokens, self.window)
    }

    fn nothing(&self, reason: NothingToCompact, tokens: u64, only_if_due: bool) -> Nothing {
        Nothing { reason, tokens: Some(tokens), is_due: only_if_due && self.is_due(tokens) }
    }
}

/// Whether an entry, of a path that is read from its end, counts for a compaction: hidden ones do not, except as the first
/// that the newest compaction kept.
fn counts(entry: &Entry, first_kept: &mut Option<EntryId>) -> bool {
    if first_kept.is_none()
        && let Some(Bookkeeping::Compaction(compaction)) = entry.bookkeeping()
    {
        *first_kept = Some(compaction.first_kept_entry_id);
    }
    !entry.is_hidden() || first_kept.as_ref() == Some(&entry.id)
}

/// The loop that the newest message was recorded in.
pub(super) fn loop_of_newest<'a>(
    mut newest_first: impl Iterator<Item = &'a Entry>,
) -> Option<&'a str> {
    loop_of(newest_first.find(|entry| entry.is_message())?.origin.as_ref())
}

impl Planned {
    /// The conversation that is summarised, as text for a model.
    fn conversation(&self) -> String {
        match self {
            Self::Path { path, plan } => summariser_input(path, plan),
            Self::Loops(loops) => loops.conversation.clone(),
        }
    }
}

impl Nothing {
    fn sentence(&self) -> String {
        match self.is_due {
            true => format!("it exceeds its model's window, but {}", self.reason),
            false => self.reason.to_string(),
        }
    }
}

impl CompactionResponse {
    fn of_session(session: &SessionId) -> Self {
        Self {
            session_id: session.clone(),
            written: false,
            reason: None,
            nothing_to_do: None,
            active_leaf: None,
            window: None,
            tokens_before: None,
            tokens_after: None,
            summary: None,
            entry_id: None,
            first_kept_entry_id: None,
            summarised_entries: 0,
            kept_entries: 0,
            kept_tokens: 0,
            split_turn: false,
            files: Files::default(),
            loops: Vec::new(),
            summarised_turns: 0,
            conversation: None,
        }
    }

    /// The text that `expected_leaf` takes for the leaf of this answer.
    #[must_use]
    pub fn expected_leaf(&self) -> String {
        self.active_leaf.as_ref().map_or("", EntryId::as_str).to_owned()
    }
}

fn describe_path(
    answer: &mut CompactionResponse,
    path: &[PathItem],
    plan: &Plan,
    summary: Option<&str>,
) {
    let summary = match summary {
        Some(text) => plan.files.below(text),
        None => digest(path, plan),
    };
    answer.tokens_before = Some(plan.tokens_before);
    answer.tokens_after = Some(plan.tokens_after(path, &summary));
    answer.summary = Some(summary);
    answer.first_kept_entry_id = Some(plan.first_kept.clone());
    answer.summarised_entries = plan.range.len() as u64;
    answer.kept_entries = plan.kept_entries as u64;
    answer.kept_tokens = plan.kept_tokens;
    answer.split_turn = plan.split_turn.is_some();
    answer.files = plan.files.clone();
}

fn describe_loops(answer: &mut CompactionResponse, loops: &LoopsPlan, summary: Option<&str>) {
    let with_summary;
    let plan = match summary {
        Some(text) => {
            with_summary = loops.plan.clone().with_summary(text);
            &with_summary
        }
        None => &loops.plan,
    };
    answer.tokens_before = Some(plan.tokens_before);
    answer.tokens_after = Some(loops.path.tokens(&plan.laid_over(&loops.session)));
    answer.summary = Some(plan.summary());
    answer.loops = plan.blocks.iter().map(|(loop_id, _)| loop_id.clone()).collect();
    answer.summarised_turns = plan.summarised_turns;
}
