//! The types of events as a bus registers them: names, descriptions, filters, payloads.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::feed::{EventFilter, EventKind, FeedEvent};
use crate::scope::{Right, Scope};

/// The type that other instances bind to get every public event.
const STORE_EVENTS: &str = "session::store::events";

/// A type of event that functions can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerType {
    /// One kind of event.
    Event(EventKind),
    /// All public ones in envelopes, for other instances.
    StoreEvents,
}

impl TriggerType {
    /// The type with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            STORE_EVENTS => Some(Self::StoreEvents),
            _ => name.parse().ok().map(Self::Event),
        }
    }

    /// Every type.
    pub fn all() -> impl Iterator<Item = Self> {
        EventKind::ALL.into_iter().map(Self::Event).chain([Self::StoreEvents])
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event(kind) => kind.name(),
            Self::StoreEvents => STORE_EVENTS,
        }
    }

    /// Its description. Those of session-manager have its wording.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Event(EventKind::Created) => {
                "A new session exists (via session::create or session::fork)."
            }
            Self::Event(EventKind::MessageAdded) => "A message entry was appended to a session.",
            Self::Event(EventKind::MessageUpdated) => {
                "A message entry's content changed (e.g. streaming deltas)."
            }
            Self::Event(EventKind::StatusChanged) => {
                "A session's status changed (idle/working/done/error)."
            }
            Self::Event(EventKind::MetaUpdated) => {
                "A session's title/description/metadata changed."
            }
            Self::Event(EventKind::Deleted) => "A session and its entries were removed.",
            Self::Event(kind) => kind.description(),
            Self::StoreEvents => {
                "Internal: event-envelope feed for bridged session-manager instances. Not for direct consumption \u{2014} \
                 bind the six public session::* types instead."
            }
        }
    }

    /// The filter of a configuration, or the reason why it is refused.
    pub fn filter(self, scope: &Scope, config: &Value) -> Result<EventFilter, String> {
        scope.may_watch().map_err(|error| format!("{}: {error}", error.code()))?;
        match self {
            Self::Event(kind) => {
                EventFilter::parse(kind, config).map_err(|error| error.to_string())
            }
            Self::StoreEvents if !scope.has(Right::Bridge) => {
                Err("session/forbidden: this needs the right `bridge`".to_owned())
            }
            Self::StoreEvents => Ok(EventFilter::everything()),
        }
    }

    /// The JSON Schema of its configuration.
    #[must_use]
    pub fn configuration_schema(self) -> Value {
        let mut properties = serde_json::Map::new();
        if self != Self::StoreEvents {
            let text = "Only sessions whose metadata has these keys with equal values.";
            properties.insert("metadata".to_owned(), nullable("object", text));
        }
        if !matches!(self, Self::Event(EventKind::Created) | Self::StoreEvents) {
            let text = "Only this session.";
            properties.insert("session_id".to_owned(), nullable("string", text));
        }
        if matches!(self, Self::Event(EventKind::MessageAdded | EventKind::MessageUpdated)) {
            let mut roles = nullable("array", "Only messages of these roles.");
            if let Some(map) = roles.as_object_mut() {
                let names = ["user", "assistant", "function_result", "custom"];
                map.insert("items".to_owned(), json!({ "type": "string", "enum": names }));
            }
            properties.insert("roles".to_owned(), roles);
        }
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": ["object", "null"],
            "properties": properties,
            "additionalProperties": self == Self::StoreEvents,
        })
    }

    /// The payload for the bound function, as JSON text.
    #[must_use]
    pub fn payload(self, event: &FeedEvent) -> Cow<'_, str> {
        match self {
            Self::Event(_) => event.json().into(),
            Self::StoreEvents => {
                let metadata = event.metadata.as_deref();
                let metadata = metadata.map(|map| format!(",\"session_metadata\":{}", json!(map)));
                let (name, payload) = (event.kind().name(), event.json());
                let metadata = metadata.unwrap_or_default();
                format!("{{\"trigger_type\":\"{name}\",\"payload\":{payload}{metadata}}}").into()
            }
        }
    }
}

fn nullable(kind: &str, description: &str) -> Value {
    json!({ "type": [kind, "null"], "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_for_bridges_only() {
        let reader = Scope::new("r", [Right::Read]);
        assert!(TriggerType::StoreEvents.filter(&reader, &Value::Null).is_err());
        assert!(TriggerType::StoreEvents.filter(&Scope::owner(), &Value::Null).is_ok());
        let writer = Scope::owner().only_functions(["session::append".to_owned()]);
        let created = TriggerType::Event(EventKind::Created);
        let refused = created.filter(&writer, &Value::Null).unwrap_err();
        assert!(refused.starts_with("session/forbidden"), "{refused}");
        assert_eq!(TriggerType::named("session::created"), Some(created));
        assert_eq!(TriggerType::named("session::other"), None);
    }

    /// The schema that is registered and the filter that is parsed are two descriptions of one thing.
    #[test]
    fn the_schema_knows_exactly_the_keys_that_the_filter_takes() {
        let samples = [
            ("session_id", json!("s")),
            ("roles", json!(["user", "assistant", "function_result", "custom"])),
            ("metadata", json!({"owner": "u"})),
            ("other", json!(1)),
        ];
        for kind in EventKind::ALL {
            let schema = TriggerType::Event(kind).configuration_schema();
            for (key, value) in &samples {
                let is_taken = EventFilter::parse(kind, &json!({ *key: value })).is_ok();
                assert_eq!(schema["properties"].get(key).is_some(), is_taken, "{kind} {key}");
            }
        }
    }
}
