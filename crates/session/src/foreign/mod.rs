//! Entries of other systems, stored as they came and read when somebody looks.
//!
//! Nothing is stored twice, an export gives back what came in, and a better mapping later improves old
//! sessions too. A mapping is a pure function from the stored JSON to a canonical message or custom
//! payload, and it is total: what it does not understand becomes a custom payload that shows the JSON.

mod lenient;
mod phi;
mod pi;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::usage::USAGE_TOOLS_AND_SUMMARIES;
use crate::{Canonical, ContentBlock, CustomPayload, EntryId, RawJson, Usage};

/// A line of a pi session file.
pub const FORMAT_PI: &str = "pi";
/// A message of a phi session.
pub const FORMAT_PHI: &str = "phi";
/// A message of a session-manager that knows more than the published shapes.
pub const FORMAT_SESSION_MANAGER: &str = "session-manager";

/// Another system's JSON, as it came, with the name of its format.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignBody {
    /// Which system's.
    pub format: String,
    /// Its JSON.
    pub json: RawJson,
    /// Content that was put in place of the original's later, through us.
    pub replaced: Option<Replaced>,
}

/// Content put in place of a foreign message's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replaced {
    /// The content.
    pub content: Vec<ContentBlock>,
    /// The details, where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ForeignBody {
    /// A body as it came.
    pub fn new(format: impl Into<String>, json: RawJson) -> Self {
        Self { format: format.into(), json, replaced: None }
    }
}

/// Usage that an entry of another system reports and that is no message's: the model, and what it used.
pub(crate) fn usage_of(custom: &CustomPayload) -> Option<(String, Usage)> {
    if custom.custom_type == pi::USAGE {
        return pi::usage_line(&custom.data);
    }
    usage_beside(&custom.data)
}

/// Usage that a tool's result or a summary of another system reports: it says no model.
pub(crate) fn usage_beside(data: &Value) -> Option<(String, Usage)> {
    Some((USAGE_TOOLS_AND_SUMMARIES.to_owned(), pi::usage_beside(data)?))
}

/// What an entry of another system puts in the place of an earlier one for the model: `None` leaves it out.
pub(crate) fn context_edit_of(
    custom: &CustomPayload,
) -> Option<(EntryId, Option<Vec<ContentBlock>>)> {
    if custom.custom_type != pi::CONTEXT_EDIT {
        return None;
    }
    pi::context_edit(&custom.data)
}

/// What a foreign body says in canonical terms. `timestamp` is the entry's, for messages that have none.
pub(crate) fn canonical(body: &ForeignBody, timestamp: i64) -> Canonical {
    let value = body.json.value();
    let mapped = match body.format.as_str() {
        FORMAT_PI => pi::canonical(&value, timestamp),
        FORMAT_PHI => phi::canonical(&value, timestamp),
        FORMAT_SESSION_MANAGER => lenient::canonical(&value, timestamp),
        _ => None,
    };
    let mapped = mapped.unwrap_or_else(|| unknown(&body.format, value));
    with_replaced(mapped, body.replaced.as_ref())
}

fn with_replaced(mapped: Canonical, replaced: Option<&Replaced>) -> Canonical {
    match (mapped, replaced) {
        (Canonical::Message(mut shared), Some(replaced)) => {
            let message = Arc::make_mut(&mut shared);
            message.content_mut().clone_from(&replaced.content);
            if let Some(details) = &replaced.details {
                message.set_details(details.clone());
            }
            Canonical::Message(shared)
        }
        (mapped, _) => mapped,
    }
}

fn unknown(format: &str, value: Value) -> Canonical {
    let word = value.get("type").and_then(Value::as_str);
    let custom_type = match word {
        Some(word) => format!("{format}.{word}"),
        None => format.to_owned(),
    };
    Canonical::Custom(CustomPayload { custom_type, data: value })
}

/// Looking into other people's JSON: everything may be missing or of another type.
trait Look {
    fn text(&self, key: &str) -> Option<&str>;
    fn texts(&self, key: &str) -> String;
    fn number(&self, key: &str) -> Option<u64>;
    fn time(&self, key: &str) -> Option<i64>;
    fn flag(&self, key: &str) -> Option<bool>;
    fn list(&self, key: &str) -> &[Value];
    fn some(&self, key: &str) -> Option<Value>;
}

impl Look for Value {
    fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Self::as_str)
    }

    fn texts(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().to_owned()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Self::as_u64)
    }

    fn time(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(Self::as_i64)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(Self::as_bool)
    }

    fn list(&self, key: &str) -> &[Value] {
        let found = self.get(key).and_then(Self::as_array);
        found.map_or(&[], Vec::as_slice)
    }

    fn some(&self, key: &str) -> Option<Value> {
        self.get(key).filter(|value| !value.is_null()).cloned()
    }
}
