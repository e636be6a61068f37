//! From JSON to messages.
//!
//! Session files consist of little else, so a common message is read without building a JSON value first. One that is
//! unusual in any way (a block of an unknown kind, a member of another role) is read from a value.

use std::borrow::Cow;
use std::fmt;

use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage, UserMessage,
    phi_stop_reason,
};
use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::content::{KnownBlocks, block};
use super::{Known, Said, TurnId};
use crate::usage::Figures;

type Members = Map<String, Value>;

/// The message in a text.
pub(super) fn known(text: &str) -> Result<Known, serde_json::Error> {
    if let Ok(said) = serde_json::from_str(text) {
        return Ok(Known::Said(said));
    }
    let refused = |why: &str| Err(serde_json::Error::custom(why));
    let Value::Object(members) = serde_json::from_str(text)? else {
        return refused("a message must be an object");
    };
    let Some(Value::String(role)) = members.get("role") else {
        return refused("a message needs a role");
    };
    let has_kind = members.get("kind").is_some_and(Value::is_string);
    let is_extension = has_kind && members.contains_key("data") && !members.contains_key("content");
    match Role::named(role).filter(|_| !is_extension) {
        Some(role) => unusual(role, members).map(Known::Said),
        None => Ok(Known::Other(Value::Object(members))),
    }
}

/// A message with blocks of unknown kinds, or with members that its role does not have.
fn unusual(role: Role, members: Members) -> Result<Said, serde_json::Error> {
    let is_known = |name: &str| role.has(name);
    let (mut known, mut extra): (Members, Members) =
        members.into_iter().partition(|(name, _)| is_known(name));
    let Some(Value::Array(blocks)) = known.insert("content".to_owned(), Value::Array(Vec::new()))
    else {
        return Err(serde_json::Error::custom("the content of a message must be a list of blocks"));
    };
    let content: Result<Vec<ContentBlock>, _> = blocks.into_iter().map(block).collect();
    let turn_id = extra.get("turnId").and_then(|turn_id| TurnId::deserialize(turn_id).ok());
    if turn_id.is_some() {
        extra.remove("turnId");
    }
    let mut said = Said::deserialize(Value::Object(known))?;
    *said.message.content_mut() = content?;
    Ok(Said { turn_id, extra, ..said })
}

#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
enum Role {
    User,
    Assistant,
    ToolResult,
}

impl Role {
    fn named(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<serde_json::Error>::new(name)).ok()
    }

    /// Whether messages of the role have this member.
    fn has(self, name: &str) -> bool {
        match name {
            "role" | "content" | "timestamp" => true,
            "stopReason" | "model" | "provider" | "usage" | "error_message" => {
                self == Self::Assistant
            }
            "toolCallId" | "toolName" | "isError" => self == Self::ToolResult,
            _ => false,
        }
    }
}

/// The members of a message; each has the same form in all roles.
#[derive(Default)]
struct Draft {
    role: Option<Role>,
    content: Option<Vec<ContentBlock>>,
    timestamp: Option<u64>,
    stop_reason: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    usage: Option<Figures>,
    error_message: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    is_error: Option<bool>,
    turn_id: Option<TurnId>,
    extra: Members,
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SaidVisitor)
    }
}

struct SaidVisitor;

impl<'de> Visitor<'de> for SaidVisitor {
    type Value = Said;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said, A::Error> {
        let mut draft = Draft::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "role" => draft.role = map.next_value()?,
                "content" => draft.content = Some(map.next_value::<KnownBlocks>()?.0),
                "timestamp" => draft.timestamp = map.next_value()?,
                "stopReason" => draft.stop_reason = map.next_value()?,
                "model" => draft.model = map.next_value()?,
                "provider" => draft.provider = map.next_value()?,
                "usage" => draft.usage = map.next_value()?,
                "error_message" => draft.error_message = map.next_value()?,
                "toolCallId" => draft.tool_call_id = map.next_value()?,
                "toolName" => draft.tool_name = map.next_value()?,
                "isError" => draft.is_error = map.next_value()?,
                "turnId" => draft.turn_id = Some(map.next_value()?),
                _ => {
                    draft.extra.insert(key.into_owned(), map.next_value()?);
                }
            }
        }
        draft.finish()
    }
}

impl Draft {
    const fn is_for_assistant(&self) -> bool {
        self.stop_reason.is_some()
            || self.model.is_some()
            || self.provider.is_some()
            || self.usage.is_some()
            || self.error_message.is_some()
    }

    const fn is_for_tool(&self) -> bool {
        self.tool_call_id.is_some() || self.tool_name.is_some() || self.is_error.is_some()
    }

    fn finish<E: Error>(self) -> Result<Said, E> {
        let (for_assistant, for_tool) = (self.is_for_assistant(), self.is_for_tool());
        let content = need(self.content, "content")?;
        // A time beyond the numbers of the store is kept in the text.
        let timestamp = need(self.timestamp, "timestamp")?;
        let timestamp = i64::try_from(timestamp).unwrap_or(i64::MAX);
        let message = match need(self.role, "role")? {
            Role::User if !for_assistant && !for_tool => {
                AgentMessage::User(UserMessage::new(content, timestamp))
            }
            Role::Assistant if !for_tool => {
                let word = need(self.stop_reason, "stopReason")?;
                let (provider, model) =
                    (need(self.provider, "provider")?, need(self.model, "model")?);
                AgentMessage::Assistant(AssistantMessage {
                    stop_reason: phi_stop_reason(&word),
                    native_stop_reason: Some(word),
                    error_message: self.error_message,
                    usage: Some(need(self.usage, "usage")?.into()),
                    ..AssistantMessage::new(content, provider, model, timestamp)
                })
            }
            Role::ToolResult if !for_assistant => {
                let call = need(self.tool_call_id, "toolCallId")?;
                let tool = need(self.tool_name, "toolName")?;
                AgentMessage::FunctionResult(FunctionResultMessage {
                    is_error: need(self.is_error, "isError")?,
                    ..FunctionResultMessage::new(call, tool, content, timestamp)
                })
            }
            // Members of another role are members that this version does not know.
            _ => return Err(E::custom("a member of another role")),
        };
        Ok(Said { message, turn_id: self.turn_id, extra: self.extra })
    }
}

fn need<T, E: Error>(member: Option<T>, name: &'static str) -> Result<T, E> {
    member.ok_or_else(|| E::missing_field(name))
}
