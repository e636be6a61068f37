//! The event table: each type of event is declared once, here.
//!
//! From a row are made the type's name and description, its payload and the JSON Schema of that.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::{
    ArchivedEvent, CreatedEvent, DeletedEvent, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent,
    MessageAddedEvent, MessageRemovedEvent, MessageUpdatedEvent, MetaUpdatedEvent,
    StatusChangedEvent, TaskChangedEvent,
};
use crate::table::schema_of;

/// Declares the types of events, a row each: the type, its payload, its name and what it means.
macro_rules! events {
    ($($kind:ident($payload:ty) $name:tt $description:tt;)*) => {
        /// The types of events.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum EventKind {
            $(#[doc = $description] #[serde(rename = $name)] $kind,)*
        }

        /// The payload of an event; as JSON, that of its type.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum EventPayload {
            $(#[doc = concat!("`", $name, "`.")] $kind($payload),)*
        }

        impl EventKind {
            /// Every type.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The name, such as `session::created`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$kind => $description,)* }
            }

            /// The JSON Schema (draft 07) of its payload.
            #[must_use]
            pub fn payload_schema(self) -> Value {
                match self { $(Self::$kind => schema_of::<$payload>(),)* }
            }
        }

        impl EventPayload {
            /// The type of the event.
            #[must_use]
            pub const fn kind(&self) -> EventKind {
                match self { $(Self::$kind(_) => EventKind::$kind,)* }
            }
        }
    };
}

events! {
    Created(CreatedEvent) "session::created" "A session exists (created, ensured, forked or brought back).";
    MessageAdded(Box<MessageAddedEvent>) "session::message-added" "An entry was appended to a session.";
    MessageUpdated(Box<MessageUpdatedEvent>) "session::message-updated" "A message's content changed (for example while it streams).";
    StatusChanged(StatusChangedEvent) "session::status-changed" "A session's status changed (idle, working, done, error).";
    MetaUpdated(MetaUpdatedEvent) "session::meta-updated" "A session's title, description or metadata changed.";
    Deleted(DeletedEvent) "session::deleted" "A session and its entries were removed.";
    LeafMoved(LeafMovedEvent) "session::leaf-moved" "The active path of a session ends at another entry.";
    Archived(ArchivedEvent) "session::archived" "A session was archived, or taken back.";
    TaskChanged(TaskChangedEvent) "session::task-changed" "A session's task was named.";
    LabelChanged(LabelChangedEvent) "session::label-changed" "An entry was named, or lost its name.";
    MessageRemoved(MessageRemovedEvent) "session::message-removed" "An entry was hidden: no read shows it any more.";
    LoopChanged(LoopChangedEvent) "session::loop-changed" "Something happened in a loop of an agent.";
}

/// A name that is not a type of event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a type of event; the types are {}", names(&EventKind::ALL))]
pub struct UnknownEventKind {
    name: String,
}

impl EventKind {
    /// The six types that a subscriber gets by default.
    pub const PUBLIC: [Self; 6] = [
        Self::Created,
        Self::MessageAdded,
        Self::MessageUpdated,
        Self::StatusChanged,
        Self::MetaUpdated,
        Self::Deleted,
    ];

    /// Whether its events are about a message or an entry that was added or changed.
    pub(super) const fn is_message(self) -> bool {
        matches!(self, Self::MessageAdded | Self::MessageUpdated)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EventKind {
    type Err = UnknownEventKind;

    fn from_str(name: &str) -> Result<Self, UnknownEventKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownEventKind { name: name.to_owned() })
    }
}

pub(super) fn names(kinds: &[EventKind]) -> String {
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(", ")
}
