//! The shapes that operations share, in the form that OpenAPI 3.1 and generators of clients want.

use bough_session::limits::METADATA_KEYS_MAX;
use serde_json::{Map, Value, json};

use super::names::pascal_case;

/// The prefix of references to shapes in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// The shape of a message of the model.
const REPLY: &str = "AssistantMessage";

/// The schemas that others refer to, by name.
#[derive(Default)]
pub(super) struct Components(pub(super) Map<String, Value>);

impl Components {
    /// Moves the definitions of a generated schema here and points its references at them.
    pub(super) fn take(&mut self, mut schema: Value) -> Value {
        let definitions = schema.as_object_mut().and_then(|map| {
            map.remove("$schema");
            map.remove("definitions")
        });
        if let Some(Value::Object(definitions)) = definitions {
            for (name, definition) in definitions {
                let name = shape_name(&name);
                let definition = self.tidy(&name, definition);
                self.insert(name, definition);
            }
        }
        tidied(schema)
    }

    /// Gives a shape the name of its type, so that clients have a type for it; a shape without a name stays where it
    /// is.
    pub(super) fn name(&mut self, mut schema: Value) -> Value {
        let title = schema.as_object_mut().and_then(|map| map.remove("title"));
        let Some(Value::String(title)) = title else { return schema };
        self.name_as(&shape_name(&title), schema)
    }

    /// Gives a shape this name.
    pub(super) fn name_as(&mut self, name: &str, schema: Value) -> Value {
        self.insert(name.to_owned(), schema);
        reference(name)
    }

    /// The shape that a schema means.
    pub(super) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name =
            schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix(SCHEMAS));
        name.and_then(|name| self.0.get(name)).unwrap_or(schema)
    }

    fn insert(&mut self, name: String, schema: Value) {
        let schema = if name == REPLY { with_optional_stop_reason(schema) } else { schema };
        let known = self.0.entry(name).or_insert_with(|| schema.clone());
        debug_assert_eq!(known, &schema, "two types have one name");
    }

    fn tidy(&mut self, name: &str, schema: Value) -> Value {
        let schema = self.name_objects(name, tidied(schema));
        self.name_variants(name, schema)
    }

    /// Names the object in a choice between a plain value and an object.
    fn name_objects(&mut self, name: &str, mut schema: Value) -> Value {
        let choices = schema.get_mut("anyOf").and_then(Value::as_array_mut);
        let mut objects: Vec<&mut Value> = choices
            .into_iter()
            .flatten()
            .filter(|choice| choice.get("properties").is_some())
            .collect();
        if let [object] = objects.as_mut_slice() {
            **object = self.name_as(&format!("{name}Object"), object.take());
        }
        schema
    }

    /// Names each variant of a union after the value of its tag property.
    fn name_variants(&mut self, name: &str, schema: Value) -> Value {
        let Some(Value::Array(variants)) = schema.get("oneOf") else { return schema };
        let Some(property) = tag_of(variants) else { return schema };
        let base = name.strip_prefix("Agent").unwrap_or(name);
        let (mut references, mut mapping) = (Vec::new(), Map::new());
        for variant in variants.clone() {
            let value = constant(&variant, &property).unwrap_or_default();
            let variant_name = format!("{}{base}", pascal_case(&value));
            let at = reference(&variant_name);
            mapping.insert(value, json!(format!("{SCHEMAS}{variant_name}")));
            self.insert(variant_name, variant);
            references.push(at);
        }
        let schema = with(schema, "oneOf", Value::Array(references));
        with(schema, "discriminator", json!({ "propertyName": property, "mapping": mapping }))
    }
}

/// Over HTTP a message that streams does not say yet why the model stopped.
fn with_optional_stop_reason(mut schema: Value) -> Value {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "stop_reason");
    }
    if let Some(member) =
        schema.pointer_mut("/properties/stop_reason").and_then(Value::as_object_mut)
    {
        let about = "Why the model stopped. Absent while the message streams.";
        member.insert("description".to_owned(), about.into());
    }
    schema
}

/// An object with these members.
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

