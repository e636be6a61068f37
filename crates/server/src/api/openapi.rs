//! The OpenAPI 3.1 document, made from the function table and the schemas of its types.

use std::sync::LazyLock;

use bough_service::{Function, Method, Precondition, Repeat, functions};
use serde_json::{Map, Value, json};

use super::body::NDJSON;
use super::calls::takes_body;
use super::events::stream_fields;
use super::fields::{Field, FieldKind, path_names};

/// The document.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(build);
    &DOCUMENT
}

fn build() -> Value {
    let mut components = Components::default();
    let mut paths: Map<String, Value> = Map::new();
    for function in functions() {
        let Some(route) = function.route else { continue };
        let operation = operation(function, route.path, &mut components);
        put(&mut paths, route.path, method_name(route.method), operation);
    }
    put(&mut paths, "/v1/events", "get", stream("watchAll", "Live events of all sessions.", &[]));
    let of_session = stream("watchSession", "Live events of one session.", &["session_id"]);
    put(&mut paths, "/v1/sessions/{session_id}/events", "get", of_session);
    put(&mut paths, "/v1/sessions/{session_id}/entries/{entry_id}/deltas", "post", delta_lines());
    put(&mut paths, "/v1/call/{function_id}", "post", call_by_name());
    for (path, id, summary, kind) in PAGES {
        put(&mut paths, path, "get", page(id, summary, kind));
    }
    components.0.insert("Problem".to_owned(), problem_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bough",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of AI agents: durable, live, branching. Every operation is also a function of the \
                            iii bus; its `operationId` is that function's name.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": components.0,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

const PAGES: [(&str, &str, &str, &str); 4] = [
    ("/healthz", "health", "The process answers.", "application/json"),
    ("/readyz", "ready", "The process can do its work.", "application/json"),
    ("/version", "version", "What runs here.", "application/json"),
    ("/metrics", "metrics", "Counts for Prometheus.", "text/plain"),
];

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    if let Some(item) = item.as_object_mut() {
        item.insert(method.to_owned(), operation);
    }
}

const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

fn operation(function: &Function, path: &str, components: &mut Components) -> Value {
    let in_path = path_names(path);
    let mut request = components.take(function.request_schema());
    let properties =
        request.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = required_names(&request);
    let mut parameters: Vec<Value> =
        in_path.iter().map(|name| path_parameter(name, &properties)).collect();
    let has_body = takes_body(function.route.map(|route| route.method));
    if !has_body {
        let others = properties.iter().filter(|(name, _)| !in_path.contains(&name.as_str()));
        parameters.extend(others.map(|(name, schema)| {
            query_parameter(name, schema, required.contains(&name.as_str()))
        }));
    }
    parameters.extend(header_parameters(function));
    let mut operation = json!({
        "operationId": function.id,
        "summary": function.description,
        "tags": [path.split('/').nth(2).unwrap_or_default()],
        "x-right": function.right.name(),
        "parameters": parameters,
        "responses": responses(function, components),
    });
    if has_body && let Some(map) = operation.as_object_mut() {
        let is_required = required.iter().any(|name| !in_path.contains(name));
        remove_fields(&mut request, &in_path);
        map.insert(
            "requestBody".to_owned(),
            json!({ "required": is_required, "content": { "application/json": { "schema": request } } }),
        );
    }
    operation
}

fn required_names(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// What is in the path is not in the body.
fn remove_fields(schema: &mut Value, names: &[&str]) {
    let is_named = |value: &Value| value.as_str().is_some_and(|name| names.contains(&name));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|value| !is_named(value));
    }
}

fn path_parameter(name: &str, properties: &Map<String, Value>) -> Value {
    let description = properties.get(name).and_then(|schema| schema.get("description")).cloned();
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description.unwrap_or_default(),
        "schema": { "type": "string", "minLength": 1 },
    })
}

fn query_parameter(name: &str, schema: &Value, is_required: bool) -> Value {
    let mut schema = without_null(schema);
    let description = schema.as_object_mut().and_then(|map| map.remove("description"));
    let description = description.unwrap_or_default();
    // An object is one parameter with JSON in it.
    if schema.get("type") == Some(&json!("object")) {
        let content = json!({ "application/json": { "schema": schema } });
        return json!({
            "name": name, "in": "query", "required": is_required, "description": description,
            "content": content,
        });
    }
    json!({
        "name": name, "in": "query", "required": is_required, "description": description,
        "schema": schema,
    })
}

/// A query leaves a parameter out; it cannot say `null`.
fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(word) = schema.get_mut("type")
        && let Value::Array(types) = word
    {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            *word = only.clone();
        }
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get_mut(word) {
            choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        }
    }
    schema
}

