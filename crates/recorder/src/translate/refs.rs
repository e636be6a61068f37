//! References: how a record refers to a message that an entry holds.
//!
//! In place of a message an event has `{"$entry": "m_7"}`: the message of that entry. If the event's message has
//! another turn, or other unknown fields, those are beside it (`turnId`, `extra`). A streamed message is `{"$stream":
//! "same"}` (the previous one) or `{"$stream": "grown"}` (the previous one with the event's delta).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use bough_session::{EntryId, RawJson};
use serde_json::{Map, Value, json};

use super::json_of;
use crate::event::{
    AgentEnd, AgentEvent, MessageEnd, MessageStart, MessageUpdate, StreamDelta, TurnEnd,
};
use crate::message::{Content, LlmMessage, Message, PhiMessage, PhiUsage, TurnId};
use crate::time::Timestamp;

const ENTRY: &str = "$entry";
const STREAM: &str = "$stream";

/// A message that an entry holds.
#[derive(Clone, Debug)]
pub(super) struct KnownMessage {
    pub(super) entry_id: EntryId,
    /// The message, while later events may refer to it.
    pub(super) message: Option<PhiMessage>,
    pub(super) is_assistant: bool,
}

impl KnownMessage {
    pub(super) fn new(entry_id: EntryId, message: PhiMessage) -> Self {
        Self { entry_id, is_assistant: message.is_assistant(), message: Some(message) }
    }

    /// Whether the entry holds this message, whatever its turn.
    pub(super) fn is(&self, message: &PhiMessage) -> bool {
        match (&self.message, message) {
            (Some(PhiMessage::Llm(known)), PhiMessage::Llm(other)) => {
                known.message == other.message
            }
            (Some(known), other) => known == other,
            (None, _) => false,
        }
    }
}

/// The JSON of an event with a reference in place of its message.
pub(super) fn with_message(event: &AgentEvent, message: Value) -> RawJson {
    let message = PhiMessage::Other(Arc::new(message));
    match event {
        AgentEvent::MessageStart(start) => {
            json_of(&AgentEvent::from(MessageStart { loop_id: start.loop_id.clone(), message }))
        }
        AgentEvent::MessageEnd(end) => {
            json_of(&AgentEvent::from(MessageEnd { loop_id: end.loop_id.clone(), message }))
        }
        AgentEvent::MessageUpdate(update) => json_of(&AgentEvent::from(MessageUpdate {
            loop_id: update.loop_id.clone(),
            message,
            delta: update.delta.clone(),
        })),
        _ => json_of(event),
    }
}

/// The JSON of the end of a turn with references in place of its messages.
pub(super) fn turn_end(turn: &TurnEnd, message: &Value, tool_results: &[Value]) -> RawJson {
    #[derive(serde::Serialize)]
    struct Light<'a> {
        r#type: &'static str,
        loop_id: &'a str,
        message: &'a Value,
        usage: PhiUsage,
        timestamp: Timestamp,
        tool_results: &'a [Value],
    }
    json_of(&Light {
        r#type: "TurnEnd",
        loop_id: &turn.loop_id,
        message,
        usage: turn.usage,
        timestamp: turn.timestamp,
        tool_results,
    })
}

/// The JSON of the end of a loop with references in place of its messages.
pub(super) fn agent_end(end: &AgentEnd, messages: Vec<Value>) -> RawJson {
    let messages = messages.into_iter();
    json_of(&AgentEvent::from(AgentEnd {
        loop_id: end.loop_id.clone(),
        messages: messages.map(|message| PhiMessage::Other(Arc::new(message))).collect(),
        usage: end.usage,
        timestamp: end.timestamp,
        rejection: end.rejection.clone(),
    }))
}

/// The reference to a message in an event.
pub(super) fn reference(message: &PhiMessage, known: Option<&KnownMessage>) -> Value {
    let Some(known) = known else {
        return serde_json::to_value(message).unwrap_or_default();
    };
    let mut reference = Map::new();
    reference.insert(ENTRY.to_owned(), Value::from(known.entry_id.as_str()));
    if let (Some(PhiMessage::Llm(held)), PhiMessage::Llm(message)) = (&known.message, message) {
        if held.turn_id != message.turn_id {
            reference.insert("turnId".to_owned(), json!(message.turn_id));
        }
        if held.extra != message.extra {
            reference.insert("extra".to_owned(), Value::Object(message.extra.clone()));
        }
    }
    Value::Object(reference)
}

/// The reference to a message in a place where messages have no turn.
pub(super) fn bare_reference(message: &PhiMessage, known: Option<&KnownMessage>) -> Value {
    match known {
        Some(known) => json!({ENTRY: known.entry_id.as_str()}),
        None => bare(message),
    }
}

fn bare(message: &PhiMessage) -> Value {
    let written = match message.as_llm() {
        Some(message) => serde_json::to_value(message),
        None => serde_json::to_value(message),
    };
    written.unwrap_or_default()
}

/// The JSON of a piece of a streamed message, after the one `before`.
pub(super) fn streamed(
    event: &AgentEvent,
    update: &MessageUpdate,
    before: Option<&PhiMessage>,
) -> RawJson {
    let known = before.and_then(|before| {
        if *before == update.message {
            Some("same")
        } else if grown(before, &update.delta).as_ref() == Some(&update.message) {
            Some("grown")
        } else {
            None
        }
    });
    match known {
        Some(how) => with_message(event, json!({STREAM: how})),
        None => json_of(event),
    }
}

