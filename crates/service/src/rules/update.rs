//! Changes messages: as a whole, or step by step while they stream.

use async_trait::async_trait;
use bough_session::limits::{
    CONTENT_BLOCKS_MAX, MESSAGE_BYTES_MAX, check_at_most, check_content, check_origin,
};
use bough_session::{
    AgentMessage, BlockEdit, ContentBlock, ContentChange, Delta, Entry, EntryId, FunctionCallBlock,
    JsonMap, RawJson, Role, TextAppend, ThinkingBlock, UnknownMembers, json_bytes,
};

use serde_json::Value;

use crate::api::{AppendDeltaRequest, DeltaBlock, UpdateMessageRequest, UpdateMessageResponse};
use crate::error::ServiceError;
use crate::open_session::{StreamingMessage, text_bytes};
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn update_message(
    service: &Service,
    scope: &Scope,
    request: UpdateMessageRequest,
) -> Result<UpdateMessageResponse, ServiceError> {
    let session_id = request.session_id;
    let change = Update {
        scope: scope.clone(),
        entry_id: request.entry_id,
        expected_revision: request.expected_revision,
        origin: request.origin,
        may_be_done: service.began_before(),
        wanted: Wanted::Whole { content: request.content, details: request.details },
    };
    let (answer, was_done) = writing::run(service, &session_id, change).await?;
    if was_done {
        service.note_replay();
    }
    Ok(answer)
}

pub(crate) async fn append_delta(
    service: &Service,
    scope: &Scope,
    request: AppendDeltaRequest,
) -> Result<UpdateMessageResponse, ServiceError> {
    let session_id = request.session_id;
    let change = Update {
        scope: scope.clone(),
        entry_id: request.entry_id,
        expected_revision: request.expected_revision,
        origin: request.origin,
        may_be_done: false,
        wanted: Wanted::Text {
            block: request.block,
            text: request.text,
            begins: Begins {
                kind: request.kind,
                call_id: request.function_call_id,
                function_id: request.function_id,
            },
        },
    };
    let (answer, _) = writing::run(service, &session_id, change).await?;
    Ok(answer)
}

struct Update {
    scope: Scope,
    entry_id: EntryId,
    expected_revision: Option<u64>,
    origin: Option<JsonMap>,
    /// Whether the same request may have been carried out before.
    may_be_done: bool,
    wanted: Wanted,
}

enum Wanted {
    /// New content in place of the old.
    Whole { content: Vec<ContentBlock>, details: Option<RawJson> },
    /// Text at the end of a block.
    Text { block: u32, text: String, begins: Begins },
}

/// The block that a delta begins.
struct Begins {
    kind: Option<DeltaBlock>,
    call_id: Option<String>,
    function_id: Option<String>,
}

#[async_trait]
impl Command for Update {
    /// The answer, and whether the same request was carried out before.
    type Answer = (UpdateMessageResponse, bool);

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let is_closed = context.visible(&self.scope)?.streams.is_closed(&self.entry_id);
        let (session, now_ms) = (context.session().clone(), context.now_ms);
        let Some(stream) = context.streaming_message(&self.entry_id).await? else {
            return Err(ServiceError::entry_not_found(&session, &self.entry_id));
        };
        let Some(role) = stream.entry.role() else {
            return Err(ServiceError::InvalidEntryKind { entry: self.entry_id.to_string() });
        };
        let revision = stream.entry.revision;
        if is_closed && matches!(self.wanted, Wanted::Text { .. }) {
            return Err(ServiceError::not_streaming(&self.entry_id, revision));
        }
        if self.may_be_done && self.is_done(&stream.entry) {
            return Ok(Decision::Nothing((
                UpdateMessageResponse { updated: true, revision },
                true,
            )));
        }
        if self.expected_revision.is_some_and(|expected| expected != revision) {
            let answer = UpdateMessageResponse { updated: false, revision };
            return Ok(Decision::Nothing((answer, false)));
        }
        let change = self.change(stream, role)?;
        let delta = Delta {
            at_ms: now_ms,
            entry_id: self.entry_id.clone(),
            revision: revision.saturating_add(1),
            change,
            details: self.details().cloned(),
            origin: self.origin.clone(),
        };
        let answer = UpdateMessageResponse { updated: true, revision: delta.revision };
        Ok(Decision::Step(Box::new(delta), (answer, false)))
    }
}

impl Update {
    /// Whether the message is what this request would make of it, at the revision that it would have then.
    fn is_done(&self, entry: &Entry) -> bool {
        let Wanted::Whole { content, details } = &self.wanted else { return false };
        let is_next = |expected: u64| expected.checked_add(1) == Some(entry.revision);
        let message = entry.message();
        let is_same = |message: &AgentMessage| {
            message.content() == content
                && (details.is_none() || message.details() == details.as_ref())
        };
        self.expected_revision.is_none_or(is_next) && message.as_deref().is_some_and(is_same)
    }

