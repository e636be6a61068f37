//! Messages of recordings: the store's messages, with the turn that made them and the JSON that they came as.
//!
//! Events and session files have messages in phi-core's format. A message is read into [`AgentMessage`] and written again
//! with the same bytes: where writing it would give another text, the text is kept.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bough_session::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, Format, RawJson, StopReason,
    UserMessage,
};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::verbatim::{kept_text, with_member};

pub(crate) mod content;
mod read;
pub(crate) mod role_first;
mod write;

/// The kind of an extension message that holds a message of the store in whole, of a role that phi-core does not have.
const EXTENSION_KIND: &str = "bough";

/// A message of a recording. It is cheap to clone: several events, turns and records share one body.
///
/// Two are equal if everything that this version knows of them is; members that it does not know are not compared.
#[derive(Clone)]
pub struct RecordedMessage(Arc<Body>);

#[derive(Clone)]
struct Body {
    known: Known,
    /// The JSON text that it came as, if it would be written differently without it.
    text: Option<Box<RawValue>>,
    /// The message with everything that its text holds.
    whole: OnceLock<Option<AgentMessage>>,
}

/// A message as far as this version knows it.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every message is the large one, and all are behind an `Arc`"
)]
enum Known {
    /// A message that a model reads or wrote.
    Said(Said),
    /// A message for the application only, or one in a role that this version does not know.
    Other(Value),
}

/// A message that a model reads or wrote, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// The message, without members that this version does not know.
    pub(crate) message: AgentMessage,
    /// The turn that made it.
    pub(crate) turn_id: Option<TurnId>,
    /// Members that this version does not know (`nodeId`, `parentId`, `tags`, ...).
    pub(crate) extra: Map<String, Value>,
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

impl From<Said> for RecordedMessage {
    fn from(said: Said) -> Self {
        Self::new(Known::Said(said), None)
    }
}

impl From<AgentMessage> for RecordedMessage {
    fn from(message: AgentMessage) -> Self {
        if matches!(message, AgentMessage::Custom(_)) {
            return in_extension(&message);
        }
        let mapped = Format::Phi.from_canonical(&message);
        let read = mapped.messages.first().map(|json| serde_json::from_str(json.get()));
        read.and_then(Result::ok).unwrap_or_else(|| in_extension(&message))
    }
}

/// An extension message with a message of the store.
#[derive(serde::Serialize, serde::Deserialize)]
struct Extension<T> {
    role: String,
    kind: String,
    data: T,
}

fn in_extension(message: &AgentMessage) -> RecordedMessage {
    let (role, kind) = ("extension".to_owned(), EXTENSION_KIND.to_owned());
    let text = serde_json::to_string(&Extension { role, kind, data: message });
    let read = text.and_then(|text| serde_json::from_str(&text));
    read.unwrap_or_else(|_| RecordedMessage::extension(EXTENSION_KIND, Value::Null))
}

impl RecordedMessage {
    fn new(known: Known, text: Option<Box<RawValue>>) -> Self {
        Self(Arc::new(Body { known, text, whole: OnceLock::new() }))
    }

    fn read_from(known: Known, text: Box<RawValue>) -> Self {
        let text = kept_text(&known, text);
        Self::new(known, text)
    }

    /// A message that this crate makes: it is written in the order of session files.
    pub(crate) fn made(message: AgentMessage) -> Self {
        Self::from(Said { message, turn_id: None, extra: Map::new() })
    }

    /// JSON in the place of a message.
    pub(crate) fn in_place(value: Value) -> Self {
        Self::new(Known::Other(value), None)
    }

    /// A message of the user's, of words.
    #[must_use]
    pub fn user(text: impl Into<String>, timestamp: i64) -> Self {
        let content = vec![ContentBlock::text(text)];
        Self::made(AgentMessage::User(UserMessage::new(content, timestamp)))
    }

    /// A text message of a model that ended normally, without usage.
    #[must_use]
    pub fn assistant(provider: &str, model: &str, text: impl Into<String>, timestamp: i64) -> Self {
        let content = vec![ContentBlock::text(text)];
        let reply =
            AssistantMessage::new(content, provider.to_owned(), model.to_owned(), timestamp);
        Self::reply(reply, StopReason::End, "stop")
    }

    /// A message of a model with a stop reason, and its word for it.
    pub(crate) fn reply(reply: AssistantMessage, stop_reason: StopReason, word: &str) -> Self {
        Self::made(AgentMessage::Assistant(AssistantMessage {
            stop_reason,
            native_stop_reason: Some(word.to_owned()),
            usage: Some(
                reply.usage.as_ref().map_or_else(crate::usage::none, crate::usage::recorded),
            ),
            ..reply
        }))
    }

    /// A message for the application, which no model sees.
    #[must_use]
    pub fn extension(kind: impl Into<String>, data: Value) -> Self {
        let kind: String = kind.into();
        Self::in_place(json!({"role": "extension", "kind": kind, "data": data}))
    }

