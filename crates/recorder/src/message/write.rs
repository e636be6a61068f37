//! From messages to JSON.
//!
//! The files use two orders of members: with its turn a message has them sorted; everywhere else it begins with its role.

use bough_session::{AgentMessage, AssistantMessage, ContentBlock};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::content::unknown_block;
use super::{Known, Said, TurnId};
use crate::usage::Figures;

/// The order of the members of messages, blocks and usage. A member that there is not is passed over.
pub(super) struct Layout {
    message: &'static str,
    block: &'static str,
    usage: &'static str,
}

impl Layout {
    const SORTED: Self = Self {
        message: "content error_message isError model provider role stopReason timestamp toolCallId toolName turnId usage",
        block: "arguments data id mimeType name signature text thinking type",
        usage: "cache_read cache_write input output reasoning total_tokens",
    };

    pub(super) const ROLE_FIRST: Self = Self {
        message: "role toolCallId toolName content isError stopReason model provider usage timestamp error_message",
        block: "type text thinking signature data mimeType id name arguments",
        usage: "input output reasoning cache_read cache_write total_tokens",
    };
}

/// The role's name in events.
pub(super) fn role(message: &AgentMessage) -> &str {
    match message {
        AgentMessage::User(_) => "user",
        AgentMessage::Assistant(_) => "assistant",
        AgentMessage::FunctionResult(_) => "toolResult",
        AgentMessage::Custom(custom) => &custom.custom_type,
    }
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Said(said) => said.serialize(serializer),
            Self::Other(value) => match extension(value) {
                Some(members) => serializer.collect_map(members),
                None => value.serialize(serializer),
            },
        }
    }
}

/// The members of an extension message of the usual form, in the order in which they are written.
fn extension(value: &Value) -> Option<[(&'static str, &Value); 3]> {
    let members = value.as_object().filter(|members| members.len() == 3)?;
    let [role, kind, data] = [members.get("role")?, members.get("kind")?, members.get("data")?];
    kind.is_string().then_some([("role", role), ("kind", kind), ("data", data)])
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turn_id = self.turn_id.as_ref();
        let written = Written { message: &self.message, turn_id, layout: &Layout::SORTED };
        if self.extra.is_empty() {
            return written.serialize(serializer);
        }
        let mut value = serde_json::to_value(written).map_err(serde::ser::Error::custom)?;
        if let Value::Object(members) = &mut value {
            for (key, extra) in &self.extra {
                members.entry(key).or_insert_with(|| extra.clone());
            }
        }
        value.serialize(serializer)
    }
}

/// A message in an order of members.
pub(super) struct Written<'a> {
    pub(super) message: &'a AgentMessage,
    pub(super) turn_id: Option<&'a TurnId>,
    pub(super) layout: &'a Layout,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.layout.message.split(' ').try_for_each(|name| self.member(name, &mut map))?;
        map.end()
    }
}

impl Written<'_> {
    fn member<M: SerializeMap>(&self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let layout = self.layout;
        match (name, self.message) {
            ("role", message) => map.serialize_entry(name, role(message)),
            ("content", message) => {
                map.serialize_entry(name, &WrittenBlocks { blocks: message.content(), layout })
            }
            ("timestamp", message) => map.serialize_entry(name, &message.timestamp()),
            ("turnId", _) => some(map, name, self.turn_id),
            (_, AgentMessage::Assistant(reply)) => self.of_reply(name, reply, map),
            ("toolCallId", AgentMessage::FunctionResult(result)) => {
                map.serialize_entry(name, &result.function_call_id)
            }
            ("toolName", AgentMessage::FunctionResult(result)) => {
                map.serialize_entry(name, &result.function_id)
            }
            ("isError", AgentMessage::FunctionResult(result)) => {
                map.serialize_entry(name, &result.is_error)
            }
            _ => Ok(()),
        }
    }

    fn of_reply<M: SerializeMap>(
        &self,
        name: &str,
        reply: &AssistantMessage,
        map: &mut M,
    ) -> Result<(), M::Error> {
        match name {
            "stopReason" => {
                // A reply has the word that it was read or made with.
                map.serialize_entry(name, reply.native_stop_reason.as_deref().unwrap_or_default())
            }
            "model" => map.serialize_entry(name, &reply.model),
            "provider" => map.serialize_entry(name, &reply.provider),
            "error_message" => some(map, name, reply.error_message.as_ref()),
            "usage" => {
                let figures = reply.usage.as_ref().map(Figures::from).unwrap_or_default();
                map.serialize_entry(name, &WrittenUsage { figures, layout: self.layout })
            }
            _ => Ok(()),
        }
    }
}

struct WrittenUsage<'a> {
    figures: Figures,
    layout: &'a Layout,
}

impl Serialize for WrittenUsage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = &self.figures;
        serializer.collect_map(self.layout.usage.split(' ').map(|name| {
            let count = match name {
                "input" => figures.input,
                "output" => figures.output,
                "reasoning" => figures.reasoning,
                "cache_read" => figures.cache_read,
                "cache_write" => figures.cache_write,
                _ => figures.total_tokens,
            };
            (name, count)
        }))
    }
}

/// Blocks in an order of members.
pub(super) struct WrittenBlocks<'a> {
    pub(super) blocks: &'a [ContentBlock],
    pub(super) layout: &'a Layout,
}

impl Serialize for WrittenBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let layout = self.layout;
        serializer.collect_seq(self.blocks.iter().map(|block| WrittenBlock { block, layout }))
    }
}

struct WrittenBlock<'a> {
    block: &'a ContentBlock,
    layout: &'a Layout,
}

impl Serialize for WrittenBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(value) = unknown_block(self.block) {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        self.layout.block.split(' ').try_for_each(|name| self.member(name, &mut map))?;
        map.end()
    }
}

impl WrittenBlock<'_> {
    fn member<M: SerializeMap>(&self, name: &str, map: &mut M) -> Result<(), M::Error> {
        match (name, self.block) {
            ("type", block) => map.serialize_entry(name, kind(block)),
            ("text", ContentBlock::Text(block)) => map.serialize_entry(name, &block.text),
            ("data", ContentBlock::Image(image)) => map.serialize_entry(name, &image.data),
            ("mimeType", ContentBlock::Image(image)) => map.serialize_entry(name, &image.mime),
            ("thinking", ContentBlock::Thinking(thought)) => {
                map.serialize_entry(name, &thought.text)
            }
            ("signature", ContentBlock::Thinking(thought)) => {
                some(map, name, thought.signature.as_ref())
            }
            ("id", ContentBlock::FunctionCall(call)) => map.serialize_entry(name, &call.id),
            ("name", ContentBlock::FunctionCall(call)) => {
                map.serialize_entry(name, &call.function_id)
            }
            // As a value: the layout of files is that of the whole file.
            ("arguments", ContentBlock::FunctionCall(call)) => {
                map.serialize_entry(name, &call.arguments.value())
            }
            _ => Ok(()),
        }
    }
}

const fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "image",
        ContentBlock::Thinking(_) => "thinking",
        ContentBlock::FunctionCall(_) => "toolCall",
        ContentBlock::FunctionResult(_) => "toolResult",
    }
}

fn some<M: SerializeMap>(
    map: &mut M,
    name: &str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}
