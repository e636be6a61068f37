//! The schemas of our functions against the published API of session-manager 1.0.0.
//!
//! Compared are names, types, required fields, enums, formats, defaults and nullability; titles and descriptions are
//! ours. Each difference that we mean is listed in [`MEANT`] with its reason; a difference that is not listed
//! fails, and so does a listed one that no longer exists.

use std::collections::{BTreeMap, BTreeSet};

use bough_service::{EventKind, functions};
use serde_json::{Map, Value, json};

/// Where we differ on purpose: function (or definition), place, reason.
const MEANT: &[(&str, &str, &str)] = &[
    (
        "session::append request",
        "/properties/expected_leaf",
        "conditional append: two writers get a typed conflict and never interleave",
    ),
    ("session::append request", "/properties/stream", "messages that grow until they are finished"),
    ("session::append-many request", "/properties/expected_leaf", "the same for a batch"),
    (
        "session::set-active-leaf request",
        "/properties/expected_leaf",
        "two who go back one entry each do not take the same one",
    ),
    ("session::update-message request", "/properties/content", "the content may be one text"),
    ("session::fork request", "/properties/entry_id", "the default is the active leaf"),
    ("session::fork request", "/required", "the default is the active leaf"),
    ("session::fork request", "/properties/keep_ids", "copies can have the ids of their originals"),
    ("session::fork request", "/properties/new_session_id", "the caller can name the fork"),
    ("session::fork request", "/properties/whole", "every branch can be copied"),
    (
        "session::list request",
        "/properties/archived",
        "lists leave archived sessions out unless they are asked for them",
    ),
    ("session::list request", "/properties/task", "lists can filter by task name"),
    ("session::list request", "/properties/task_status", "lists can filter by task status"),
    ("session::list request", "/properties/query", "lists can filter by text"),
    ("session::list request", "/properties/include_details", "lists can say more of each session"),
    ("session::list response", "/properties/details", "what is known beyond the meta"),
    ("session::list response", "/definitions/SessionDetails", "the shape of the `details`"),
    ("session::list response", "/definitions/ModelName", "a part of the `details`"),
    ("session::list response", "/definitions/TaskStatus", "a part of the `details`"),
    ("session::list response", "/definitions/UsageByModel", "a part of the `details`"),
    ("session::list response", "/definitions/UsageTotals", "a part of the `details`"),
    (
        "session::list request",
        "/properties/id_prefix",
        "lists can filter by the beginning of the id",
    ),
    (
        "session::config-status response",
        "/properties/needs_restart",
        "which changes wait for the next start",
    ),
    ("session::list request", "/definitions/ArchivedFilter", "the words of the `archived` filter"),
    ("session::list request", "/definitions/TaskStatus", "the words of the `task_status` filter"),
];

#[test]
fn every_schema_of_session_manager_is_ours_except_where_we_say_why() {
    let mut unexplained = Vec::new();
    let mut found = BTreeSet::new();
    for (name, original) in original_functions() {
        let ours = bough_service::function(&name).unwrap_or_else(|| panic!("no {name}"));
        for (side, theirs, mine) in [
            ("request", &original["request_schema"], ours.request_schema()),
            ("response", &original["response_schema"], ours.response_schema()),
        ] {
            let place = format!("{name} {side}");
            for difference in differences(theirs, &mine) {
                match meant(&place, &difference) {
                    Some(index) => drop(found.insert(index)),
                    None => unexplained.push(format!("{place}: {difference}")),
                }
            }
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let all: BTreeSet<usize> = (0..MEANT.len()).collect();
    assert_eq!(found, all, "differences that no longer exist are still listed");
}

#[test]
fn every_trigger_type_of_session_manager_is_an_event_of_ours() {
    let fixture = fixture();
    let theirs: BTreeSet<&str> = fixture["triggers"].as_array().unwrap().iter()
        .filter_map(Value::as_str)
        // The feed for bridges is a surface of the server: the same events in envelopes.
        .filter(|name| *name != "session::store::events")
        .collect();
    let ours: BTreeSet<&str> = EventKind::PUBLIC.iter().map(|kind| kind.name()).collect();
    assert_eq!(theirs, ours);
}

#[test]
fn every_function_has_one_name_one_route_and_whole_schemas() {
    let mut names = BTreeSet::new();
    let mut routes = BTreeSet::new();
    for function in functions() {
        assert!(names.insert(function.id), "{} twice", function.id);
        assert!(function.description.ends_with('.'), "{}", function.id);
        let request = function.request_schema();
        assert_eq!(request["$schema"], json!("http://json-schema.org/draft-07/schema#"));
        check_references(&request);
        check_references(&function.response_schema());
        if let Some(route) = function.route {
            assert!(
                routes.insert(format!("{:?} {}", route.method, route.path)),
                "{} shares its route",
                function.id
            );
            check_path_fields(route.path, &request);
        }
    }
}

fn check_path_fields(path: &str, request: &Value) {
    let fields = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for field in fields {
        assert_eq!(request["properties"][field]["type"], json!("string"), "{path}");
    }
}

fn check_references(schema: &Value) {
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        if let Some(Value::String(reference)) = value.get("$ref") {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            _ => {}
        }
    }
}

fn meant(place: &str, difference: &str) -> Option<usize> {
    MEANT.iter().position(|(where_, path, _)| {
        *where_ == place && (difference == *path || difference.starts_with(&format!("{path}/")))
    })
}

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/session-manager-1.0.0-api.json")).unwrap()
}

