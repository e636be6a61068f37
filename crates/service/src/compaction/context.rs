//! The context of a session: its path as a model would be sent it, read from the end and no further than needed.

use std::collections::HashSet;

use bough_recorder::RecordedSession;
use bough_session::{
    AgentMessage, Bookkeeping, Canonical, Conversation, Entry, EntryId, SessionId, SessionState,
    context_to_format, context_view, estimate_tokens, json_bytes,
};
use bough_store::ReadStore;

use super::blocks::{loop_of, with_blocks};
use super::planning::loop_of_newest;
use super::tokens::ContextTokens;
use crate::api::{ContextItem, ContextRequest, ContextResponse, FormattedConversation};
use crate::error::ServiceError;
use crate::limits::{CONTEXT_BYTES_MAX, CONTEXT_MESSAGE_OVERHEAD, SCAN_ENTRIES};
use crate::rules::reading::{Direction, Walk, check_visible};
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn context(
    service: &Service,
    scope: &Scope,
    request: ContextRequest,
) -> Result<ContextResponse, ServiceError> {
    context_within(service, scope, request, CONTEXT_BYTES_MAX).await
}

/// The context, if its messages have no more than so many bytes.
async fn context_within(
    service: &Service,
    scope: &Scope,
    request: ContextRequest,
    bytes_max: usize,
) -> Result<ContextResponse, ServiceError> {
    let runtime = service.runtime();
    let (store, session) = (&*runtime.store, &request.session_id);
    let state = runtime.need(scope, session).await?.state;
    if let Some(end) = &request.from_entry_id {
        check_visible(store, &state, end).await?;
    }
    let budget = request.max_tokens.map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
    let recorded = with_compacted_loops(&runtime, session, &state).await?;
    // A block over a loop can make any part of the path smaller, so a budget does not bound the read then.
    let reach = Reach {
        budget: budget.filter(|_| recorded.is_none()),
        has_no_compaction: state.compactions == Some(0),
        // Blocks shorten a path only after it was read.
        bytes_max: if recorded.is_some() { usize::MAX } else { bytes_max },
    };
    let mut end = PathEnd::read(store, session, request.from_entry_id, reach).await?;
    if let Some(recorded) = &recorded {
        end.entries = with_blocks(end.entries, recorded, end.is_whole);
    }
    let counted = counted_tokens(&end.entries, recorded.as_ref()).filter(|_| budget.is_none());
    let view = context_view(&end.entries, budget);
    let sizes = view.items.iter().map(|item| message_bytes(&item.message));
    if sizes.fold(0, usize::saturating_add) > bytes_max {
        return Err(ServiceError::ContextTooLarge { limit: bytes_max });
    }
    let conversation = request
        .format
        .map(|format| formatted(context_to_format(&view, &end.entries, format, &state.streams)));
    let messages = view.items.into_iter().map(|item| ContextItem {
        is_streaming: state.streams.is_open(&item.entry_id),
        entry_id: item.entry_id,
        message: item.message,
    });
    Ok(ContextResponse {
        messages: messages.collect(),
        estimated_tokens: view.tokens as u64,
        tokens: counted.unwrap_or(view.tokens as u64),
        window: service.settings().compaction.windows.of_session(&state.details()),
        left_out: (view.left_out as u64).saturating_add(end.left_out),
        conversation,
    })
}

/// What a message takes in memory and in an answer, about.
fn message_bytes(message: &AgentMessage) -> usize {
    json_bytes(message).saturating_add(CONTEXT_MESSAGE_OVERHEAD)
}

fn formatted(conversation: Conversation) -> FormattedConversation {
    let Conversation { system, messages, losses } = conversation;
    FormattedConversation { system, messages, losses }
}

/// The tokens of a path, to which blocks were applied, as its newest answer reported them. `None` if the only reports are from
/// before a block.
fn counted_tokens(path: &[Entry], recorded: Option<&RecordedSession>) -> Option<u64> {
    let Some(session) = recorded else {
        return Some(ContextTokens::read(path.iter(), 0).tokens());
    };
    let at_end = loop_of_newest(path.iter().rev()).and_then(|id| session.get_loop(id));
    if at_end.is_some_and(|found| found.compaction_block.is_some()) {
        return None;
    }
    let loops: HashSet<&str> =
        path.iter().filter_map(|entry| loop_of(entry.origin.as_ref())).collect();
    let blocks = loops.iter().filter_map(|id| session.get_loop(id)?.compaction_block.as_ref());
    let newest = blocks.map(|block| block.created_at.unix_ms()).max();
    let before = path.iter().rposition(|entry| Some(entry.timestamp) <= newest);
    Some(ContextTokens::read(path.iter(), before.map_or(0, |at| at + 1)).tokens())
}

/// The path of a recorded session, for what its context would be with other blocks.
pub(super) struct LoopPath(PathEnd);

