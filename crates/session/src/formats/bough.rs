//! The canonical message as callers write it, and as a later session-manager writes it.
//!
//! A block of an unknown type is kept whole and named; a message with an unknown role is a custom message.

use super::block::{name_of, whole_block};
use super::check::Check;
use super::read::{Members, typed};
use super::write::{Mapping, members_of, to_json};
use super::{Codec, Format};
use crate::{
    AgentMessage, Canonical, ContentBlock, CustomMessage, FormatError, NewMessage, RawJson,
};

const FORMAT: Format = Format::Bough;
const ROLES: &[&str] = &["user", "assistant", "function_result", "custom", "system"];
const BLOCKS: &[(&str, &[&str])] = &[
    ("text", &["text"]),
    ("image", &["mime", "data"]),
    ("thinking", &["text"]),
    ("function_call", &["id", "function_id"]),
    ("function_result", &["function_call_id"]),
];

/// The codec.
pub(super) struct Bough;

impl Codec for Bough {
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError> {
        match check.one_of("role", ROLES)?.as_str() {
            "function_result" => {
                check.text("function_call_id")?;
                check.text("function_id")?;
            }
            "custom" => {
                check.text("custom_type")?;
            }
            _ => {}
        }
        check.text_or_list("content", check_block)?;
        // The rest is small, and the reader itself reports what is wrong with it.
        check.reads_as::<NewMessage>()
    }

    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical> {
        let message = match serde_json::from_str::<NewMessage>(text) {
            Ok(message) => message.into_message(entry_time),
            Err(_) => lenient(text, entry_time)?,
        };
        Some(Canonical::Message(message.into()))
    }

    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson> {
        let mut members = members_of(&to_json(message));
        let content: Vec<RawJson> = message
            .content()
            .iter()
            .map(|block| {
                let whole = mapping.original(block.unknown());
                whole.unwrap_or_else(|| to_json(block))
            })
            .collect();
        members.set("content", to_json(&content));
        if matches!(message, AgentMessage::Custom(custom) if custom.is_system()) {
            members.set("role", to_json("system"));
            members.remove("custom_type");
        }
        if mapping.is_unfinished {
            members.remove("stop_reason");
        }
        vec![to_json(&members)]
    }

    fn splits_results(&self) -> bool {
        false
    }
}

fn check_block(block: &Check<'_>) -> Result<(), FormatError> {
    let words: Vec<&str> = BLOCKS.iter().map(|(word, _)| *word).collect();
    let kind = block.one_of("type", &words)?;
    let needed =
        BLOCKS.iter().find(|(word, _)| *word == kind).map_or(&[][..], |(_, needed)| needed);
    for key in needed {
        block.text(key)?;
    }
    if kind == "function_result" {
        block.list("content", check_block)?;
    }
    Ok(())
}

/// A message that the published shapes do not read completely.
fn lenient(text: &str, entry_time: i64) -> Option<AgentMessage> {
    let mut members = Members::parse(text)?;
    let content: Vec<ContentBlock> = match members.take_list("content") {
        Some(items) => items
            .into_iter()
            .map(|raw| {
                typed(raw).unwrap_or_else(|| {
                    let members = Members::of(raw).unwrap_or_default();
                    let kind = members.text("type").unwrap_or_else(|| "block".to_owned());
                    whole_block(FORMAT, raw, name_of(&kind, &members))
                })
            })
            .collect(),
        None => members.take_text("content").map(ContentBlock::text).into_iter().collect(),
    };
    let mut plain = members.into_unknown();
    plain.set("content", to_json::<[u8]>(&[]));
    let plain = to_json(&plain);
    if let Ok(read) = serde_json::from_str::<NewMessage>(plain.get()) {
        let mut message = read.into_message(entry_time);
        *message.content_mut() = content;
        return Some(message);
    }
    let members = Members::parse(plain.get())?;
    Some(AgentMessage::Custom(CustomMessage {
        custom_type: members.text("role").unwrap_or_else(|| "unknown".to_owned()),
        content,
        display: None,
        details: RawJson::parse(text).ok(),
        timestamp: members.get("timestamp").and_then(typed).unwrap_or(entry_time),
        unknown: crate::UnknownMembers::NONE,
    }))
}
