//! What an agent says while it works.
//!
//! On the wire an event is an object whose `type` names the variant. An event of a type that this
//! version does not know is kept as it came.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::message::{AgentMessage, Content, Message, Usage};
use crate::model::LoopConfigSnapshot;
use crate::time::Timestamp;
use crate::words::TurnTrigger;

/// How a loop relates to the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ContinuationKind {
    /// It begins something.
    #[default]
    Initial,
    /// It goes on.
    Default,
    /// It tries again.
    Rerun {
        /// When, or any other mark.
        tag: String,
    },
    /// It tries something else.
    Branch {
        /// When, or any other mark.
        tag: String,
    },
    /// It only compacts the context.
    Compaction,
}

/// A piece of a message that is being streamed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StreamDelta {
    /// More words.
    Text {
        /// The words.
        delta: String,
    },
    /// More thoughts.
    Thinking {
        /// The thoughts.
        delta: String,
    },
    /// More of a tool call's arguments.
    ToolCallDelta {
        /// JSON text.
        delta: String,
    },
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolResult {
    /// The blocks that the model sees.
    pub content: Vec<Content>,
    /// Anything else.
    #[serde(default)]
    pub details: Value,
    /// The loop of the sub-agent that the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_loop_id: Option<String>,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl From<$name> for AgentEvent {
                fn from(event: $name) -> Self {
                    Self::$name(event)
                }
            }
        )+

        /// Something that an agent says while it works.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AgentEvent {
            $($(#[$doc])* $name($name),)+
            /// An event of a type that this version does not know.
            Unknown(UnknownEvent),
        }

        impl AgentEvent {
            /// The name of the event's type.
            #[must_use]
            pub fn type_name(&self) -> &str {
                match self {
                    $(Self::$name(_) => stringify!($name),)+
                    Self::Unknown(event) => event.type_name(),
                }
            }

            /// The event of the given type whose other fields `fields` gives.
            fn read<'de, D: Deserializer<'de>>(type_name: &str, fields: D) -> Result<Self, D::Error> {
                match type_name {
                    $(stringify!($name) => $name::deserialize(fields).map(Self::$name),)+
                    _ => {
                        let mut fields = Map::deserialize(fields)?;
                        fields.insert("type".to_owned(), Value::from(type_name));
                        Ok(Self::Unknown(UnknownEvent(fields)))
                    }
                }
            }
        }

        impl Serialize for AgentEvent {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                #[serde(tag = "type")]
                enum Tagged<'a> {
                    $($name(&'a $name),)+
                }
                match self {
                    $(Self::$name(event) => Tagged::$name(event).serialize(serializer),)+
                    Self::Unknown(event) => event.0.serialize(serializer),
                }
            }
        }
    };
}

