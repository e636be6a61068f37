use bough_session::{EntryId, ErrorKind, SessionId, StopReason, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::finish-message`: the last words about a message that was begun with `stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FinishMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The message's entry.
    pub entry_id: EntryId,
    /// Why the model stopped. Default `end`, or `error` when there is an `error`.
    pub stop_reason: Option<StopReason>,
    /// The provider's own word for it.
    pub native_stop_reason: Option<String>,
    /// Tokens and money, as the provider reported them. They are counted from here on.
    pub usage: Option<Usage>,
    /// The model, when it was not known at the beginning.
    pub model: Option<String>,
    /// Who served the model; with `model` only.
    pub provider: Option<String>,
    /// What went wrong.
    pub error: Option<StreamError>,
    /// Notices that did not stop the message.
    pub warnings: Option<Vec<String>>,
}

/// What went wrong while a message streamed: words, or words and a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamError {
    /// In words.
    Message(String),
    /// In words, and by kind.
    Detailed {
        /// In words.
        message: String,
        /// By kind.
        kind: Option<ErrorKind>,
    },
}

impl StreamError {
    pub(crate) fn into_parts(self) -> (Option<String>, Option<ErrorKind>) {
        match self {
            Self::Message(message) => (Some(message), None),
            Self::Detailed { message, kind } => (Some(message), kind),
        }
    }
}

/// Output of `session::finish-message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishMessageResponse {
    /// The entry's last revision as a stream.
    pub revision: u64,
    /// Why the model stopped, as the message says now.
    pub stop_reason: StopReason,
}
