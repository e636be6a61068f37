//! From JSON to messages, whatever the message looks like.
//!
//! The tag of a message may be anywhere among its keys, so the whole object is read and its known members are moved out
//! of it; the rest is unknown to this version.

use serde_json::{Map, Value};

use super::{Content, ExtensionMessage, LlmMessage, Message, PhiUsage, TurnId};
use crate::open_enums::PhiStopReason;

type Fields = Map<String, Value>;

/// Why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("a message must be an object")]
    NotAnObject,
    #[error("a message needs a role")]
    NoRole,
    #[error("a content block needs a type")]
    NoType,
    #[error("{role}: {field} is missing or not {expected}")]
    Field { role: String, field: &'static str, expected: &'static str },
}

/// A message by how much of it is known.
#[derive(Debug)]
pub(super) enum Read {
    Llm(LlmMessage),
    Extension(ExtensionMessage),
    Other(Value),
}

pub(super) fn agent_message(value: Value) -> Result<Read, Unreadable> {
    let Value::Object(mut fields) = value else {
        return Err(Unreadable::NotAnObject);
    };
    let Some(Value::String(role)) = fields.get("role").cloned() else {
        return Err(Unreadable::NoRole);
    };
    let has_kind = fields.get("kind").is_some_and(Value::is_string);
    let is_extension = has_kind && fields.contains_key("data");
    let is_known = matches!(role.as_str(), "user" | "assistant" | "toolResult");
    if is_extension && (!is_known || !fields.contains_key("content")) {
        return Ok(Read::Extension(extension(role, fields)));
    }
    if !is_known {
        return Ok(Read::Other(Value::Object(fields)));
    }
    let message = message(&role, &mut fields)?;
    fields.remove("role");
    let turn_id = fields.get("turnId").and_then(turn_id);
    if turn_id.is_some() {
        fields.remove("turnId");
    }
    Ok(Read::Llm(LlmMessage { message, turn_id, extra: fields }))
}

pub(super) fn bare_message(value: Value) -> Result<Message, Unreadable> {
    let Value::Object(mut fields) = value else {
        return Err(Unreadable::NotAnObject);
    };
    let Some(Value::String(role)) = fields.get("role").cloned() else {
        return Err(Unreadable::NoRole);
    };
    message(&role, &mut fields)
}

fn extension(role: String, mut fields: Fields) -> ExtensionMessage {
    fields.remove("role");
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        _ => String::new(),
    };
    ExtensionMessage {
        role,
        kind,
        data: fields.remove("data").unwrap_or(Value::Null),
        extra: fields,
    }
}

fn turn_id(value: &Value) -> Option<TurnId> {
    let turn_index = value.get("turnIndex")?.as_u64()?;
    Some(TurnId {
        loop_id: value.get("loopId")?.as_str()?.to_owned(),
        turn_index: u32::try_from(turn_index).ok()?,
    })
}

fn message(role: &str, fields: &mut Fields) -> Result<Message, Unreadable> {
    let mut take = Take { role, fields };
    match role {
        "user" => {
            Ok(Message::User { content: take.content()?, timestamp: take.number("timestamp")? })
        }
        "assistant" => Ok(Message::Assistant {
            content: take.content()?,
            stop_reason: PhiStopReason::from(take.text("stopReason")?.as_str()),
            model: take.text("model")?.into(),
            provider: take.text("provider")?.into(),
            usage: take.usage()?,
            timestamp: take.number("timestamp")?,
            error_message: take.optional_text("error_message")?,
        }),
        "toolResult" => Ok(Message::ToolResult {
            tool_call_id: take.text("toolCallId")?,
            tool_name: take.text("toolName")?,
            content: take.content()?,
            is_error: take.truth("isError")?,
            timestamp: take.number("timestamp")?,
        }),
        _ => Err(take.wrong("role", "one that is known")),
    }
}

pub(super) fn content(value: Value) -> Result<Content, Unreadable> {
    let Value::Object(mut fields) = value else {
        return Err(Unreadable::NotAnObject);
    };
    let Some(Value::String(kind)) = fields.get("type").cloned() else {
        return Err(Unreadable::NoType);
    };
    let mut take = Take { role: &kind, fields: &mut fields };
    Ok(match kind.as_str() {
        "text" => Content::Text { text: take.text("text")? },
        "image" => Content::Image { data: take.text("data")?, mime_type: take.text("mimeType")? },
        "thinking" => Content::Thinking {
            thinking: take.text("thinking")?,
            signature: take.optional_text("signature")?,
        },
        "toolCall" => Content::ToolCall {
            id: take.text("id")?,
            name: take.text("name")?,
            arguments: take.any("arguments")?,
        },
        _ => Content::Other(Value::Object(fields)),
    })
}

/// Moves fields out of an object, each checked for its form.
struct Take<'a> {
    role: &'a str,
    fields: &'a mut Fields,
}

impl Take<'_> {
    fn wrong(&self, field: &'static str, expected: &'static str) -> Unreadable {
        Unreadable::Field { role: self.role.to_owned(), field, expected }
    }

    fn any(&mut self, field: &'static str) -> Result<Value, Unreadable> {
        let found = self.fields.remove(field);
        found.ok_or_else(|| self.wrong(field, "a value"))
    }

    fn text(&mut self, field: &'static str) -> Result<String, Unreadable> {
        match self.fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(self.wrong(field, "text")),
        }
    }

    fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, Unreadable> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(field, "text")),
        }
    }

    fn number(&mut self, field: &'static str) -> Result<u64, Unreadable> {
        let found = self.fields.remove(field).and_then(|value| value.as_u64());
        found.ok_or_else(|| self.wrong(field, "a whole number"))
    }

    fn truth(&mut self, field: &'static str) -> Result<bool, Unreadable> {
        let found = self.fields.remove(field).and_then(|value| value.as_bool());
        found.ok_or_else(|| self.wrong(field, "true or false"))
    }

    fn usage(&mut self) -> Result<PhiUsage, Unreadable> {
        let usage = serde_json::from_value(self.any("usage")?);
        usage.map_err(|_| self.wrong("usage", "counts of tokens"))
    }

    fn content(&mut self) -> Result<Vec<Content>, Unreadable> {
        match self.fields.remove("content") {
            Some(Value::Array(blocks)) => blocks.into_iter().map(content).collect(),
            _ => Err(self.wrong("content", "a list of blocks")),
        }
    }
}
