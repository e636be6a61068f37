//! The events that an agent sends while it works.
//!
//! On the wire an event is an object whose `type` names the variant. An event of a type that this
//! version does not know is kept as it came.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bough_session::ContentBlock;
use compact_str::CompactString;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::time::Timestamp;
use crate::verbatim::{Members, Verbatim};

mod build;
mod unknown_fields;
mod variants;

use unknown_fields::unknown_fields;
pub use variants::*;

const TYPE: &str = "type";

/// How a loop relates to the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ContinuationKind {
    /// It begins something.
    #[default]
    Initial,
    /// It continues.
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

/// A piece of a message that is being streamed. There are very many of these, mostly of a few letters, so that an allocation
/// for each would be most of their cost.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StreamDelta {
    /// More words.
    Text {
        /// The words.
        delta: CompactString,
    },
    /// More thoughts.
    Thinking {
        /// The thoughts.
        delta: CompactString,
    },
    /// More of a tool call's arguments.
    ToolCallDelta {
        /// JSON text.
        delta: CompactString,
    },
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolResult {
    /// The blocks that the model sees.
    #[serde(with = "crate::message::content")]
    pub content: Vec<ContentBlock>,
    /// Anything else.
    #[serde(default)]
    pub details: Value,
    /// The loop of the sub-agent that the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_loop_id: Option<String>,
}

/// An event of a type that this version does not know, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownEvent(Arc<Verbatim<Map<String, Value>>>);

impl UnknownEvent {
    pub(crate) fn new(fields: Verbatim<Map<String, Value>>) -> Self {
        Self(Arc::new(fields))
    }

    /// The event of a type with its other members, each as it came.
    pub(crate) fn of_members(type_name: &str, members: Vec<(String, Box<RawValue>)>) -> Self {
        let of_type =
            serde_json::value::to_raw_value(type_name).map(|text| (TYPE.to_owned(), text));
        let members = Members(of_type.into_iter().chain(members).collect());
        let read = serde_json::value::to_raw_value(&members)
            .and_then(|text| Ok(Verbatim::read_from(serde_json::from_str(text.get())?, text)));
        Self::new(read.unwrap_or_default())
    }

    /// The name of the event's type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        self.text(TYPE).unwrap_or("")
    }

    /// The fields of the event, its type among them.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }
}

impl Serialize for UnknownEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl AgentEvent {
    /// Reads one event from JSON text. Unknown fields of a known event are not kept;
    /// [`Self::from_json_with_unknown_fields`] names them.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Reads one event from JSON text, and returns the fields that are not kept, as `field` or `field.field`.
    pub fn from_json_with_unknown_fields(
        text: &str,
    ) -> Result<(Self, Vec<String>), serde_json::Error> {
        let event = Self::from_json(text)?;
        let unknown = unknown_fields(&event, text);
        Ok((event, unknown))
    }