/// An object that has all of its members.
pub(super) fn complete(properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

pub(super) fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

pub(super) fn texts(about: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": about })
}

pub(super) fn count(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

pub(super) fn truth(about: &str) -> Value {
    json!({ "type": "boolean", "description": about })
}

pub(super) fn time(about: &str) -> Value {
    json!({ "type": "integer", "description": format!("{about}, milliseconds since the epoch.") })
}

/// The schema with one more keyword.
pub(super) fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    if let Value::Object(map) = &mut schema {
        map.insert(keyword.to_owned(), value);
    }
    schema
}

/// The same schema, or `null`.
pub(super) fn nullable(mut schema: Value) -> Value {
    match schema.get_mut("type") {
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None => schema = json!({ "anyOf": [schema, { "type": "null" }] }),
    }
    schema
}

/// The name of a type in the document. Generated clients name the answer of an operation after the operation with
/// `Response`, so no shape may have such a name.
fn shape_name(type_name: &str) -> String {
    match type_name.strip_suffix("Response") {
        Some(stem) => format!("{stem}Result"),
        None => type_name.to_owned(),
    }
}

/// A reference to a shape.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

/// The property that has a different constant in each variant.
fn tag_of(variants: &[Value]) -> Option<String> {
    let first = variants.first()?.get("properties")?.as_object()?;
    let tells_apart = |name: &&String| {
        let values: Option<Vec<String>> =
            variants.iter().map(|variant| constant(variant, name)).collect();
        values.is_some_and(|mut values| {
            values.sort();
            values.windows(2).all(|pair| pair.first() != pair.last())
        })
    };
    first.keys().find(tells_apart).filter(|_| variants.len() > 1).cloned()
}

fn constant(variant: &Value, property: &str) -> Option<String> {
    let value = variant.get("properties")?.get(property)?.get("const")?;
    value.as_str().map(str::to_owned)
}

/// A schema of draft 7 as one of OpenAPI 3.1, in its simplest form.
fn tidied(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let map = map.into_iter().map(|(word, value)| (word, tidied(value))).collect();
            Value::Object(simplified(map))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidied).collect()),
        other => other,
    }
}

fn simplified(mut map: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::String(at)) = map.get_mut("$ref")
        && let Some(name) = at.strip_prefix("#/definitions/")
    {
        *at = format!("{SCHEMAS}{}", shape_name(name));
    }
    // `true` and an empty schema mean the same, and some readers know only the second.
    if map.get("items") == Some(&Value::Bool(true)) {
        map.insert("items".to_owned(), json!({}));
    }
    for (name, property) in
        map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        if *property == Value::Bool(true) {
            *property = json!({});
        }
        name_free_object(name, property);
        if let Some(items) = property.get_mut("items") {
            name_free_object(name, items);
        }
    }
    // Formats of Rust's unsigned numbers are unknown elsewhere; `minimum` says that they are not negative.
    if map.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        map.remove("format");
    }
    for word in ["minimum", "maximum"] {
        let whole = map.get(word).and_then(Value::as_f64).filter(|number| number.abs() < 1e15);
        if let Some(number) = whole.filter(|number| number.fract() == 0.0) {
            let text = format!("{number:.0}");
            map.insert(word.to_owned(), serde_json::from_str(&text).unwrap_or_default());
        }
    }
    merge_only_choice(&mut map);
    merge_constants(&mut map);
    let only = map.get("enum").and_then(Value::as_array).filter(|values| values.len() == 1);
    if let Some(value) = only.and_then(|values| values.first()).cloned() {
        map.remove("enum");
        map.insert("const".to_owned(), value);
    }
    if let Some(Value::Array(places)) = map.get("items").cloned() {
        // If all items have the same schema, `minItems` and `maxItems` give the length.
        let is_same = places.windows(2).all(|pair| pair.first() == pair.last());
        let items = places.first().filter(|_| is_same).cloned();
        if items.is_none() {
            map.insert("prefixItems".to_owned(), Value::Array(places));
        }
        map.insert("items".to_owned(), items.unwrap_or_else(|| json!({})));
    }
    map
}

/// Names an object that callers fill freely after its field; generators would make up a name otherwise.
fn name_free_object(field: &str, schema: &mut Value) {
    let is_free = schema.get("properties").is_none()
        && schema.get("additionalProperties").is_none_or(|more| *more == Value::Bool(true));
    let kind = schema.get("type").filter(|_| is_free).cloned().unwrap_or_default();
    let is_nullable = kind == json!(["object", "null"]);
    if !is_nullable && kind != json!("object") {
        return;
    }
    let name = match field {
        "metadata" => "Metadata",
        "message" | "messages" => "MessageInFormat",
        "events" => "RecorderEvent",
        _ => "JsonObject",
    };
    if let Some(map) = schema.as_object_mut() {
        map.remove("type");
        map.remove("additionalProperties");
        match is_nullable {
            true => map.insert("anyOf".to_owned(), json!([reference(name), { "type": "null" }])),
            false => map.insert("$ref".to_owned(), json!(format!("{SCHEMAS}{name}"))),
        };
    }
}

