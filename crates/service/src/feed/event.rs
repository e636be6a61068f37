use std::sync::{Arc, OnceLock};

use bough_session::{
    AgentMessage, ContentBlock, Incarnation, JsonMap, Role, SessionId, unfinished_json,
};
use bough_store::{Position, Steps};
use serde_json::Value;

use super::event_table::{EventKind, EventPayload};
use super::filter::EventFacts;
use super::message_change::{ChangeKind, MessageChange};
use crate::api::EventEnvelope;

/// One event, shared by its subscribers.
#[derive(Debug)]
pub struct FeedEvent {
    /// The session that it is about.
    pub session_id: SessionId,
    /// The incarnation of that session.
    pub incarnation: Incarnation,
    /// The number of its record; for a step of a stream, of the record that it follows.
    pub seq: u64,
    /// What it has to do with the steps of a stream.
    pub steps: Steps,
    /// Its payload.
    pub payload: EventPayload,
    /// How it changes a message, where that is known.
    pub change: Option<MessageChange>,
    /// The role of the message, when it is about one.
    pub role: Option<Role>,
    /// The session's metadata, for filters.
    pub metadata: Option<Arc<JsonMap>>,
    /// Which of the events of one record this is, counted from 0.
    pub(super) part: u32,
    /// Whether it is the last of them.
    pub(super) is_last_part: bool,
    json: OnceLock<String>,
    message_json: OnceLock<String>,
    weight: OnceLock<usize>,
}

impl EventPayload {
    fn role(&self) -> Option<Role> {
        match self {
            Self::MessageAdded(event) => event.message.as_ref().map(|message| message.role()),
            Self::MessageUpdated(event) => Some(event.message.role()),
            _ => None,
        }
    }

    /// Roughly how many bytes it takes; for bounding what is kept.
    fn weight(&self) -> usize {
        /// What an event takes beside its content.
        const BASE: usize = 512;
        let content = match self {
            Self::MessageAdded(event) => event.message.as_ref().map(|message| message.content()),
            Self::MessageUpdated(event) => Some(event.message.content()),
            _ => None,
        };
        let custom = match self {
            Self::MessageAdded(event) => event.custom.as_ref().map_or(0, bough_session::json_bytes),
            _ => 0,
        };
        BASE + content_bytes(content.unwrap_or_default()) + custom
    }
}

/// Roughly how many bytes content takes.
pub(crate) fn content_bytes(content: &[ContentBlock]) -> usize {
    content.iter().map(block_weight).sum()
}

fn block_weight(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Thinking(block) => block.text.len(),
        ContentBlock::Image(block) => block.data.len(),
        ContentBlock::FunctionCall(_) | ContentBlock::FunctionResult(_) => {
            bough_session::json_bytes(block)
        }
    }
}

impl FeedEvent {
    pub(super) fn new(
        (session_id, incarnation): (SessionId, Incarnation),
        (seq, steps): (u64, Steps),
        metadata: Option<Arc<JsonMap>>,
        payload: EventPayload,
    ) -> Self {
        Self {
            session_id,
            incarnation,
            seq,
            steps,
            change: None,
            role: payload.role(),
            metadata,
            payload,
            part: 0,
            is_last_part: true,
            json: OnceLock::new(),
            message_json: OnceLock::new(),
            weight: OnceLock::new(),
        }
    }

    /// The same event, with how it changes a message.
    pub(super) fn with_change(mut self, change: Option<MessageChange>) -> Self {
        self.change = change;
        self
    }

    /// What a subscriber learns with it.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.steps.position(self.seq)
    }

    /// The type of the event.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.payload.kind()
    }

    /// The payload as JSON text; made once, however many subscribers send it.
    #[must_use]
    pub fn json(&self) -> &str {
        // These types have nothing that JSON cannot say.
        self.json.get_or_init(|| {
            let mut text = Vec::with_capacity(self.payload.weight());
            let written = serde_json::to_writer(&mut text, &self.payload);
            written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_default()
        })
    }

    /// The message that the event is about.
    #[must_use]
    pub fn message(&self) -> Option<&AgentMessage> {
        match &self.payload {
            EventPayload::MessageAdded(added) => added.message.as_deref(),
            EventPayload::MessageUpdated(updated) => Some(&updated.message),
            _ => None,
        }
    }

    /// That message as JSON text, `null` where there is none. While it streams, it does not say why the model stopped.
    #[must_use]
    pub fn message_text(&self) -> String {
        match self.message() {
            Some(message) if self.streams_on() => unfinished_json(message).get().to_owned(),
            message => serde_json::to_string(&message).unwrap_or_default(),
        }
    }

    /// The same, made once, however many subscribers send it.
    #[must_use]
    pub fn message_json(&self) -> &str {
        self.message_json.get_or_init(|| self.message_text())
    }

    /// Whether its message streams on after it.
    fn streams_on(&self) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| {
            change.is_streaming && !matches!(change.kind, ChangeKind::Finished { .. })
        })
    }

    /// The payload as a JSON value.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::to_value(&self.payload).unwrap_or_default()
    }

    /// The event as it travels to another instance.
    #[must_use]
    pub fn envelope(&self) -> EventEnvelope {
        EventEnvelope {
            trigger_type: self.kind().name().to_owned(),
            payload: self.value(),
            session_metadata: self.metadata.as_deref().cloned(),
        }
    }

    /// The facts that filters read.
    #[must_use]
    pub fn facts(&self) -> EventFacts<'_> {
        EventFacts {
            kind: self.kind(),
            session_id: &self.session_id,
            role: self.role,
            metadata: self.metadata.as_deref(),
        }
    }

    /// Roughly how many bytes it takes, with its text.
    #[must_use]
    pub fn weight(&self) -> usize {
        *self.weight.get_or_init(|| {
            // The text, once made, is as long again.
            let delta = match self.change.as_ref().map(|change| &change.kind) {
                Some(ChangeKind::Text(delta)) => delta.text.len(),
                _ => 0,
            };
            2 * self.payload.weight() + delta
        })
    }
}

/// Numbers the events of one record.
pub(super) fn number_parts(events: &mut [FeedEvent]) {
    let count = events.len();
    for (index, event) in events.iter_mut().enumerate() {
        event.part = u32::try_from(index).unwrap_or(u32::MAX);
        event.is_last_part = index + 1 == count;
    }
}