    /// Reads one event from a line of a stream: the event itself, or the event with its number, as in the event logs of
    /// phi-core since 0.14 (`{session_id}.events.jsonl`). Returns also the fields that are not kept.
    pub fn from_line(line: &str) -> Result<(Self, Vec<String>), serde_json::Error> {
        /// A line of an event log.
        #[derive(serde::Deserialize)]
        struct Numbered<'a> {
            #[serde(rename = "ordinal")]
            _ordinal: u64,
            #[serde(borrow)]
            event: &'a serde_json::value::RawValue,
        }
        Self::from_json_with_unknown_fields(line).or_else(|error| {
            let numbered: Numbered<'_> = serde_json::from_str(line).map_err(|_| error)?;
            Self::from_json_with_unknown_fields(numbered.event.get())
        })
    }

    /// The loop of the event. Events about a whole group have none.
    #[must_use]
    pub fn loop_id(&self) -> Option<&str> {
        match self {
            Self::AgentStart(event) => Some(&event.loop_id),
            Self::AgentEnd(event) => Some(&event.loop_id),
            Self::TurnStart(event) => Some(&event.loop_id),
            Self::TurnEnd(event) => Some(&event.loop_id),
            Self::MessageStart(event) => Some(&event.loop_id),
            Self::MessageUpdate(event) => Some(&event.loop_id),
            Self::MessageEnd(event) => Some(&event.loop_id),
            Self::ToolExecutionStart(event) => Some(&event.loop_id),
            Self::ToolExecutionUpdate(event) => Some(&event.loop_id),
            Self::ToolExecutionEnd(event) => Some(&event.loop_id),
            Self::ProgressMessage(event) => Some(&event.loop_id),
            Self::InputRejected(event) => Some(&event.loop_id),
            Self::CompactionStarted(event) => Some(&event.loop_id),
            Self::CompactionEnded(event) => Some(&event.loop_id),
            Self::PrunApplied(event) => Some(&event.loop_id),
            Self::RevertApplied(event) => Some(&event.loop_id),
            Self::TurnRequest(event) => Some(&event.loop_id),
            Self::ParallelLoopStart(_) | Self::ParallelLoopEnd(_) => None,
            Self::Unknown(event) => event.text("loop_id"),
        }
    }

    /// The session that the event names. Most events name only their loop.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        match self {
            Self::AgentStart(start) => Some(&start.session_id),
            Self::ParallelLoopStart(start) => Some(&start.session_id),
            Self::ParallelLoopEnd(end) => Some(&end.session_id),
            _ => None,
        }
    }

    /// The time of the event, if it has one.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::AgentStart(event) => Some(event.timestamp),
            Self::AgentEnd(event) => Some(event.timestamp),
            Self::TurnStart(event) => Some(event.timestamp),
            Self::TurnEnd(event) => Some(event.timestamp),
            Self::ParallelLoopStart(event) => Some(event.timestamp),
            Self::ParallelLoopEnd(event) => Some(event.timestamp),
            Self::CompactionStarted(event) => Some(event.timestamp),
            Self::CompactionEnded(event) => Some(event.timestamp),
            Self::PrunApplied(event) => Some(event.timestamp),
            Self::RevertApplied(event) => Some(event.timestamp),
            Self::TurnRequest(event) => Some(event.timestamp),
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

    /// Writers put the type first; then no field has to be buffered before the type is known.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AgentEvent, A::Error> {
        let first: Option<Cow<'de, str>> = map.next_key()?;
        let Some(first) = first else {
            return Err(A::Error::missing_field("type"));
        };
        if first == "type" {
            let type_name: String = map.next_value()?;
            return AgentEvent::read(&type_name, MapAccessDeserializer::new(map));
        }
        let mut fields: Vec<(Cow<'de, str>, Box<RawValue>)> = vec![(first, map.next_value()?)];
        let mut type_name = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "type" {
                type_name = Some(map.next_value::<String>()?);
            } else {
                fields.push((key, map.next_value()?));
            }
        }
        let type_name = type_name.ok_or_else(|| A::Error::missing_field("type"))?;
        // The values stay text until the event type is known.
        let fields = fields.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        AgentEvent::read(&type_name, MapDeserializer::new(fields)).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One line of each variant as phi-core writes it.
    const VARIANTS: &str = include_str!("../tests/cases/agent_event_variants.txt");

    #[test]
    fn every_variant_is_written_as_it_is_read() {
        let lines: Vec<&str> = VARIANTS.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(lines.len(), 17);
        for line in lines {
            let event = AgentEvent::from_json(line).unwrap();
            assert!(!matches!(event, AgentEvent::Unknown(_)), "{line}");
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
            // Every event but those about a whole group belongs to one loop and names it.
            let is_of_group = event.type_name().starts_with("ParallelLoop");
            assert_eq!(event.loop_id().is_none(), is_of_group, "{line}");
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
        // A refused one reverted nothing, and an applied one needs no reason.
        let refused = json!({"type": "RevertApplied", "loop_id": "l", "category": "failure",
            "target": null, "abandoned_node_ids": [], "summary": null, "applied": false,
            "reason": null, "timestamp": "2026-01-01T00:00:00Z"});
        for event in [revert, refused, request] {
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
