//! References: how a record refers to a message that an entry holds.
//!
//! In place of a message an event has `{"$entry": "m_7"}`: the message of that entry. If the event's message has
//! another turn, or other unknown fields, those are beside it (`turnId`, `extra`). Where messages stand without a turn
//! (the results of a turn, a request), `$form` says how the message is written there: see [`Form`]. A streamed message is
//! `{"$stream": "same"}` (the previous one), `{"$stream": "grown"}` (the previous one with the event's delta) or
//! `{"$stream": "grown ascii"}` (the same, by a writer that escapes all other characters).
//!
//! A reference gives back the very bytes of the message that it stands for. Where none does, the event has the message.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use bough_session::{AgentMessage, EntryId, RawJson};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::grown::{Escaping, grown};
use super::json_of;
use super::splice::Splice;
use crate::event::{
    AgentEnd, AgentEvent, MessageEnd, MessageStart, MessageUpdate, StreamDelta, TurnEnd,
    TurnRequest,
};
use crate::message::role_first::{self, RoleFirst};
use crate::message::{RecordedMessage, TurnId};
use crate::time::Timestamp;
use crate::usage::Figures;

const ENTRY: &str = "$entry";
const FORM: &str = "$form";
const STREAM: &str = "$stream";
const GROWN: [(&str, Escaping); 2] =
    [("grown", Escaping::Needed), ("grown ascii", Escaping::Ascii)];

/// How a message is written in a place where messages have no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The role first, as phi-core writes the results of a turn.
    Bare,
    /// With sorted members, as phi-core writes a request.
    Sorted,
    /// As the entry has it.
    Entry,
}

impl Form {
    const ALL: [(&str, Self); 3] =
        [("bare", Self::Bare), ("sorted", Self::Sorted), ("entry", Self::Entry)];

    fn write(self, message: &RecordedMessage) -> Option<String> {
        let written = match (self, message.known()) {
            (Self::Bare, Some(known)) => serde_json::to_string(&RoleFirst(known)),
            (Self::Sorted, Some(known)) => {
                serde_json::to_string(&RecordedMessage::made(known.clone()))
            }
            (Self::Entry, _) | (_, None) => serde_json::to_string(message),
        };
        written.ok()
    }

    /// The reference to an entry whose message is written as this text. The form is stated if it is not the usual one.
    fn reference(
        entry_id: &EntryId,
        held: &RecordedMessage,
        text: &str,
        usual: Self,
    ) -> Option<Value> {
        let is_text = |form: Self| form.write(held).is_some_and(|written| written == text);
        if is_text(usual) {
            return Some(json!({ENTRY: entry_id.as_str()}));
        }
        let (name, _) = Self::ALL.iter().find(|(_, form)| is_text(*form))?;
        Some(json!({ENTRY: entry_id.as_str(), FORM: name}))
    }
}

/// A message that an entry holds.
#[derive(Clone, Debug)]
pub(super) struct KnownMessage {
    pub(super) entry_id: EntryId,
    /// The message, while later events may refer to it.
    pub(super) message: Option<RecordedMessage>,
    pub(super) is_assistant: bool,
}

impl KnownMessage {
    pub(super) fn new(entry_id: EntryId, message: RecordedMessage) -> Self {
        Self { entry_id, is_assistant: message.is_assistant(), message: Some(message) }
    }

    /// Whether the entry holds this message, whatever its turn.
    pub(super) fn is(&self, message: &RecordedMessage) -> bool {
        let Some(held) = &self.message else {
            return false;
        };
        match (held.known(), message.known()) {
            (Some(known), Some(other)) => {
                let texts = [held.kept_text(), message.kept_text()];
                known == other && (texts == [None, None] || is_same_body(held, message))
            }
            _ => held == message,
        }
    }
}

/// Whether two messages have the same blocks and the same usage, with their unknown members.
fn is_same_body(one: &impl Serialize, other: &impl Serialize) -> bool {
    #[derive(PartialEq, serde::Deserialize)]
    struct Body {
        content: Value,
        #[serde(default)]
        usage: Value,
    }
    let body = |message: String| serde_json::from_str::<Body>(&message).ok();
    let body_of = |written: serde_json::Result<String>| written.ok().and_then(body);
    body_of(serde_json::to_string(one)) == body_of(serde_json::to_string(other))
}

