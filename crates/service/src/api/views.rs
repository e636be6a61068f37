use std::sync::Arc;

use bough_session::{
    AgentMessage, EntryId, Format, Loss, RawJson, SessionId, UsageByModel, unfinished_json,
};
use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// Input of `session::usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The end of the branch to add up (default: the active leaf).
    pub from_entry_id: Option<EntryId>,
}

/// Output of `session::usage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageResponse {
    /// All branches together.
    pub session: UsageByModel,
    /// The path to the asked entry.
    pub branch: UsageByModel,
}

/// Input of `session::context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextRequest {
    /// The session.
    pub session_id: SessionId,
    /// The end of the path (default: the active leaf).
    pub from_entry_id: Option<EntryId>,
    /// Leave out the oldest messages until the rest fits into this many tokens (an estimate: characters / 4).
    pub max_tokens: Option<u64>,
    /// Give the messages in this format too, as its API takes them: `conversation`.
    pub format: Option<Format>,
}

/// One message of a context.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ContextItem {
    /// The entry that the message comes from; for a summary, the compaction or branch summary entry.
    pub entry_id: EntryId,
    /// What a model would be sent. Of a message that still streams, `stop_reason` is absent until it finishes.
    pub message: Arc<AgentMessage>,
    /// Whether the message still streams.
    #[serde(skip)]
    pub is_streaming: bool,
}

impl Serialize for ContextItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut item = serializer.serialize_struct("ContextItem", 2)?;
        item.serialize_field("entry_id", &self.entry_id)?;
        if self.is_streaming {
            item.serialize_field("message", &unfinished_json(&self.message))?;
        } else {
            item.serialize_field("message", &self.message)?;
        }
        item.end()
    }
}

/// Output of `session::context`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextResponse {
    /// The path with compactions and branch summaries applied, oldest first.
    pub messages: Vec<ContextItem>,
    /// How many tokens it is, estimated as characters / 4.
    pub estimated_tokens: u64,
    /// How many tokens it is as the newest answer reported it, with estimates for what came after that answer. The estimate of all,
    /// if no answer reported it, or with `max_tokens`.
    pub tokens: u64,
    /// The window of the session's model in tokens; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// How many messages the budget left out. Where a long path is not read to its beginning, those that were not read
    /// are not counted.
    pub left_out: u64,
    /// The same messages in the format that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<FormattedConversation>,
}

/// A conversation as the API of a format takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormattedConversation {
    /// What instructs the model, for the formats that take it beside the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<RawJson>,
    /// The messages, the oldest first.
    pub messages: Vec<RawJson>,
    /// What the format could not carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}