events! {
    /// A loop begins.
    AgentStart {
        /// Who runs it.
        agent_id: String,
        /// The session that it belongs to.
        session_id: String,
        /// Names the loop.
        loop_id: String,
        /// The loop before it, of this session or of another.
        parent_loop_id: Option<String>,
        /// How it relates to the loop before it.
        #[serde(default)]
        continuation_kind: ContinuationKind,
        /// When.
        timestamp: Timestamp,
        /// The caller's own data.
        metadata: Option<Value>,
        /// The model and settings that it runs with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config_snapshot: Option<Box<LoopConfigSnapshot>>,
    }
    /// A loop ends.
    AgentEnd {
        /// Which loop.
        loop_id: String,
        /// All messages that it made.
        messages: Vec<AgentMessage>,
        /// What it cost.
        usage: Usage,
        /// When.
        timestamp: Timestamp,
        /// Why its input was refused, if it was.
        rejection: Option<String>,
    }
    /// A turn begins: one call of the model.
    TurnStart {
        /// Which loop.
        loop_id: String,
        /// Which turn of it, from 0.
        turn_index: u32,
        /// When.
        timestamp: Timestamp,
        /// What made it begin.
        triggered_by: TurnTrigger,
    }
    /// A turn ends.
    TurnEnd {
        /// Which loop.
        loop_id: String,
        /// What the model said.
        message: AgentMessage,
        /// What the turn cost.
        usage: Usage,
        /// When.
        timestamp: Timestamp,
        /// What the tools answered.
        tool_results: Vec<Message>,
    }
    /// A message begins.
    MessageStart {
        /// Which loop.
        loop_id: String,
        /// The message as far as it is known.
        message: AgentMessage,
    }
    /// A piece of a message.
    MessageUpdate {
        /// Which loop.
        loop_id: String,
        /// The message as far as it is known.
        message: AgentMessage,
        /// The piece.
        delta: StreamDelta,
    }
    /// A message is complete.
    MessageEnd {
        /// Which loop.
        loop_id: String,
        /// The message.
        message: AgentMessage,
    }
    /// A tool begins its work.
    ToolExecutionStart {
        /// Which loop.
        loop_id: String,
        /// Names the call.
        tool_call_id: String,
        /// Which tool.
        tool_name: String,
        /// With what.
        args: Value,
    }
    /// A tool has something to show already.
    ToolExecutionUpdate {
        /// Which loop.
        loop_id: String,
        /// Names the call.
        tool_call_id: String,
        /// Which tool.
        tool_name: String,
        /// What it has so far.
        partial_result: ToolResult,
    }
    /// A tool is done.
    ToolExecutionEnd {
        /// Which loop.
        loop_id: String,
        /// Names the call.
        tool_call_id: String,
        /// Which tool.
        tool_name: String,
        /// What it gave back.
        result: ToolResult,
        /// Whether it failed.
        is_error: bool,
        /// The loop of the sub-agent that it ran.
        child_loop_id: Option<String>,
    }
    /// A tool says how it is getting on.
    ProgressMessage {
        /// Which loop.
        loop_id: String,
        /// Names the call.
        tool_call_id: String,
        /// Which tool.
        tool_name: String,
        /// What it says.
        text: String,
    }
    /// An input filter refused what the user said.
    InputRejected {
        /// Which loop.
        loop_id: String,
        /// Why.
        reason: String,
    }
    /// Several loops are about to run side by side, from the same beginning.
    ParallelLoopStart {
        /// The session that they belong to.
        session_id: String,
        /// The loops, in the order of their configurations.
        loop_ids: Vec<String>,
        /// When.
        timestamp: Timestamp,
    }
    /// One of several loops was chosen.
    ParallelLoopEnd {
        /// The session that they belong to.
        session_id: String,
        /// The chosen loop.
        selected_loop_id: String,
        /// Its place among the configurations, from 0.
        selected_config_index: u64,
        /// What choosing cost.
        evaluation_usage: Usage,
        /// When.
        timestamp: Timestamp,
    }
    /// The context is about to be compacted.
    CompactionStarted {
        /// Which loop.
        loop_id: String,
        /// How large the context is.
        estimated_tokens: u64,
        /// How many messages it has.
        message_count: u64,
        /// When.
        timestamp: Timestamp,
    }
    /// The context was compacted.
    CompactionEnded {
        /// Which loop.
        loop_id: String,
        /// Messages before.
        messages_before: u64,
        /// Messages after.
        messages_after: u64,
        /// Tokens before.
        estimated_tokens_before: u64,
        /// Tokens after.
        estimated_tokens_after: u64,
        /// How many loops have a new overlay.
        loops_compacted: u64,
        /// When.
        timestamp: Timestamp,
    }
    /// Messages were pruned from the context.
    PrunApplied {
        /// Which loop.
        loop_id: String,
        /// How many tokens.
        tokens_removed: u64,
        /// How many messages.
        messages_removed: u64,
        /// What to remember of them.
        memo: Option<String>,
        /// When the pruned messages were said, milliseconds since the epoch.
        pruned_timestamps: Vec<u64>,
        /// When.
        timestamp: Timestamp,
    }
    /// The conversation went back to an earlier point (since 0.8).
    RevertApplied {
        /// Which loop.
        loop_id: String,
        /// Why: `failure`, `tangent`, `completion` or `step-summary`.
        category: String,
        /// The node that it went back to.
        target: Option<u64>,
        /// The nodes that it left behind.
        abandoned_node_ids: Vec<u64>,
        /// What to remember of them.
        summary: String,
        /// Whether it was done.
        applied: bool,
        /// Why, or why not.
        reason: Value,
        /// When.
        timestamp: Timestamp,
    }
    /// What the model is about to be asked (since 0.9).
    TurnRequest {
        /// Which loop.
        loop_id: String,
        /// Which turn of it, from 0.
        turn_index: u32,
        /// The request, as it came.
        payload: Value,
        /// When.
        timestamp: Timestamp,
    }
}

/// An event of a type that this version does not know, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownEvent(pub(crate) Map<String, Value>);

impl UnknownEvent {
    /// The name of the event's type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        self.text("type").unwrap_or("")
    }

    /// The fields of the event, its type among them.
    #[must_use]
    pub const fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }
}

impl AgentEvent {
    /// Reads one event from JSON text.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The loop that the event speaks of. Events about a whole group have none.
    #[must_use]
    pub fn loop_id(&self) -> Option<&str> {
        match self {
            Self::AgentStart(AgentStart { loop_id, .. })
            | Self::AgentEnd(AgentEnd { loop_id, .. })
            | Self::TurnStart(TurnStart { loop_id, .. })
            | Self::TurnEnd(TurnEnd { loop_id, .. })
            | Self::MessageStart(MessageStart { loop_id, .. })
            | Self::MessageUpdate(MessageUpdate { loop_id, .. })
            | Self::MessageEnd(MessageEnd { loop_id, .. })
            | Self::ToolExecutionStart(ToolExecutionStart { loop_id, .. })
            | Self::ToolExecutionUpdate(ToolExecutionUpdate { loop_id, .. })
            | Self::ToolExecutionEnd(ToolExecutionEnd { loop_id, .. })
            | Self::ProgressMessage(ProgressMessage { loop_id, .. })
            | Self::InputRejected(InputRejected { loop_id, .. })
            | Self::CompactionStarted(CompactionStarted { loop_id, .. })
            | Self::CompactionEnded(CompactionEnded { loop_id, .. })
            | Self::PrunApplied(PrunApplied { loop_id, .. })
            | Self::RevertApplied(RevertApplied { loop_id, .. })
            | Self::TurnRequest(TurnRequest { loop_id, .. }) => Some(loop_id),
            Self::ParallelLoopStart(_) | Self::ParallelLoopEnd(_) => None,
            Self::Unknown(event) => event.text("loop_id"),
        }
    }