/// The JSON of an event with a reference in place of its message.
pub(super) fn with_message(event: &AgentEvent, message: RecordedMessage) -> RawJson {
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
pub(super) fn turn_end(
    turn: &TurnEnd,
    message: &RecordedMessage,
    tool_results: &[RawJson],
) -> RawJson {
    #[derive(serde::Serialize)]
    struct Light<'a> {
        r#type: &'static str,
        loop_id: &'a str,
        message: &'a RecordedMessage,
        usage: Figures,
        timestamp: Timestamp,
        tool_results: &'a [RawJson],
    }
    json_of(&Light {
        r#type: "TurnEnd",
        loop_id: &turn.loop_id,
        message,
        usage: Figures::from(&turn.usage),
        timestamp: turn.timestamp,
        tool_results,
    })
}

/// The JSON of the end of a loop with references in place of its messages.
pub(super) fn agent_end(end: &AgentEnd, messages: Vec<RecordedMessage>) -> RawJson {
    json_of(&AgentEvent::from(AgentEnd {
        loop_id: end.loop_id.clone(),
        messages,
        usage: end.usage.clone(),
        timestamp: end.timestamp,
        rejection: end.rejection.clone(),
    }))
}

/// The reference to a message in an event; the message itself if no reference gives it back.
pub(super) fn reference(
    message: &RecordedMessage,
    known: Option<&KnownMessage>,
) -> RecordedMessage {
    let held = known.and_then(|known| Some((known, known.message.as_ref()?)));
    let Some((known, held)) = held else {
        return message.clone();
    };
    let mut reference = Map::new();
    reference.insert(ENTRY.to_owned(), Value::from(known.entry_id.as_str()));
    if held.turn_id() != message.turn_id() {
        reference.insert("turnId".to_owned(), json!(message.turn_id()));
    }
    if held.kept_text().is_none()
        && message.kept_text().is_none()
        && let (Some(held), Some(message)) = (held.said(), message.said())
    {
        if held.extra != message.extra {
            reference.insert("extra".to_owned(), Value::Object(message.extra.clone()));
        }
        return RecordedMessage::in_place(Value::Object(reference));
    }
    let restored = held.clone().with_turn_id(message.turn_id().cloned());
    if restored.is_written_like(message) {
        RecordedMessage::in_place(Value::Object(reference))
    } else {
        message.clone()
    }
}

/// The reference to a result of a turn; the result itself if no reference gives it back.
pub(super) fn result_reference(result: &RecordedMessage, known: Option<&KnownMessage>) -> RawJson {
    let text = role_first::json(result);
    let reference = known.and_then(|known| {
        Form::reference(&known.entry_id, known.message.as_ref()?, text.get(), Form::Bare)
    });
    reference.map_or(text, RawJson::from)
}

/// The JSON of a piece of a streamed message, after the one `before`.
pub(super) fn streamed(
    event: &AgentEvent,
    update: &MessageUpdate,
    before: Option<&RecordedMessage>,
) -> RawJson {
    let known = before.and_then(|before| {
        let is_grown = |(_, escaping): &&(&str, Escaping)| {
            let grown = grown(before, &update.delta, *escaping);
            grown.is_some_and(|grown| grown.is_written_like(&update.message))
        };
        if before.is_written_like(&update.message) {
            return Some("same");
        }
        GROWN.iter().find(is_grown).map(|(how, _)| *how)
    });
    match known {
        Some(how) => with_message(event, RecordedMessage::in_place(json!({STREAM: how}))),
        None => json_of(event),
    }
}

/// Entries by the message that they hold.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<u64, Vec<(EntryId, RecordedMessage)>>);

impl Index {
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a KnownMessage>) -> Self {
        let mut index = Self::default();
        for message in messages {
            index.add(message);
        }
        index
    }

    pub(super) fn add(&mut self, known: &KnownMessage) {
        if let Some(message) = &known.message
            && let Some(said) = message.known()
        {
            let entries = self.0.entry(digest(said)).or_default();
            entries.push((known.entry_id.clone(), message.clone()));
        }
    }

    /// The reference to the message that this text is.
    fn reference(&self, text: &str) -> Option<Value> {
        let message: RecordedMessage = serde_json::from_str(text).ok()?;
        let message = message.known()?;
        let entries = self.0.get(&digest(message))?;
        let mut found = entries.iter().rev().filter(|(_, held)| held.known() == Some(message));
        found.find_map(|(entry_id, held)| Form::reference(entry_id, held, text, Form::Sorted))
    }
}

fn digest(message: &AgentMessage) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A message that could not be written would only not be found.
    hasher.write(&serde_json::to_vec(&RoleFirst(message)).unwrap_or_default());
    hasher.finish()
}

