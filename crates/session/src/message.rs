//! The canonical message: what one party of a conversation said.
//!
//! These shapes are published: their JSON is what the API accepts and answers, and what the files hold.
//! Optional fields that are absent are left out, with the exceptions that the API documents
//! (`details` and `is_error` of a function result, `arguments` of a call).
//!
//! Members that these shapes do not know are kept in `unknown`, and written behind the known ones as they came.
//! How the shapes are read is in [`read`].

mod make;
mod read;

pub use read::{ContentOrText, NewMessage};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::members::UnknownMembers;

/// A message of the transcript, told apart by `role`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum AgentMessage {
    /// Said by the person.
    User(UserMessage),
    /// Said by the model.
    Assistant(AssistantMessage),
    /// What a function call gave back.
    FunctionResult(FunctionResultMessage),
    /// Anything else that belongs in the transcript: notices, marks, attachments.
    Custom(CustomMessage),
}

/// Said by the person.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UserMessage {
    /// What was said.
    pub content: Vec<ContentBlock>,
    /// Milliseconds since the epoch, by the caller's clock.
    pub timestamp: i64,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// Said by the model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AssistantMessage {
    /// What was said.
    pub content: Vec<ContentBlock>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The provider's own word for why it stopped, untouched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_stop_reason: Option<String>,
    /// What went wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What went wrong, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Notices that did not stop the message, such as a parameter that was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model's name.
    pub model: String,
    /// Who served the model.
    pub provider: String,
    /// Milliseconds since the epoch, by the caller's clock.
    pub timestamp: i64,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// What a function call gave back.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionResultMessage {
    /// The id of the call that this answers.
    pub function_call_id: String,
    /// The function that was called.
    pub function_id: String,
    /// The result as the model sees it.
    pub content: Vec<ContentBlock>,
    /// The result as data, beside its rendering.
    #[serde(default)]
    pub details: RawJson,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Milliseconds since the epoch, by the caller's clock.
    pub timestamp: i64,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// Anything else that belongs in the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CustomMessage {
    /// The application's own word for what this is.
    pub custom_type: String,
    /// What it says.
    pub content: Vec<ContentBlock>,
    /// How to show it, in the application's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// Data beside the rendering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RawJson>,
    /// Milliseconds since the epoch, by the caller's clock.
    pub timestamp: i64,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// The unit of content; a message's content is an ordered list of these.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Words.
    Text(TextBlock),
    /// A picture.
    Image(ImageBlock),
    /// What the model thought before it spoke.
    Thinking(ThinkingBlock),
    /// A call that the model wants made.
    FunctionCall(FunctionCallBlock),
    /// The answer to a call, inside a message.
    FunctionResult(FunctionResultBlock),
}

/// Words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextBlock {
    /// The words.
    pub text: String,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImageBlock {
    /// MIME type, such as `image/png`.
    pub mime: String,
    /// The bytes in base64.
    pub data: String,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// What the model thought before it spoke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThinkingBlock {
    /// The thought.
    pub text: String,
    /// The provider's signature over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// A call that the model wants made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionCallBlock {
    /// Names this call; the result repeats it.
    pub id: String,
    /// The function to call.
    pub function_id: String,
    /// The arguments as the model made them.
    #[serde(default)]
    pub arguments: RawJson,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// The answer to a call, inside a message.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionResultBlock {
    /// The call that this answers.
    pub function_call_id: String,
    /// The answer.
    pub content: Vec<ContentBlock>,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

/// Who speaks in a message.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A function.
    FunctionResult,
    /// The application.
    Custom,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    End,
    /// It ran out of room.
    Length,
    /// It wants a function called.
    FunctionCall,
    /// Somebody stopped it.
    Aborted,
    /// It failed.
    Error,
}

/// What kind of failure a message ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The credentials are no longer good.
    AuthExpired,
    /// Too many requests.
    RateLimited,
    /// The conversation no longer fits the model.
    ContextOverflow,
    /// Trying again may help.
    Transient,
    /// Trying again will not help.
    Permanent,
}

/// Tokens and money, as the provider reported them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Tokens read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Tokens thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Price in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Members that this shape does not know, as they came.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownMembers,
}

