//! The formats: a message is returned as it came, and mappings between formats keep its content.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod checks;
mod conversations;
mod document;
mod facts;
mod generated;
mod mappings;
mod samples;
mod streams;

use bough_session::{AgentMessage, Canonical, Entry, EntryBody, Format, RawJson};

/// An entry with a message as it came in a format.
pub(crate) fn entry_in(format: Format, id: &str, json: &str) -> Entry {
    let body = format.body(RawJson::parse(json).unwrap()).unwrap();
    Entry { body, timestamp: 77, ..common::entry(id, None, common::user("", 1)) }
}

/// An entry with a canonical message.
pub(crate) fn entry_of(id: &str, message: AgentMessage) -> Entry {
    Entry {
        body: EntryBody::Message(message.into()),
        ..common::entry(id, None, common::user("", 1))
    }
}

/// The canonical message of a JSON of a format.
pub(crate) fn message_of(format: Format, json: &RawJson) -> AgentMessage {
    match format.to_canonical(json, 77) {
        Canonical::Message(message) => (*message).clone(),
        Canonical::Custom(custom) => panic!("no message: {custom:?}"),
    }
}
