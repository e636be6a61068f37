//! The operations for detailed health and verification.

use bough_service::schema_of;
use serde_json::{Map, Value, json};

use super::operations::{answer, with_failures};
use super::schemas::{Components, complete, count, nullable, reference, text, time, truth, with};
use crate::api::health::STORE_LIMITS;
use crate::config::LimitsConfig;
use crate::limits::DAMAGED_SESSIONS_NAMED_MAX;

/// `POST /v1/verify`.
pub(super) fn verify(components: &mut Components) -> Value {
    let schema = components.name_as("Verification", verification());
    let about = "The verification runs; `GET /v1/health` shows its result.";
    json!({
        "operationId": "verifyStore",
        "summary": "Check every stored byte, in the background",
        "description": "Begins to check every byte of every session, live and deleted, unless a check is running. It only \
                        reads. `GET /v1/health` shows the last result and its time as `verification`.",
        "tags": ["server"],
        "x-right": "admin",
        "responses": with_failures(answer("202", about, schema)),
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
    json!({
        "operationId": "getHealthDetails",
        "summary": "How the server is: store, last verification, search index, configuration, activity, limits",
        "description": "Shows what the caller may see: the number of its own sessions; with the right `metrics` also what the whole \
                        store occupies, the last verification and the activity of the server; with the right `admin` also the cause \
                        of a failure.",
        "tags": ["server"],
        "x-right": "read",
        "responses": with_failures(answer("200", "Done.", schema)),
    })
}

fn details(limits: &Value) -> Value {
    complete(json!({
        "status": { "type": "string", "enum": ["ready", "not ready"] },
        "version": text("The version of the program."),
        "uptime_ms": count("How long it runs, in milliseconds."),
        "draining": truth("Whether the server is about to end."),
        "store": reference("StoreHealth"),
        "verification": nullable(reference("Verification")),
        "search": reference("IndexStatus"),
        "config": reference("ReloadStatus"),
        "now": nullable(reference("ServerActivity")),
        "since_start": nullable(reference("ServerCounts")),
        "limits": limits,
    }))
}

/// The size of the files at the last measurement.
fn size() -> Value {
    complete(json!({
        "measured_at": time("When the files were measured"),
        "total_bytes": count("Bytes on the disk, all together."),
        "sessions_bytes": count("Bytes of the sessions."),
        "trash_bytes": count("Bytes of deleted sessions until their retention ends."),
        "staging_bytes": count("Bytes of sessions that are being built."),
        "catalogue_bytes": count("Bytes of the catalogue, which is derived from the sessions."),
        "search_bytes": count("Bytes of the search index, which is derived too."),
        "shared_bytes": count("Bytes of the small documents that servers share."),
    }))
}

fn checkpoints() -> Value {
    complete(json!({
        "measured_at": time("When the files were measured"),
        "checkpointed": count("Sessions whose newest checkpoint has all their records."),
        "dirty": count("Sessions with records after their newest checkpoint: opening one reads those."),
        "unreadable": count("Sessions whose manifest cannot be read."),
    }))
}

fn verification() -> Value {
    complete(json!({
        "status": {
            "type": "string", "enum": ["never", "well", "damaged", "failed"],
            "description": "The result of the last verification that ended. `failed`: it could not read every session.",
        },
        "running_since": nullable(time("When the running one began")),
        "last": nullable(reference("VerificationResult")),
    }))
}

fn verification_result() -> Value {
    complete(json!({
        "started_at": time("When it began"),
        "finished_at": time("When it ended"),
        "sessions": count("Sessions that were checked, live and deleted."),
        "bytes": count("Bytes that were read."),
        "damaged": count("Sessions with damage."),
        "damaged_sessions": {
            "type": ["array", "null"], "items": { "type": "string" }, "maxItems": DAMAGED_SESSIONS_NAMED_MAX,
            "description": "The first of them. Only callers with the right `admin` see them.",
        },
        "failure": nullable(text("Why not every session was checked.")),
    }))
}

fn store() -> Value {
    complete(json!({
        "kind": text("The adapter."),
        "is_reachable": truth("Whether the store answers."),
        "trouble": nullable(text("Why it does not.")),
        "sessions": count("Sessions that the caller sees."),
        "reopened_sessions": count("Sessions that were opened again after a failure. Always 0 for a caller who does not see every session."),
        "size": nullable(reference("StoreSize")),
        "checkpoints": nullable(reference("Checkpoints")),
        "limits": reference("StoreLimits"),
    }))
}

/// What a store holds at the most.
fn store_limits() -> Value {
    let number = |(name, limit, about): &(&str, usize, &str)| {
        ((*name).to_owned(), with(count(about), "example", json!(limit)))
    };
    complete(STORE_LIMITS.iter().map(number).collect::<Map<String, Value>>().into())
}

fn activity() -> Value {
    let names = ["http_connections", "bus_connections", "requests", "subscribers", "bus_bindings"];
    counted("The present activity of the server.", &names)
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
    let number =
        |name: &&str| ((*name).to_owned(), count(&format!("How many {}.", name.replace('_', " "))));
    let schema = complete(names.iter().map(number).collect::<Map<String, Value>>().into());
    with(schema, "description", json!(about))
}
