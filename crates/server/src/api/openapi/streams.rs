//! The streams of events, and the data of their events.

use bough_service::{EventKind, Function, GapReason, SessionSnapshot, schema_of};
use serde_json::{Map, Value, json};

use super::names::pascal_case;
use super::operations::{good, in_query, path_parameter, with_failures};
use super::schemas::{Components, complete, count, text, truth};
use crate::api::fields::{Field, FieldKind};
use crate::api::message_events::{DELTA, FINISHED, SNAPSHOT, STARTED};
use crate::api::stream_request::stream_fields;

/// What a stream of events is made of.
const ABOUT: &str = "Server-sent events, each with an `id` from which a reader resumes. A streaming message sends `message.started`, \
    `message.delta` and `message.finished`. With `deltas=off` messages come whole, once they are complete. The data of each \
    event are JSON, described under `x-events` by the event's name.";

/// A reply that streams, as a reader receives it.
const EXAMPLE: &str = concat!(
    ": ok\n",
    "retry: 1000\n",
    "id: c_1\n",
    "event: message.delta\n",
    r#"data: {"entry_id":"e_1","block":0,"kind":"text","text":"Hello","revision":1}"#,
    "\n\n",
    "id: c_2\n",
    "event: message.finished\n",
    r#"data: {"entry_id":"e_1","revision":2,"stop_reason":"end"}"#,
    "\n\n",
);

/// Path, method and operation of each stream.
pub(super) fn operations(components: &mut Components) -> Vec<(&'static str, &'static str, Value)> {
    let events = events(components);
    let of_all = stream("streamAllEvents", "Live events of all sessions", &[], &events);
    let of_session =
        stream("streamSessionEvents", "Live events of one session", &["session_id"], &events);
    vec![("/v1/events", "get", of_all), ("/v1/sessions/{session_id}/events", "get", of_session)]
}

fn stream(id: &str, summary: &str, in_path: &[&str], events: &Map<String, Value>) -> Value {
    let mut parameters: Vec<Value> =
        in_path.iter().map(|name| path_parameter(name, &Map::new())).collect();
    let fields = stream_fields();
    let in_query = fields.iter().filter(|field| !in_path.contains(&field.name.as_str()));
    parameters.extend(in_query.map(|field| parameter("session::watch", field)));
    parameters.push(json!({
        "name": "ticket", "in": "query", "required": false, "schema": { "type": "string" },
        "description": "A ticket of `POST /v1/tickets`, from callers that cannot send headers.",
    }));
    parameters.push(json!({
        "name": "Last-Event-ID", "in": "header", "required": false, "schema": { "type": "string" },
        "description": "Go on after the event with this id.",
    }));
    let schema = json!({ "type": "string" });
    let content = json!({ "text/event-stream": { "schema": schema, "example": EXAMPLE } });
    let answer = json!({ "description": ABOUT, "content": content, "x-events": events });
    json!({
        "operationId": id,
        "summary": summary,
        "description": format!("{summary}."),
        "tags": ["events"],
        "x-right": "read",
        "parameters": parameters,
        "responses": with_failures(good("200", answer)),
    })
}

/// The data of each event of a stream, by the event's name.
fn events(components: &mut Components) -> Map<String, Value> {
    let mut events = Map::new();
    let mut add = |name: &str, about: &str, schema: Value| {
        events.insert(name.to_owned(), json!({ "description": about, "schema": schema }));
    };
    // The events below report changes of messages.
    let others = EventKind::ALL.into_iter().filter(|kind| *kind != EventKind::MessageUpdated);
    for kind in others {
        let payload = components.take(kind.payload_schema());
        let payload = components.name(payload);
        let schema =
            components.name_as(&pascal_case(kind.name()), feed_event(kind.name(), payload));
        add(kind.name(), kind.description(), schema);
    }
    for (name, about, schema) in message_events().into_iter().chain(notices(components)) {
        let schema = components.name(schema);
        add(name, about, schema);
    }
    events
}

/// The data of an event of the feed.
fn feed_event(name: &str, payload: Value) -> Value {
    complete(json!({
        "type": { "type": "string", "const": name },
        "cursor": text("Where to go on after this event; its `id`."),
        "seq": count("The number of the record in its session."),
        "step": count("The number of the step of a stream; 0 when it is not about a stream."),
        "payload": payload,
    }))
}

fn message_events() -> Vec<(&'static str, &'static str, Value)> {
    let message = json!({ "$ref": "#/components/schemas/AgentMessage" });
    let whole = |title: &str| {
        let parent = json!({ "type": ["string", "null"], "description": "Its parent." });
        let fields = json!({ "parent_id": parent, "message": message });
        about_message(title, fields, &["parent_id", "message"])
    };
    vec![
        (STARTED, "A message begins to stream.", whole("MessageStarted")),
        (DELTA, "A message that streams grew.", delta()),
        (
            SNAPSHOT,
            "The whole message: after an edit, for a reader who joins midway, and where deltas are no longer kept.",
            whole("MessageSnapshot"),
        ),
        (FINISHED, "A message that streamed is complete.", finished()),
    ]
}

