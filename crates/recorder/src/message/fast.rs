//! Parses common messages from JSON text without building a JSON value first.
//!
//! Session files consist of little else. A message that is unusual in any way (an unknown role or block, a field of
//! another form) is left to [`super::read`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Content, LlmMessage, Message, PhiUsage, TurnId};
use crate::open_enums::PhiStopReason;
use crate::short::ShortText;

/// The message in a text, if nothing about it is unusual.
pub(super) fn message(text: &str) -> Option<LlmMessage> {
    let usual: Usual = serde_json::from_str(text).ok()?;
    Some(usual.0)
}

struct Usual(LlmMessage);

/// The fields of a message; each has the same form in all roles.
#[derive(Default)]
struct Fields {
    role: Option<Role>,
    content: Option<Vec<Content>>,
    timestamp: Option<u64>,
    stop_reason: Option<PhiStopReason>,
    model: Option<ShortText>,
    provider: Option<ShortText>,
    usage: Option<PhiUsage>,
    error_message: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    is_error: Option<bool>,
    turn_id: Option<TurnId>,
    extra: Map<String, Value>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
enum Role {
    User,
    Assistant,
    ToolResult,
}

impl<'de> Deserialize<'de> for Usual {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Usual;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Usual, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "role" => fields.role = map.next_value()?,
                "content" => fields.content = Some(map.next_value::<UsualBlocks>()?.0),
                "timestamp" => fields.timestamp = map.next_value()?,
                "stopReason" => fields.stop_reason = map.next_value()?,
                "model" => fields.model = map.next_value()?,
                "provider" => fields.provider = map.next_value()?,
                "usage" => fields.usage = map.next_value()?,
                "error_message" => fields.error_message = map.next_value()?,
                "toolCallId" => fields.tool_call_id = map.next_value()?,
                "toolName" => fields.tool_name = map.next_value()?,
                "isError" => fields.is_error = map.next_value()?,
                "turnId" => fields.turn_id = Some(map.next_value()?),
                _ => {
                    fields.extra.insert(key.into_owned(), map.next_value()?);
                }
            }
        }
        let unusual = || A::Error::custom("unusual");
        fields.into_message().map(Usual).ok_or_else(unusual)
    }
}

impl Fields {
    fn into_message(self) -> Option<LlmMessage> {
        let for_assistant = self.stop_reason.is_some()
            || self.model.is_some()
            || self.provider.is_some()
            || self.usage.is_some()
            || self.error_message.is_some();
        let for_tool =
            self.tool_call_id.is_some() || self.tool_name.is_some() || self.is_error.is_some();
        let message = match self.role? {
            Role::User if !for_assistant && !for_tool => {
                Message::User { content: self.content?, timestamp: self.timestamp? }
            }
            Role::Assistant if !for_tool => Message::Assistant {
                content: self.content?,
                stop_reason: self.stop_reason?,
                model: self.model?,
                provider: self.provider?,
                usage: self.usage?,
                timestamp: self.timestamp?,
                error_message: self.error_message,
            },
            Role::ToolResult if !for_assistant => Message::ToolResult {
                tool_call_id: self.tool_call_id?,
                tool_name: self.tool_name?,
                content: self.content?,
                is_error: self.is_error?,
                timestamp: self.timestamp?,
            },
            // Fields of another role are fields that this version does not know.
            _ => return None,
        };
        Some(LlmMessage { message, turn_id: self.turn_id, extra: self.extra })
    }
}

struct UsualBlocks(Vec<Content>);

impl<'de> Deserialize<'de> for UsualBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = UsualBlocks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of blocks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UsualBlocks, A::Error> {
                let Some(UsualContent(first)) = list.next_element()? else {
                    return Ok(UsualBlocks(Vec::new()));
                };
                // Most messages have one block, and spare capacity would be the larger part of
                // them.
                let mut blocks = vec![first];
                while let Some(UsualContent(block)) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(UsualBlocks(blocks))
            }
        }
        deserializer.deserialize_seq(Blocks)
    }
}

struct UsualContent(Content);

impl<'de> Deserialize<'de> for UsualContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Clone, Copy, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        enum Kind {
            Text,
            Image,
            Thinking,
            ToolCall,
        }

        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Block {
            r#type: Kind,
            #[serde(default)]
            text: Option<String>,
            #[serde(default)]
            data: Option<String>,
            #[serde(default)]
            mime_type: Option<String>,
            #[serde(default)]
            thinking: Option<String>,
            #[serde(default)]
            signature: Option<String>,
            #[serde(default)]
            id: Option<String>,
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            arguments: Option<Value>,
        }

        let block = Block::deserialize(deserializer)?;
        let content = || {
            Some(match block.r#type {
                Kind::Text => Content::Text { text: block.text? },
                Kind::Image => Content::Image { data: block.data?, mime_type: block.mime_type? },
                Kind::Thinking => {
                    Content::Thinking { thinking: block.thinking?, signature: block.signature }
                }
                Kind::ToolCall => Content::ToolCall {
                    id: block.id?,
                    name: block.name?,
                    arguments: block.arguments?,
                },
            })
        };
        content().map(UsualContent).ok_or_else(|| D::Error::custom("unusual"))
    }
}
