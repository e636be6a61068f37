//! The fields of a function's request, from its schema: which are in the path, which in the query, and their types.

use bough_service::{Function, ServiceError};
use bough_session::LimitError;
use serde_json::{Map, Value};

use super::bounds::{check_length, check_members};
use super::names::{UNKNOWN_MEMBER, nearest};
use super::problem::Problem;

/// One field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: FieldKind,
    pub(crate) is_required: bool,
}

/// How the text of a query parameter becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    Integer,
    Number,
    Boolean,
    /// Any texts, each in a parameter of its own.
    TextList,
    /// Words of a fixed set, each in a parameter of its own or with commas between them.
    WordList,
    Json,
}

/// The names in braces of a path.
pub(crate) fn path_names(path: &str) -> Vec<&str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// The fields of a function's request, by its schema.
pub(crate) fn fields(function: &Function) -> Vec<Field> {
    let schema = function.request_schema();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).cloned();
    let field = |(name, property): (String, Value)| Field {
        kind: kind(&property, &schema),
        is_required: required.iter().any(|item| item.as_str() == Some(&name)),
        name,
    };
    properties.unwrap_or_default().into_iter().map(field).collect()
}

fn kind(property: &Value, root: &Value) -> FieldKind {
    let property = resolved(property, root);
    match main_type(property) {
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        Some("string") => FieldKind::Text,
        Some("array") => {
            let items = property.get("items").map(|items| resolved(items, root));
            let is_word = items.is_some_and(|items| items.get("enum").is_some());
            match items.and_then(main_type) {
                Some("string") if is_word => FieldKind::WordList,
                Some("string") => FieldKind::TextList,
                _ => FieldKind::Json,
            }
        }
        _ => FieldKind::Json,
    }
}

/// Follows references, and takes the variant that is not `null`.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    /// References of generated schemas do not nest deeper.
    const STEPS_MAX: usize = 8;
    let mut schema = schema;
    for _ in 0..STEPS_MAX {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let pointer = reference.and_then(|text| text.strip_prefix('#'));
        if let Some(found) = pointer.and_then(|pointer| root.pointer(pointer)) {
            schema = found;
            continue;
        }
        let choices =
            ["anyOf", "oneOf", "allOf"].iter().find_map(|word| schema.get(word)?.as_array());
        let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) != Some("null");
        match choices.and_then(|choices| choices.iter().find(is_null)) {
            Some(choice) => schema = choice,
            None => break,
        }
    }
    schema
}

fn main_type(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null")
        }
        _ => schema.get("enum").map(|_| "string"),
    }
}

/// Why the parameters of a query are not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("there is no parameter `{name}` here{meant}{known}")]
    Unknown { name: String, meant: String, known: String },
    #[error("`{name}` must be {expected}")]
    Type { name: String, expected: &'static str },
    #[error("`{name}` is there more than once")]
    Twice { name: String },
    #[error("the query has too many parameters")]
    TooMany,
    #[error(transparent)]
    TooLong(#[from] LimitError),
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        if let QueryError::TooLong(limit) = error {
            return ServiceError::from(limit).into();
        }
        let detail = error.to_string();
        let problem = Self::bad_request(&*detail, "See /docs for the parameters.");
        match &error {
            QueryError::Unknown { name, .. } => problem.with_code(UNKNOWN_MEMBER).at(name, &detail),
            QueryError::Type { name, .. } | QueryError::Twice { name } => problem.at(name, &detail),
            QueryError::TooMany | QueryError::TooLong(_) => problem,
        }
    }
}

/// Makes the fields of a request from a query.
///
/// A list is given by repeating its parameter, and a list of words with commas too; an object as JSON, or one member at a
/// time as `metadata.owner=u_1`.
pub(crate) fn from_query(query: &str, fields: &[Field]) -> Result<Map<String, Value>, QueryError> {
    let mut request = Map::new();
    for (count, (name, text)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
        if count >= crate::limits::QUERY_PAIRS_MAX {
            return Err(QueryError::TooMany);
        }
        take_pair(&mut request, &name, &text, fields)?;
    }
    Ok(request)
}

fn take_pair(
    request: &mut Map<String, Value>,
    name: &str,
    text: &str,
    fields: &[Field],
) -> Result<(), QueryError> {
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return take_field(request, field, text);
    }
    let member = name.split_once('.').and_then(|(object, member)| {
        let is_object = |field: &&Field| field.name == object && field.kind == FieldKind::Json;
        Some((fields.iter().find(is_object)?, member))
    });
    let Some((field, member)) = member else {
        let known: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        let listed = if known.is_empty() {
            String::new()
        } else {
            format!(" (there are: {})", known.join(", "))
        };
        let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let meant = nearest(&name, known.iter().copied());
        let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        return Err(QueryError::Unknown { name, meant, known: listed });
    };
    let object = request.entry(field.name.clone()).or_insert_with(|| Value::Object(Map::new()));
    let twice = || QueryError::Twice { name: field.name.clone() };
    let object = object.as_object_mut().ok_or_else(twice)?;
    // A member that is not JSON is taken as text: `metadata.owner=u_1`.
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    object.insert(member.to_owned(), value).map_or(Ok(()), |_| Err(twice()))
}

