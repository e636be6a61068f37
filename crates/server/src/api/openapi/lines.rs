//! The operations that take lines of JSON in a request that stays open, and answer with lines.

use bough_service::api::RecordResponse;
use bough_service::schema_of;
use serde_json::{Map, Value, json};

use super::examples::{example, recorder_event};
use super::operations::{good, path_parameter, with_failures};
use super::schemas::{Components, count, object, text};
use super::streams::parameter;
use crate::api::body::NDJSON;
use crate::api::record::record_fields;

/// Path, method and operation of each.
pub(super) fn operations(components: &mut Components) -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("/v1/record", "post", record(components)),
        ("/v1/sessions/{session_id}/entries/{entry_id}/deltas", "post", deltas(components)),
    ]
}

/// Takes the deltas of a message.
fn deltas(components: &mut Components) -> Value {
    let line = components.name_as("DeltaLine", delta_line());
    let acknowledgement = components.name_as("DeltaAcknowledgement", delta_acknowledgement());
    let sent = [
        json!({ "block": 0, "text": "Hello" }),
        json!({ "block": 0, "text": " there." }),
        json!({ "finish": { "stop_reason": "end" } }),
    ];
    let answered = [
        json!({ "revision": 1 }),
        json!({ "revision": 2 }),
        json!({ "revision": 3, "stop_reason": "end" }),
    ];
    json!({
        "operationId": "appendDeltas",
        "summary": "Add to a message that streams, line by line, in one request that stays open",
        "description": "Each line is a delta or the end of the message (`x-lines` of the body). Each is answered by a line \
                        (`x-lines` of the answer), in order, once it is durable. What goes wrong is a last line with `error`.",
        "tags": ["sessions"],
        "x-right": "write",
        "parameters": [
            path_parameter("session_id", &Map::new()),
            path_parameter("entry_id", &Map::new()),
        ],
        "requestBody": { "required": true, "content": content(&sent), "x-lines": line },
        "responses": answers("One line for each line of the body.", content(&answered), &acknowledgement),
    })
}

fn delta_line() -> Value {
    object(
        json!({
            "block": count("The number of the block, from 0."),
            "text": text("What is added to the block."),
            "kind": { "$ref": "#/components/schemas/DeltaBlock" },
            "function_call_id": text("The call, where the line begins one."),
            "function_id": text("The function of the call, where the line begins one."),
            "finish": { "$ref": "#/components/schemas/FinishMessageRequest" },
        }),
        &[],
    )
}

fn delta_acknowledgement() -> Value {
    object(
        json!({
            "revision": count("The revision that is durable."),
            "stop_reason": { "$ref": "#/components/schemas/StopReason", "description": "Why the message ended, on the line for its end." },
            "error": { "$ref": "#/components/schemas/Problem" },
        }),
        &[],
    )
}

/// Takes the events of an agent.
fn record(components: &mut Components) -> Value {
    let answer = components.take(schema_of::<RecordResponse>());
    let answer = components.name(answer);
    let parameters: Vec<Value> =
        record_fields().iter().map(|field| parameter("session::record", field)).collect();
    let answered = example(components, &answer);
    let sent = [
        recorder_event(),
        json!({
            "type": "AgentEnd", "loop_id": "first.main.1", "messages": [], "usage": { "input": 1, "output": 1 },
            "timestamp": "2026-01-01T00:00:01Z",
        }),
    ];
    let summary = "Record the events of an agent while they arrive, one a line";
    json!({
        "operationId": "recordLines",
        "summary": summary,
        "description": "Each line is an event. A line of the answer (`x-lines`) says how far the events are durable. A caller \
                        whose connection broke asks `GET /v1/record/{recording_id}` where to go on.",
        "tags": ["record"],
        "x-right": "write",
        "parameters": parameters,
        "requestBody": { "required": true, "content": content(&sent) },
        "responses": answers("A line for each piece of the body that arrived.", content(&[answered]), &answer),
    })
}

/// A body of lines, with these as its example.
fn content(lines: &[Value]) -> Value {
    let example: String = lines.iter().map(|line| format!("{line}\n")).collect();
    json!({ (NDJSON): { "schema": { "type": "string" }, "example": example } })
}

fn answers(about: &str, content: Value, line: &Value) -> Value {
    let answer = json!({ "description": about, "content": content, "x-lines": line });
    with_failures(good("200", answer))
}