fn original_functions() -> BTreeMap<String, Value> {
    let functions = fixture()["functions"].as_array().unwrap().clone();
    functions
        .into_iter()
        .map(|function| (function["name"].as_str().unwrap().to_owned(), function))
        .collect()
}

/// The places at which two schemas differ, as JSON pointers with both values.
fn differences(theirs: &Value, ours: &Value) -> Vec<String> {
    let (theirs, ours) = (facts(theirs), facts(ours));
    let places: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    places
        .into_iter()
        .filter(|place| theirs.get(*place) != ours.get(*place))
        .map(|place| {
            let show = |facts: &BTreeMap<String, Value>| {
                facts.get(place).map_or("-".to_owned(), Value::to_string)
            };
            let values = format!("/ theirs {} ours {}", show(&theirs), show(&ours));
            format!("{place}{values}")
        })
        .collect()
}

/// A schema as a flat map from place to value, in one normal form for the several ways of saying the same.
fn facts(schema: &Value) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    flatten("", &normal(schema, true), &mut facts);
    facts
}

fn flatten(place: &str, value: &Value, facts: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(&format!("{place}/{key}"), value, facts);
            }
        }
        other => drop(facts.insert(place.to_owned(), other.clone())),
    }
}

fn normal(schema: &Value, is_schema: bool) -> Value {
    let Value::Object(map) = schema else {
        return match schema {
            // `true` and `{}` both accept everything; 0 and 0.0 are one number.
            Value::Bool(true) => json!({"accepts": "anything"}),
            Value::Number(number) => json!(number.as_f64()),
            other => other.clone(),
        };
    };
    if !is_schema {
        let inner = map.iter().map(|(key, value)| (key.clone(), normal(value, true)));
        return Value::Object(inner.collect());
    }
    if let Some(words) = one_word_each(map) {
        return json!({"type": "string", "enum": words});
    }
    if let Some([Value::Object(only)]) =
        map.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
    {
        return normal(&Value::Object(only.clone()), true);
    }
    let mut normalised = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "title" | "description" | "$schema" => continue,
            "properties" | "definitions" => normal(value, false),
            "required" | "enum" | "type" => sorted(value),
            "oneOf" | "anyOf" => {
                let cases = value.as_array().unwrap().iter().map(|case| normal(case, true));
                keyed(cases.collect())
            }
            _ => normal(value, true),
        };
        normalised.insert(key.clone(), value);
    }
    if normalised.is_empty() {
        return json!({"accepts": "anything"});
    }
    Value::Object(normalised)
}

/// An enum whose words are documented is written as `oneOf` with one word each.
fn one_word_each(map: &Map<String, Value>) -> Option<Value> {
    let cases = map.get("oneOf")?.as_array()?;
    let words: Option<Vec<Value>> = cases
        .iter()
        .map(|case| {
            let is_plain = case.get("properties").is_none();
            let words = case.get("enum")?.as_array()?;
            (is_plain).then(|| words.clone())
        })
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat());
    words.map(|words| sorted(&Value::Array(words)))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items = items.clone();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(map) => normal(&Value::Object(map.clone()), true),
        other => other.clone(),
    }
}

/// The cases of a union by their discriminating word, so that their order does not matter.
fn keyed(cases: Vec<Value>) -> Value {
    let name = |case: &Value| {
        ["role", "type", "kind"]
            .iter()
            .find_map(|tag| case.pointer(&format!("/properties/{tag}/enum/0")))
            .unwrap_or(case)
            .to_string()
    };
    Value::Object(cases.into_iter().map(|case| (name(&case), case)).collect())
}
