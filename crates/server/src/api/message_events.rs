//! Messages as a stream of events: started, grown, replaced, finished.
//!
//! | event | data |
//! |---|---|
//! | `message.started` | `entry_id`, `parent_id`, `revision`, `message` |
//! | `message.delta` | `entry_id`, `block`, `kind`, `text`, `revision`; `function_call_id` and `function_id` where it begins a call |
//! | `message.snapshot` | `entry_id`, `parent_id`, `revision`, `message` |
//! | `message.finished` | `entry_id`, `revision`, the members that the end sets, `cost`, `aborted` |
//!
//! Among the events of all sessions each also has `session_id`. A reader that keeps a message by its `entry_id` and
//! applies these has it as `GET` shows it at that revision. So only a reader that has the message gets a delta; others
//! get a snapshot instead.

use std::collections::VecDeque;

use bough_service::{
    ChangeKind, Delivery, EventKind, EventPayload, FeedEvent, MessageChange, MessageUpdatedEvent,
    TextDelta,
};
use bough_session::{EntryId, Finish, SessionId};
use serde::Serialize;

use super::event_text::EventText;
use crate::limits::STREAM_MESSAGES_KNOWN_MAX;

/// The names of the events.
pub(crate) const STARTED: &str = "message.started";
pub(crate) const DELTA: &str = "message.delta";
pub(crate) const SNAPSHOT: &str = "message.snapshot";
pub(crate) const FINISHED: &str = "message.finished";

/// The names, each with the type of the feed's event that it is made from.
pub(crate) const NAMES: [(&str, EventKind); 4] = [
    (STARTED, EventKind::MessageAdded),
    (DELTA, EventKind::MessageUpdated),
    (SNAPSHOT, EventKind::MessageUpdated),
    (FINISHED, EventKind::MessageUpdated),
];

/// Which changes of a message a reader wants to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deltas {
    /// Every step.
    On,
    /// Whole messages, once they are at rest.
    Off,
}

/// The event names that a reader asked for; `None` means all.
pub(crate) type Names = Option<Vec<String>>;

/// Writes the events about messages for one reader, and tracks which messages it has.
pub(crate) struct MessageEvents {
    deltas: Deltas,
    names: Names,
    /// Whether the reader gets the events of all sessions.
    of_all: bool,
    /// The reader has every message of its session that was added after this record. `None` if that is not known.
    joined_at: Option<u64>,
    /// Other messages that the reader has, the newest at the back.
    known: VecDeque<(SessionId, EntryId)>,
    /// Deltas of one block that were read together and are not written yet.
    held: Option<Held>,
}

/// Deltas of one block, put together.
struct Held {
    delivery: Delivery,
    delta: TextDelta,
}

impl MessageEvents {
    pub(crate) fn new(deltas: Deltas, names: Names, joined_at: Option<u64>) -> Self {
        Self {
            deltas,
            names,
            of_all: joined_at.is_none(),
            joined_at,
            known: VecDeque::new(),
            held: None,
        }
    }

    /// The record after which the reader has every message that was added to its session.
    pub(crate) const fn joined_at(&self) -> Option<u64> {
        self.joined_at
    }

    /// From here on the reader has only messages after this record, and those that it is sent.
    pub(crate) fn join_at(&mut self, seq: u64) {
        if !self.of_all {
            self.joined_at = Some(seq);
        }
        self.known.clear();
    }

    /// Notes that the reader was sent a message.
    pub(crate) fn note(&mut self, session: &SessionId, entry: &EntryId) {
        self.known.retain(|(of, known)| of != session || known != entry);
        self.known.push_back((session.clone(), entry.clone()));
        if self.known.len() > STREAM_MESSAGES_KNOWN_MAX {
            self.known.pop_front();
        }
    }

    /// Writes an event about a message; returns `false` if it is not about one. A delta is held until the next event,
    /// or until [`flush`](Self::flush), because the next one may extend it.
    pub(crate) fn write(&mut self, text: &mut EventText, delivery: &Delivery) -> bool {
        let event = &delivery.event;
        match (&event.payload, &event.change) {
            (EventPayload::MessageAdded(added), Some(change)) if change.is_streaming => {
                self.flush(text);
                self.note(&event.session_id, &added.entry_id);
                if self.deltas == Deltas::On && self.wants(STARTED) {
                    let head = WholeHead {
                        session_id: self.session_of(event),
                        entry_id: &added.entry_id,
                        parent_id: added.parent_id.as_ref(),
                        revision: 0,
                    };
                    text.event_with_message(STARTED, (delivery, true), &head);
                }
            }
            (EventPayload::MessageAdded(added), _) => {
                self.flush(text);
                self.note(&event.session_id, &added.entry_id);
                return !self.wants(EventKind::MessageAdded.name());
            }
            (EventPayload::MessageUpdated(updated), Some(change)) => {
                self.write_change(text, delivery, updated, change);
            }
            (EventPayload::MessageUpdated(updated), None) => {
                self.flush(text);
                self.write_snapshot(text, (delivery, true), updated);
            }
            _ => {
                self.flush(text);
                return false;
            }
        }
        true
    }

    /// Writes the held delta; `false` if none is held.
    pub(crate) fn flush(&mut self, text: &mut EventText) -> bool {
        let Some(Held { delivery, delta }) = self.held.take() else { return false };
        let EventPayload::MessageUpdated(updated) = &delivery.event.payload else { return false };
        let call = delta.call.as_ref();
        let data = Delta {
            session_id: self.session_of(&delivery.event),
            entry_id: &updated.entry_id,
            block: delta.block,
            kind: delta.kind.name(),
            text: &delta.text,
            function_call_id: call.map(|call| call.id.as_str()),
            function_id: call.map(|call| call.function_id.as_str()),
            revision: updated.revision,
        };
        text.event(DELTA, &delivery, &data);
        true
    }