fn header_parameters(function: &Function) -> Vec<Value> {
    let header = |name: &str, description: &str| {
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": { "type": "string" },
        })
    };
    let mut headers = Vec::new();
    if function.repeat == Repeat::ByKey {
        let repeatable = "The same key means the same request: repeating it changes nothing.";
        headers.push(header("Idempotency-Key", repeatable));
    }
    if let Some(precondition) = function.precondition {
        headers.push(header(
            "If-Match",
            match precondition {
                Precondition::Leaf => "Do it only if the active leaf is the one of this ETag.",
                Precondition::Version => {
                    "Change only if the session says of itself what it said at this ETag."
                }
                Precondition::Revision => {
                    "Change only if the entry is at the revision of this ETag."
                }
            },
        ));
    }
    if may_be_unmodified(function) {
        headers.push(header("If-None-Match", "Answer 304 if the ETag is still this one."));
    }
    headers
}

/// Whether a reader may say which version it has, and be told that it is still that one.
fn may_be_unmodified(function: &Function) -> bool {
    function.is_read() && function.tag.is_some()
}

fn responses(function: &Function, components: &mut Components) -> Value {
    let schema = non_null(components.take(function.response_schema()));
    let status = if function.makes_session { "201" } else { "200" };
    let mut responses = json!({
        status: {
            "description": "Done.",
            "content": { "application/json": { "schema": schema } },
        },
    });
    if let Some(map) = responses.as_object_mut() {
        map.extend(failures());
        if may_be_unmodified(function) {
            map.insert(
                "304".to_owned(),
                json!({ "description": "It is still as the caller knows it." }),
            );
        }
    }
    responses
}

fn failures() -> Map<String, Value> {
    let problem = json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
    let mut failures = Map::new();
    let described =
        [("4XX", "The request cannot be done as it is."), ("5XX", "The server could not do it.")];
    for (status, description) in described {
        failures
            .insert(status.to_owned(), json!({ "description": description, "content": problem }));
    }
    failures
}

/// Over HTTP, `null` is a 404.
fn non_null(schema: Value) -> Value {
    let choices = schema.get("anyOf").and_then(Value::as_array);
    let is_null = |choice: &Value| choice.get("type") == Some(&json!("null"));
    match choices {
        Some(choices) if choices.iter().any(is_null) => {
            choices.iter().find(|choice| !is_null(choice)).cloned().unwrap_or_default()
        }
        _ => without_null(&schema),
    }
}

/// The request that takes the deltas of a message line by line.
fn delta_lines() -> Value {
    let lines = json!({ (NDJSON): { "schema": { "type": "string" } } });
    let mut responses = json!({
        "200": {
            "description": "One line for each that was sent, in order, once it is durable: `{\"revision\"}`. What goes wrong is a last line `{\"error\"}`.",
            "content": lines.clone(),
        },
    });
    if let Some(map) = responses.as_object_mut() {
        map.extend(failures());
    }
    json!({
        "operationId": "appendDeltas",
        "summary": "Add to a message that streams, line by line, in one request that stays open.",
        "description": "Each line is a delta (`block`, `text`, `kind`, `function_call_id`, `function_id`) or the end (`finish`).",
        "tags": ["sessions"],
        "x-right": "write",
        "parameters": [
            path_parameter("session_id", &Map::new()),
            path_parameter("entry_id", &Map::new()),
        ],
        "requestBody": { "required": true, "content": lines },
        "responses": responses,
    })
}

/// What a stream of events is made of.
const STREAM_EVENTS: &str = "Server-sent events. A message that streams is told by `message.started` (`entry_id`, `parent_id`, \
    `revision`, `message`), `message.delta` (`entry_id`, `block`, `kind`: `text`, `thinking` or `tool_arguments`, `text`, \
    `revision`; `function_call_id` and `function_id` where it begins a call) and `message.finished` (`entry_id`, `revision`, \
    `stop_reason`, `usage`, `cost`, `aborted`, and what else the message says since). `message.snapshot` (`entry_id`, \
    `parent_id`, `revision`, `message`) has the whole message: after an edit, for a reader who joins midway, and where the \
    deltas in between are no longer kept. With `deltas=off` messages come whole, once they are at rest. Among the events of all \
    sessions each has `session_id`. Other events are those of `session::watch`, and `snapshot`, `sessions`, `live` and `gap`.";

fn stream(id: &str, summary: &str, in_path: &[&str]) -> Value {
    let mut parameters: Vec<Value> =
        in_path.iter().map(|name| path_parameter(name, &Map::new())).collect();
    parameters.extend(stream_fields().iter().map(stream_parameter));
    parameters.push(json!({
        "name": "Last-Event-ID", "in": "header", "required": false,
        "description": "Go on after the event with this id.",
        "schema": { "type": "string" },
    }));
    let mut responses = json!({
        "200": {
            "description": STREAM_EVENTS,
            "content": { "text/event-stream": { "schema": { "type": "string" } } },
        },
    });
    if let Some(map) = responses.as_object_mut() {
        map.extend(failures());
    }
    json!({
        "operationId": id,
        "summary": summary,
        "tags": ["events"],
        "x-right": "read",
        "parameters": parameters,
        "responses": responses,
    })
}

