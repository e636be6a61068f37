//! Messages of users, models, tools and applications.
//!
//! A message is cheap to clone: several events, turns and records share one body.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::open_enums::PhiStopReason;
use crate::short::ShortText;
use crate::verbatim::{Verbatim, with_member};

use read::Read;

mod canonical;
mod fast;
mod read;
mod write;

/// A message in a session.
#[derive(Clone, Debug, PartialEq)]
pub enum PhiMessage {
    /// A message that a model reads or wrote.
    Llm(Arc<Verbatim<LlmMessage>>),
    /// A message for the application only.
    Extension(Arc<Verbatim<ExtensionMessage>>),
    /// A message in a role that this version does not know, as it came.
    Other(Arc<Verbatim<Value>>),
}

/// A message that a model reads or wrote, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmMessage {
    /// The message.
    pub message: Message,
    /// The turn that made it.
    pub turn_id: Option<TurnId>,
    /// Fields that this version does not know (`nodeId`, `parentId`, `tags`, ...), as they came.
    pub extra: Map<String, Value>,
}

/// A message by its role.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Message {
    /// By the user.
    User {
        /// The blocks of the message.
        content: Vec<Content>,
        /// Milliseconds since the epoch.
        timestamp: u64,
    },
    /// By the model.
    Assistant {
        /// The blocks of the message.
        content: Vec<Content>,
        /// Why the model stopped.
        stop_reason: PhiStopReason,
        /// Which model.
        model: ShortText,
        /// The provider.
        provider: ShortText,
        /// Its usage.
        usage: PhiUsage,
        /// Milliseconds since the epoch.
        timestamp: u64,
        /// The error message.
        #[serde(rename = "error_message", skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// By a tool.
    ToolResult {
        /// The call that this answers.
        tool_call_id: String,
        /// Which tool.
        tool_name: String,
        /// The blocks of the message.
        content: Vec<Content>,
        /// Whether the tool failed.
        is_error: bool,
        /// Milliseconds since the epoch.
        timestamp: u64,
    },
}

/// A message for the application, which no model sees.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionMessage {
    /// `extension`, or whatever the application calls it.
    pub role: String,
    /// The kind of the data.
    pub kind: String,
    /// The data.
    pub data: Value,
    /// Fields that this version does not know, as they came.
    pub extra: Map<String, Value>,
}

/// A block of a message.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Content {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes in base64.
        data: String,
        /// The media type.
        mime_type: String,
    },
    /// The thinking of the model.
    Thinking {
        /// The thoughts.
        thinking: String,
        /// The provider's seal on them.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The model wants a tool to be used.
    ToolCall {
        /// Names the call.
        id: String,
        /// Which tool.
        name: String,
        /// The arguments.
        arguments: Value,
    },
    /// A block of a kind that this version does not know, as it came.
    #[serde(untagged)]
    Other(Value),
}

/// Tokens spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PhiUsage {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Thought.
    #[serde(default)]
    pub reasoning: u64,
    /// Read from the provider's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Written to the provider's cache.
    #[serde(default)]
    pub cache_write: u64,
    /// All together, as the provider counts.
    #[serde(default)]
    pub total_tokens: u64,
}

/// Names a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnId {
    /// Which loop.
    pub loop_id: String,
    /// Which turn of it, from 0.
    pub turn_index: u32,
}

impl PhiUsage {
    /// Both together. Counts stop at the largest number instead of wrapping.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }
}

impl std::iter::Sum for PhiUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::plus)
    }
}

impl Message {
    /// The name of the role.
    #[must_use]
    pub const fn role(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::ToolResult { .. } => "toolResult",
        }
    }

    /// The blocks of the message.
    #[must_use]
    pub const fn content(&self) -> &Vec<Content> {
        match self {
            Self::User { content, .. }
            | Self::Assistant { content, .. }
            | Self::ToolResult { content, .. } => content,
        }
    }

    pub(crate) const fn content_mut(&mut self) -> &mut Vec<Content> {
        match self {
            Self::User { content, .. }
            | Self::Assistant { content, .. }
            | Self::ToolResult { content, .. } => content,
        }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn timestamp(&self) -> u64 {
        match self {
            Self::User { timestamp, .. }
            | Self::Assistant { timestamp, .. }
            | Self::ToolResult { timestamp, .. } => *timestamp,
        }
    }
}

impl From<Message> for PhiMessage {
    fn from(message: Message) -> Self {
        Self::from(LlmMessage { message, turn_id: None, extra: Map::new() })
    }
}

impl From<LlmMessage> for PhiMessage {
    fn from(message: LlmMessage) -> Self {
        Self::Llm(Arc::new(message.into()))
    }
}