/// A message with one more piece, if the piece fits its last block.
fn grown(before: &PhiMessage, delta: &StreamDelta) -> Option<PhiMessage> {
    let PhiMessage::Llm(llm) = before else {
        return None;
    };
    let mut llm: LlmMessage = llm.as_ref().clone();
    let content = llm.message.content_mut();
    match (content.last_mut(), delta) {
        (Some(Content::Text { text }), StreamDelta::Text { delta }) => text.push_str(delta),
        (Some(Content::Thinking { thinking, .. }), StreamDelta::Thinking { delta }) => {
            thinking.push_str(delta);
        }
        (None, StreamDelta::Text { delta }) => {
            content.push(Content::Text { text: delta.to_string() })
        }
        (None, StreamDelta::Thinking { delta }) => {
            content.push(Content::Thinking { thinking: delta.to_string(), signature: None })
        }
        _ => return None,
    }
    Some(PhiMessage::Llm(llm.into()))
}

/// Entries by the message that they hold.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<u64, Vec<(EntryId, Message)>>);

impl Index {
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a KnownMessage>) -> Self {
        let mut index = Self::default();
        for message in messages {
            index.add(message);
        }
        index
    }

    pub(super) fn add(&mut self, known: &KnownMessage) {
        if let Some(message) = known.message.as_ref().and_then(PhiMessage::as_llm) {
            let entries = self.0.entry(digest(message)).or_default();
            entries.push((known.entry_id.clone(), message.clone()));
        }
    }

    fn find(&self, message: &Message) -> Option<&EntryId> {
        let entries = self.0.get(&digest(message))?;
        let found = entries.iter().rev().find(|(_, held)| held == message);
        found.map(|(entry_id, _)| entry_id)
    }
}

fn digest(message: &Message) -> u64 {
    struct Feed<'a>(&'a mut DefaultHasher);

    impl std::io::Write for Feed<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut hasher = DefaultHasher::new();
    // Hashing the text cannot fail; a message that could not be written would only not be found.
    drop(serde_json::to_writer(Feed(&mut hasher), message));
    hasher.finish()
}

/// A request with references in place of the messages that entries hold.
pub(super) fn shortened_payload(payload: &Value, index: &Index) -> Value {
    let mut payload = payload.clone();
    if let Some(messages) = payload.get_mut("messages").and_then(Value::as_array_mut) {
        for message in messages {
            let Ok(read) = serde_json::from_value::<Message>(message.clone()) else {
                continue;
            };
            // Only a message that is restored exactly may be replaced.
            let comes_back = serde_json::to_value(&read).is_ok_and(|written| written == *message);
            if let Some(entry_id) = index.find(&read).filter(|_| comes_back) {
                *message = json!({ENTRY: entry_id.as_str()});
            }
        }
    }
    payload
}

/// The state that reading references needs.
#[derive(Debug, Default)]
pub(super) struct Library {
    entries: HashMap<String, PhiMessage>,
    streams: HashMap<String, PhiMessage>,
}

impl Library {
    pub(super) fn add(&mut self, entry_id: &EntryId, message: PhiMessage) {
        self.entries.insert(entry_id.to_string(), message);
    }

    /// The event of a loop record, with its messages back in their places. `None` if it cannot be read.
    pub(super) fn event(&mut self, loop_id: &str, json: &RawJson) -> Option<AgentEvent> {
        let mut value: Value = serde_json::from_str(json.get()).ok()?;
        let delta = value.get("delta").cloned();
        if let Some(message) = value.get_mut("message") {
            self.restore(loop_id, message, delta);
        }
        for message in array(value.get_mut("messages")) {
            self.restore(loop_id, message, None);
        }
        for message in array(value.get_mut("tool_results")) {
            self.restore_bare(message);
        }
        let payload = value.get_mut("payload");
        for message in array(payload.and_then(|payload| payload.get_mut("messages"))) {
            self.restore_bare(message);
        }
        let event: AgentEvent = serde_json::from_value(value).ok()?;
        let streamed = match &event {
            AgentEvent::MessageStart(start) => Some(&start.message),
            AgentEvent::MessageUpdate(update) => Some(&update.message),
            _ => None,
        };
        if let Some(message) = streamed {
            self.streams.insert(loop_id.to_owned(), message.clone());
        }
        Some(event)
    }

    fn restore(&self, loop_id: &str, value: &mut Value, delta: Option<Value>) {
        let Some(message) = self.find(loop_id, value, delta) else {
            return;
        };
        *value = serde_json::to_value(&message).unwrap_or_default();
    }

    fn find(&self, loop_id: &str, value: &Value, delta: Option<Value>) -> Option<PhiMessage> {
        if let Some(how) = value.get(STREAM).and_then(Value::as_str) {
            let before = self.streams.get(loop_id)?;
            let delta = delta.and_then(|delta| serde_json::from_value(delta).ok());
            return match (how, delta) {
                ("same", _) => Some(before.clone()),
                ("grown", Some(delta)) => grown(before, &delta),
                _ => None,
            };
        }
        let entry_id = value.get(ENTRY)?.as_str()?;
        let mut message = self.entries.get(entry_id)?.clone();
        if let Some(turn_id) = value.get("turnId") {
            let turn_id: Option<TurnId> = serde_json::from_value(turn_id.clone()).ok()?;
            message = message.with_turn_id(turn_id);
        }
        if let (Some(Value::Object(extra)), PhiMessage::Llm(llm)) =
            (value.get("extra"), &mut message)
        {
            Arc::make_mut(llm).extra.clone_from(extra);
        }
        Some(message)
    }

    fn restore_bare(&self, value: &mut Value) {
        let entry_id = value.get(ENTRY).and_then(Value::as_str);
        if let Some(message) = entry_id.and_then(|id| self.entries.get(id)) {
            *value = bare(message);
        }
    }
}

fn array(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}