fn delta() -> Value {
    let fields = json!({
        "block": count("The number of the block, from 0."),
        "kind": { "type": "string", "enum": ["text", "thinking", "tool_arguments"], "description": "What the block holds." },
        "text": text("What is added to the block."),
        "function_call_id": text("The call, where the delta begins one."),
        "function_id": text("The function of the call, where the delta begins one."),
    });
    about_message("MessageDelta", fields, &["block", "kind", "text"])
}

fn finished() -> Value {
    let fields = json!({
        "stop_reason": { "$ref": "#/components/schemas/StopReason", "description": "Why it ended." },
        "native_stop_reason": text("The provider's own word for it."),
        "error_message": text("What went wrong."),
        "error_kind": { "$ref": "#/components/schemas/ErrorKind", "description": "What kind of error it is." },
        "warnings": { "type": "array", "items": { "type": "string" }, "description": "Notices that did not stop it." },
        "usage": { "$ref": "#/components/schemas/Usage" },
        "model": text("The model that wrote it."),
        "provider": text("Who served the model."),
        "cost": { "type": "number", "description": "What it cost, in dollars." },
        "aborted": truth("Whether it was given up before its end."),
    });
    about_message("MessageFinished", fields, &[])
}

/// The data of an event about a message.
fn about_message(title: &str, more: Value, required: &[&str]) -> Value {
    let mut fields = json!({
        "session_id": text("The session; only among the events of all sessions."),
        "entry_id": text("The message."),
        "revision": count("The revision that the message has then."),
    });
    if let (Some(all), Value::Object(more)) = (fields.as_object_mut(), more) {
        all.extend(more);
    }
    let required: Vec<&str> = ["entry_id", "revision"].iter().chain(required).copied().collect();
    titled(title, fields, &required)
}

/// Events that are about the stream.
fn notices(components: &mut Components) -> Vec<(&'static str, &'static str, Value)> {
    let snapshot = components.take(schema_of::<SessionSnapshot>());
    let metas = json!({ "type": "array", "items": { "$ref": "#/components/schemas/SessionMeta" } });
    let reasons = GapReason::ALL.map(GapReason::name);
    let reason =
        json!({ "type": "string", "enum": reasons, "description": "Why events may be missing." });
    vec![
        ("snapshot", "With `snapshot=true`: the session as it is now.", snapshot),
        (
            "sessions",
            "With `snapshot=true` on all sessions: some of those that there are.",
            titled("SessionsListed", json!({ "sessions": metas }), &["sessions"]),
        ),
        (
            "live",
            "With `snapshot=true`: what follows happens from now on.",
            titled("StreamLive", json!({}), &[]),
        ),
        (
            "gap",
            "Events before this one may be missing: read again what you show, then go on.",
            titled("StreamGap", json!({ "reason": reason }), &["reason"]),
        ),
    ]
}

fn titled(title: &str, properties: Value, required: &[&str]) -> Value {
    json!({ "title": title, "type": "object", "properties": properties, "required": required })
}

/// A parameter of a query that becomes a field of a function's request.
pub(super) fn parameter(function_id: &str, field: &Field) -> Value {
    let description = about(function_id, &field.name);
    let schema = match field.kind {
        FieldKind::Integer => json!({ "type": "integer" }),
        FieldKind::Number => json!({ "type": "number" }),
        FieldKind::Boolean => json!({ "type": "boolean" }),
        FieldKind::TextList | FieldKind::WordList => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Json => json!({ "type": "object" }),
    };
    let is_json = field.kind == FieldKind::Json;
    in_query((field.name.as_str(), field.is_required), description.into(), schema, is_json)
}

/// The description of a parameter: that of the field, unless the stream treats it differently.
fn about(function_id: &str, name: &str) -> String {
    let own = match name {
        "after" if function_id == "session::watch" => {
            "Go on after the event with this id; `start` begins with the first."
        }
        "types" => {
            "Only events with these names. Without it: those of sessions and messages, and not `session::leaf-moved`, \
             `session::archived`, `session::task-changed`, `session::label-changed` and `session::loop-changed`."
        }
        "session_id" => "Only events of this session.",
        "create" => "`wait` waits for a session that is not there yet; without it, that is a 404.",
        "snapshot" => "Begin with what there is now.",
        "deltas" => "`off` gives whole messages once they are complete, instead of their growth.",
        _ => "",
    };
    if !own.is_empty() {
        return own.to_owned();
    }
    let schema = bough_service::function(function_id).map(Function::request_schema);
    let field = schema.as_ref().and_then(|schema| schema.get("properties")?.get(name));
    let said = field.and_then(|field| field.get("description")?.as_str());
    said.unwrap_or_default().to_owned()
}
