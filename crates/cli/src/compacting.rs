//! Compacting a session of the backend, on request or because it exceeds its model's window.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;

use bough_service::Service;
use bough_service::compaction::{
    CompactionSettings, NothingToCompact, PathItem, Plan, context_tokens, plan, reported_tokens,
};
use bough_session::{AgentMessage, ContentBlock, EntryId, SessionId, SessionStatus};
use bough_store::{ChangeCursor, Store, StoreError, StoreExt};

use crate::app::App;
use crate::backend::{Backend, Summary};
use crate::command_error::CommandResult;
use crate::limits::{CHANGES_PER_LOOK, COMPACT_SETTLE, TRANSCRIPT_PAGE};
use crate::recorded::Recorded;
use crate::summarise::{Configured, SummarySource, summarise};

/// A session that is about to be compacted.
pub(crate) struct Work {
    pub(crate) session: Summary,
    pub(crate) path: Vec<PathItem>,
    pub(crate) plan: Plan,
}

impl Work {
    /// Reads the path and plans a compaction; the inner error says why there is nothing to do.
    pub(crate) async fn load(
        backend: &Backend,
        session: Summary,
        settings: &CompactionSettings,
    ) -> CommandResult<Result<Self, (Summary, NothingToCompact)>> {
        let path = backend.path(session.id(), None).await?;
        Ok(match plan(&path, settings) {
            Ok(plan) => Ok(Self { session, path, plan }),
            Err(nothing) => Err((session, nothing)),
        })
    }

    fn leaf(&self) -> Option<&EntryId> {
        self.path.last().map(|item| &item.id)
    }

    /// Appends the summary, unless the conversation went on since it was read.
    pub(crate) async fn write(&self, backend: &Backend, summary: String) -> CommandResult<EntryId> {
        let entry = self.plan.entry(summary);
        Ok(backend.append_note(self.session.id(), &entry, self.leaf()).await?)
    }
}

/// Why a session is not compacted automatically.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotDue {
    /// The configuration disables it.
    #[error("compaction is switched off (`compaction.enabled` in the configuration)")]
    SwitchedOff,
    /// There is nothing to compare with.
    #[error(
        "the window of its model is not known (`compaction.windows` in the configuration can name it)"
    )]
    NoWindow,
    /// Its context still fits.
    #[error("it fits into its model's window")]
    Fits,
    /// Its context does not fit, and no cut makes it smaller.
    #[error("it exceeds its model's window, but {0}")]
    NothingToCut(NothingToCompact),
}

/// The compaction to write for a session, if its context exceeds its model's window less the
/// reserve.
pub(crate) async fn due(
    backend: &Backend,
    session: Summary,
    configured: &Configured,
    source: &SummarySource,
) -> CommandResult<Result<(Work, String), NotDue>> {
    let settings = &configured.settings;
    let window = configured.windows.of_session(&session.details);
    // Reading a session is the expensive part. Without a window there is nothing to decide, and the report of the
    // newest answer mostly decides it.
    if !settings.enabled {
        return Ok(Err(NotDue::SwitchedOff));
    }
    if window.is_none() {
        return Ok(Err(NotDue::NoWindow));
    }
    let newest = newest(backend, session.id()).await?;
    let reported = reported_tokens(&newest);
    if reported.is_some_and(|tokens| !settings.is_due(tokens, window)) {
        return Ok(Err(NotDue::Fits));
    }
    let work = match Work::load(backend, session, settings).await? {
        Ok(work) => work,
        // The report of the newest answer is from before a later compaction.
        Err((_, why @ NothingToCompact::AllIsRecent)) if reported.is_some() => {
            return Ok(Err(NotDue::NothingToCut(why)));
        }
        Err(_) => return Ok(Err(NotDue::Fits)),
    };
    if !settings.is_due(work.plan.tokens_before, window) {
        return Ok(Err(NotDue::Fits));
    }
    let summary = summarise(&work.path, &work.plan, source).await?;
    Ok(Ok((work, summary)))
}

/// The tokens of a path's context, read from its end if that is enough: the number that decides about compaction, and
/// that every command shows.
pub(crate) async fn tokens_of_context(
    backend: &Backend,
    session: &SessionId,
    leaf: Option<&EntryId>,
) -> CommandResult<u64> {
    let end = end_of_path(backend, session, leaf).await?;
    match reported_tokens(&end) {
        Some(tokens) => Ok(tokens),
        None => Ok(context_tokens(&backend.path(session, leaf).await?)),
    }
}

