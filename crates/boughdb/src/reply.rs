use bough_service::api::{
    AppendDeltaRequest, DeltaBlock, FinishMessageRequest, FinishMessageResponse, StreamError,
};
use bough_session::{EntryId, StopReason, Usage};
use serde_json::{Value, json};

use crate::{AppendOptions, Error, Session};

/// How a message that streams begins; see [`Session::stream`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamOptions {
    /// The message as it begins. Default: a message of the model without content.
    pub message: Option<Value>,
    /// The model, when it is known.
    pub model: Option<String>,
    /// Where and how it is appended.
    pub append: AppendOptions,
}

impl StreamOptions {
    /// A reply of a model.
    #[must_use]
    pub fn model(model: &str) -> Self {
        Self { model: Some(model.to_owned()), ..Self::default() }
    }

    pub(crate) fn begin(self) -> (Value, AppendOptions) {
        let mut message = json!({ "role": "assistant", "content": [] });
        if let Some(begun) = message.as_object_mut() {
            if let Some(Value::Object(given)) = self.message {
                begun.extend(given);
            }
            begun.extend(self.model.map(|model| ("model".to_owned(), model.into())));
        }
        (message, self.append)
    }
}

/// How a reply ends; see [`Reply::finish`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishOptions {
    /// Why the model stopped. Default `end`, or `error` when there is an `error`.
    pub stop_reason: Option<StopReason>,
    /// Tokens and money; they count from here on.
    pub usage: Option<Usage>,
    /// The model, when it was not known at the beginning.
    pub model: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// A message that is written piece by piece. Readers see each piece as soon as it is durable.
///
/// Made by [`Session::stream`]. End it with [`Reply::finish`]. A reply that is dropped before is closed as aborted, so that a
/// `?` in the middle leaves no message open; where no runtime is left to do that, it is closed after
/// the time that the store has for abandoned streams.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::{Bough, ContentBlock, FinishOptions, StreamOptions};
///
/// let session = Bough::in_memory()?.create("Weather").await?;
/// let mut reply = session.stream(StreamOptions::model("m-1")).await?;
/// reply.thinking("I should look.").await?;
/// reply.text("Let me ").await?;
/// reply.text("look.").await?;
/// reply.finish(FinishOptions::default()).await?;
///
/// let message = &session.messages().await?[0].message;
/// assert!(matches!(message.content()[0], ContentBlock::Thinking(_)));
/// assert_eq!(message.text(), "Let me look.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reply {
    session: Session,
    entry_id: EntryId,
    revision: u64,
    blocks: BlockCounter,
    is_open: bool,
}

/// To which block a piece belongs: text of another kind begins the next one.
#[derive(Debug)]
struct BlockCounter {
    count: u32,
    kind: Option<DeltaBlock>,
}

impl BlockCounter {
    fn block(&mut self, kind: DeltaBlock) -> u32 {
        if self.kind != Some(kind) {
            self.kind = Some(kind);
            self.count += 1;
        }
        self.count.saturating_sub(1)
    }
}

/// How many blocks a message has when it begins; one text in place of a list is a block.
pub(crate) fn block_count(message: &Value) -> u32 {
    match message.get("content") {
        Some(Value::Array(blocks)) => u32::try_from(blocks.len()).unwrap_or(u32::MAX),
        Some(Value::String(_)) => 1,
        _ => 0,
    }
}

impl Reply {
    pub(crate) const fn new(
        session: Session,
        entry_id: EntryId,
        revision: u64,
        blocks: u32,
    ) -> Self {
        let blocks = BlockCounter { count: blocks, kind: None };
        Self { session, entry_id, revision, blocks, is_open: true }
    }

    /// The entry that holds the message.
    #[must_use]
    pub const fn entry_id(&self) -> &EntryId {
        &self.entry_id
    }

    /// How often the message has changed.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Adds to what the model says. Durable when this returns.
    pub async fn text(&mut self, text: &str) -> Result<(), Error> {
        self.add(DeltaBlock::Text, text, None).await
    }

    /// Adds to what the model thinks.
    pub async fn thinking(&mut self, text: &str) -> Result<(), Error> {
        self.add(DeltaBlock::Thinking, text, None).await
    }

    /// Begins a call of a function; `arguments` is the beginning of the JSON that [`Reply::tool_arguments`] adds to.
    pub async fn tool_call(
        &mut self,
        call_id: &str,
        function: &str,
        arguments: &str,
    ) -> Result<(), Error> {
        self.blocks.kind = None;
        let call = (call_id.to_owned(), function.to_owned());
        self.add(DeltaBlock::ToolArguments, arguments, Some(call)).await
    }

    /// Adds to the arguments of the call that was begun last.
    pub async fn tool_arguments(&mut self, text: &str) -> Result<(), Error> {
        self.add(DeltaBlock::ToolArguments, text, None).await
    }

    /// Ends the message. Returns the stop reason and the revision of the finished message; `session/not_streaming` if another
    /// writer closed it.
    pub async fn finish(mut self, options: FinishOptions) -> Result<FinishMessageResponse, Error> {
        self.is_open = false;
        finish(&self.session, &self.entry_id, options).await
    }

    async fn add(
        &mut self,
        kind: DeltaBlock,
        text: &str,
        call: Option<(String, String)>,
    ) -> Result<(), Error> {
        if text.is_empty() && call.is_none() {
            return Ok(());
        }
        let (function_call_id, function_id) = call.unzip();
        let request = AppendDeltaRequest {
            session_id: self.session.id().clone(),
            entry_id: self.entry_id.clone(),
            block: self.blocks.block(kind),
            text: text.to_owned(),
            kind: Some(kind),
            function_call_id,
            function_id,
            expected_revision: None,
            origin: None,
        };
        let bough = self.session.bough();
        let added = bough.service().append_delta(bough.scope(), request).await?;
        self.revision = added.revision;
        Ok(())
    }
}

async fn finish(
    session: &Session,
    entry_id: &EntryId,
    options: FinishOptions,
) -> Result<FinishMessageResponse, Error> {
    let request = FinishMessageRequest {
        session_id: session.id().clone(),
        entry_id: entry_id.clone(),
        stop_reason: options.stop_reason,
        native_stop_reason: None,
        usage: options.usage,
        model: options.model,
        provider: None,
        error: options.error.map(StreamError::Message),
        warnings: None,
    };
    let bough = session.bough();
    Ok(bough.service().finish_message(bough.scope(), request).await?)
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let (session, entry_id) = (self.session.clone(), self.entry_id.clone());
        let aborted =
            FinishOptions { stop_reason: Some(StopReason::Aborted), ..FinishOptions::default() };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // What fails is closed as an abandoned stream later.
            runtime.spawn(async move { drop(finish(&session, &entry_id, aborted).await) });
        }
    }
}