    /// When it happened, for the events that say so.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::AgentStart(AgentStart { timestamp, .. })
            | Self::AgentEnd(AgentEnd { timestamp, .. })
            | Self::TurnStart(TurnStart { timestamp, .. })
            | Self::TurnEnd(TurnEnd { timestamp, .. })
            | Self::ParallelLoopStart(ParallelLoopStart { timestamp, .. })
            | Self::ParallelLoopEnd(ParallelLoopEnd { timestamp, .. })
            | Self::CompactionStarted(CompactionStarted { timestamp, .. })
            | Self::CompactionEnded(CompactionEnded { timestamp, .. })
            | Self::PrunApplied(PrunApplied { timestamp, .. })
            | Self::RevertApplied(RevertApplied { timestamp, .. })
            | Self::TurnRequest(TurnRequest { timestamp, .. }) => Some(*timestamp),
            Self::Unknown(event) => event.text("timestamp")?.parse().ok(),
            Self::MessageStart(_)
            | Self::MessageUpdate(_)
            | Self::MessageEnd(_)
            | Self::ToolExecutionStart(_)
            | Self::ToolExecutionUpdate(_)
            | Self::ToolExecutionEnd(_)
            | Self::ProgressMessage(_)
            | Self::InputRejected(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = AgentEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an agent event: an object with a type")
    }

    /// Writers put the type first, and then nothing needs to be gathered before it is understood.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AgentEvent, A::Error> {
        let first: Option<Cow<'de, str>> = map.next_key()?;
        let Some(first) = first else {
            return Err(A::Error::missing_field("type"));
        };
        if first == "type" {
            let type_name: String = map.next_value()?;
            return AgentEvent::read(&type_name, MapAccessDeserializer::new(map));
        }
        let mut fields = Map::new();
        fields.insert(first.into_owned(), map.next_value()?);
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            fields.insert(key, value);
        }
        let Some(Value::String(type_name)) = fields.remove("type") else {
            return Err(A::Error::missing_field("type"));
        };
        AgentEvent::read(&type_name, Value::Object(fields)).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One line of each variant as the original writes it.
    const VARIANTS: &str = include_str!("../tests/cases/agent_event_variants.txt");

    #[test]
    fn every_variant_is_written_as_it_is_read() {
        let lines: Vec<&str> = VARIANTS.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(lines.len(), 17);
        for line in lines {
            let event = AgentEvent::from_json(line).unwrap();
            assert!(!matches!(event, AgentEvent::Unknown(_)), "{line}");
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
        }
    }

    #[test]
    fn the_type_may_stand_anywhere() {
        for line in VARIANTS.lines().filter(|line| line.starts_with('{')) {
            let sorted: Value = serde_json::from_str(line).unwrap();
            let event: AgentEvent = serde_json::from_str(&sorted.to_string()).unwrap();
            assert_eq!(event, AgentEvent::from_json(line).unwrap());
        }
    }

    #[test]
    fn the_two_later_variants_are_known() {
        let revert = json!({"type": "RevertApplied", "loop_id": "l", "category": "tangent",
            "target": 4, "abandoned_node_ids": [5, 6], "summary": "s", "applied": true,
            "reason": "r", "timestamp": "2026-01-01T00:00:00Z"});
        let request = json!({"type": "TurnRequest", "loop_id": "l", "turn_index": 1,
            "payload": {"messages": []}, "timestamp": "2026-01-01T00:00:00Z"});
        for event in [revert, request] {
            let read: AgentEvent = serde_json::from_value(event.clone()).unwrap();
            assert!(!matches!(read, AgentEvent::Unknown(_)));
            assert_eq!(serde_json::to_value(&read).unwrap(), event);
        }
    }

    #[test]
    fn an_event_of_the_future_is_kept_as_it_came() {
        let text = r#"{"type":"Dreamt","loop_id":"l","message":"not one of ours","timestamp":"2026-01-01T00:00:00Z"}"#;
        let event = AgentEvent::from_json(text).unwrap();
        assert_eq!(event.type_name(), "Dreamt");
        assert_eq!(event.loop_id(), Some("l"));
        assert!(event.timestamp().is_some());
        let before: Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), before);
    }

    #[test]
    fn a_known_event_in_a_wrong_form_is_refused() {
        for text in [
            "{}",
            "[]",
            r#"{"loop_id":"l"}"#,
            r#"{"type":"TurnStart","loop_id":"l"}"#,
            r#"{"type":7}"#,
            r#"{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"l","continuation_kind":null,"timestamp":"2026-01-01T00:00:00Z"}"#,
        ] {
            assert!(AgentEvent::from_json(text).is_err(), "{text}");
        }
    }
}
