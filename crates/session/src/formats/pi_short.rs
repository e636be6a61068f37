//! What a fold needs of a message of pi, without its content, which is most of a line.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::pi_lines::USAGE;
use crate::{
    AgentMessage, AssistantMessage, FunctionResultMessage, UnknownMembers, Usage, UserMessage,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Short<'a> {
    role: &'a str,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    tool_name: Option<&'a str>,
    is_error: Option<bool>,
    usage: Option<Figures>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
    cost: Option<Cost>,
}

#[derive(Deserialize)]
struct Cost {
    total: Option<f64>,
}

/// A message of pi that changes a [`SessionState`](crate::SessionState) as the whole one does, if the state has a preview
/// already. `None` for a message of an unusual shape, of which the whole has to be read.
#[must_use]
pub fn pi_message_in_short(message: &str) -> Option<AgentMessage> {
    let short: Short<'_> = serde_json::from_str(message).ok()?;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let (content, timestamp) = (Vec::new(), 0);
    Some(match short.role {
        "user" => AgentMessage::User(UserMessage::new(content, timestamp)),
        "assistant" => AgentMessage::Assistant(AssistantMessage {
            usage: short.usage.map(Figures::into_usage),
            ..AssistantMessage::new(content, text(short.provider), text(short.model), timestamp)
        }),
        "toolResult" if short.usage.is_none() && !short.details.is_some_and(may_report_usage) => {
            let (call, tool) = (String::new(), text(short.tool_name));
            let mut result = FunctionResultMessage::new(call, tool, content, timestamp);
            result.is_error = short.is_error.unwrap_or(false);
            AgentMessage::FunctionResult(result)
        }
        _ => return None,
    })
}

fn may_report_usage(details: &RawValue) -> bool {
    details.get().contains(USAGE)
}

impl Figures {
    fn into_usage(self) -> Usage {
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
            cost_usd: self.cost.and_then(|cost| cost.total),
            unknown: UnknownMembers::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Entry, EntryBody, EntryId, ForeignBody, RawJson, Record, SessionId, SessionState};

    /// A state that has a preview.
    fn state() -> SessionState {
        let mut state = SessionState::new(SessionId::from_stored("s"));
        let first = AgentMessage::User(UserMessage::new(vec![crate::ContentBlock::text("hi")], 1));
        apply(&mut state, EntryBody::Message(first.into()), "a");
        state
    }

    fn apply(state: &mut SessionState, body: EntryBody, id: &str) {
        let entry = Entry::new(EntryId::from_stored(id), None, 5_000, body);
        state.apply(&Record::Entry(entry), state.seq + 1, 5_000);
    }

    /// Whether the short message is enough, having compared what it changes.
    fn is_enough(message: &serde_json::Value) -> bool {
        let Some(short) = pi_message_in_short(&message.to_string()) else { return false };
        let (mut by_short, mut by_whole) = (state(), state());
        apply(&mut by_short, EntryBody::Message(short.into()), "b");
        let line = json!({"type": "message", "id": "b", "message": message});
        let (format, json) = (crate::FORMAT_PI.to_owned(), RawJson::from(line));
        apply(&mut by_whole, EntryBody::Foreign(ForeignBody { format, json, replaced: None }), "b");
        assert_eq!(by_short, by_whole, "{message}");
        true
    }

    #[test]
    fn the_usual_messages_fold_without_their_content() {
        let usage = json!({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10,
            "reasoning": 5, "cost": {"input": 0.5, "total": 0.75}});
        for message in [
            json!({"role": "user", "content": "more", "timestamp": 1}),
            json!({"role": "user", "content": [{"type": "text", "text": "more"}], "x": [1]}),
            json!({"role": "assistant", "content": [], "provider": "p", "model": "m", "usage": usage}),
            json!({"role": "assistant", "model": "m", "provider": null, "usage": null}),
            json!({"role": "assistant", "model": "m", "usage": {"cost": null, "input": null}}),
            json!({"role": "toolResult", "toolName": "read", "isError": true, "details": {"a": 1}}),
            json!({"role": "toolResult"}),
        ] {
            assert!(is_enough(&message), "{message}");
        }
    }

    #[test]
    fn messages_of_unusual_shapes_are_left_to_the_whole_mapping() {
        for message in [
            json!({"role": "bashExecution", "command": "ls"}),
            json!({"role": "system", "content": "x"}),
            json!({"role": 7}),
            json!({"content": "x"}),
            json!("x"),
            json!({"role": "assistant", "model": 7}),
            json!({"role": "assistant", "model": "a \"quoted\" one"}),
            json!({"role": "assistant", "usage": {"input": -1, "cost": {"total": 1}}}),
            json!({"role": "assistant", "usage": "much"}),
            json!({"role": "toolResult", "usage": {"input": 1}}),
            json!({"role": "toolResult", "details": {"pi.usage": {"input": 1}}}),
        ] {
            assert!(!is_enough(&message), "{message}");
        }
        assert_eq!(pi_message_in_short(r#"{"role":"user","role":"assistant"}"#), None);
    }
}
