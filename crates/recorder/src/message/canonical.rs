//! Messages and usage in the store's own types, for programs that use those everywhere else.

use bough_session::{AgentMessage, Canonical, Format, RawJson, Usage};

use super::{PhiMessage, PhiUsage};

impl From<AgentMessage> for PhiMessage {
    /// The message as an agent's events have it. What phi's form has no place for is left out, as in
    /// [`Format::from_canonical`].
    fn from(message: AgentMessage) -> Self {
        let mapped = Format::Phi.from_canonical(&message);
        let read = mapped.messages.first().map(|json| serde_json::from_str(json.get()));
        match read {
            Some(Ok(message)) => message,
            // A kind of message that phi does not have; nothing of it is lost.
            _ => Self::extension("bough", serde_json::to_value(&message).unwrap_or_default()),
        }
    }
}

impl PhiMessage {
    /// The message in the store's own form; `None` for an extension, which is no message there.
    #[must_use]
    pub fn canonical(&self) -> Option<AgentMessage> {
        let json = RawJson::of(self).ok()?;
        let time = i64::try_from(self.timestamp()).unwrap_or(i64::MAX);
        match Format::Phi.to_canonical(&json, time) {
            Canonical::Message(message) => Some((*message).clone()),
            Canonical::Custom(_) => None,
        }
    }
}

impl From<&Usage> for PhiUsage {
    fn from(usage: &Usage) -> Self {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        Self {
            input,
            output,
            reasoning: usage.reasoning.unwrap_or(0),
            cache_read: usage.cache_read.unwrap_or(0),
            cache_write: usage.cache_write.unwrap_or(0),
            total_tokens: input.saturating_add(output),
        }
    }
}

#[cfg(test)]
mod tests {
    use bough_session::{AssistantMessage, ContentBlock, UserMessage};

    use super::*;

    #[test]
    fn a_message_of_the_store_is_a_message_of_an_event_and_back() {
        let said = AgentMessage::User(UserMessage::new(vec![ContentBlock::text("Hello")], 7));
        let phi = PhiMessage::from(said.clone());
        assert_eq!((phi.role(), phi.text(), phi.timestamp()), ("user", "Hello".to_owned(), 7));
        assert_eq!(phi.canonical().map(|message| message.text()), Some(said.text()));
        let content = vec![ContentBlock::text("Hi!")];
        let mut answer = AssistantMessage::new(content, "p".to_owned(), "m".to_owned(), 9);
        let usage = Usage { input: Some(3), output: Some(4), ..Usage::default() };
        answer.usage = Some(usage.clone());
        let phi = PhiMessage::from(AgentMessage::Assistant(answer));
        assert!(phi.is_assistant());
        let back = phi.canonical();
        let Some(AgentMessage::Assistant(back)) = back else { panic!("{back:?}") };
        assert_eq!((back.model.as_str(), back.provider.as_str()), ("m", "p"));
        assert_eq!(back.usage.and_then(|usage| usage.output), Some(4));
        assert_eq!(PhiUsage::from(&usage).total_tokens, 7);
    }
}