impl LoopPath {
    /// Reads the path to a leaf.
    pub(super) async fn read(
        store: &dyn ReadStore,
        session: &SessionId,
        leaf: Option<EntryId>,
    ) -> Result<Self, ServiceError> {
        let reach = Reach { budget: None, has_no_compaction: false, bytes_max: usize::MAX };
        Ok(Self(PathEnd::read(store, session, leaf, reach).await?))
    }

    /// How many tokens the context has, with the blocks of this session: what [`context`] answers.
    pub(super) fn tokens(&self, session: &RecordedSession) -> u64 {
        let path = with_blocks(self.0.entries.clone(), session, self.0.is_whole);
        let estimated = || context_view(&path, None).tokens as u64;
        counted_tokens(&path, Some(session)).unwrap_or_else(estimated)
    }
}

/// The recorder's view of a session, where a compaction block lies over one of its loops.
async fn with_compacted_loops(
    runtime: &Runtime,
    session: &SessionId,
    state: &SessionState,
) -> Result<Option<RecordedSession>, ServiceError> {
    if state.compactions == Some(0) || state.task_status().is_none() {
        return Ok(None);
    }
    let is_compacted =
        |session: &&RecordedSession| session.loops.iter().any(|one| one.compaction_block.is_some());
    let read = |session: Option<&RecordedSession>| session.filter(is_compacted).cloned();
    Ok(runtime.recorded.read(&*runtime.store, session, read).await?)
}

/// How far back a path is read.
#[derive(Clone, Copy)]
struct Reach {
    /// The tokens that are wanted; all when `None`.
    budget: Option<usize>,
    /// Whether the session is known to have no compaction, so that nothing older than the budget matters.
    has_no_compaction: bool,
    /// How many bytes the messages may have.
    bytes_max: usize,
}

/// The end of a path, as far back as a context needs it.
#[derive(Default)]
struct PathEnd {
    /// The oldest first once it is read. A compaction beyond the budget comes first.
    entries: Vec<Entry>,
    /// Messages that were read and are too old for the budget.
    left_out: u64,
    /// Whether the path was read to its root.
    is_whole: bool,
    tokens: usize,
    bytes: usize,
    is_full: bool,
    kept_from: Option<EntryId>,
}

impl PathEnd {
    /// Reads a path from its end back to the first entry that the newest compaction keeps. With a budget, older entries
    /// are only searched for a compaction, and not read at all if there is none.
    async fn read(
        store: &dyn ReadStore,
        session: &SessionId,
        leaf: Option<EntryId>,
        reach: Reach,
    ) -> Result<Self, ServiceError> {
        let mut end = Self::default();
        // A compaction may name a hidden entry as the first that it keeps.
        let walk = Walk::new(store, session, Direction::NewestFirst);
        let mut walk = walk.ending_at(leaf).with_hidden();
        'walk: loop {
            let Some(entries) = walk.next(SCAN_ENTRIES).await? else {
                end.is_whole = true;
                break;
            };
            for stored in entries {
                if end.take(stored.entry) {
                    break 'walk;
                }
            }
            end.is_full = end.is_full || reach.budget.is_some_and(|budget| end.exceeds(budget));
            if end.is_full && reach.has_no_compaction {
                break;
            }
            if !end.is_full && end.bytes > reach.bytes_max {
                return Err(ServiceError::ContextTooLarge { limit: reach.bytes_max });
            }
        }
        end.entries.reverse();
        Ok(end)
    }

    /// Adds the next older entry; returns whether it is the first one that counts.
    fn take(&mut self, entry: Entry) -> bool {
        let is_compaction = self.kept_from.is_none() && self.notes_compaction(&entry);
        let is_first_kept = self.kept_from.as_ref() == Some(&entry.id);
        let message = match entry.canonical() {
            Canonical::Message(message) => Some(message),
            Canonical::Custom(_) => None,
        };
        if self.is_full && !is_compaction {
            self.left_out += u64::from(message.is_some());
        } else {
            if let Some(message) = message {
                self.tokens += estimate_tokens(&message);
                self.bytes = self.bytes.saturating_add(message_bytes(&message));
            }
            self.entries.push(entry);
        }
        is_first_kept
    }

    fn notes_compaction(&mut self, entry: &Entry) -> bool {
        let Some(Bookkeeping::Compaction(compaction)) = entry.bookkeeping() else {
            return false;
        };
        self.kept_from = Some(compaction.first_kept_entry_id);
        true
    }

    /// Whether what was read exceeds a budget. The rough sum includes messages that are not sent; it is made exact when
    /// it matters.
    fn exceeds(&mut self, budget: usize) -> bool {
        if self.tokens <= budget {
            return false;
        }
        let path: Vec<Entry> = self.entries.iter().rev().cloned().collect();
        self.tokens = context_view(&path, None).tokens;
        self.tokens > budget
    }
}
