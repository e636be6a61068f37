//! The operations for detailed health and verification.

use serde_json::{Map, Value, json};

use super::operations::with_failures;
use super::schemas::{Components, object};
use crate::api::health::STORE_LIMITS;
use crate::config::LimitsConfig;
use crate::integration::schema_of;
use crate::limits::DAMAGED_SESSIONS_NAMED_MAX;

/// `POST /v1/verify`.
pub(super) fn verify(components: &mut Components) -> Value {
    let schema = components.name_as("Verification", verification());
    let content = json!({ "application/json": { "schema": schema } });
    let mut answers = Map::new();
    let about = "It is being done; `GET /v1/health` tells the result.";
    answers.insert("202".to_owned(), json!({ "description": about, "content": content }));
    json!({
        "operationId": "verifyStore",
        "summary": "Check every stored byte, in the background",
        "description": "Begins to check every byte of every session, live and deleted, unless that is being done already. It only \
                        reads. The result and its time are kept, and told by `GET /v1/health` as `verification`.",
        "tags": ["server"],
        "x-right": "admin",
        "responses": with_failures(answers),
    })
}

/// `GET /v1/health`.
pub(super) fn operation(components: &mut Components) -> Value {
    let limits = components.take(schema_of::<LimitsConfig>());
    let limits = components.name(limits);
    components.name_as("StoreSize", size());
    components.name_as("Checkpoints", checkpoints());
    components.name_as("VerificationResult", verification_result());
    components.name_as("Verification", verification());
    components.name_as("StoreLimits", store_limits());
    components.name_as("StoreHealth", store());
    components.name_as("ServerActivity", activity());
    components.name_as("ServerCounts", counts());
    let schema = components.name_as("HealthDetails", details(&limits));
    let content = json!({ "application/json": { "schema": schema } });
    let mut answers = Map::new();
    answers.insert("200".to_owned(), json!({ "description": "Done.", "content": content }));
    let summary = "How the server is: store, last verification, search index, configuration, what is going on, limits";
    json!({
        "operationId": "getHealthDetails",
        "summary": summary,
        "description": "What the caller may see of it: the number of its own sessions; with the right `metrics` what the whole store \
                        occupies, the last verification and what is going on; and why something is wrong with the right `admin`.",
        "tags": ["server"],
        "x-right": "read",
        "responses": with_failures(answers),
    })
}

fn details(limits: &Value) -> Value {
    let properties = json!({
        "status": { "type": "string", "enum": ["ready", "not ready"] },
        "version": { "type": "string", "description": "The version of the program." },
        "uptime_ms": count("How long it runs, in milliseconds."),
        "draining": { "type": "boolean", "description": "Whether the server is about to end." },
        "store": shape("StoreHealth"),
        "verification": if_known("Verification"),
        "search": shape("IndexStatus"),
        "config": shape("ReloadStatus"),
        "now": if_known("ServerActivity"),
        "since_start": if_known("ServerCounts"),
        "limits": limits,
    });
    let all = [
        "status",
        "version",
        "uptime_ms",
        "draining",
        "store",
        "verification",
        "search",
        "config",
        "now",
        "since_start",
        "limits",
    ];
    object(properties, &all)
}

fn shape(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A shape, or `null` if it is not known or the caller may not see it.
fn if_known(name: &str) -> Value {
    json!({ "anyOf": [shape(name), { "type": "null" }] })
}

fn time(about: &str) -> Value {
    json!({ "type": "integer", "description": format!("{about}, milliseconds since the epoch.") })
}

fn time_if_any(about: &str) -> Value {
    json!({ "type": ["integer", "null"], "description": format!("{about}, milliseconds since the epoch.") })
}

/// The size of the files at the last measurement.
fn size() -> Value {
    let properties = json!({
        "measured_at": time("When the files were looked at"),
        "total_bytes": count("Bytes on the disk, all together."),
        "sessions_bytes": count("Bytes of the sessions."),
        "trash_bytes": count("Bytes of deleted sessions until their retention ends."),
        "staging_bytes": count("Bytes of sessions that are being built."),
        "catalogue_bytes": count("Bytes of the catalogue, which is derived from the sessions."),
        "search_bytes": count("Bytes of the search index, which is derived too."),
        "shared_bytes": count("Bytes of the small documents that servers share."),
    });
    let all = [
        "measured_at",
        "total_bytes",
        "sessions_bytes",
        "trash_bytes",
        "staging_bytes",
        "catalogue_bytes",
        "search_bytes",
        "shared_bytes",
    ];
    object(properties, &all)
}

fn checkpoints() -> Value {
    let properties = json!({
        "measured_at": time("When the files were looked at"),
        "checkpointed": count("Sessions whose newest checkpoint knows all their records."),
        "dirty": count("Sessions with records after their newest checkpoint: opening one reads those."),
        "unreadable": count("Sessions whose manifest cannot be read."),
    });
    object(properties, &["measured_at", "checkpointed", "dirty", "unreadable"])
}

fn verification() -> Value {
    let properties = json!({
        "status": {
            "type": "string", "enum": ["never", "well", "damaged", "failed"],
            "description": "How the last verification that came to its end ended. `failed`: it could not look at every session.",
        },
        "running_since": time_if_any("Since when one is running"),
        "last": if_known("VerificationResult"),
    });
    object(properties, &["status", "running_since", "last"])
}

fn verification_result() -> Value {
    let properties = json!({
        "started_at": time("When it began"),
        "finished_at": time("When it ended"),
        "sessions": count("Sessions that were checked, live and deleted."),
        "bytes": count("Bytes that were read."),
        "damaged": count("Sessions with damage."),
        "damaged_sessions": {
            "type": ["array", "null"], "items": { "type": "string" }, "maxItems": DAMAGED_SESSIONS_NAMED_MAX,
            "description": "The first of them. Only callers with the right `admin` see them.",
        },
        "failure": { "type": ["string", "null"], "description": "Why not every session was checked." },
    });
    object(properties, &["started_at", "finished_at", "sessions", "bytes", "damaged"])
}

fn store() -> Value {
    let properties = json!({
        "kind": { "type": "string", "description": "The adapter." },
        "is_reachable": { "type": "boolean", "description": "Whether the store answers." },
        "trouble": { "type": ["string", "null"], "description": "Why it does not." },
        "sessions": count("Sessions that the caller sees."),
        "reopened_sessions": count("Sessions that were opened again after a failure. Always 0 for a caller who does not see every session."),
        "size": if_known("StoreSize"),
        "checkpoints": if_known("Checkpoints"),
        "limits": shape("StoreLimits"),
    });
    object(
        properties,
        &["kind", "is_reachable", "sessions", "reopened_sessions", "size", "checkpoints", "limits"],
    )
}

/// What a store holds at the most.
fn store_limits() -> Value {
    let number = |(name, limit, about): &(&str, usize, &str)| {
        let schema =
            json!({ "type": "integer", "minimum": 0, "description": about, "example": limit });
        ((*name).to_owned(), schema)
    };
    let properties: Map<String, Value> = STORE_LIMITS.iter().map(number).collect();
    object(Value::Object(properties), &STORE_LIMITS.map(|(name, ..)| name))
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
