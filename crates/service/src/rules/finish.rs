//! Messages that stream: begun by a call that says so, and finished, by their writer or for them.

use async_trait::async_trait;
use bough_session::limits::{STATE_OPEN_STREAMS_MAX, check_at_most, check_content, check_finish};
use bough_session::{
    AgentMessage, AssistantMessage, BlockEdit, ContentBlock, ContentChange, Entry, EntryId, Finish,
    ModelName, Record, Revision, Role, SessionState, StopReason, UsageChange,
};

use crate::api::{FinishMessageRequest, FinishMessageResponse};
use crate::error::ServiceError;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

/// The records that append a message which streams.
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
    let change = Finishing { scope: scope.clone(), entry_id, end: End::Said(request) };
    writing::run(service, &session_id, change).await
}

struct Finishing {
    scope: Scope,
    entry_id: EntryId,
    end: End,
}

/// How a stream ends.
enum End {
    /// As its writer says.
    Said(FinishMessageRequest),
}

#[async_trait]
impl Command for Finishing {
    type Answer = FinishMessageResponse;

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
            return Err(ServiceError::not_streaming(&self.entry_id, from));
        };
        let finish = self.end.finish(message)?;
        let answer = FinishMessageResponse {
            revision: from.saturating_add(1),
            stop_reason: finish.stop_reason.unwrap_or(message.stop_reason),
        };
        let revision = Revision {
            entry_id: self.entry_id.clone(),
            from,
            to: answer.revision,
            change: with_complete_arguments(&message.content),
            details: None,
            origin: None,
            finish: Some(Box::new(finish)),
        };
        Ok(Decision::Append(vec![Record::Revision(revision)], answer))
    }
}

impl End {
    fn finish(&self, message: &AssistantMessage) -> Result<Finish, ServiceError> {
        let Self::Said(said) = self;
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
}

/// Arguments that came in parts become what they say.
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
