//! The operations that are functions of the table.

use bough_service::{Function, Method, Precondition};
use serde_json::{Map, Value, json};

use super::names::{camel_case, tag};
use super::schemas::{Components, with};
use crate::api::bounds;
use crate::api::calls::takes_body;
use crate::api::fields::path_names;
use crate::error_codes::{ErrorCode, error_code};
use crate::limits::IDEMPOTENCY_KEY_BYTES_MAX;

pub(super) const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

/// The operation that a function is.
pub(super) fn operation(function: &Function, path: &str, components: &mut Components) -> Value {
    let in_path = path_names(path);
    let mut request = components.take(function.request_schema());
    if let Some(properties) = request.get_mut("properties") {
        bounds::declare(properties);
    }
    let properties =
        request.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = required_names(&request);
    let mut parameters: Vec<Value> =
        in_path.iter().map(|name| path_parameter(name, &properties)).collect();
    let has_body = takes_body(function.route.map(|route| route.method));
    if !has_body {
        let others = properties.iter().filter(|(name, _)| !in_path.contains(&name.as_str()));
        parameters.extend(others.map(|(name, schema)| {
            query_parameter(components, name, schema, required.contains(name))
        }));
    }
    parameters.extend(header_parameters(function));
    let operation = json!({
        "operationId": camel_case(function.operation),
        "summary": summary(function.description),
        "description": description(function.description),
        "tags": [tag(path)],
        "x-function": function.id,
        "x-right": function.right.name(),
        "parameters": parameters,
        "responses": responses(function, components),
    });
    if !has_body {
        return operation;
    }
    let is_required = required.iter().any(|name| !in_path.contains(&name.as_str()));
    remove_fields(&mut request, &in_path);
    // The server refuses members that a request does not have.
    let schema = components.name(with(request, "additionalProperties", json!(false)));
    let content = json!({ "application/json": { "schema": schema } });
    with(operation, "requestBody", json!({ "required": is_required, "content": content }))
}

/// A description without the parts about the bus: the events that it fires, and `null` where HTTP answers 404.
fn description(of_function: &str) -> String {
    let end = of_function.find("; fires").unwrap_or(of_function.len());
    let text = of_function.get(..end).unwrap_or(of_function).replace(" (null when unknown)", "");
    let text = text.replace(" (null when it is not open)", "");
    format!("{}.", text.trim_end_matches('.'))
}

/// The first part of a description, without text in brackets or after a semicolon.
fn summary(description: &str) -> &str {
    let end = description.find([';', '(', ':']).unwrap_or(description.len());
    description.get(..end).unwrap_or(description).trim_end_matches([' ', '.'])
}

fn required_names(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Removes the fields of the path from the body.
fn remove_fields(schema: &mut Value, names: &[&str]) {
    let is_named = |value: &Value| value.as_str().is_some_and(|name| names.contains(&name));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|value| !is_named(value));
    }
}

pub(super) fn path_parameter(name: &str, properties: &Map<String, Value>) -> Value {
    let description = properties.get(name).and_then(|schema| schema.get("description"));
    let usual = json!(format!("The {}.", name.trim_end_matches("_id").replace('_', " ")));
    let mut schema = json!({ "type": "string", "minLength": 1 });
    bounds::declare_one(name, &mut schema);
    json!({
        "name": name, "in": "path", "required": true, "schema": schema,
        "description": description.unwrap_or(&usual),
    })
}

fn query_parameter(
    components: &Components,
    name: &str,
    schema: &Value,
    is_required: bool,
) -> Value {
    let mut schema = without_null(schema);
    let description = schema.as_object_mut().and_then(|map| map.remove("description"));
    let description = description.unwrap_or_else(|| json!(""));
    let is_json = is_object(components, &schema);
    in_query((name, is_required), description, schema, is_json)
}

