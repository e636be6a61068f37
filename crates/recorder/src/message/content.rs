//! Blocks of messages, and of the results of tools.

use bough_session::{
    AgentMessage, Canonical, ContentBlock, FORMAT_PHI, Format, FunctionCallBlock, ImageBlock,
    RawJson, TextBlock, ThinkingBlock, UnknownMembers,
};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;
use serde_json::{Value, json};

use super::write::{Layout, WrittenBlocks};

/// The kinds of blocks that this version knows.
const KINDS: [&str; 4] = ["text", "image", "thinking", "toolCall"];
/// The member of a block that holds a block which this version does not know.
const ORIGINAL: &str = "original";

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Text,
    Image,
    Thinking,
    ToolCall,
}

/// The members of a block of any of these kinds.
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
    #[serde(default, deserialize_with = "some")]
    arguments: Option<Value>,
}

/// A member that is there, also if it is null.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A block of a known kind.
pub(super) struct KnownBlock(pub(super) ContentBlock);

impl<'de> Deserialize<'de> for KnownBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = Block::deserialize(deserializer)?;
        let need = |text: Option<String>, name| text.ok_or_else(|| D::Error::missing_field(name));
        let unknown = UnknownMembers::NONE;
        Ok(Self(match block.r#type {
            Kind::Text => {
                ContentBlock::Text(TextBlock { text: need(block.text, "text")?, unknown })
            }
            Kind::Image => ContentBlock::Image(ImageBlock {
                mime: need(block.mime_type, "mimeType")?,
                data: need(block.data, "data")?,
                unknown,
            }),
            Kind::Thinking => ContentBlock::Thinking(ThinkingBlock {
                text: need(block.thinking, "thinking")?,
                signature: block.signature,
                unknown,
            }),
            Kind::ToolCall => {
                let arguments =
                    block.arguments.ok_or_else(|| D::Error::missing_field("arguments"))?;
                let (id, name) = (need(block.id, "id")?, need(block.name, "name")?);
                ContentBlock::FunctionCall(FunctionCallBlock::new(id, name, arguments.into()))
            }
        }))
    }
}

/// The blocks of a message, if their kinds are known.
pub(super) struct KnownBlocks(pub(super) Vec<ContentBlock>);

impl<'de> Deserialize<'de> for KnownBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let blocks = Vec::<KnownBlock>::deserialize(deserializer)?;
        let mut blocks: Vec<_> = blocks.into_iter().map(|KnownBlock(block)| block).collect();
        // Most messages have one block, and spare capacity would be the larger part of them.
        blocks.shrink_to_fit();
        Ok(Self(blocks))
    }
}

/// A block of any kind.
pub(super) fn block(value: Value) -> Result<ContentBlock, serde_json::Error> {
    let kind = value.get("type").and_then(Value::as_str);
    let kind = kind.ok_or_else(|| serde_json::Error::custom("a content block needs a type"))?;
    if KINDS.contains(&kind) {
        return KnownBlock::deserialize(value).map(|KnownBlock(block)| block);
    }
    let message = json!({"role": "user", "content": [value]});
    let mapped = Format::Phi.to_canonical(&RawJson::from(message), 0);
    let content = match mapped {
        Canonical::Message(message) => AgentMessage::content(&message).first().cloned(),
        Canonical::Custom(_) => None,
    };
    content.ok_or_else(|| serde_json::Error::custom("a content block must be an object"))
}

/// The JSON of a block whose kind this version does not know.
pub(crate) fn unknown_block(block: &ContentBlock) -> Option<Value> {
    let mut original = block.unknown().get(ORIGINAL)?.value();
    original.get_mut(FORMAT_PHI).map(Value::take)
}

pub(crate) fn serialize<S: Serializer>(
    blocks: &[ContentBlock],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&WrittenBlocks { blocks, layout: &Layout::ROLE_FIRST }, serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ContentBlock>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    let blocks: Result<_, _> = values.into_iter().map(block).collect();
    blocks.map_err(D::Error::custom)
}
