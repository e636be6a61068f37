//! Compacting a recorded session with blocks over its loops, which the recorder's own loader reads
//! too.

use bough_recorder::{RecordFold, RecordSink, RecordedSession, StoreSink};
use bough_service::compaction::{
    BlockPlan, CompactionSettings, NothingToCompact, loop_of, plan_blocks, undo_blocks,
};
use bough_session::{EntryId, NewRecord, SessionEntry, SessionId};

use crate::app::App;
use crate::backend::{Backend, Summary, store_failed};
use crate::command_error::{CommandError, CommandResult};
use crate::compacting::{NotDue, tokens_of_context};
use crate::limits::TRANSCRIPT_PAGE;
use crate::summarise::{Configured, SummarySource, summarise_text};

/// A recorded session, and the loop that its active path ends in.
pub(crate) struct Recorded {
    session: RecordedSession,
    loop_id: String,
    /// Tokens of its context.
    tokens: u64,
    now_ms: i64,
}

impl Recorded {
    /// Reads a session as the recorder sees it; `None` if its active path does not end in a recorded loop.
    pub(crate) async fn load(
        app: &App,
        backend: &Backend,
        session: &Summary,
    ) -> CommandResult<Option<Self>> {
        // A session without loops has no task status.
        if session.details.task_status.is_none() {
            return Ok(None);
        }
        let session = session.id();
        let Some(loop_id) = loop_at_end(backend, session).await? else { return Ok(None) };
        let fold = backend.fold(session, RecordFold::new(session.as_str())).await?;
        let Some(found) = fold.into_session() else { return Ok(None) };
        let Some(current) = found.get_loop(&loop_id) else { return Ok(None) };
        // Reports of answers from before a block was added are not about the present context.
        let tokens = match current.compaction_block {
            Some(_) => backend.context(session, None, None).await?.estimated_tokens,
            None => tokens_of_context(backend, session, None).await?,
        };
        Ok(Some(Self { session: found, loop_id, tokens, now_ms: app.now_ms() }))
    }

    /// Tokens of its context: as the newest answer reported them, or estimated where it is compacted.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The plan of a compaction with the summary from `source`; `None` if it would not make the context smaller.
    pub(crate) async fn plan(
        &self,
        settings: &CompactionSettings,
        source: &SummarySource,
    ) -> CommandResult<Option<BlockPlan>> {
        let keep = settings.keep_recent_tokens;
        let Some(mut plan) = plan_blocks(&self.session, &self.loop_id, keep, self.now_ms) else {
            return Ok(None);
        };
        let saved = plan.tokens_before.saturating_sub(plan.tokens_after);
        plan.tokens_before = self.tokens;
        plan.tokens_after = self.tokens.saturating_sub(saved);
        if matches!(source, SummarySource::Digest) {
            return Ok(Some(plan));
        }
        let conversation = plan.summarised_text(&self.session);
        let text = summarise_text(plan.summary(), conversation, source).await?;
        Ok(Some(plan.with_summary(&text)))
    }

    /// Writes the blocks of a plan.
    pub(crate) async fn write(&self, backend: &Backend, plan: &BlockPlan) -> CommandResult<()> {
        self.append(backend, plan.records(self.now_ms)).await
    }

    /// Removes the blocks of the active path; returns how many there were.
    pub(crate) async fn take_back(&self, backend: &Backend) -> CommandResult<usize> {
        let records = undo_blocks(&self.session, &self.loop_id, self.now_ms);
        let count = records.len();
        if count > 0 {
            self.append(backend, records).await?;
        }
        Ok(count)
    }

    /// The plan, if the context exceeds the model's window less the reserve.
    pub(crate) async fn plan_if_due(
        &self,
        summary: &Summary,
        configured: &Configured,
        source: &SummarySource,
    ) -> CommandResult<Result<BlockPlan, NotDue>> {
        let window = configured.windows.of_session(&summary.details);
        if !configured.settings.enabled {
            return Ok(Err(NotDue::SwitchedOff));
        }
        if window.is_none() {
            return Ok(Err(NotDue::NoWindow));
        }
        if !configured.settings.is_due(self.tokens, window) {
            return Ok(Err(NotDue::Fits));
        }
        let nothing = NotDue::NothingToCut(NothingToCompact::AllIsRecent);
        Ok(self.plan(&configured.settings, source).await?.ok_or(nothing))
    }

    async fn append(&self, backend: &Backend, records: Vec<NewRecord>) -> CommandResult<()> {
        if let Backend::Remote(remote) = backend {
            let text =
                format!("a recorded session cannot be compacted through {}", remote.address());
            let hint = "run the command on the server's machine, without --server and BOUGH_SERVER";
            return Err(CommandError::usage(text).hint(hint));
        }
        let sink = StoreSink::new(backend.reads());
        // While a session is being recorded, its recorder owns it and would overwrite the block.
        let (mut claim, _) = sink.claim(&self.session.session_id).await.map_err(store_failed)?;
        let appended = sink.append(&mut claim, records).await;
        appended.map_err(|error| store_failed(error).into())
    }
}

/// The loop of the newest entry of the active path that was recorded in one.
async fn loop_at_end(backend: &Backend, session: &SessionId) -> CommandResult<Option<String>> {
    let page = backend.path_page(session, None, true, TRANSCRIPT_PAGE, None).await?;
    let messages = page.items.into_iter().filter(|item| item.message.is_some());
    let newest: Option<EntryId> = messages.map(|item| item.entry_id).next();
    let Some(newest) = newest else { return Ok(None) };
    let origin = match backend.entry(session, &newest).await? {
        Some(SessionEntry::Message { origin, .. }) => origin,
        _ => None,
    };
    Ok(loop_of(origin.as_ref()).map(str::to_owned))
}
