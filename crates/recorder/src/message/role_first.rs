//! Messages where they stand without a turn, as the results of a turn do: there a message begins with its role.

use bough_session::AgentMessage;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::Map;
use serde_json::value::RawValue;

use super::write::{Layout, Written};
use super::{Known, RecordedMessage, Said, TurnId, read};
use crate::verbatim::{kept_text, with_member};

/// A message as it is written without a turn.
#[derive(Clone, Copy)]
pub(crate) struct RoleFirst<'a>(pub(crate) &'a AgentMessage);

impl Serialize for RoleFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { message: self.0, turn_id: None, layout: &Layout::ROLE_FIRST }
            .serialize(serializer)
    }
}

/// A message as the results of a turn hold it.
struct Bare(RecordedMessage);

impl Serialize for Bare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        bare(text).map(Self).map_err(D::Error::custom)
    }
}

/// A message in a text, without its turn.
fn bare(text: Box<RawValue>) -> Result<RecordedMessage, serde_json::Error> {
    let Known::Said(said) = read::known(text.get())? else {
        return Err(serde_json::Error::custom("a result needs the role of a message"));
    };
    Ok(bare_from(said.message, text))
}

fn bare_from(message: AgentMessage, text: Box<RawValue>) -> RecordedMessage {
    let text = kept_text(&RoleFirst(&message), text);
    let said = Said { message, turn_id: None, extra: Map::new() };
    RecordedMessage::new(Known::Said(said), text)
}

fn write<S: Serializer>(message: &RecordedMessage, serializer: S) -> Result<S::Ok, S::Error> {
    match (&message.0.text, message.known()) {
        (None, Some(known)) => RoleFirst(known).serialize(serializer),
        _ => message.serialize(serializer),
    }
}

pub(crate) fn serialize<S: Serializer>(
    messages: &[RecordedMessage],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|message| Bare(message.clone())))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<RecordedMessage>, D::Error> {
    let messages = Vec::<Bare>::deserialize(deserializer)?;
    Ok(messages.into_iter().map(|Bare(message)| message).collect())
}

/// The JSON of a message as the results of a turn hold it.
pub(crate) fn json(message: &RecordedMessage) -> bough_session::RawJson {
    bough_session::RawJson::of(&Bare(message.clone())).unwrap_or_default()
}

impl RecordedMessage {
    /// The message as the results of a turn hold it: without its turn. `None` if no model reads or wrote it.
    pub(crate) fn without_turn(&self) -> Option<Self> {
        let message = self.known()?.clone();
        let text = self.kept_text().and_then(|text| with_member(text, "turnId", None::<&TurnId>));
        Some(match text {
            Some(text) => bare_from(message, text),
            None => Self::made(message),
        })
    }

    /// The message as turns and loops hold it, from one of the results of a turn: with everything that its text holds.
    pub(crate) fn for_turn(&self) -> Self {
        let read = self.kept_text().and_then(|text| serde_json::from_str(text).ok());
        read.or_else(|| self.known().cloned().map(Self::made)).unwrap_or_else(|| self.clone())
    }
}
