//! The OpenAPI 3.1 document, made from the function table and the schemas of its types.

mod examples;
mod fixed;
mod health;
mod lines;
mod names;
mod operations;
mod schemas;
mod streams;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bough_service::functions;
use serde_json::{Map, Value, json};

use names::TAGS;
pub(super) use names::capitalised;
use operations::{method_name, operation};
use schemas::{Components, free_objects};

/// The document.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(build);
    &DOCUMENT
}

fn build() -> Value {
    let mut components = Components::default();
    components.0.insert("Problem".to_owned(), problem_schema());
    components.0.insert("FieldProblem".to_owned(), field_problem_schema());
    for (name, schema) in free_objects() {
        components.name_as(name, schema);
    }
    let mut paths: Map<String, Value> = Map::new();
    for function in functions() {
        let Some(route) = function.route else { continue };
        let operation = operation(function, route.path, &mut components);
        put(&mut paths, route.path, method_name(route.method), operation);
    }
    let mut others = streams::operations(&mut components);
    others.extend(lines::operations(&mut components));
    others.extend(fixed::operations(&mut components));
    for (path, method, operation) in others {
        put(&mut paths, path, method, operation);
    }
    for item in paths.values_mut().filter_map(Value::as_object_mut) {
        item.values_mut().for_each(|operation| add_examples(&components, operation));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bough",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of AI agents: durable, live, branching. An operation that is also a function of the \
                            iii bus names it in `x-function`, and the right that a token needs for it in `x-right`.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server that this document comes from." }],
        "security": [{}, { "bearer": [] }, { "login": [] }],
        "tags": tags(&paths),
        "paths": paths,
        "components": {
            "schemas": components.0,
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token that `bough token create` made. A server on this machine without tokens asks for none.",
                },
                "login": {
                    "type": "apiKey", "in": "cookie", "name": "bough_login_7717",
                    "description": "The cookie that `POST /v1/login` sets, with the port of the server in its name.",
                },
            },
        },
    })
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    if let Some(item) = item.as_object_mut() {
        item.insert(method.to_owned(), operation);
    }
}

/// The groups of the operations, in the order in which they are read.
fn tags(paths: &Map<String, Value>) -> Vec<Value> {
    let operations = paths.values().filter_map(Value::as_object).flat_map(Map::values);
    let used = operations.filter_map(|operation| operation.pointer("/tags/0")?.as_str());
    let used: BTreeSet<&str> = used.collect();
    let described = TAGS.iter().filter(|(tag, _)| used.contains(tag));
    described.map(|(tag, about)| json!({ "name": tag, "description": about })).collect()
}

/// Gives an example to each body, to each event, and to each parameter that is required.
fn add_examples(components: &Components, operation: &mut Value) {
    if let Some(content) = operation.pointer_mut("/requestBody/content") {
        add_content_example(components, content);
    }
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for response in responses.into_iter().flat_map(Map::values_mut) {
        let events = response.get_mut("x-events").and_then(Value::as_object_mut);
        for event in events.into_iter().flat_map(Map::values_mut) {
            add_example(components, event);
        }
        if let Some(content) = response.get_mut("content") {
            add_content_example(components, content);
        }
    }
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten().filter_map(Value::as_object_mut) {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
        if parameter.get("required") == Some(&Value::Bool(true))
            && let Some(schema) = parameter.get("schema")
        {
            let example = examples::parameter_example(components, name, schema);
            parameter.insert("example".to_owned(), example);
        }
    }
}

fn add_content_example(components: &Components, content: &mut Value) {
    if let Some(media) = content.get_mut("application/json") {
        add_example(components, media);
    }
}

/// Puts an example beside the schema that it is made from, where there is none.
fn add_example(components: &Components, media: &mut Value) {
    if let Some(map) = media.as_object_mut()
        && let Some(schema) = map.get("schema")
    {
        let example = examples::example(components, schema);
        map.entry("example").or_insert(example);
    }
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "required": ["type", "title", "status", "code", "detail", "hint"],
        "properties": {
            "type": { "type": "string", "description": "Where the code is described, on this server." },
            "title": { "type": "string", "description": "What the status means." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "code": { "type": "string", "description": "A stable name for programs." },
            "detail": { "type": "string", "description": "What happened, for people." },
            "hint": { "type": "string", "description": "The next step." },
            "errors": {
                "type": "array",
                "description": "What is wrong with each part of the request.",
                "items": { "$ref": "#/components/schemas/FieldProblem" },
            },
            "data": { "description": "What programs may want beside the text." },
            "holder": { "type": "string", "description": "Who holds a session that is locked." },
        },
    })
}

