//! Streaming messages: begun by a call that says so, and finished by their writer or on its behalf.

use async_trait::async_trait;
use bough_session::limits::{STATE_OPEN_STREAMS_MAX, check_at_most, check_content, check_finish};
use bough_session::{
    AgentMessage, AssistantMessage, BlockEdit, ContentBlock, ContentChange, Entry, EntryId, Finish,
    ModelName, Record, Revision, Role, SessionId, SessionState, StopReason, UsageChange,
};
use bough_store::StoreExt;

use super::reading::visible_entry;
use crate::api::{FinishMessageRequest, FinishMessageResponse};
use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::{Right, Scope};
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

/// The records that append a streaming message.
pub(crate) fn begin(state: &SessionState, entry: Entry) -> Result<Vec<Record>, ServiceError> {
    if entry.role() != Some(Role::Assistant) {
        let reason = "only messages of the model stream; leave `stream` out for others";
        return Err(ServiceError::invalid(reason));
    }
    let open = state.streams.open_count() + 1;
    check_at_most("session", "open streams", open, STATE_OPEN_STREAMS_MAX)?;
    Ok(vec![Record::Streaming(entry.id.clone()), Record::Entry(entry)])
}

pub(crate) async fn finish_message(
    service: &Service,
    scope: &Scope,
    request: FinishMessageRequest,
) -> Result<FinishMessageResponse, ServiceError> {
    let session_id = request.session_id.clone();
    let entry_id = request.entry_id.clone();
    let end = End::Requested(Box::new(request));
    let may_be_done = service.began_before();
    let command = Finishing { scope: scope.clone(), entry_id: entry_id.clone(), end, may_be_done };
    let (answer, was_done) = writing::run(service, &session_id, command).await?;
    if was_done {
        service.note_replay();
    }
    note_end(service, &session_id, &entry_id).await;
    Ok(answer)
}

/// Notes that a stream is about to begin, so that it is found if its writer disappears.
pub(crate) async fn note_begin(
    service: &Service,
    session_id: &SessionId,
    entry_id: &EntryId,
) -> Result<(), ServiceError> {
    match service.open_streams_slot().get() {
        Some(streams) => streams.begin(session_id, entry_id).await,
        None => Ok(()),
    }
}

async fn note_end(service: &Service, session_id: &SessionId, entry_id: &EntryId) {
    if let Some(streams) = service.open_streams_slot().get() {
        streams.end(session_id, entry_id).await;
    }
}

