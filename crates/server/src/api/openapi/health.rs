//! The operation that says how the server is, in detail.

use serde_json::{Map, Value, json};

use super::operations::with_failures;
use super::schemas::{Components, object};
use crate::config::LimitsConfig;
use crate::integration::schema_of;

/// `GET /v1/health`.
pub(super) fn operation(components: &mut Components) -> Value {
    let limits = components.take(schema_of::<LimitsConfig>());
    let limits = components.name(limits);
    components.name_as("StoreHealth", store());
    components.name_as("ServerActivity", activity());
    components.name_as("ServerCounts", counts());
    let schema = components.name_as("HealthDetails", details(&limits));
    let content = json!({ "application/json": { "schema": schema } });
    let mut answers = Map::new();
    answers.insert("200".to_owned(), json!({ "description": "Done.", "content": content }));
    let summary = "How the server is: store, search index, configuration, what is going on, limits";
    json!({
        "operationId": "getHealthDetails",
        "summary": summary,
        "description": "What the caller may see of it: the size of its own sessions, what is going on with the right `metrics`, and why \
                        something is wrong with the right `admin`.",
        "tags": ["server"],
        "x-right": "read",
        "responses": with_failures(answers),
    })
}

fn details(limits: &Value) -> Value {
    let shape = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let if_allowed = |name: &str| json!({ "anyOf": [shape(name), { "type": "null" }] });
    let properties = json!({
        "status": { "type": "string", "enum": ["ready", "not ready"] },
        "version": { "type": "string", "description": "The version of the program." },
        "uptime_ms": count("How long it runs, in milliseconds."),
        "draining": { "type": "boolean", "description": "Whether the server is about to end." },
        "store": shape("StoreHealth"),
        "search": shape("IndexStatus"),
        "config": shape("ReloadStatus"),
        "now": if_allowed("ServerActivity"),
        "since_start": if_allowed("ServerCounts"),
        "limits": limits,
    });
    let all = [
        "status",
        "version",
        "uptime_ms",
        "draining",
        "store",
        "search",
        "config",
        "now",
        "since_start",
        "limits",
    ];
    object(properties, &all)
}

fn store() -> Value {
    let properties = json!({
        "kind": { "type": "string", "description": "The adapter." },
        "is_reachable": { "type": "boolean", "description": "Whether the store answers." },
        "trouble": { "type": ["string", "null"], "description": "Why it does not." },
        "sessions": count("Sessions that the caller sees."),
        "reopened_sessions": count("Sessions that were opened again after a failure."),
    });
    object(properties, &["kind", "is_reachable", "sessions", "reopened_sessions"])
}

fn activity() -> Value {
    let names = ["http_connections", "bus_connections", "requests", "subscribers", "bus_bindings"];
    counted("What is going on.", &names)
}

fn counts() -> Value {
    let names = [
        "refused_requests",
        "limited_requests",
        "panics",
        "events_streamed",
        "events_delivered",
        "gaps",
    ];
    counted("What happened since the start.", &names)
}

fn counted(about: &str, names: &[&str]) -> Value {
    let number = |name: &&str| {
        let about = format!("How many {}.", name.replace('_', " "));
        ((*name).to_owned(), count(&about))
    };
    let properties: Map<String, Value> = names.iter().map(number).collect();
    let mut schema = object(Value::Object(properties), names);
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".to_owned(), json!(about));
    }
    schema
}

fn count(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}