fn field_problem_schema() -> Value {
    json!({
        "type": "object",
        "description": "What is wrong with one part of a request.",
        "required": ["path", "detail"],
        "properties": {
            "path": { "type": "string", "description": "The part, as a JSON pointer into the body." },
            "detail": { "type": "string", "description": "What is wrong with it." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation with its path.
    fn all() -> Vec<(String, &'static Value)> {
        let paths = document()["paths"].as_object().unwrap();
        let of = |(path, item): (&String, &'static Value)| {
            let operations = item.as_object().unwrap().values();
            operations.map(|operation| (path.clone(), operation)).collect::<Vec<_>>()
        };
        paths.iter().flat_map(of).collect()
    }

    #[test]
    fn every_function_with_a_route_is_in_the_document() {
        for function in functions() {
            let Some(route) = function.route else { continue };
            let operation = &document()["paths"][route.path][method_name(route.method)];
            assert_eq!(operation["x-function"], function.id);
        }
    }

    /// Clients make a function of each operation; two with one name would be one.
    #[test]
    fn names_of_operations_are_plain_and_different() {
        let mut ids: Vec<&str> =
            all().iter().map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
        let is_plain = |id: &&str| {
            id.starts_with(|letter: char| letter.is_ascii_lowercase())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        assert!(ids.iter().all(is_plain), "{ids:?}");
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn every_operation_has_an_example() {
        for (path, operation) in all() {
            let contents = operation["responses"].as_object().unwrap().values();
            let contents = contents.chain(operation.get("requestBody"));
            for media in contents.filter_map(|part| part.pointer("/content/application~1json")) {
                assert!(media.get("example").is_some(), "{path}");
            }
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

    /// Outside validators see the uses in operations only; shapes of events and lines are used by `x-events` and `x-lines`.
    #[test]
    fn every_shape_is_used() {
        let text = document().to_string();
        for name in document()["components"]["schemas"].as_object().unwrap().keys() {
            let reference = format!("\"#/components/schemas/{name}\"");
            assert!(text.contains(&reference), "{name}");
        }
    }

    /// The server refuses members that a request does not have, and the document says so.
    #[test]
    fn request_bodies_have_no_other_members() {
        let bodies = all().into_iter().filter_map(|(path, operation)| {
            let body = operation.pointer("/requestBody/content/application~1json/schema")?;
            Some((path, body.get("$ref")?.as_str()?.to_owned()))
        });
        let mut checked = 0;
        for (path, reference) in bodies {
            let schema = document().pointer(reference.strip_prefix('#').unwrap()).unwrap();
            assert_eq!(schema["additionalProperties"], json!(false), "{path}");
            checked += 1;
        }
        assert!(checked > 15, "{checked}");
        let metadata = &document()["components"]["schemas"]["Metadata"];
        assert_eq!(metadata["additionalProperties"], json!(true));
    }

    /// A stop reason is one of its words, also in the examples of events.
    #[test]
    fn examples_of_stop_reasons_are_stop_reasons() {
        fn check(value: &Value, words: &[Value]) {
            match value {
                Value::Object(map) => {
                    if let Some(reason) = map.get("stop_reason").filter(|reason| reason.is_string())
                    {
                        assert!(words.contains(reason), "{reason}");
                    }
                    map.values().for_each(|value| check(value, words));
                }
                Value::Array(items) => items.iter().for_each(|value| check(value, words)),
                _ => {}
            }
        }
        let words = &document()["components"]["schemas"]["StopReason"]["enum"];
        check(document(), words.as_array().unwrap());
    }

    #[test]
    fn what_is_in_the_path_is_not_in_the_body() {
        let body = &document()["components"]["schemas"]["AppendEntryRequest"]["properties"];
        assert!(body.get("session_id").is_none());
        assert!(body.get("message").is_some());
    }

    /// An entry may be a document, which has no message.
    #[test]
    fn no_entry_needs_a_message() {
        for name in ["AppendEntryRequest", "NewEntry"] {
            let schema = &document()["components"]["schemas"][name];
            assert!(schema["properties"]["message"].is_object(), "{name}");
            let required = schema["required"].as_array().into_iter().flatten();
            assert!(!required.clone().any(|member| member == "message"), "{name}");
        }
    }
}
