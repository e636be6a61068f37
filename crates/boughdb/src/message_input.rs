use bough_session::{AgentMessage, RawJson};
use serde_json::{Value, json};

/// A message to append: a text (of the user), a message in Bough's own form, or any JSON in one of the
/// [formats](crate::Format).
///
/// ```
/// use boughdb::{MessageInput, assistant};
/// use serde_json::json;
///
/// let question = MessageInput::from("Will it rain?");
/// assert_eq!(question.json()["role"], "user");
/// let answer = MessageInput::from(assistant("my-provider", "my-model", "No."));
/// assert_eq!(answer.json()["role"], "assistant");
/// // Kept as it is when it is appended with `format: Some(Format::Anthropic)`.
/// let block = json!({ "type": "text", "text": "No.", "cache_control": { "type": "ephemeral" } });
/// let message = MessageInput::from(json!({ "role": "assistant", "content": [block] }));
/// # drop(message);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MessageInput(RawJson);

impl MessageInput {
    /// The message as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        self.0.value()
    }

    pub(crate) fn into_raw(self) -> RawJson {
        self.0
    }
}

impl From<&str> for MessageInput {
    fn from(text: &str) -> Self {
        json!({ "role": "user", "content": text }).into()
    }
}

impl From<String> for MessageInput {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<AgentMessage> for MessageInput {
    fn from(message: AgentMessage) -> Self {
        // A message holds nothing that JSON cannot say.
        Self(RawJson::of(&message).unwrap_or_default())
    }
}

impl From<Value> for MessageInput {
    fn from(message: Value) -> Self {
        Self(message.into())
    }
}

impl From<RawJson> for MessageInput {
    fn from(message: RawJson) -> Self {
        Self(message)
    }
}
