//! From messages to JSON.
//!
//! The files use two orders of keys: within a [`PhiMessage`] they are sorted; everywhere else a
//! message begins with its tag.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{Content, ExtensionMessage, LlmMessage, Message, PhiMessage, PhiUsage};

impl Serialize for PhiMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Llm(llm) => llm.serialize(serializer),
            Self::Extension(extension) => extension.serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl Serialize for LlmMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.extra.is_empty() {
            SortedMessage(self).serialize(serializer)
        } else {
            with_extra(&SortedMessage(self), &self.extra, serializer)
        }
    }
}

impl Serialize for ExtensionMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Plain<'a>(&'a ExtensionMessage);
        impl Serialize for Plain<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("role", &self.0.role)?;
                map.serialize_entry("kind", &self.0.kind)?;
                map.serialize_entry("data", &self.0.data)?;
                map.end()
            }
        }
        if self.extra.is_empty() {
            Plain(self).serialize(serializer)
        } else {
            with_extra(&Plain(self), &self.extra, serializer)
        }
    }
}

/// Merges fields that this version does not know among the sorted ones that it does.
fn with_extra<S: Serializer>(
    known: &impl Serialize,
    extra: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(known).map_err(serde::ser::Error::custom)?;
    if let Value::Object(fields) = &mut value {
        for (key, extra) in extra {
            fields.entry(key).or_insert_with(|| extra.clone());
        }
    }
    value.serialize(serializer)
}

struct SortedMessage<'a>(&'a LlmMessage);

impl Serialize for SortedMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let turn_id = &self.0.turn_id;
        match &self.0.message {
            Message::User { content, timestamp } => {
                map.serialize_entry("content", &SortedBlocks(content))?;
                map.serialize_entry("role", "user")?;
                map.serialize_entry("timestamp", timestamp)?;
            }
            Message::Assistant {
                content,
                stop_reason,
                model,
                provider,
                usage,
                timestamp,
                error_message,
            } => {
                map.serialize_entry("content", &SortedBlocks(content))?;
                if let Some(error) = error_message {
                    map.serialize_entry("error_message", error)?;
                }
                map.serialize_entry("model", model)?;
                map.serialize_entry("provider", provider)?;
                map.serialize_entry("role", "assistant")?;
                map.serialize_entry("stopReason", stop_reason)?;
                map.serialize_entry("timestamp", timestamp)?;
                if let Some(turn_id) = turn_id {
                    map.serialize_entry("turnId", turn_id)?;
                }
                map.serialize_entry("usage", &SortedUsage(usage))?;
                return map.end();
            }
            Message::ToolResult { tool_call_id, tool_name, content, is_error, timestamp } => {
                map.serialize_entry("content", &SortedBlocks(content))?;
                map.serialize_entry("isError", is_error)?;
                map.serialize_entry("role", "toolResult")?;
                map.serialize_entry("timestamp", timestamp)?;
                map.serialize_entry("toolCallId", tool_call_id)?;
                map.serialize_entry("toolName", tool_name)?;
            }
        }
        if let Some(turn_id) = turn_id {
            map.serialize_entry("turnId", turn_id)?;
        }
        map.end()
    }
}

struct SortedUsage<'a>(&'a PhiUsage);

impl Serialize for SortedUsage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = self.0;
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("cache_read", &usage.cache_read)?;
        map.serialize_entry("cache_write", &usage.cache_write)?;
        map.serialize_entry("input", &usage.input)?;
        map.serialize_entry("output", &usage.output)?;
        map.serialize_entry("reasoning", &usage.reasoning)?;
        map.serialize_entry("total_tokens", &usage.total_tokens)?;
        map.end()
    }
}

struct SortedBlocks<'a>(&'a [Content]);

impl Serialize for SortedBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(SortedBlock))
    }
}

struct SortedBlock<'a>(&'a Content);

impl Serialize for SortedBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Content::Other(value) = self.0 {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Content::Text { text } => map.serialize_entry("text", text)?,
            Content::Image { data, mime_type } => {
                map.serialize_entry("data", data)?;
                map.serialize_entry("mimeType", mime_type)?;
            }
            Content::Thinking { thinking, signature } => {
                if let Some(signature) = signature {
                    map.serialize_entry("signature", signature)?;
                }
                map.serialize_entry("thinking", thinking)?;
            }
            Content::ToolCall { id, name, arguments } => {
                map.serialize_entry("arguments", arguments)?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
            }
            Content::Other(_) => {}
        }
        map.serialize_entry("type", block_type(self.0))?;
        map.end()
    }
}

