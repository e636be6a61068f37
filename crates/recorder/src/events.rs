//! The events of a loop, which are parsed when they are first used.
//!
//! They are the larger part of most session files, and most programs that load a session never use them. Until then
//! they are kept as text. Parsing cannot fail: an event that cannot be parsed is kept as it came.

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::{AgentEvent, UnknownEvent};
use crate::model::LoopEvent;
use crate::verbatim::Verbatim;

/// The events of a loop, in order.
#[derive(Default)]
pub struct Events {
    understood: OnceLock<Vec<LoopEvent>>,
    /// The unparsed text.
    text: Mutex<Option<Box<RawValue>>>,
}

impl Events {
    pub(crate) fn push(&mut self, event: AgentEvent) {
        let sequence = self.last().map_or(0, |last| last.sequence + 1);
        if let Some(events) = self.understood.get_mut() {
            events.push(LoopEvent { sequence, event });
        }
    }

    fn understand(&self) -> Vec<LoopEvent> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).take();
        text.map_or_else(Vec::new, |text| read(text.get()))
    }
}

impl Deref for Events {
    type Target = [LoopEvent];

    fn deref(&self) -> &[LoopEvent] {
        self.understood.get_or_init(|| self.understand())
    }
}

/// The events of a list, parsed one by one: one that cannot be parsed does not affect the others.
fn read(text: &str) -> Vec<LoopEvent> {
    let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    let mut events: Vec<LoopEvent> = Vec::with_capacity(items.len());
    for item in items {
        let next = events.last().map_or(0, |last| last.sequence.saturating_add(1));
        events.push(read_one(item.get(), next));
    }
    events
}

/// An event and its number; if it has none, the next number.
fn read_one(text: &str, next: u64) -> LoopEvent {
    #[derive(serde::Deserialize)]
    struct Stored<'a> {
        #[serde(default)]
        sequence: Option<u64>,
        #[serde(borrow)]
        event: &'a RawValue,
    }
    match serde_json::from_str::<Stored<'_>>(text) {
        Ok(stored) => LoopEvent {
            sequence: stored.sequence.unwrap_or(next),
            event: read_event(stored.event.get()),
        },
        Err(_) => LoopEvent { sequence: next, event: read_event(text) },
    }
}

/// Keeps an event that cannot be parsed as it came: one event must not make a session unreadable.
fn read_event(text: &str) -> AgentEvent {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let fields = serde_json::from_str::<Verbatim<_>>(text).unwrap_or_else(|_| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            Map::from_iter([("value".to_owned(), value)]).into()
        });
        AgentEvent::Unknown(UnknownEvent::new(fields))
    })
}

impl<'de> Deserialize<'de> for LoopEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(read_one(text.get(), 0))
    }
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if !text.get().starts_with('[') {
            return Err(D::Error::custom("the events of a loop must be a list"));
        }
        Ok(Self { understood: OnceLock::new(), text: Mutex::new(Some(text)) })
    }
}

impl Serialize for Events {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Clone for Events {
    /// Events that were not parsed stay text.
    fn clone(&self) -> Self {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match text {
            Some(text) => Self { understood: OnceLock::new(), text: Mutex::new(Some(text)) },
            None => self.iter().cloned().collect(),
        }
    }
}

impl FromIterator<LoopEvent> for Events {
    fn from_iter<I: IntoIterator<Item = LoopEvent>>(events: I) -> Self {
        Self {
            understood: OnceLock::from(events.into_iter().collect::<Vec<_>>()),
            text: Mutex::default(),
        }
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a LoopEvent;
    type IntoIter = std::slice::Iter<'a, LoopEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Events {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_understood_when_somebody_looks() {
        let text = r#"[{"sequence":0,"event":{"type":"InputRejected","loop_id":"l","reason":"r"}},
            {"sequence":1,"event":{"type":"Dreamt"}},{"sequence":2,"event":{"type":"TurnStart"}}]"#;
        let mut events: Events = serde_json::from_str(text).unwrap();
        assert!(events.understood.get().is_none());
        let names: Vec<&str> = events.iter().map(|event| event.event.type_name()).collect();
        assert_eq!(names, ["InputRejected", "Dreamt", "TurnStart"]);
        assert!(events.text.lock().unwrap().is_none(), "the text is not kept beside them");
        let last = events[1].event.clone();
        events.push(last);
        assert_eq!(events.last().unwrap().sequence, 3);
        assert_eq!(events, events.clone());
    }

    #[test]
    fn an_event_that_makes_no_sense_takes_no_other_with_it() {
        let good = r#"{"type":"InputRejected","loop_id":"l","reason":"r"}"#;
        let text = format!(
            r#"[{{"sequence":0,"event":{good}}}, 7, {{"event":{good}}}, {{"sequence":"x","event":{good}}},
                {{"sequence":9,"event":{{"type":"TurnStart"}}}}, {good}]"#
        );
        let events: Events = serde_json::from_str(&text).unwrap();
        let is_good = |event: &LoopEvent| matches!(event.event, AgentEvent::InputRejected(_));
        let understood: Vec<(u64, bool)> =
            events.iter().map(|event| (event.sequence, is_good(event))).collect();
        let expected = [(0, true), (1, false), (2, true), (3, false), (9, false), (10, true)];
        assert_eq!(understood, expected);
        assert_eq!(events[4].event.type_name(), "TurnStart", "kept as it came");
        assert!(serde_json::from_str::<Events>("{}").is_err());
    }

    #[test]
    fn a_clone_of_events_that_were_not_read_is_not_read_either() {
        let text = r#"[{"sequence":0,"event":{"type":"Dreamt"}}]"#;
        let events: Events = serde_json::from_str(text).unwrap();
        let copy = events.clone();
        assert!(events.understood.get().is_none() && copy.understood.get().is_none());
        assert_eq!(copy, events);
        assert_eq!(events.clone(), copy, "the answer is the same once they were read");
    }
}