/// The JSON of a request with references in place of the messages that entries hold.
pub(super) fn turn_request(request: &TurnRequest, index: &Index) -> RawJson {
    let whole = json_of(&AgentEvent::from(request.clone()));
    let payload = Messages::of(whole.get()).payload;
    let mut shortened = Splice::new(whole.get());
    for message in payload.map(|payload| Messages::of(payload.get()).messages()).unwrap_or_default()
    {
        if let Some(reference) = index.reference(message.get()) {
            shortened.replace(message.get(), &reference.to_string());
        }
    }
    RawJson::parse(shortened.finish()).unwrap_or(whole)
}

/// The members of an event or a request that hold messages, or references to them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Messages<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_results: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
}

impl<'a> Messages<'a> {
    /// Nothing, if it is no object.
    fn of(text: &'a str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn messages(&self) -> Vec<&'a RawValue> {
        list(self.messages)
    }
}

/// The items of a list; none if it is something else.
fn list(value: Option<&RawValue>) -> Vec<&RawValue> {
    value.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
}

/// The state that reading references needs.
#[derive(Debug, Default)]
pub(super) struct Library {
    entries: HashMap<String, RecordedMessage>,
    streams: HashMap<String, RecordedMessage>,
}

impl Library {
    pub(super) fn add(&mut self, entry_id: &EntryId, message: RecordedMessage) {
        self.entries.insert(entry_id.to_string(), message);
    }

    /// The event of a loop record, with its messages back in their places. `None` if it cannot be read.
    pub(super) fn event(&mut self, loop_id: &str, json: &RawJson) -> Option<AgentEvent> {
        let event = AgentEvent::from_json(&self.restored(loop_id, json.get())).ok()?;
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

    /// The text of an event with messages in the places of their references.
    fn restored(&self, loop_id: &str, text: &str) -> String {
        let event = Messages::of(text);
        let of_turns = event.message.into_iter().chain(event.messages());
        let of_turns = of_turns.map(|part| (part, self.message(loop_id, part.get(), event.delta)));
        let results = list(event.tool_results).into_iter();
        let results = results.map(|part| (part, self.written(part.get(), Form::Bare)));
        let request = event.payload.map(|payload| Messages::of(payload.get()).messages());
        let request = request.into_iter().flatten();
        let request = request.map(|part| (part, self.written(part.get(), Form::Sorted)));
        let mut parts: Vec<(&RawValue, String)> = of_turns
            .chain(results)
            .chain(request)
            .filter_map(|(part, restored)| Some((part, restored?)))
            .collect();
        // The members of an event may stand in any order.
        parts.sort_by_key(|(part, _)| part.get().as_ptr().addr());
        let mut spliced = Splice::new(text);
        for (part, restored) in parts {
            spliced.replace(part.get(), &restored);
        }
        spliced.finish()
    }

    /// The text of the message that a reference in an event stands for.
    fn message(&self, loop_id: &str, text: &str, delta: Option<&RawValue>) -> Option<String> {
        let message = self.find(loop_id, &read_reference(text)?, delta)?;
        serde_json::to_string(&message).ok()
    }

    fn find(
        &self,
        loop_id: &str,
        value: &Value,
        delta: Option<&RawValue>,
    ) -> Option<RecordedMessage> {
        if let Some(how) = value.get(STREAM).and_then(Value::as_str) {
            let before = self.streams.get(loop_id)?;
            if how == "same" {
                return Some(before.clone());
            }
            let (_, escaping) = GROWN.iter().find(|(name, _)| *name == how)?;
            let delta: StreamDelta = serde_json::from_str(delta?.get()).ok()?;
            return grown(before, &delta, *escaping);
        }
        let entry_id = value.get(ENTRY)?.as_str()?;
        let mut message = self.entries.get(entry_id)?.clone();
        if let Some(turn_id) = value.get("turnId") {
            let turn_id: Option<TurnId> = serde_json::from_value(turn_id.clone()).ok()?;
            message = message.with_turn_id(turn_id);
        }
        if let Some(Value::Object(extra)) = value.get("extra") {
            message.change(|said| said.extra.clone_from(extra));
        }
        Some(message)
    }

    /// The text of the message that a reference stands for where messages have no turn.
    fn written(&self, text: &str, usual: Form) -> Option<String> {
        let reference = read_reference(text)?;
        let message = self.entries.get(reference.get(ENTRY)?.as_str()?)?;
        let form = match reference.get(FORM) {
            Some(form) => Form::ALL.iter().find(|(name, _)| form == name)?.1,
            None => usual,
        };
        form.write(message)
    }
}

/// A reference, if the text is one. The first member of every reference begins with a dollar sign.
fn read_reference(text: &str) -> Option<Value> {
    if !text.starts_with("{\"$") {
        return None;
    }
    serde_json::from_str(text).ok()
}
