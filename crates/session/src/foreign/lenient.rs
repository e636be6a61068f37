//! Messages of a session-manager that knows more than the published shapes.
//!
//! What the published shape knows is read by it; a block of a type that it does not know is shown as
//! text, and fields that it does not know stay in the stored JSON.

use serde::Deserialize;
use serde_json::Value;

use super::Look;
use crate::members::UnknownMembers;
use crate::{AgentMessage, Canonical, ContentBlock, CustomMessage};

/// A message in the published shape or a later one.
pub(super) fn canonical(message: &Value, entry_time: i64) -> Option<Canonical> {
    let content: Vec<ContentBlock> = message.list("content").iter().map(block).collect();
    let mut plain = message.clone();
    plain
        .as_object_mut()?
        .insert("content".to_owned(), Value::Array(Vec::new()));
    let read = AgentMessage::deserialize(&plain).map(|mut read| {
        *read.content_mut() = content.clone();
        read
    });
    let message = read.unwrap_or_else(|_| {
        AgentMessage::Custom(CustomMessage {
            custom_type: message.text("role").unwrap_or("unknown").to_owned(),
            content,
            display: None,
            details: Some(message.clone().into()),
            timestamp: message.time("timestamp").unwrap_or(entry_time),
            unknown: UnknownMembers::NONE,
        })
    });
    Some(Canonical::Message(message.into()))
}

fn block(block: &Value) -> ContentBlock {
    ContentBlock::deserialize(block).unwrap_or_else(|_| ContentBlock::text(block.to_string()))
}