    /// The difference between the message and the wanted content.
    fn change(&self, stream: &StreamingMessage, role: Role) -> Result<ContentChange, ServiceError> {
        let takes_details = matches!(role, Role::FunctionResult | Role::Custom);
        if self.details().is_some() && !takes_details {
            return Err(ServiceError::DetailsNotSupported {
                entry: self.entry_id.to_string(),
                role,
            });
        }
        self.origin.as_ref().map_or(Ok(()), check_origin)?;
        match &self.wanted {
            Wanted::Whole { content, details } => {
                check_content(content, details.as_ref())?;
                Ok(with_content(&stream.entry, |old| ContentChange::between(old, content)))
            }
            Wanted::Text { block, text, begins } => {
                let change =
                    with_content(&stream.entry, |old| add_text(old, *block, text, begins))?;
                let bytes = stream.bytes().saturating_add(bytes_added(&change));
                check_at_most("message", "bytes", bytes, MESSAGE_BYTES_MAX)?;
                Ok(change)
            }
        }
    }

    fn details(&self) -> Option<&RawJson> {
        match &self.wanted {
            Wanted::Whole { details, .. } => details.as_ref(),
            Wanted::Text { .. } => None,
        }
    }
}

/// How many bytes of JSON a message grows by.
fn bytes_added(change: &ContentChange) -> usize {
    match change {
        ContentChange::Append(more) => text_bytes(&more.text),
        // Each new block comes with a comma.
        ContentChange::Edit(edit) => edit.insert.iter().map(|block| json_bytes(block) + 1).sum(),
        ContentChange::Content(content) => json_bytes(content),
    }
}

/// Passes a message's content to `read`, without copying it if it is stored as it is shown.
fn with_content<T>(entry: &Entry, read: impl FnOnce(&[ContentBlock]) -> T) -> T {
    if let bough_session::EntryBody::Message(message) = &entry.body {
        return read(message.content());
    }
    let message = entry.message();
    read(message.as_deref().map_or(&[], AgentMessage::content))
}

fn add_text(
    old: &[ContentBlock],
    block: u32,
    text: &str,
    begins: &Begins,
) -> Result<ContentChange, ServiceError> {
    let index = usize::try_from(block).unwrap_or(usize::MAX);
    let text = text.to_owned();
    match old.get(index) {
        Some(there) => {
            begins.check(block, there)?;
            Ok(ContentChange::Append(TextAppend { block, text }))
        }
        None if index == old.len() => {
            check_at_most("content", "blocks", old.len() + 1, CONTENT_BLOCKS_MAX)?;
            let insert = vec![begins.block(block, text)?];
            Ok(ContentChange::Edit(BlockEdit { keep: block, splice: None, remove: 0, insert }))
        }
        None => Err(ServiceError::invalid(format!(
            "there is no block {block}; the message has {}",
            old.len()
        ))),
    }
}

impl Begins {
    /// Refuses text for a block without text, or of another kind.
    fn check(&self, block: u32, there: &ContentBlock) -> Result<(), ServiceError> {
        let kind = match there {
            ContentBlock::Text(_) => DeltaBlock::Text,
            ContentBlock::Thinking(_) => DeltaBlock::Thinking,
            ContentBlock::FunctionCall(call) if call.partial_arguments().is_some() => {
                DeltaBlock::ToolArguments
            }
            ContentBlock::FunctionCall(_) => {
                let reason = format!("the arguments of block {block} are complete");
                return Err(ServiceError::invalid(reason));
            }
            ContentBlock::Image(_) | ContentBlock::FunctionResult(_) => {
                let reason = format!("block {block} takes no text; it is a picture or a result");
                return Err(ServiceError::invalid(reason));
            }
        };
        match self.kind {
            Some(said) if said != kind => {
                let (kind, said) = (kind.name(), said.name());
                let reason = format!("block {block} is of kind `{kind}`, not `{said}`");
                Err(ServiceError::invalid(reason))
            }
            _ => Ok(()),
        }
    }

    /// The block that a delta begins.
    fn block(&self, block: u32, text: String) -> Result<ContentBlock, ServiceError> {
        Ok(match self.kind.unwrap_or_default() {
            DeltaBlock::Text => ContentBlock::text(text),
            DeltaBlock::Thinking => ContentBlock::Thinking(ThinkingBlock {
                text,
                signature: None,
                unknown: UnknownMembers::default(),
            }),
            DeltaBlock::ToolArguments => {
                let (Some(id), Some(function_id)) = (&self.call_id, &self.function_id) else {
                    let reason = format!(
                        "block {block} begins a call; say which with `function_call_id` and `function_id`"
                    );
                    return Err(ServiceError::invalid(reason));
                };
                let arguments = RawJson::from(Value::String(text));
                let call = FunctionCallBlock::new(id.clone(), function_id.clone(), arguments);
                ContentBlock::FunctionCall(call)
            }
        })
    }
}
