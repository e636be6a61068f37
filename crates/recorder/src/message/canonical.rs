//! Messages and usage in the store's own types, for programs that use those everywhere else.

use bough_session::{AgentMessage, Canonical, Format, RawJson, Usage};
use serde_json::Value;

use super::{PhiMessage, PhiUsage};
use crate::context::LoadedContext;
use crate::model::{LoopRecord, Turn};

/// The kind of an extension message that holds a message of the store in whole, of a role that phi-core does not have.
const EXTENSION_KIND: &str = "bough";

impl From<AgentMessage> for PhiMessage {
    /// The message as an agent's events have it. [`PhiMessage::canonical`] is the way back.
    fn from(message: AgentMessage) -> Self {
        if matches!(message, AgentMessage::Custom(_)) {
            return whole(&message);
        }
        let mapped = Format::Phi.from_canonical(&message);
        let read = mapped.messages.first().map(|json| serde_json::from_str(json.get()));
        read.and_then(Result::ok).unwrap_or_else(|| whole(&message))
    }
}

impl PhiMessage {
    /// The message in the store's own form; `None` for an extension of the application, which the store does not treat as a message.
    #[must_use]
    pub fn canonical(&self) -> Option<AgentMessage> {
        if let Self::Extension(extension) = self
            && extension.kind == EXTENSION_KIND
        {
            // From the text: the data is a value, which does not hold every number.
            let whole: Whole<AgentMessage> =
                serde_json::from_str(&serde_json::to_string(self).ok()?).ok()?;
            return Some(whole.data);
        }
        let json = RawJson::of(self).ok()?;
        let time = i64::try_from(self.timestamp()).unwrap_or(i64::MAX);
        match Format::Phi.to_canonical(&json, time) {
            Canonical::Message(message) => Some((*message).clone()),
            Canonical::Custom(_) => None,
        }
    }
}

/// An extension message with a message of the store.
#[derive(serde::Serialize, serde::Deserialize)]
struct Whole<T> {
    role: String,
    kind: String,
    data: T,
}

fn whole(message: &AgentMessage) -> PhiMessage {
    let (role, kind) = ("extension".to_owned(), EXTENSION_KIND.to_owned());
    let text = serde_json::to_string(&Whole { role, kind, data: message });
    let read = text.and_then(|text| serde_json::from_str(&text));
    read.unwrap_or_else(|_| PhiMessage::extension(EXTENSION_KIND, Value::Null))
}

impl LoopRecord {
    /// The messages that the loop made, in the store's own form. Extensions of the application are left out.
    pub fn canonical_messages(&self) -> impl Iterator<Item = AgentMessage> {
        self.messages.iter().filter_map(PhiMessage::canonical)
    }
}

impl Turn {
    /// All messages of the turn, in the store's own form and oldest first.
    pub fn canonical_messages(&self) -> impl Iterator<Item = AgentMessage> {
        self.all_messages().filter_map(PhiMessage::canonical)
    }
}

impl LoadedContext {
    /// What the agent should read, in the store's own form.
    pub fn canonical_messages(&self) -> impl Iterator<Item = AgentMessage> {
        self.messages.iter().filter_map(PhiMessage::canonical)
    }
}

impl From<Usage> for PhiUsage {
    /// The figures of a report. The price stays with its message.
    fn from(usage: Usage) -> Self {
        let figures = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        let [input, output, cache_read, cache_write] = figures.map(Option::unwrap_or_default);
        let total_tokens =
            [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
        let reasoning = usage.reasoning.unwrap_or(0);
        Self { input, output, reasoning, cache_read, cache_write, total_tokens }
    }
}

impl From<PhiUsage> for Usage {
    fn from(usage: PhiUsage) -> Self {
        Self {
            input: Some(usage.input),
            output: Some(usage.output),
            cache_read: Some(usage.cache_read),
            cache_write: Some(usage.cache_write),
            reasoning: Some(usage.reasoning),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use bough_session::{AssistantMessage, ContentBlock, ErrorKind, UserMessage};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_of_the_store_is_a_message_of_an_event_and_back() {
        let message = AgentMessage::User(UserMessage::new(vec![ContentBlock::text("Hello")], 7));
        let phi = PhiMessage::from(message.clone());
        assert_eq!((phi.role(), phi.text(), phi.timestamp()), ("user", "Hello".to_owned(), 7));
        assert_eq!(phi.canonical().map(|message| message.text()), Some(message.text()));
        let content = vec![ContentBlock::text("Hi!")];
        let mut answer = AssistantMessage::new(content, "p".to_owned(), "m".to_owned(), 9);
        let usage = Usage { cost_usd: Some(0.5), ..Usage::from(figures()) };
        answer.usage = Some(usage.clone());
        answer.native_stop_reason = Some("stop".to_owned());
        answer.error_kind = Some(ErrorKind::Transient);
        answer.warnings = Some(vec!["a parameter was dropped".to_owned()]);
        let answer = AgentMessage::Assistant(answer);
        let phi = PhiMessage::from(answer.clone());
        assert!(phi.is_assistant());
        assert_eq!(phi.canonical(), Some(answer));
        assert_eq!(PhiUsage::from(usage), figures());
    }

    #[test]
    fn a_message_of_a_role_that_phi_does_not_have_is_kept_whole() {
        let notice = r#"{"role":"custom","custom_type":"note","content":[{"type":"text","text":"Paused"}],"display":"small","timestamp":1,"n":123456789012345678901234567890}"#;
        let notice: AgentMessage = serde_json::from_str(notice).unwrap();
        let phi = PhiMessage::from(notice.clone());
        assert_eq!(phi.as_llm(), None, "no model reads it");
        assert_eq!(phi.canonical(), Some(notice));
        assert_eq!(PhiMessage::extension("ui", json!(1)).canonical(), None);
    }

    fn figures() -> PhiUsage {
        let total_tokens = 10;
        PhiUsage { input: 3, output: 4, reasoning: 2, cache_read: 1, cache_write: 2, total_tokens }
    }
}