/// The end of the active path, oldest first.
async fn newest(backend: &Backend, session: &SessionId) -> CommandResult<Vec<PathItem>> {
    end_of_path(backend, session, None).await
}

async fn end_of_path(
    backend: &Backend,
    session: &SessionId,
    leaf: Option<&EntryId>,
) -> CommandResult<Vec<PathItem>> {
    let page = backend.path_page(session, leaf, true, TRANSCRIPT_PAGE, None).await?;
    let mut items: Vec<PathItem> =
        page.items.into_iter().filter_map(PathItem::of_message).collect();
    items.reverse();
    Ok(items)
}

/// Compacts sessions of a server that exceed their windows, for as long as it runs: between turns only. A session that
/// went on meanwhile is checked again.
pub(crate) async fn keep_compacted(
    app: &App,
    config: Option<&Path>,
    service: &Service,
    backend: &Backend,
) -> Infallible {
    loop {
        // Start again after a failure; a missed session is checked when it goes on.
        let Err(_) = follow(app, config, service, backend).await;
        tracing::warn!("compaction pauses: the changes of the store cannot be read");
        tokio::time::sleep(COMPACT_SETTLE).await;
    }
}

/// Checks now and then the sessions that changed. The changes are known without reading any session; following their
/// events would cost a server a part of every append.
async fn follow(
    app: &App,
    config: Option<&Path>,
    service: &Service,
    backend: &Backend,
) -> Result<Infallible, StoreError> {
    let mut cursor = service.store().change_cursor().await?;
    loop {
        tokio::time::sleep(COMPACT_SETTLE).await;
        for session in changed_since(&*service.store(), &mut cursor).await? {
            look(app, config, backend, &session).await;
        }
    }
}

/// The sessions that changed since, each once. Starts again if changes are missing, or the store was replaced.
async fn changed_since(
    store: &dyn Store,
    cursor: &mut ChangeCursor,
) -> Result<HashSet<SessionId>, StoreError> {
    let mut changed = HashSet::new();
    loop {
        let page = store.changes(Some(cursor), CHANGES_PER_LOOK).await?;
        if page.gap {
            *cursor = store.change_cursor().await?;
            return Ok(changed);
        }
        let last = page.changes.is_empty() || page.next == *cursor;
        changed.extend(page.changes.into_iter().map(|change| change.session_id));
        *cursor = page.next;
        if last {
            return Ok(changed);
        }
    }
}

async fn look(app: &App, config: Option<&Path>, backend: &Backend, session: &SessionId) {
    match compact_quiet(app, config, backend, session).await {
        Ok(None) => {}
        // Ids and errors of a session may contain callers' text, which must not be logged.
        Ok(Some(before)) => tracing::info!(tokens = before, "a session was compacted"),
        Err(error) => tracing::warn!(kind = error.kind.as_str(), "a session was not compacted"),
    }
}

async fn compact_quiet(
    app: &App,
    config: Option<&Path>,
    backend: &Backend,
    session: &SessionId,
) -> CommandResult<Option<u64>> {
    let Some(summary) = backend.summary(session).await? else { return Ok(None) };
    let configured = Configured::load_from(&app.globals, config)?;
    let is_quiet = summary.meta.status != SessionStatus::Working
        && configured.windows.of_session(&summary.details).is_some()
        && newest(backend, session).await?.last().is_some_and(is_end_of_turn);
    if !is_quiet {
        return Ok(None);
    }
    let source = configured.source(None);
    if let Some(recorded) = Recorded::load(app, backend, &summary).await? {
        let due = recorded.plan_if_due(&summary, &configured, &source).await?;
        let Ok(plan) = due else { return Ok(None) };
        recorded.write(backend, &plan).await?;
        return Ok(Some(plan.tokens_before));
    }
    let Ok((work, text)) = due(backend, summary, &configured, &source).await? else {
        return Ok(None);
    };
    let before = work.plan.tokens_before;
    work.write(backend, text).await?;
    Ok(Some(before))
}

/// Whether the turn is complete: the newest entry is an answer without calls.
fn is_end_of_turn(item: &PathItem) -> bool {
    let Some(AgentMessage::Assistant(answer)) = item.message() else { return false };
    let calls = |block: &ContentBlock| matches!(block, ContentBlock::FunctionCall(_));
    !answer.content.iter().any(calls)
}