/// A whole number. JSON Schema counts 5.0 as one.
fn integer(text: &str) -> Option<Value> {
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse::<i64>().ok().map(Value::from)
}

fn number(text: &str) -> Option<Value> {
    serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number)
}

fn take_field(
    request: &mut Map<String, Value>,
    field: &Field,
    text: &str,
) -> Result<(), QueryError> {
    let wrong = |expected| QueryError::Type { name: field.name.clone(), expected };
    let value = match field.kind {
        FieldKind::Text => {
            check_length(&field.name, text)?;
            Value::String(text.to_owned())
        }
        FieldKind::Integer => integer(text).ok_or_else(|| wrong("a whole number"))?,
        FieldKind::Number => number(text).ok_or_else(|| wrong("a number"))?,
        FieldKind::Boolean => match text {
            "true" | "1" => Value::Bool(true),
            "false" | "0" => Value::Bool(false),
            _ => return Err(wrong("true or false")),
        },
        FieldKind::Json => {
            let value: Value = serde_json::from_str(text).map_err(|_| wrong("JSON"))?;
            check_members(&field.name, &value)?;
            value
        }
        FieldKind::TextList => {
            check_length(&field.name, text)?;
            add_items(request, field, [text].into_iter());
            return Ok(());
        }
        FieldKind::WordList => {
            add_items(request, field, text.split(','));
            return Ok(());
        }
    };
    match request.insert(field.name.clone(), value) {
        None => Ok(()),
        Some(_) => Err(QueryError::Twice { name: field.name.clone() }),
    }
}

/// Adds the items that are not empty: `roles=` is a list of nothing.
fn add_items<'a>(
    request: &mut Map<String, Value>,
    field: &Field,
    items: impl Iterator<Item = &'a str>,
) {
    let list = request.entry(field.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend(
            items.filter(|item| !item.is_empty()).map(|item| Value::String(item.to_owned())),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list_fields() -> Vec<Field> {
        fields(bough_service::function("session::list").unwrap())
    }

    fn check(query: &str, expected: Value) {
        let request = from_query(query, &list_fields()).unwrap();
        assert_eq!(Value::Object(request), expected, "{query}");
    }

    #[test]
    fn parameters_get_the_types_of_the_schema() {
        check("", json!({}));
        check("limit=5&order=created_asc", json!({"limit": 5, "order": "created_asc"}));
        check("limit=5.0", json!({"limit": 5}));
        check("metadata=%7B%22owner%22%3A%22u%22%7D", json!({"metadata": {"owner": "u"}}));
        check("metadata.owner=u_1&metadata.n=5", json!({"metadata": {"owner": "u_1", "n": 5}}));
        check("cursor=a%2Bb%3D", json!({"cursor": "a+b="}));
    }

    #[test]
    fn lists_are_repeated_and_words_may_have_commas_between_them() {
        let fields = fields(bough_service::function("session::messages").unwrap());
        let request = from_query("roles=user,assistant&roles=custom&include_custom=true", &fields);
        let expected = json!({"roles": ["user", "assistant", "custom"], "include_custom": true});
        assert_eq!(Value::Object(request.unwrap()), expected);
        let none = from_query("roles=", &fields).unwrap();
        assert_eq!(Value::Object(none), json!({"roles": []}));
        let fields = super::fields(bough_service::function("session::entries").unwrap());
        let request = from_query("ids=a%2Cb&ids=c", &fields).unwrap();
        assert_eq!(Value::Object(request), json!({"ids": ["a,b", "c"]}), "an id may have a comma");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refusal = |query: &str| from_query(query, &list_fields()).unwrap_err().to_string();
        assert!(refusal("limt=5").contains("no parameter `limt` here: did you mean `limit`?"));
        assert!(refusal("limit=five").contains("a whole number"));
        assert!(refusal("limit=5.5").contains("a whole number"));
        assert!(refusal("limit=5&limit=6").contains("more than once"));
        assert!(refusal("metadata=owner").contains("JSON"));
        assert!(refusal("metadata.a=1&metadata.a=2").contains("more than once"));
        let many = "limit=1&".repeat(crate::limits::QUERY_PAIRS_MAX + 1);
        assert!(from_query(&many, &list_fields()).is_err());
    }

    #[test]
    fn every_path_name_is_a_field_of_its_request() {
        for function in bough_service::functions() {
            let Some(route) = function.route else { continue };
            let fields = fields(function);
            for name in path_names(route.path) {
                let field = fields.iter().find(|field| field.name == name);
                assert!(
                    field.is_some_and(|field| field.kind == FieldKind::Text),
                    "{}: {name}",
                    function.id
                );
            }
        }
    }
}