/// A parameter of a query. An object is one parameter with JSON in it.
pub(super) fn in_query(
    (name, is_required): (&str, bool),
    description: Value,
    schema: Value,
    is_json: bool,
) -> Value {
    let parameter = json!({
        "name": name, "in": "query", "required": is_required, "description": description,
    });
    if is_json {
        return with(parameter, "content", json!({ "application/json": { "schema": schema } }));
    }
    with(parameter, "schema", schema)
}

/// Whether a schema is an object, or a choice between objects.
fn is_object(components: &Components, schema: &Value) -> bool {
    let schema = components.resolve(schema);
    let choices = ["oneOf", "anyOf"].iter().find_map(|word| schema.get(word)?.as_array());
    match choices {
        Some(choices) => choices.iter().all(|choice| is_object(components, choice)),
        None => schema.get("type") == Some(&json!("object")),
    }
}

/// A query leaves a parameter out; it cannot express `null`.
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
    let Some(map) = schema.as_object_mut() else { return schema };
    for word in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = map.get_mut(word) else { continue };
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove(word);
            for (name, value) in only {
                map.entry(name).or_insert(value);
            }
        }
    }
    schema
}

pub(super) fn header_parameters(function: &Function) -> Vec<Value> {
    let header = |name: &str, description: &str, schema: Value| {
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": schema,
        })
    };
    let text = json!({ "type": "string" });
    let mut headers = Vec::new();
    if function.repeat.is_by_key() {
        let repeatable = "The same key means the same request: repeating it changes nothing, and the answer has \
                          `Idempotency-Replayed`. With another request it is refused with 422.";
        let key =
            json!({ "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX });
        headers.push(header("Idempotency-Key", repeatable, key));
    }
    if let Some(precondition) = function.precondition {
        let about = match precondition {
            Precondition::Leaf => "Do it only if the active leaf is the one of this ETag.",
            Precondition::Version => {
                "Change only if the session says of itself what it said at this ETag."
            }
            Precondition::Document => "Change only if the document has the version of this ETag.",
            Precondition::Revision => "Change only if the entry is at the revision of this ETag.",
        };
        headers.push(header("If-Match", about, text.clone()));
        if precondition == Precondition::Document && function.tag.is_some() {
            let about = "`*` writes only if there is no document.";
            headers.push(header("If-None-Match", about, text.clone()));
        }
    }
    if may_be_unmodified(function) {
        headers.push(header("If-None-Match", "Answer 304 if the ETag is still this one.", text));
    }
    headers
}

/// Whether a reader may send the version that it has, and get 304 if it is still current.
fn may_be_unmodified(function: &Function) -> bool {
    function.is_read() && function.tag.is_some()
}

fn responses(function: &Function, components: &mut Components) -> Value {
    let schema = components.take(function.response_schema());
    let schema = components.name(non_null(schema));
    let status = if function.makes_session { "201" } else { "200" };
    let mut responses = answer(status, "Done.", schema);
    if may_be_unmodified(function) {
        let unmodified = json!({ "description": "It is still as the caller knows it." });
        responses.insert("304".to_owned(), unmodified);
    }
    with_failures(responses)
}

/// An answer in JSON.
pub(super) fn answer(status: &str, about: &str, schema: Value) -> Map<String, Value> {
    let content = json!({ "application/json": { "schema": schema } });
    good(status, json!({ "description": about, "content": content }))
}

/// The one good answer of an operation.
pub(super) fn good(status: &str, answer: Value) -> Map<String, Value> {
    Map::from_iter([(status.to_owned(), answer)])
}

/// The answers of an operation, and how it may fail.
pub(super) fn with_failures(mut responses: Map<String, Value>) -> Value {
    let described = [
        ("4XX", "The request cannot be done as it is.", "session/leaf_conflict"),
        ("5XX", "The server could not do it.", "http/internal"),
    ];
    for (status, description, code) in described {
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let example = error_code(code).map(ErrorCode::example);
        let content =
            json!({ "application/problem+json": { "schema": schema, "example": example } });
        let failure = json!({ "description": description, "content": content });
        responses.entry(status).or_insert(failure);
    }
    Value::Object(responses)
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
