//! Examples that are made from the schemas, so that they stay current.

use serde_json::{Map, Value, json};

use super::schemas::Components;
use crate::api::EXAMPLE_MESSAGE;

/// The depth of examples; anything deeper is left empty.
const DEPTH_MAX: usize = 8;

/// Optional members that examples show anyway: without them a request would be empty.
const SHOWN: [&str; 11] = [
    "message",
    "title",
    "entries",
    "value",
    "text",
    "events",
    "label",
    "task",
    "stop_reason",
    "put",
    "digest",
];

/// Lists that are usually empty.
const EMPTY: [&str; 2] = ["notices", "losses"];

/// An example for a schema.
pub(super) fn example(components: &Components, schema: &Value) -> Value {
    of_named(components, schema, "", 0)
}

/// An example of a parameter.
pub(super) fn parameter_example(components: &Components, name: &str, schema: &Value) -> Value {
    of_named(components, schema, name, 0)
}

fn of_named(components: &Components, schema: &Value, name: &str, depth: usize) -> Value {
    let schema = components.resolve(schema);
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.first()) {
        return value.clone();
    }
    for word in ["oneOf", "anyOf"] {
        let choices = schema.get(word).and_then(Value::as_array);
        let is_something = |choice: &&Value| choice.get("type") != Some(&json!("null"));
        if let Some(choice) = choices.and_then(|choices| choices.iter().find(is_something)) {
            return of_named(components, choice, name, depth);
        }
    }
    if name == "event" && schema.get("properties").is_none() && type_of(schema) == "object" {
        return recorder_event();
    }
    if name == "message" && schema.get("properties").is_none() && type_of(schema) != "string" {
        return serde_json::from_str(EXAMPLE_MESSAGE).unwrap_or_default();
    }
    match type_of(schema) {
        "object" => of_object(components, schema, depth),
        "array" => of_array(components, schema, name, depth),
        "string" => json!(text(name)),
        "integer" => json!(number(schema, name)),
        "number" => json!(0.5),
        "boolean" => json!(!matches!(name, "draining" | "gap" | "more" | "lost")),
        _ => json!({ "any": "JSON" }),
    }
}

/// The event that begins a recording.
pub(super) fn recorder_event() -> Value {
    json!({
        "type": "AgentStart", "agent_id": "agent", "session_id": "first", "loop_id": "first.main.1",
        "timestamp": "2026-01-01T00:00:00Z",
    })
}

fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.into_iter().find(|name| *name != "null").unwrap_or_default()
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    }
}

fn of_object(components: &Components, schema: &Value, depth: usize) -> Value {
    let mut made = Map::new();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let is_shown = SHOWN.contains(&name.as_str()) && depth < DEPTH_MAX;
        if is_shown || required.contains(&name.as_str()) {
            made.insert(name.clone(), of_named(components, property, name, depth + 1));
        }
    }
    Value::Object(made)
}

fn of_array(components: &Components, schema: &Value, name: &str, depth: usize) -> Value {
    if let Some(Value::Array(places)) = schema.get("prefixItems") {
        let items = places.iter().map(|place| of_named(components, place, name, depth + 1));
        return Value::Array(items.collect());
    }
    match schema.get("items") {
        Some(items) if depth < DEPTH_MAX && !EMPTY.contains(&name) => {
            let name = name.strip_suffix('s').unwrap_or(name);
            json!([of_named(components, items, name, depth + 1)])
        }
        _ => json!([]),
    }
}

/// A text that fits the name of its member.
fn text(name: &str) -> &'static str {
    match name {
        "session_id" | "session" => "first",
        "scope" => "my-app",
        "key" => "user-1",
        "prefix" => "user-",
        "title" => "My first session",
        "description" => "What it is about",
        "text" | "query" => "hello",
        "cursor" | "next_cursor" | "after" | "next" => "c_1",
        "function_id" => "session::list",
        "mime" => "image/png",
        "data" => "aGVsbG8=",
        "model" => "model-1",
        "provider" => "provider-1",
        "label" => "start",
        "task" => "weather",
        "right" => "read",
        "store" => "fs",
        "ticket" => "t_1",
        "version" | "min" | "max" => "0.1.0",
        "api" => "v1",
        "protocol" => "http",
        "name" => "bough",
        "loop_id" => "first.main.1",
        "recording_id" => "recording_1",
        name if name.ends_with("entry_id") => "e_1",
        "parent_id" | "id" | "active_leaf" | "expected_leaf" => "e_1",
        name if name.ends_with("_id") => "id_1",
        _ => "text",
    }
}

fn number(schema: &Value, name: &str) -> i64 {
    let is_time = name.ends_with("_at") || matches!(name, "timestamp" | "last_activity");
    let usual = match name {
        _ if is_time => 1_760_000_000_000,
        "block" | "step" => 0,
        _ => 1,
    };
    let bound = |word: &str| schema.get(word).and_then(Value::as_i64);
    usual.clamp(bound("minimum").unwrap_or(i64::MIN), bound("maximum").unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_what_is_required_and_fits_its_schema() {
        let mut components = Components::default();
        components.0.insert("Word".to_owned(), json!({"type": "string", "enum": ["a", "b"]}));
        let schema = json!({
            "type": "object", "required": ["word", "at", "list"],
            "properties": {
                "word": {"$ref": "#/components/schemas/Word"},
                "at": {"type": "integer", "maximum": 7, "minimum": 3},
                "list": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}},
                "title": {"type": ["string", "null"]},
                "other": {"type": "string"},
            },
        });
        let expected = json!({"word": "a", "at": 3, "list": [true], "title": "My first session"});
        assert_eq!(example(&components, &schema), expected);
    }
}
