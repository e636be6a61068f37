//! A minimal client that keeps messages current by their events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Event;

/// A message that a viewer keeps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) revision: u64,
    pub(crate) message: Value,
    pub(crate) is_finished: bool,
}

/// The messages of one session, by entry.
#[derive(Default)]
pub(crate) struct Viewer {
    pub(crate) messages: BTreeMap<String, Kept>,
}

/// The members of a message that its end sets.
const LAST_WORDS: [&str; 8] = [
    "stop_reason",
    "native_stop_reason",
    "error_message",
    "error_kind",
    "warnings",
    "usage",
    "model",
    "provider",
];

impl Viewer {
    /// Applies an event; returns its entry.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<String> {
        let is_added = event.name == "session::message-added";
        let data = if is_added { &event.data["payload"] } else { &event.data };
        let entry = data["entry_id"].as_str()?.to_owned();
        let revision = data["revision"].as_u64().unwrap_or(0);
        match event.name.as_str() {
            "session::message-added" | "message.started" | "message.snapshot" => {
                let message = data["message"].clone();
                self.messages.insert(entry.clone(), Kept { revision, message, is_finished: false });
            }
            "message.delta" => {
                let kept = self.messages.get_mut(&entry).unwrap();
                add_text(&mut kept.message["content"], data);
                kept.revision = revision;
            }
            "message.finished" => {
                let kept = self.messages.get_mut(&entry).unwrap();
                for name in LAST_WORDS.into_iter().filter(|name| !data[*name].is_null()) {
                    kept.message[name] = data[name].clone();
                }
                (kept.revision, kept.is_finished) = (revision, true);
            }
            _ => return None,
        }
        Some(entry)
    }
}

fn add_text(content: &mut Value, delta: &Value) {
    let (blocks, kind) = (content.as_array_mut().unwrap(), delta["kind"].as_str().unwrap());
    let block = usize::try_from(delta["block"].as_u64().unwrap()).unwrap();
    if block == blocks.len() {
        blocks.push(match kind {
            "tool_arguments" => json!({"type": "function_call", "id": delta["function_call_id"],
                "function_id": delta["function_id"], "arguments": ""}),
            _ => json!({"type": kind, "text": ""}),
        });
    }
    let text = if kind == "tool_arguments" { "arguments" } else { "text" };
    let grown =
        format!("{}{}", blocks[block][text].as_str().unwrap(), delta["text"].as_str().unwrap());
    blocks[block][text] = json!(grown);
}