/// The objects that callers fill freely.
pub(super) fn free_objects() -> [(&'static str, Value); 4] {
    let free = |about: &str| json!({ "type": "object", "additionalProperties": true, "description": about });
    let metadata = free("What applications note about a session; lists can be filtered by it.");
    [
        ("JsonObject", free("Any JSON object.")),
        ("Metadata", with(metadata, "maxProperties", json!(METADATA_KEYS_MAX))),
        (
            "MessageInFormat",
            free("A message in the format that `format` names; without it, an `AgentMessage`."),
        ),
        ("RecorderEvent", recorder_event()),
    ]
}

/// The one member that every event has; the others depend on it.
fn recorder_event() -> Value {
    json!({
        "type": "object", "additionalProperties": true, "required": ["type"],
        "properties": { "type": { "type": "string", "description": "The name of the event, such as `AgentStart`." } },
        "description": "An event of an agent, as the recorder of phi-core writes it.",
    })
}

/// Replaces a choice with one variant by that variant.
fn merge_only_choice(map: &mut Map<String, Value>) {
    for word in ["allOf", "anyOf", "oneOf"] {
        let only = match map.get(word) {
            Some(Value::Array(choices)) if choices.len() == 1 => choices.first().cloned(),
            _ => None,
        };
        if let Some(Value::Object(only)) = only {
            map.remove(word);
            for (name, value) in only {
                map.entry(name).or_insert(value);
            }
        }
    }
}

/// Joins a choice of constants, each with its description, into an enumeration with one
/// description.
fn merge_constants(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let described = |choice: &Value| {
        let value = choice.get("const").filter(|_| choice.get("properties").is_none())?;
        let about = choice.get("description").and_then(Value::as_str).unwrap_or_default();
        Some((value.clone(), format!("- `{}`: {about}", value.as_str()?)))
    };
    let Some(choices) = choices.iter().map(described).collect::<Option<Vec<_>>>() else { return };
    let about = map.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (values, lines): (Vec<Value>, Vec<String>) = choices.into_iter().unzip();
    map.remove("oneOf");
    map.insert("type".to_owned(), json!("string"));
    map.insert("enum".to_owned(), Value::Array(values));
    map.insert("description".to_owned(), json!(format!("{about}\n\n{}", lines.join("\n"))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_put_in_the_words_of_openapi() {
        let check = |schema: Value, expected: Value| assert_eq!(tidied(schema), expected);
        check(
            json!({"allOf": [{"$ref": "#/definitions/A"}], "description": "d"}),
            json!({"$ref": "#/components/schemas/A", "description": "d"}),
        );
        check(
            json!({"type": "integer", "format": "uint64", "minimum": 0.0}),
            json!({"type": "integer", "minimum": 0}),
        );
        check(
            json!({"items": [{"type": "string"}, {"type": "integer"}], "type": "array"}),
            json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {}, "type": "array"}),
        );
        check(
            json!({"items": true, "properties": {"a": true}}),
            json!({"items": {}, "properties": {"a": {}}}),
        );
        check(
            json!({"$ref": "#/definitions/ListResponse"}),
            json!({"$ref": "#/components/schemas/ListResult"}),
        );
        check(
            json!({"properties": {"metadata": {"type": ["object", "null"], "additionalProperties": true}}}),
            json!({"properties": {"metadata": {"anyOf": [{"$ref": "#/components/schemas/Metadata"}, {"type": "null"}]}}}),
        );
        let words = json!({"description": "Words.", "oneOf": [
            {"type": "string", "enum": ["a"], "description": "First."},
            {"type": "string", "enum": ["b"], "description": "Second."},
        ]});
        let description = "Words.\n\n- `a`: First.\n- `b`: Second.";
        check(words, json!({"type": "string", "enum": ["a", "b"], "description": description}));
    }

    #[test]
    fn variants_have_names_after_their_tags() {
        let variant = |role: &str| json!({"type": "object", "properties": {"role": {"type": "string", "enum": [role]}}});
        let union = json!({"oneOf": [variant("user"), variant("function_result")]});
        let mut components = Components::default();
        components.take(json!({"definitions": {"AgentMessage": union}}));
        let names: Vec<&str> = components.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["AgentMessage", "FunctionResultMessage", "UserMessage"]);
        let discriminator = &components.0["AgentMessage"]["discriminator"];
        assert_eq!(discriminator["propertyName"], "role");
        assert_eq!(discriminator["mapping"]["user"], "#/components/schemas/UserMessage");
    }
}