const fn block_type(block: &Content) -> &'static str {
    match block {
        Content::Text { .. } => "text",
        Content::Image { .. } => "image",
        Content::Thinking { .. } => "thinking",
        Content::ToolCall { .. } => "toolCall",
        Content::Other(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::read::Read;

    fn check(text: &str) {
        let message: PhiMessage = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }

    #[test]
    fn messages_are_written_as_they_are_read() {
        check(r#"{"content":[{"text":"é \"q\"\n","type":"text"}],"role":"user","timestamp":1}"#);
        check(concat!(
            r#"{"content":[{"signature":"s","thinking":"hm","type":"thinking"},"#,
            r#"{"arguments":{"a":[1,null]},"id":"c","name":"bash","type":"toolCall"}],"#,
            r#""error_message":"x","model":"m","provider":"p","role":"assistant","#,
            r#""stopReason":"toolUse","timestamp":2,"turnId":{"loopId":"l","turnIndex":3},"#,
            r#""usage":{"cache_read":1,"cache_write":2,"input":3,"output":4,"reasoning":5,"total_tokens":6}}"#
        ));
        check(concat!(
            r#"{"content":[{"data":"aGk=","mimeType":"image/png","type":"image"}],"isError":false,"#,
            r#""role":"toolResult","timestamp":5,"toolCallId":"c","toolName":"bash"}"#
        ));
        check(r#"{"role":"extension","kind":"ui","data":{"toast":"hi"}}"#);
    }

    #[test]
    fn what_is_not_known_is_kept() {
        check(r#"{"body":1,"role":"oracle"}"#);
        check(r#"{"content":[{"clip":7,"type":"video"}],"role":"user","timestamp":1}"#);
        check(r#"{"content":[],"nodeId":4,"parentId":3,"role":"user","timestamp":1}"#);
        check(r#"{"content":[],"role":"user","timestamp":1,"turnId":"not one"}"#);
    }

    /// Both ways of reading agree on everything that they both read.
    #[test]
    fn the_fast_way_reads_what_the_thorough_way_reads() {
        for text in [
            r#"{"content":[{"text":"a","type":"text"}],"role":"user","timestamp":1}"#,
            r#"{"content":[],"model":"m","role":"user","timestamp":1}"#,
            r#"{"content":[],"nodeId":1,"role":"user","timestamp":1,"turnId":{"loopId":"l","turnIndex":3}}"#,
            r#"{"content":[{"arguments":null,"id":"c","name":"n","type":"toolCall"}],"role":"user","timestamp":1}"#,
            r#"{"content":[],"isError":true,"role":"toolResult","timestamp":1,"toolCallId":"c","toolName":"n"}"#,
            r#"{"content":[],"role":"user","timestamp":1,"turnId":null}"#,
        ] {
            let value = serde_json::from_str(text).unwrap();
            let Read::Llm(thorough) = crate::message::read::agent_message(value).unwrap() else {
                panic!("{text}");
            };
            if let Some(fast) = crate::message::fast::message(text) {
                assert_eq!(fast, thorough, "{text}");
            }
            let message: PhiMessage = serde_json::from_str(text).unwrap();
            assert_eq!(message, PhiMessage::from(thorough), "{text}");
        }
    }

    #[test]
    fn a_bare_message_begins_with_its_role() {
        let text = concat!(
            r#"{"role":"toolResult","toolCallId":"c","toolName":"bash","#,
            r#""content":[{"type":"text","text":"ok"}],"isError":true,"timestamp":5}"#
        );
        let message: Message = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }

    #[test]
    fn a_known_role_in_a_wrong_form_is_refused() {
        for wrong in [
            json!({"role": "user"}),
            json!({"role": "user", "content": "words", "timestamp": 1}),
            json!({"role": "assistant", "content": [], "timestamp": 1}),
            json!({"content": []}),
            json!([]),
        ] {
            assert!(serde_json::from_value::<PhiMessage>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