    fn write_change(
        &mut self,
        text: &mut EventText,
        delivery: &Delivery,
        updated: &MessageUpdatedEvent,
        change: &MessageChange,
    ) {
        let event = &delivery.event;
        match (&change.kind, self.deltas) {
            (ChangeKind::Text(delta), Deltas::On)
                if self.has(event, updated, change) || !self.wants(SNAPSHOT) =>
            {
                if self.wants(DELTA) {
                    self.hold(text, delivery, updated, delta);
                }
            }
            (ChangeKind::Finished { finish, has_new_content }, Deltas::On) => {
                self.flush(text);
                if *has_new_content || !self.has(event, updated, change) {
                    // Without an id: a reader that resumes here gets it again.
                    self.write_snapshot(text, (delivery, false), updated);
                }
                if self.wants(FINISHED) {
                    text.event(FINISHED, delivery, &Finished::of(self, event, updated, finish));
                }
            }
            // Complete messages: finished ones, and those that never streamed.
            (ChangeKind::Added | ChangeKind::Text(_) | ChangeKind::Replaced, Deltas::Off)
                if change.is_streaming => {}
            _ => {
                self.flush(text);
                self.write_snapshot(text, (delivery, true), updated);
            }
        }
    }

    /// Holds a delta, joined to the one that is held already if both are for the same block.
    fn hold(
        &mut self,
        text: &mut EventText,
        delivery: &Delivery,
        updated: &MessageUpdatedEvent,
        delta: &TextDelta,
    ) {
        let goes_on = |held: &Held| {
            let is_same = match &held.delivery.event.payload {
                EventPayload::MessageUpdated(before) => {
                    before.session_id == updated.session_id && before.entry_id == updated.entry_id
                }
                _ => false,
            };
            is_same && held.delta.block == delta.block && delta.call.is_none()
        };
        match self.held.as_mut().filter(|held| goes_on(held)) {
            Some(held) => {
                held.delta.text.push_str(&delta.text);
                held.delivery = delivery.clone();
            }
            None => {
                self.flush(text);
                self.held = Some(Held { delivery: delivery.clone(), delta: delta.clone() });
            }
        }
    }

    fn write_snapshot(
        &mut self,
        text: &mut EventText,
        (delivery, has_id): (&Delivery, bool),
        updated: &MessageUpdatedEvent,
    ) {
        let event = &delivery.event;
        self.note(&event.session_id, &updated.entry_id);
        if !self.wants(SNAPSHOT) {
            return;
        }
        let head = WholeHead {
            session_id: self.session_of(event),
            entry_id: &updated.entry_id,
            parent_id: event.change.as_ref().and_then(|change| change.parent_id.as_ref()),
            revision: updated.revision,
        };
        text.event_with_message(SNAPSHOT, (delivery, has_id), &head);
    }

    /// Whether the reader has a message as it was before a change.
    fn has(
        &self,
        event: &FeedEvent,
        updated: &MessageUpdatedEvent,
        change: &MessageChange,
    ) -> bool {
        let is_known = |(of, known): &(_, _)| *of == event.session_id && *known == updated.entry_id;
        self.joined_at.is_some_and(|joined| change.entry_seq > joined)
            || self.known.iter().rev().any(is_known)
    }

    fn wants(&self, name: &str) -> bool {
        let Some(names) = &self.names else { return true };
        let made_from = NAMES.iter().find(|(made, _)| *made == name).map(|(_, kind)| kind.name());
        names.iter().any(|asked| asked == name || Some(asked.as_str()) == made_from)
    }

    fn session_of<'a>(&self, event: &'a FeedEvent) -> Option<&'a SessionId> {
        self.of_all.then_some(&event.session_id)
    }
}

/// The data of an event beside a whole message.
#[derive(Serialize)]
struct WholeHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    entry_id: &'a EntryId,
    parent_id: Option<&'a EntryId>,
    revision: u64,
}

#[derive(Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    entry_id: &'a EntryId,
    block: u32,
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_id: Option<&'a str>,
    revision: u64,
}

#[derive(Serialize)]
struct Finished<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    entry_id: &'a EntryId,
    revision: u64,
    #[serde(flatten)]
    fields: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    aborted: bool,
}

impl<'a> Finished<'a> {
    fn of(
        events: &MessageEvents,
        event: &'a FeedEvent,
        updated: &'a MessageUpdatedEvent,
        finish: &Finish,
    ) -> Self {
        Self {
            session_id: events.session_of(event),
            entry_id: &updated.entry_id,
            revision: updated.revision,
            fields: fields_of(finish),
            cost: finish.usage.as_ref().and_then(|usage| usage.after.cost_usd),
            aborted: finish.aborted,
        }
    }
}

/// The members that the end of a message sets, by their names in a message.
fn fields_of(finish: &Finish) -> serde_json::Map<String, serde_json::Value> {
    let mut fields = serde_json::Map::new();
    let mut put = |name: &str, value: serde_json::Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    put("stop_reason", serde_json::json!(finish.stop_reason));
    put("native_stop_reason", serde_json::json!(finish.native_stop_reason));
    put("error_message", serde_json::json!(finish.error_message));
    put("error_kind", serde_json::json!(finish.error_kind));
    put("warnings", serde_json::json!(finish.warnings));
    put("usage", serde_json::json!(finish.usage.as_ref().map(|usage| &usage.after)));
    put("model", serde_json::json!(finish.model.as_ref().map(|model| &model.model)));
    put("provider", serde_json::json!(finish.model.as_ref().map(|model| &model.provider)));
    fields
}
