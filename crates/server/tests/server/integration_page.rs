//! The page `docs/INTEGRATION.md`, made from the function table and the other tables that the program serves from.

use std::collections::{BTreeMap, BTreeSet};

use bough_server::FUNCTION_ERRORS;
use bough_server::config::WorkerConfig;
use bough_service::{EventKind, Function, TriggerType, functions, schema_of};
use serde_json::{Value, json};

/// The page `docs/INTEGRATION.md`.
pub(crate) fn integration_page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Functions\n");
    for function in functions() {
        describe_function(&mut page, function);
    }
    page.push_str("\n## Events\n\nBind a function to one of these types. Every key of a filter is optional, and all that are \
                   given must hold; a key that is not listed is refused.\n");
    for trigger_type in TriggerType::all() {
        describe_event(&mut page, trigger_type);
    }
    page.push_str("\n## Configuration\n\nUnder the id `session-manager` of the engine's configuration worker, or at the top of \
                   `config.yaml`. Every key applies without a restart.\n\n");
    let settings = schema_of::<WorkerConfig>();
    table(&mut page, &settings);
    describe_definitions(&mut page, &settings);
    page.push_str("\n## Types\n\nThe types that functions and events name.\n");
    for (name, definition) in named_types() {
        describe_type(&mut page, &name, &definition);
    }
    page.push_str("\n## Errors\n\nOn the bus the message of a failed call is `handler error: CODE: TEXT`; over HTTP the field \
                   `code` has the code.\n\n| code | meaning |\n|---|---|\n");
    for known in FUNCTION_ERRORS {
        line(&mut page, &format!("| `{}` | {} |", known.code, known.text()));
    }
    page
}

const INTRODUCTION: &str = "\
# Building on Bough

Every function, event, configuration key and error code, for workers of an iii engine, clients of the bus and clients of
the HTTP API. This page is made from the program's own tables; `bough --manifest` prints the worker's manifest.

- On the bus, call a function by its name with one JSON object. Over HTTP, send the same fields to its route: names in
  braces are part of the path, the rest is the query of `GET` and `DELETE` and the body of the others.
- Events are delivered at least once and not always in order: keep the highest `revision` of a message, and follow
  `parent_id` for the order of a transcript. A subscriber that comes back within an hour, with any id, goes on where it was.
  One that comes back later starts at the present, and the log and `bough_gaps_total` report a gap.
- Events come twice if their call, or that of an older event, was not answered when a connection or a process ended. When
  another store takes the place of the old one, every session in it is replayed; a subscriber that leaves during the replay
  gets all of it again. The adapters `fs` and `memory` count changes only while the process runs: after a restart they count
  as another store for a subscriber of all sessions.
- An event that a subscriber cannot take (it is larger than its client reads, or the engine refuses the call) is not sent
  again. The log says so, and `bough_gaps_total` counts those of Bough's own bus.
- `*` marks a field that must be given.
";

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn describe_function(page: &mut String, function: &Function) {
    let right = function.right.name();
    let route = match &function.route {
        Some(route) => format!("`{} {}`", route.method.name(), route.path),
        None => "not over HTTP".to_owned(),
    };
    let (id, description) = (function.id, function.description);
    line(page, &format!("\n### `{id}`\n\n{description} Needs the right `{right}`; {route}.\n"));
    page.push_str("Request:\n\n");
    table(page, &function.request_schema());
    page.push_str("\nAnswer:\n\n");
    describe_answer(page, &function.response_schema());
}

/// The fields of an answer, which may be `null` instead.
fn describe_answer(page: &mut String, schema: &Value) {
    let choices = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let mut named = choices.filter(|choice| choice.get("$ref").is_some()).map(type_of);
    let definitions = schema.get("definitions");
    let nullable = named.next().and_then(|name| definitions?.get(&name));
    if nullable.is_some() {
        line(page, "`null`, or an object:\n");
    }
    describe_schema(page, nullable.unwrap_or(schema));
}

/// The types that the schemas of functions and events define.
fn named_types() -> BTreeMap<String, Value> {
    let functions =
        functions().iter().flat_map(|one| [one.request_schema(), one.response_schema()]);
    let events = EventKind::ALL.into_iter().map(EventKind::payload_schema);
    let mut types = BTreeMap::new();
    for mut schema in functions.chain(events) {
        let definitions = schema.get_mut("definitions").and_then(Value::as_object_mut);
        types.extend(definitions.map(std::mem::take).into_iter().flatten());
    }
    types
}

fn describe_event(page: &mut String, trigger_type: TriggerType) {
    let (name, description) = (trigger_type.name(), trigger_type.description());
    line(page, &format!("\n### `{name}`\n\n{description}\n\nFilter:\n"));
    table(page, &trigger_type.configuration_schema());
    if let TriggerType::Event(kind) = trigger_type {
        page.push_str("\nPayload:\n\n");
        table(page, &kind.payload_schema());
    }
}

