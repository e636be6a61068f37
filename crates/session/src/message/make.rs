//! Short constructors of messages and blocks.

use super::{
    AssistantMessage, ContentBlock, CustomMessage, FunctionCallBlock, FunctionResultMessage,
    StopReason, UserMessage,
};
use crate::json::RawJson;
use crate::members::UnknownMembers;

impl UserMessage {
    /// A message of a person.
    #[must_use]
    pub const fn new(content: Vec<ContentBlock>, timestamp: i64) -> Self {
        Self { content, timestamp, unknown: UnknownMembers::NONE }
    }
}

impl AssistantMessage {
    /// A message of a model that ended normally, without usage.
    #[must_use]
    pub const fn new(
        content: Vec<ContentBlock>,
        provider: String,
        model: String,
        timestamp: i64,
    ) -> Self {
        Self {
            content,
            stop_reason: StopReason::End,
            native_stop_reason: None,
            error_message: None,
            error_kind: None,
            warnings: None,
            usage: None,
            model,
            provider,
            timestamp,
            unknown: UnknownMembers::NONE,
        }
    }
}

impl FunctionResultMessage {
    /// The answer to a call that did not fail, without details.
    #[must_use]
    pub fn new(
        function_call_id: String,
        function_id: String,
        content: Vec<ContentBlock>,
        timestamp: i64,
    ) -> Self {
        Self {
            function_call_id,
            function_id,
            content,
            details: RawJson::default(),
            is_error: false,
            timestamp,
            unknown: UnknownMembers::NONE,
        }
    }
}

impl FunctionCallBlock {
    /// A call.
    #[must_use]
    pub const fn new(id: String, function_id: String, arguments: RawJson) -> Self {
        Self { id, function_id, arguments, unknown: UnknownMembers::NONE }
    }

    /// The text of arguments that are not complete yet; `None` when they are JSON of another kind.
    #[must_use]
    pub fn partial_arguments(&self) -> Option<String> {
        serde_json::from_str(self.arguments.get()).ok()
    }

    /// Replaces partial arguments by their value if they are complete JSON. Returns whether they
    /// are.
    pub fn complete_arguments(&mut self) -> bool {
        let complete = self.partial_arguments().and_then(|text| RawJson::parse(text).ok());
        complete.map(|arguments| self.arguments = arguments).is_some()
    }
}

impl CustomMessage {
    /// The type of a message that instructs the model: what other formats call the role `system`.
    ///
    /// It is not a role, because readers of the published shapes know four roles and refuse a fifth.
    pub const SYSTEM: &'static str = "system";

    /// Whether the message instructs the model.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.custom_type == Self::SYSTEM
    }
}
