//! The events, one by one.

use std::sync::Arc;

use bough_session::Usage;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::{ContinuationKind, StreamDelta, ToolResult, UnknownEvent};
use crate::message::RecordedMessage;
use crate::model::LoopConfigSnapshot;
use crate::open_enums::TurnTrigger;
use crate::time::Timestamp;
use crate::verbatim::{Members, Verbatim};

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
                    Self::$name(Arc::new(event))
                }
            }
        )+

        /// Something that an agent says while it works. Cheap to clone.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AgentEvent {
            $($(#[$doc])* $name(Arc<$name>),)+
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

            /// The names of the fields of the event's type; `None` if it is not known.
            pub(super) const fn field_names(&self) -> Option<&'static [&'static str]> {
                match self {
                    $(Self::$name(_) => Some(&[$(stringify!($field),)*]),)+
                    Self::Unknown(_) => None,
                }
            }

            /// The event of the given type whose other fields `fields` gives.
            pub(super) fn read<'de, D: Deserializer<'de>>(type_name: &str, fields: D) -> Result<Self, D::Error> {
                match type_name {
                    $(stringify!($name) => $name::deserialize(fields).map(Self::from),)+
                    _ => {
                        let Members(fields) = Members::deserialize(fields)?;
                        Ok(Self::Unknown(UnknownEvent::of_members(type_name, fields)))
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
                    Self::Unknown(event) => event.serialize(serializer),
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
        metadata: Option<Verbatim<Value>>,
        /// The model and settings that it runs with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config_snapshot: Option<Box<LoopConfigSnapshot>>,
    }
    /// A loop ends.
    AgentEnd {
        /// Which loop.
        loop_id: String,
        /// All messages that it made.
        messages: Vec<RecordedMessage>,
        /// What it cost.
        #[serde(with = "crate::usage")]
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
        /// The message of the model.
        message: RecordedMessage,
        /// What the turn cost.
        #[serde(with = "crate::usage")]
        usage: Usage,
        /// When.
        timestamp: Timestamp,
        /// What the tools answered.
        #[serde(with = "crate::message::role_first")]
        tool_results: Vec<RecordedMessage>,
    }
    /// A message begins.
    MessageStart {
        /// Which loop.
        loop_id: String,
        /// The message as far as it is known.
        message: RecordedMessage,
    }
    /// A piece of a message.
    MessageUpdate {
        /// Which loop.
        loop_id: String,
        /// The message as far as it is known.
        message: RecordedMessage,
        /// The piece.
        delta: StreamDelta,
    }
    /// A message is complete.
    MessageEnd {
        /// Which loop.
        loop_id: String,
        /// The message.
        message: RecordedMessage,
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
        args: Verbatim<Value>,
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
        partial_result: Verbatim<ToolResult>,
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
        result: Verbatim<ToolResult>,
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
    /// An input filter refused the input of the user.
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
        #[serde(with = "crate::usage")]
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
        /// The timestamps of the pruned messages, milliseconds since the epoch.
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
        summary: Option<String>,
        /// Whether it was done.
        applied: bool,
        /// Why, or why not.
        #[serde(default)]
        reason: Verbatim<Value>,
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
        payload: Verbatim<Value>,
        /// When.
        timestamp: Timestamp,
    }
}