fn stream_parameter(field: &Field) -> Value {
    let schema = match field.kind {
        FieldKind::Integer => json!({ "type": "integer" }),
        FieldKind::Number => json!({ "type": "number" }),
        FieldKind::Boolean => json!({ "type": "boolean" }),
        FieldKind::TextList => json!({ "type": "array", "items": { "type": "string" } }),
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Json => {
            let content = json!({ "application/json": { "schema": { "type": "object" } } });
            return json!({ "name": field.name, "in": "query", "required": false, "content": content });
        }
    };
    json!({ "name": field.name, "in": "query", "required": field.is_required, "schema": schema })
}

/// One door to every function by its name.
fn call_by_name() -> Value {
    let any = json!({ "application/json": { "schema": {} } });
    let mut responses =
        json!({ "200": { "description": "What the function answers.", "content": any } });
    if let Some(map) = responses.as_object_mut() {
        map.extend(failures());
    }
    let mut parameters = vec![path_parameter("function_id", &Map::new())];
    // What each of them means to a function is said where the function has its own path.
    parameters.extend(
        bough_service::function("session::append").map(header_parameters).into_iter().flatten(),
    );
    json!({
        "operationId": "call",
        "summary": "Call any function by its name: the request is the body.",
        "tags": ["call"],
        "parameters": parameters,
        "requestBody": {
            "required": false,
            "content": { "application/json": { "schema": { "type": "object" } } },
        },
        "responses": responses,
    })
}

fn page(id: &str, summary: &str, kind: &str) -> Value {
    let schema = if kind == "application/json" {
        json!({ "type": "object" })
    } else {
        json!({ "type": "string" })
    };
    let mut responses = json!({
        "200": { "description": "Done.", "content": { kind: { "schema": schema } } },
    });
    if let Some(map) = responses.as_object_mut() {
        map.extend(failures());
        if id == "ready" {
            let content = json!({ kind: { "schema": schema } });
            map.insert(
                "503".to_owned(),
                json!({ "description": "Not ready.", "content": content }),
            );
        }
    }
    json!({ "operationId": id, "summary": summary, "tags": ["server"], "responses": responses })
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "required": ["type", "title", "status", "code", "detail", "hint"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": { "type": "string", "description": "A stable name for programs." },
            "detail": { "type": "string" },
            "hint": { "type": "string", "description": "The next step." },
            "data": { "description": "What programs may want beside the text." },
            "holder": { "type": "string", "description": "Who holds a session that is locked." },
        },
    })
}

/// The schemas that others refer to.
#[derive(Default)]
struct Components(Map<String, Value>);

impl Components {
    /// Moves the definitions of a generated schema here and points its references at them.
    fn take(&mut self, mut schema: Value) -> Value {
        let definitions = schema.as_object_mut().and_then(|map| {
            map.remove("$schema");
            map.remove("definitions")
        });
        if let Some(Value::Object(definitions)) = definitions {
            for (name, mut definition) in definitions {
                point_at_components(&mut definition);
                let known = self.0.entry(name).or_insert_with(|| definition.clone());
                debug_assert_eq!(known, &definition, "two types have one name");
            }
        }
        point_at_components(&mut schema);
        schema
    }
}

fn point_at_components(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/definitions/")
            {
                *reference = format!("#/components/schemas/{name}");
            }
            map.values_mut().for_each(point_at_components);
        }
        Value::Array(items) => items.iter_mut().for_each(point_at_components),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_with_a_route_is_in_the_document() {
        for function in functions() {
            let Some(route) = function.route else { continue };
            let pointer = format!(
                "/paths/{}/{}",
                route.path.replace('~', "~0").replace('/', "~1"),
                method_name(route.method)
            );
            let operation = document().pointer(&pointer).unwrap();
            assert_eq!(operation["operationId"], function.id);
        }
    }

    #[test]
    fn every_reference_has_its_schema() {
        fn check(value: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        let pointer = reference.strip_prefix('#').unwrap();
                        assert!(document().pointer(pointer).is_some(), "{reference}");
                    }
                    map.values().for_each(check);
                }
                Value::Array(items) => items.iter().for_each(check),
                _ => {}
            }
        }
        check(document());
    }

    #[test]
    fn what_is_in_the_path_is_not_in_the_body() {
        let pointer = "/paths/~1v1~1sessions~1{session_id}~1entries/post/requestBody/content/application~1json/schema";
        let body = document().pointer(pointer).unwrap();
        assert!(body["properties"].get("session_id").is_none());
        assert!(body["properties"].get("message").is_some());
    }
}
