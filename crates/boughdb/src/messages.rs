use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage, UserMessage,
};

/// A message of the person. Its own time is 0; the entry that holds it has the store's.
#[must_use]
pub fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], 0))
}

/// A message of a model that ended well, without usage; fill in the rest where you know it.
#[must_use]
pub fn assistant(provider: &str, model: &str, text: &str) -> AgentMessage {
    let content = vec![ContentBlock::text(text)];
    AgentMessage::Assistant(AssistantMessage::new(
        content,
        provider.to_owned(),
        model.to_owned(),
        0,
    ))
}

/// What a function that the model called gave back. The call did not fail; fill in the rest where you know it.
#[must_use]
pub fn function_result(call_id: &str, function_id: &str, text: &str) -> AgentMessage {
    let content = vec![ContentBlock::text(text)];
    AgentMessage::FunctionResult(FunctionResultMessage::new(
        call_id.to_owned(),
        function_id.to_owned(),
        content,
        0,
    ))
}