impl AgentMessage {
    /// The role.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::User(_) => Role::User,
            Self::Assistant(_) => Role::Assistant,
            Self::FunctionResult(_) => Role::FunctionResult,
            Self::Custom(_) => Role::Custom,
        }
    }

    /// The content.
    #[must_use]
    pub fn content(&self) -> &[ContentBlock] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::FunctionResult(message) => &message.content,
            Self::Custom(message) => &message.content,
        }
    }

    /// The content, for changing it.
    pub const fn content_mut(&mut self) -> &mut Vec<ContentBlock> {
        match self {
            Self::User(message) => &mut message.content,
            Self::Assistant(message) => &mut message.content,
            Self::FunctionResult(message) => &mut message.content,
            Self::Custom(message) => &mut message.content,
        }
    }

    /// The members that the shape does not know.
    #[must_use]
    pub const fn unknown(&self) -> &UnknownMembers {
        match self {
            Self::User(message) => &message.unknown,
            Self::Assistant(message) => &message.unknown,
            Self::FunctionResult(message) => &message.unknown,
            Self::Custom(message) => &message.unknown,
        }
    }

    /// The members that the shape does not know, to change them.
    pub const fn unknown_mut(&mut self) -> &mut UnknownMembers {
        match self {
            Self::User(message) => &mut message.unknown,
            Self::Assistant(message) => &mut message.unknown,
            Self::FunctionResult(message) => &mut message.unknown,
            Self::Custom(message) => &mut message.unknown,
        }
    }

    /// When it was said, by the caller's clock.
    #[must_use]
    pub const fn timestamp(&self) -> i64 {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::FunctionResult(message) => message.timestamp,
            Self::Custom(message) => message.timestamp,
        }
    }

    /// The structured data beside the content, for the roles that have it.
    #[must_use]
    pub const fn details(&self) -> Option<&RawJson> {
        match self {
            Self::FunctionResult(message) => Some(&message.details),
            Self::Custom(message) => message.details.as_ref(),
            Self::User(_) | Self::Assistant(_) => None,
        }
    }

    /// Sets the structured data beside the content. Returns whether the role has it.
    pub fn set_details(&mut self, details: RawJson) -> bool {
        match self {
            Self::FunctionResult(message) => message.details = details,
            Self::Custom(message) => message.details = Some(details),
            Self::User(_) | Self::Assistant(_) => return false,
        }
        true
    }

    /// The usage that a model's message reports.
    #[must_use]
    pub const fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Assistant(message) => message.usage.as_ref(),
            _ => None,
        }
    }

    /// The same message with its usage; only a model's message has one.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        if let Self::Assistant(message) = &mut self {
            message.usage = Some(usage);
        }
        self
    }

    /// The text blocks joined by line breaks, without thoughts, calls and pictures.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.content().iter().filter_map(ContentBlock::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl ContentBlock {
    /// A block of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), unknown: UnknownMembers::default() })
    }

    /// The words of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The members that the shape does not know.
    #[must_use]
    pub const fn unknown(&self) -> &UnknownMembers {
        match self {
            Self::Text(block) => &block.unknown,
            Self::Image(block) => &block.unknown,
            Self::Thinking(block) => &block.unknown,
            Self::FunctionCall(block) => &block.unknown,
            Self::FunctionResult(block) => &block.unknown,
        }
    }

    /// The members that the shape does not know, to change them.
    pub const fn unknown_mut(&mut self) -> &mut UnknownMembers {
        match self {
            Self::Text(block) => &mut block.unknown,
            Self::Image(block) => &mut block.unknown,
            Self::Thinking(block) => &mut block.unknown,
            Self::FunctionCall(block) => &mut block.unknown,
            Self::FunctionResult(block) => &mut block.unknown,
        }
    }

    /// The text that a stream appends to: that of a text or a thinking block.
    #[must_use]
    pub fn stream_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Thinking(block) => Some(&block.text),
            _ => None,
        }
    }

    /// Appends what a stream sends: text, or a part of a call's arguments. Returns whether the block can grow.
    ///
    /// Incomplete arguments are not valid JSON by themselves, so they are kept as a JSON string with the text so far.
    pub fn append_text(&mut self, more: &str) -> bool {
        let Self::FunctionCall(call) = self else {
            return self.stream_text_mut().map(|text| text.push_str(more)).is_some();
        };
        let Some(mut text) = call.partial_arguments() else { return false };
        text.push_str(more);
        RawJson::of(&text).map(|arguments| call.arguments = arguments).is_ok()
    }

    /// The text that a stream appends to, for changing it.
    pub const fn stream_text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Text(block) => Some(&mut block.text),
            Self::Thinking(block) => Some(&mut block.text),
            _ => None,
        }
    }
}

impl Role {
    /// The role's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::FunctionResult => "function_result",
            Self::Custom => "custom",
        }
    }
}
