//! Helpers for JSON: sizes, depths, and text that is kept as it came.

use std::fmt;
use std::io;

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::SHORT_TEXT_BYTES;
use crate::lossy_json::lossy_value;
use crate::text::cut_bytes;

/// A JSON object: metadata and origins.
pub type JsonMap = serde_json::Map<String, Value>;

/// JSON text kept as it came: key order, number spelling and unknown fields included.
///
/// It is always one line: line breaks between tokens (never inside a string, where JSON has no raw
/// ones) become spaces, because records are stored as lines.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Takes JSON text as it came; refuses what is not one JSON value.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let mut text = text.into();
        if text.contains('\n') || text.contains('\r') {
            text = text.replace(['\n', '\r'], " ");
        }
        RawValue::from_string(text).map(Self)
    }

    /// The compact JSON of a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// How deeply it is nested: 0 for a number or text, 1 for `[]`.
    #[must_use]
    pub fn depth(&self) -> usize {
        text_depth(self.get())
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value, for reading. Parts that no value can hold are replaced: see [`crate::lossy_json`].
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or_else(|_| lossy_value(self.get()))
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        let text = raw.get();
        if text.contains(['\n', '\r']) {
            // Line breaks are between tokens only, so the text stays valid JSON without them.
            return Self::parse(text).unwrap_or_default();
        }
        Self(raw.to_owned())
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        // A value holds nothing that JSON cannot represent.
        Self::of(&value).unwrap_or_default()
    }
}

impl JsonSchema for RawJson {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().contains(['\n', '\r']) {
            return Self::parse(Box::<str>::from(raw)).map_err(serde::de::Error::custom);
        }
        Ok(Self(raw))
    }
}

/// A value that keeps only the beginning of each long text; the rest is never copied.
pub(crate) struct Short(pub(crate) Value);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor).map(Self)
    }
}

struct ShortVisitor;

impl<'de> Visitor<'de> for ShortVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(cut_bytes(text, SHORT_TEXT_BYTES)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut short = Vec::new();
        while let Some(Short(item)) = items.next_element()? {
            short.push(item);
        }
        Ok(Value::Array(short))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut short = JsonMap::new();
        while let Some((key, Short(member))) = members.next_entry::<String, Short>()? {
            short.insert(key, member);
        }
        Ok(Value::Object(short))
    }
}

/// How many bytes a value takes as compact JSON, counted without building the text.
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter(0);
    // Only a map with keys that are no strings can fail here, and none of our types has one.
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// How deeply a value is nested: 0 for a number or text, 1 for `[]`.
#[must_use]
pub fn json_depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut left = vec![(0, value)];
    while let Some((level, value)) = left.pop() {
        match value {
            Value::Array(items) => {
                deepest = deepest.max(level + 1);
                left.extend(items.iter().map(|item| (level + 1, item)));
            }
            Value::Object(map) => {
                deepest = deepest.max(level + 1);
                left.extend(map.values().map(|item| (level + 1, item)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// How deeply a JSON text is nested, by its brackets.
fn text_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The parts of a JSON text between its spaces, without those in strings: together, the text without spaces.
pub fn json_without_space(json: &str) -> impl Iterator<Item = &str> {
    let (mut in_string, mut escaped) = (false, false);
    json.split(move |character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ' ' | '\t' | '\r' | '\n' => return !in_string,
            _ => {}
        }
        false
    })
}

/// Whether every key of `wanted` has an equal value in `have`. An empty `wanted` matches anything, also
/// a session without metadata; a key whose wanted value is `null` needs a stored `null`.
#[must_use]
pub fn metadata_matches(wanted: &JsonMap, have: Option<&JsonMap>) -> bool {
    wanted.iter().all(|(key, value)| have.and_then(|have| have.get(key)) == Some(value))
}

/// Whether a member has the value that it has where it is absent, so that it need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn raw_json_keeps_the_text_and_stays_on_one_line() {
        let raw = RawJson::parse("{\"b\": 1.0,\n \"a\":\"x\\ny\"}").unwrap();
        assert_eq!(raw.get(), "{\"b\": 1.0,  \"a\":\"x\\ny\"}");
        assert_eq!(serde_json::to_string(&raw).unwrap(), raw.get());
        assert!(RawJson::parse("{").is_err());
        assert!(RawJson::parse("1 2").is_err());
    }

    #[test]
    fn bytes_and_depth_are_those_of_the_compact_text() {
        let value = json!({"a": [1, {"b": []}], "c": "é"});
        assert_eq!(json_bytes(&value), serde_json::to_string(&value).unwrap().len());
        assert_eq!(json_depth(&value), 4);
        assert_eq!(json_depth(&json!(1)), 0);
        assert_eq!(json_depth(&json!([])), 1);
        for (text, depth) in [("1", 0), ("[]", 1), (r#"{"a":["]}\"[[",{"b":[]}]}"#, 4)] {
            assert_eq!(RawJson::parse(text).unwrap().depth(), depth, "{text}");
        }
    }

    #[test]
    fn metadata_matches_by_deep_equality_of_the_given_keys() {
        let check = |wanted: Value, have: Option<Value>, expected: bool| {
            let have = have.as_ref().and_then(Value::as_object);
            assert_eq!(metadata_matches(wanted.as_object().unwrap(), have), expected);
        };
        check(json!({}), None, true);
        check(json!({"a": 1}), None, false);
        check(json!({"a": 1}), Some(json!({"a": 1, "b": 2})), true);
        check(json!({"a": {"x": 1}}), Some(json!({"a": {"x": 1, "y": 2}})), false);
        check(json!({"a": null}), Some(json!({})), false);
    }
}