    /// The message; `None` for one that is the application's alone.
    #[must_use]
    pub fn message(&self) -> Option<&AgentMessage> {
        match &self.0.known {
            Known::Said(said) if self.0.text.is_none() && said.extra.is_empty() => {
                Some(&said.message)
            }
            _ => self.0.whole.get_or_init(|| self.read_whole()).as_ref(),
        }
    }

    fn read_whole(&self) -> Option<AgentMessage> {
        let json = RawJson::of(self).ok()?;
        if let Known::Other(value) = &self.0.known {
            let is_ours = value.get("kind").is_some_and(|kind| kind == EXTENSION_KIND);
            // From the text: the data is a value, which does not hold every number.
            let whole = is_ours.then(|| serde_json::from_str(json.get()).ok());
            return whole.flatten().map(|whole: Extension<AgentMessage>| whole.data);
        }
        match Format::Phi.to_canonical(&json, self.timestamp()) {
            Canonical::Message(message) => Some(Arc::unwrap_or_clone(message)),
            Canonical::Custom(_) => None,
        }
    }

    /// The message as far as this version knows it, if a model reads or wrote it.
    pub(crate) fn said(&self) -> Option<&Said> {
        match &self.0.known {
            Known::Said(said) => Some(said),
            Known::Other(_) => None,
        }
    }

    /// The same, without its turn.
    pub(crate) fn known(&self) -> Option<&AgentMessage> {
        Some(&self.said()?.message)
    }

    /// Changes the message. From now on it is written as it is known. A message of the application stays as it is.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Said)) {
        if self.said().is_none() {
            return;
        }
        let body = Arc::make_mut(&mut self.0);
        if let Known::Said(said) = &mut body.known {
            change(said);
        }
        (body.text, body.whole) = (None, OnceLock::new());
    }

    /// The JSON of a message that no model reads or wrote.
    pub(crate) fn other(&self) -> Option<&Value> {
        match &self.0.known {
            Known::Said(_) => None,
            Known::Other(value) => Some(value),
        }
    }

    /// The role's name in events: `user`, `assistant`, `toolResult`, or a name of the application's.
    #[must_use]
    pub fn role(&self) -> &str {
        match &self.0.known {
            Known::Said(said) => write::role(&said.message),
            Known::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Whether it is the model's.
    #[must_use]
    pub fn is_assistant(&self) -> bool {
        matches!(self.known(), Some(AgentMessage::Assistant(_)))
    }

    /// The call that it answers, if it is the answer of a tool.
    pub(crate) fn answered_call(&self) -> Option<&str> {
        match self.known()? {
            AgentMessage::FunctionResult(result) => Some(&result.function_call_id),
            _ => None,
        }
    }

    /// The blocks of the message, as far as this version knows them.
    pub(crate) fn content(&self) -> &[ContentBlock] {
        self.known().map_or(&[], AgentMessage::content)
    }

    /// The turn that made it.
    #[must_use]
    pub fn turn_id(&self) -> Option<&TurnId> {
        self.said()?.turn_id.as_ref()
    }

    /// Milliseconds since the epoch; 0 where the message does not say.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.known().map_or(0, AgentMessage::timestamp)
    }

    /// The same message in another turn; only messages of models have one.
    #[must_use]
    pub fn with_turn_id(mut self, turn_id: Option<TurnId>) -> Self {
        if self.said().is_none_or(|said| said.turn_id == turn_id) {
            return self;
        }
        let text = self.kept_text().and_then(|text| with_member(text, "turnId", turn_id.as_ref()));
        self.change(|said| said.turn_id = turn_id);
        if let Some(text) = text {
            let body = Arc::make_mut(&mut self.0);
            body.text = kept_text(&body.known, text);
        }
        self
    }

    /// The JSON text that the message came as, if it would be written differently without it.
    pub(crate) fn kept_text(&self) -> Option<&str> {
        self.0.text.as_deref().map(RawValue::get)
    }

    /// Whether both are the same message, and are written with the same bytes.
    pub(crate) fn is_written_like(&self, other: &Self) -> bool {
        self.kept_text() == other.kept_text() && self == other
    }

    /// The words of the message, its text blocks joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let words = self.content().iter().filter(|block| content::unknown_block(block).is_none());
        words.filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
    }
}

impl PartialEq for RecordedMessage {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.known == other.0.known
    }
}

impl fmt::Debug for RecordedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kept_text() {
            Some(text) => f.write_str(text),
            None => self.0.known.fmt(f),
        }
    }
}

impl Serialize for RecordedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.text {
            Some(text) => text.serialize(serializer),
            None => self.0.known.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RecordedMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let known = read::known(text.get()).map_err(D::Error::custom)?;
        Ok(Self::read_from(known, text))
    }
}

#[cfg(test)]
mod tests;