/// Closes a stream as aborted if it is still at a revision; returns whether it did.
pub(crate) async fn abort(
    service: &Service,
    scope: &Scope,
    (session_id, entry_id): (&SessionId, &EntryId),
    revision: u64,
) -> Result<bool, ServiceError> {
    let end = End::Abandoned { revision };
    let command =
        Finishing { scope: scope.clone(), entry_id: entry_id.clone(), end, may_be_done: false };
    match writing::run(service, session_id, command).await {
        Ok(_) => {
            note_end(service, session_id, entry_id).await;
            Ok(true)
        }
        Err(ServiceError::NotStreaming { .. } | ServiceError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Service {
    /// The revision of a streaming message, for a caller that is about to add to it.
    pub async fn streaming_revision(
        &self,
        scope: &Scope,
        session_id: &SessionId,
        entry_id: &EntryId,
    ) -> Result<u64, ServiceError> {
        scope.allow("session::append-delta", Right::Write)?;
        let store = self.store();
        let state = store.state(session_id).await?.map(|now| now.state);
        let Some(state) = state.filter(|state| is_visible(scope, state)) else {
            return Err(ServiceError::not_found(session_id));
        };
        let Some(stored) = visible_entry(&*store, session_id, entry_id).await? else {
            return Err(ServiceError::entry_not_found(session_id, entry_id));
        };
        let revision = stored.entry.revision;
        let is_open = state.streams.is_open(entry_id);
        if is_open { Ok(revision) } else { Err(ServiceError::not_streaming(entry_id, revision)) }
    }

    /// Closes a stream as aborted whose writer is gone, if it is still at this revision and no call adds to it;
    /// returns whether it did.
    pub async fn abort_stream(
        &self,
        scope: &Scope,
        session_id: &SessionId,
        entry_id: &EntryId,
        revision: u64,
    ) -> Result<bool, ServiceError> {
        if self.is_stream_held(session_id, entry_id) {
            return Ok(false);
        }
        abort(self, scope, (session_id, entry_id), revision).await
    }
}

struct Finishing {
    scope: Scope,
    entry_id: EntryId,
    end: End,
    /// Whether the same request may have ended the stream.
    may_be_done: bool,
}

/// How a stream ends.
enum End {
    /// As its writer says.
    Requested(Box<FinishMessageRequest>),
    /// Its writer disappeared, and it is still at this revision.
    Abandoned {
        /// Which one.
        revision: u64,
    },
}

#[async_trait]
impl Command for Finishing {
    /// The answer, and whether the same request ended the stream before.
    type Answer = (FinishMessageResponse, bool);

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let is_open = context.visible(&self.scope)?.streams.is_open(&self.entry_id);
        let session = context.session().clone();
        let Some(stream) = context.streaming_message(&self.entry_id).await? else {
            return Err(ServiceError::entry_not_found(&session, &self.entry_id));
        };
        let (from, message) = (stream.entry.revision, stream.entry.message());
        let Some(AgentMessage::Assistant(message)) = message.as_deref().filter(|_| is_open) else {
            return match self.done_before(&stream.entry) {
                Some(answer) => Ok(Decision::Nothing((answer, true))),
                None => Err(ServiceError::not_streaming(&self.entry_id, from)),
            };
        };
        let finish = match &self.end {
            End::Requested(request) => requested_end(request, message)?,
            End::Abandoned { revision } if *revision == from => abandoned(message),
            // It goes on.
            End::Abandoned { .. } => return Err(ServiceError::not_streaming(&self.entry_id, from)),
        };
        let answer = FinishMessageResponse {
            revision: from.saturating_add(1),
            stop_reason: finish.stop_reason.unwrap_or(message.stop_reason),
        };
        let revision = self.revision(from, message, finish);
        Ok(Decision::Append(vec![Record::Revision(revision)], (answer, false)))
    }
}

impl Finishing {
    /// The answer to the same request before, if the message ended as this one says.
    fn done_before(&self, entry: &Entry) -> Option<FinishMessageResponse> {
        let End::Requested(request) = &self.end else { return None };
        let message = entry.message().filter(|_| self.may_be_done)?;
        let AgentMessage::Assistant(ended) = &*message else { return None };
        let finish = requested_end(request, ended).ok()?;
        let mut again = entry.clone();
        self.revision(entry.revision, ended, finish).apply(&mut again).ok()?;
        let is_same = again.message().as_deref() == Some(&*message);
        let (revision, stop_reason) = (entry.revision, ended.stop_reason);
        is_same.then_some(FinishMessageResponse { revision, stop_reason })
    }

    fn revision(&self, from: u64, message: &AssistantMessage, finish: Finish) -> Revision {
        Revision {
            entry_id: self.entry_id.clone(),
            from,
            to: from.saturating_add(1),
            change: with_complete_arguments(&message.content),
            details: None,
            origin: None,
            finish: Some(Box::new(finish)),
        }
    }
}

fn requested_end(
    said: &FinishMessageRequest,
    message: &AssistantMessage,
) -> Result<Finish, ServiceError> {
    let error = said.error.clone().map(crate::api::StreamError::into_parts);
    let (error_message, error_kind) = error.unwrap_or_default();
    let failed = said.error.is_some();
    let usual = if failed { StopReason::Error } else { StopReason::End };
    let model = said.model.clone().map(|model| ModelName {
        provider: said.provider.clone().unwrap_or_else(|| message.provider.clone()),
        model,
    });
    let name = model.as_ref().map_or(&message.model, |model| &model.model).clone();
    let usage = said.usage.clone().or_else(|| message.usage.clone());
    let finish = Finish {
        stop_reason: Some(said.stop_reason.unwrap_or(usual)),
        native_stop_reason: said.native_stop_reason.clone(),
        error_message,
        error_kind,
        warnings: said.warnings.clone(),
        usage: usage.map(|after| UsageChange { model: name, before: None, after }),
        model,
        aborted: false,
    };
    check_finish(&finish)?;
    Ok(finish)
}

/// Its usage counts, as far as it is known.
fn abandoned(message: &AssistantMessage) -> Finish {
    let usage = message.usage.clone().map(|after| UsageChange {
        model: message.model.clone(),
        before: None,
        after,
    });
    Finish { stop_reason: Some(StopReason::Aborted), usage, aborted: true, ..Finish::default() }
}

/// Parses arguments that arrived in parts.
fn with_complete_arguments(content: &[ContentBlock]) -> ContentChange {
    let mut complete = content.to_vec();
    let mut has_changed = false;
    for block in &mut complete {
        if let ContentBlock::FunctionCall(call) = block {
            has_changed |= call.complete_arguments();
        }
    }
    if has_changed && check_content(&complete, None).is_ok() {
        return ContentChange::between(content, &complete);
    }
    ContentChange::Edit(BlockEdit { keep: 0, splice: None, remove: 0, insert: Vec::new() })
}
