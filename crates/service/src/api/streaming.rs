use bough_session::{EntryId, ErrorKind, SessionId, StopReason, Usage};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

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
    /// Tokens and money. They are counted from here on.
    #[serde(default, deserialize_with = "usage_that_counts")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamError {
    /// A message for people.
    Message(String),
    /// A message for people, with the kind of failure.
    Detailed(DetailedError),
}

/// What went wrong while a message streamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetailedError {
    /// A message for people.
    pub message: String,
    /// The kind of failure, which says whether trying again may help.
    pub kind: Option<ErrorKind>,
}

impl StreamError {
    pub(crate) fn into_parts(self) -> (Option<String>, Option<ErrorKind>) {
        match self {
            Self::Message(message) => (Some(message), None),
            Self::Detailed(error) => (Some(error.message), error.kind),
        }
    }
}

/// A derived reader of two forms would not say what is wrong with the second one.
impl<'de> Deserialize<'de> for StreamError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = StreamError;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, or an object with `message` and `kind`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<StreamError, E> {
                Ok(StreamError::Message(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StreamError, A::Error> {
                let error = DetailedError::deserialize(MapAccessDeserializer::new(map))?;
                Ok(StreamError::Detailed(error))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

/// A report of usage without unknown members: a misspelt one would count as 0, and nothing can mend it afterwards.
fn usage_that_counts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Usage>, D::Error> {
    const KNOWN: &[&str] =
        &["input", "output", "cache_read", "cache_write", "reasoning", "cost_usd"];
    let usage = Option::<Usage>::deserialize(deserializer)?;
    let unknown = usage.as_ref().and_then(|usage| usage.unknown.iter().next());
    match unknown {
        Some((name, _)) => Err(D::Error::unknown_field(name, KNOWN)),
        None => Ok(usage),
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