/// The fields of an object, a line each.
fn table(page: &mut String, schema: &Value) {
    let fields = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty());
    let Some(fields) = fields else {
        line(page, "No fields.");
        return;
    };
    let required: Vec<&Value> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    line(page, "| field | type | meaning |\n|---|---|---|");
    for (name, field) in fields {
        let star = if required.contains(&&json!(name)) { "*" } else { "" };
        let meaning = field.get("description").and_then(Value::as_str).unwrap_or_default();
        let meaning = meaning.replace('\n', " ").replace('|', "\\|");
        line(page, &format!("| `{name}`{star} | {} | {meaning} |", type_of(field)));
    }
}

/// The types that a schema names.
fn describe_definitions(page: &mut String, schema: &Value) {
    let definitions = schema.get("definitions").and_then(Value::as_object);
    for (name, definition) in definitions.into_iter().flatten() {
        describe_type(page, name, definition);
    }
}

fn describe_type(page: &mut String, name: &str, definition: &Value) {
    line(page, &format!("\n### `{name}`\n"));
    if let Some(text) = definition.get("description").and_then(Value::as_str) {
        line(page, &format!("{}\n", text.replace('\n', " ")));
    }
    describe_schema(page, definition);
}

/// What a value may be: one of several forms, one of some words, or an object with fields.
fn describe_schema(page: &mut String, schema: &Value) {
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        line(page, "One of:\n");
        choices.iter().for_each(|choice| describe_choice(page, choice));
    } else if let Some(words) = words_of(schema) {
        line(page, &format!("One of: {words}."));
    } else if schema.get("properties").is_none() && !matches!(&*type_of(schema), "object" | "any") {
        line(page, &format!("Type: {}.", type_of(schema)));
    } else {
        table(page, schema);
    }
}

/// The words that a value may be.
fn words_of(schema: &Value) -> Option<String> {
    let words = schema.get("enum")?.as_array()?.iter();
    Some(words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
}

/// One form of a value, in a line: its name, its other fields and what it means.
fn describe_choice(page: &mut String, choice: &Value) {
    let fields = choice.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten().map(|(name, field)| {
        let words = field.get("enum").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<String> = words.map(Value::to_string).collect();
        let value = if words.is_empty() { type_of(field) } else { words.join(" or ") };
        format!("`{name}`: {value}")
    });
    let fields: Vec<String> = fields.collect();
    let form = match words_of(choice) {
        Some(words) => words,
        None if fields.is_empty() => type_of(choice),
        None => fields.join(", "),
    };
    let meaning = choice.get("description").and_then(Value::as_str).unwrap_or_default();
    line(page, format!("- {form}. {}", meaning.replace('\n', " ")).trim_end());
}

/// The type of a value, in a word or two.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(list) = schema.get(word).and_then(Value::as_array) {
            let names: Vec<String> =
                list.iter().map(type_of).filter(|name| name != "null").collect();
            return names.join(" or ");
        }
    }
    let items = || schema.get("items").map(type_of).unwrap_or_default();
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => format!("array of {}", items()),
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let names: Vec<String> = names
                .map(|name| {
                    if name == "array" { format!("array of {}", items()) } else { name.to_owned() }
                })
                .collect();
            names.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Every code in the source of the errors is on the page.
#[test]
fn every_error_code_is_listed() {
    let source = include_str!("../../../service/src/error.rs");
    let source = source.split("#[cfg(test)]").next().unwrap();
    let codes: BTreeSet<&str> =
        source.split('"').filter(|text| text.starts_with("session/")).collect();
    let listed: BTreeSet<&str> = FUNCTION_ERRORS.iter().map(|known| known.code).collect();
    assert_eq!(codes, listed);
}

/// Every key of the settings is on the page, also those of each adapter.
#[test]
fn every_configuration_key_is_listed() {
    fn keys(schema: &Value, found: &mut BTreeSet<String>) {
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            found.extend(fields.keys().cloned());
        }
        match schema {
            Value::Object(map) => map.values().for_each(|value| keys(value, found)),
            Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    keys(&schema_of::<WorkerConfig>(), &mut found);
    assert!(found.contains("timeout_ms"), "{found:?}");
    let page = integration_page();
    let part =
        page.split("## Configuration").nth(1).and_then(|rest| rest.split("## Errors").next());
    for key in found {
        assert!(part.unwrap().contains(&format!("`{key}`")), "{key}");
    }
    assert!(part.unwrap().contains("\"bridge\""), "the adapters are named");
}

/// The page needs no other: every type that it names is on it, and no answer is empty that has fields.
#[test]
fn every_type_and_every_answer_is_described() {
    let page = integration_page();
    for (name, definition) in named_types() {
        let (_, part) =
            page.split_once(&format!("\n### `{name}`\n")).unwrap_or_else(|| panic!("{name}"));
        let part = part.split("\n### ").next().unwrap();
        let has_fields = definition["properties"].as_object().is_some_and(|map| !map.is_empty());
        assert!(!has_fields || part.contains("| field |"), "{name}");
        assert!(!part.contains("- . ") && !part.contains("Type: ."), "{name}: {part}");
    }
    let get = page.split("### `session::get`\n").nth(1).and_then(|rest| rest.split("###").next());
    assert!(get.unwrap().contains("`null`, or an object:") && get.unwrap().contains("| `meta`* |"));
}