impl From<Verbatim<Message>> for PhiMessage {
    /// The message with everything that its text holds.
    fn from(message: Verbatim<Message>) -> Self {
        let read = message.text().and_then(|text| serde_json::from_str(text).ok());
        read.unwrap_or_else(|| Self::from(message.into_value()))
    }
}

impl PhiMessage {
    /// A message of the user's, of words.
    #[must_use]
    pub fn user(text: impl Into<String>, timestamp: u64) -> Self {
        let content = vec![Content::Text { text: text.into() }];
        Message::User { content, timestamp }.into()
    }

    /// A text message of a model that ended normally, without usage.
    #[must_use]
    pub fn assistant(provider: &str, model: &str, text: impl Into<String>, timestamp: u64) -> Self {
        Message::Assistant {
            content: vec![Content::Text { text: text.into() }],
            stop_reason: PhiStopReason::Stop,
            model: model.into(),
            provider: provider.into(),
            usage: PhiUsage::default(),
            timestamp,
            error_message: None,
        }
        .into()
    }

    /// A message for the application.
    #[must_use]
    pub fn extension(kind: impl Into<String>, data: Value) -> Self {
        let extension = ExtensionMessage {
            role: "extension".to_owned(),
            kind: kind.into(),
            data,
            extra: Map::new(),
        };
        Self::Extension(Arc::new(extension.into()))
    }

    /// The role's name.
    #[must_use]
    pub fn role(&self) -> &str {
        match self {
            Self::Llm(llm) => llm.message.role(),
            Self::Extension(extension) => &extension.role,
            Self::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// The message, if a model reads or wrote it.
    #[must_use]
    pub fn as_llm(&self) -> Option<&Message> {
        match self {
            Self::Llm(llm) => Some(&llm.message),
            Self::Extension(_) | Self::Other(_) => None,
        }
    }

    /// Whether it is the model's.
    #[must_use]
    pub fn is_assistant(&self) -> bool {
        matches!(self.as_llm(), Some(Message::Assistant { .. }))
    }

    /// The turn that made it.
    #[must_use]
    pub fn turn_id(&self) -> Option<&TurnId> {
        match self {
            Self::Llm(llm) => llm.turn_id.as_ref(),
            Self::Extension(_) | Self::Other(_) => None,
        }
    }

    /// Milliseconds since the epoch; 0 where the message does not say.
    #[must_use]
    pub fn timestamp(&self) -> u64 {
        self.as_llm().map_or(0, Message::timestamp)
    }

    /// The same message in another turn; only messages of models have one.
    #[must_use]
    pub fn with_turn_id(mut self, turn_id: Option<TurnId>) -> Self {
        if let Self::Llm(llm) = &mut self
            && llm.turn_id != turn_id
        {
            let text = llm.text().and_then(|text| with_member(text, "turnId", turn_id.as_ref()));
            let llm = Arc::make_mut(llm);
            llm.value_mut().turn_id = turn_id;
            if let Some(text) = text {
                llm.set_text(text);
            }
        }
        self
    }

    /// The message by its role, without its turn; `None` if no model reads or wrote it.
    pub(crate) fn bare(&self) -> Option<Verbatim<Message>> {
        let message = self.as_llm()?.clone();
        let text = self.kept_text();
        let text = text.and_then(|text| with_member(text, "turnId", None::<&TurnId>));
        Some(match text {
            Some(text) => Verbatim::read_from(message, text),
            None => message.into(),
        })
    }

    /// The JSON text that the message came as, if it would be written differently without it.
    pub(crate) fn kept_text(&self) -> Option<&str> {
        match self {
            Self::Llm(llm) => llm.text(),
            Self::Extension(extension) => extension.text(),
            Self::Other(value) => value.text(),
        }
    }

    /// Whether both are the same message, and are written with the same bytes.
    pub(crate) fn is_written_like(&self, other: &Self) -> bool {
        self.kept_text() == other.kept_text() && self == other
    }

    /// The words of the message, its text blocks joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let blocks = self.as_llm().map_or(&[][..], |message| message.content());
        let words: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        words.join("\n")
    }
}

impl<'de> Deserialize<'de> for PhiMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if let Some(message) = fast::message(text.get()) {
            return Ok(Self::Llm(Arc::new(Verbatim::read_from(message, text))));
        }
        let value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(match read::agent_message(value).map_err(D::Error::custom)? {
            Read::Llm(message) => Self::Llm(Arc::new(Verbatim::read_from(message, text))),
            Read::Extension(message) => {
                Self::Extension(Arc::new(Verbatim::read_from(message, text)))
            }
            Read::Other(value) => Self::Other(Arc::new(Verbatim::read_from(value, text))),
        })
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::bare_message(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::content(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
