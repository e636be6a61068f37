use bough_session::{AgentMessage, AssistantMessage, ContentBlock, StopReason, UserMessage};

/// A message of the person. Its own time is 0; the entry that holds it has the store's.
#[must_use]
pub fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: 0 })
}

/// A message of a model that ended well, without usage; fill in the rest where you know it.
#[must_use]
pub fn assistant(provider: &str, model: &str, text: &str) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content: vec![ContentBlock::text(text)],
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_message: None,
        error_kind: None,
        warnings: None,
        usage: None,
        model: model.to_owned(),
        provider: provider.to_owned(),
        timestamp: 0,
    })
}
