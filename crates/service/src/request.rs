//! A request of any function: a JSON value, or the members of a JSON body as they came.
//!
//! A body is read once: its members are split without looking into them, and each is read into the field that it belongs
//! to. So numbers and keys inside messages and documents stay as they were spelled.

use std::fmt;

use bough_session::RawJson;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment, Track};

use crate::error::ServiceError;
use crate::exact_numbers::{self, InexactNumber};
use crate::limits::WHOLE_NUMBERS_MAX;

/// A request that was not read into its type yet.
#[derive(Clone, Debug)]
pub struct Request(Form);

#[derive(Clone, Debug)]
enum Form {
    Value(Value),
    Members(Members),
}

/// The members of an object, in their order.
#[derive(Clone, Debug, Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl From<Value> for Request {
    fn from(value: Value) -> Self {
        Self(Form::Value(value))
    }
}

/// A text that is not an object is refused when the request is read into its type.
impl From<&RawJson> for Request {
    fn from(json: &RawJson) -> Self {
        match serde_json::from_str(json.get()) {
            Ok(members) => Self(Form::Members(members)),
            Err(_) => Self(Form::Value(json.value())),
        }
    }
}

impl Request {
    /// The request in a JSON text, which must be an object. No text at all is an empty object.
    pub fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        if body.is_empty() {
            return Ok(Self(Form::Members(Members::default())));
        }
        serde_json::from_slice(body).map(|members| Self(Form::Members(members)))
    }

    /// The names of its members.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (value, members) = match &self.0 {
            Form::Value(value) => (value.as_object(), None),
            Form::Members(members) => (None, Some(&members.0)),
        };
        let of_value = value.into_iter().flat_map(|map| map.keys().map(String::as_str));
        let of_members = members.into_iter().flatten().map(|(name, _)| name.as_str());
        of_value.chain(of_members)
    }

    /// A member; `null` counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        let found = match &self.0 {
            Form::Value(value) => value.get(name).cloned(),
            Form::Members(members) => {
                let raw = members.0.iter().find(|(known, _)| known == name);
                raw.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok())
            }
        };
        found.filter(|value| !value.is_null())
    }

    /// A member that is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(ToOwned::to_owned)
    }

    /// Its members with their JSON, in the order of their names; without those that are `null`.
    pub(crate) fn members(&self) -> Vec<(&str, String)> {
        let mut members: Vec<(&str, String)> = match &self.0 {
            Form::Value(value) => {
                let members = value.as_object().into_iter().flatten();
                members.map(|(name, value)| (name.as_str(), value.to_string())).collect()
            }
            Form::Members(members) => {
                let members = members.0.iter();
                members.map(|(name, raw)| (name.as_str(), raw.get().to_owned())).collect()
            }
        };
        members.retain(|(_, json)| json != "null");
        members.sort();
        members
    }

    /// Adds a member. Says `false`, and changes nothing, where the request has it with another value.
    pub fn put(&mut self, name: &str, value: Value) -> bool {
        match self.get(name) {
            Some(there) if there != value => return false,
            Some(_) => return true,
            None => {}
        }
        match &mut self.0 {
            Form::Value(Value::Object(map)) => drop(map.insert(name.to_owned(), value)),
            Form::Value(other) => *other = serde_json::json!({ name: value }),
            Form::Members(members) => {
                members.0.retain(|(known, _)| known != name);
                // A value holds nothing that JSON cannot say.
                let raw = serde_json::value::to_raw_value(&value).unwrap_or_default();
                members.0.push((name.to_owned(), raw));
            }
        }
        true
    }

    /// The request as its type. One that is not of its type is refused in the decoder's words, with the field that it is about.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, ServiceError> {
        match self.0 {
            Form::Value(Value::Null) => read(std::iter::empty::<(String, Value)>()),
            Form::Value(Value::Object(map)) => read(map.into_iter()),
            Form::Value(_) => Err(ServiceError::Malformed {
                detail: "the request must be a JSON object".to_owned(),
                path: String::new(),
            }),
            Form::Members(members) => {
                members.check_numbers()?;
                members.parse()
            }
        }
    }
}

impl Members {
    /// Reads the members into a type. JSON Schema counts 5.0 as an integer, and the decoder does not: such a number is written
    /// without its fraction, and the members are read again.
    fn parse<T: DeserializeOwned>(mut self) -> Result<T, ServiceError> {
        for _ in 0..WHOLE_NUMBERS_MAX {
            match self.read() {
                Err(ServiceError::Malformed { detail, path }) if detail.contains(FRACTION) => {
                    if self.make_whole(&path).is_none() {
                        return Err(ServiceError::Malformed { detail, path });
                    }
                }
                read => return read,
            }
        }
        self.read()
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, ServiceError> {
        read(self.0.iter().map(|(name, raw)| (name.as_str(), &**raw)))
    }

    /// Writes the number at a pointer without its fraction; `None` if it has one other than 0.
    fn make_whole(&mut self, pointer: &str) -> Option<()> {
        let (name, rest) = first_part(pointer)?;
        let raw = self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, raw)| raw)?;
        *raw = whole(raw, rest)?;
        Some(())
    }
}

/// What the decoder says of a number with a fraction in place of an integer.
const FRACTION: &str = "invalid type: floating point ";

/// A value with the number at a pointer written without its fraction. Everything else keeps its spelling.
fn whole(raw: &RawValue, pointer: &str) -> Option<Box<RawValue>> {
    let Some((part, rest)) = first_part(pointer) else {
        let (digits, fraction) = raw.get().split_once('.')?;
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        return RawValue::from_string(digits.to_owned()).ok().filter(|_| is_whole);
    };
    if let Ok(mut members) = serde_json::from_str::<Members>(raw.get()) {
        members.make_whole(pointer)?;
        return serde_json::value::to_raw_value(&members).ok();
    }
    let mut items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
    let item = items.get_mut(part.parse::<usize>().ok()?)?;
    *item = whole(item, rest)?;
    serde_json::value::to_raw_value(&items).ok()
}

/// The first part of a JSON pointer, and the rest.
fn first_part(pointer: &str) -> Option<(String, &str)> {
    let pointer = pointer.strip_prefix('/')?;
    let end = pointer.find('/').unwrap_or(pointer.len());
    let (part, rest) = pointer.split_at_checked(end)?;
    Some((part.replace("~1", "/").replace("~0", "~"), rest))
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, raw)| (name, raw)))
    }
}

impl Members {
    /// Refuses a number that the metadata or the origin of the request would not keep.
    fn check_numbers(&self) -> Result<(), ServiceError> {
        let mut members = self.0.iter();
        let found = members.find_map(|(name, raw)| exact_numbers::find(name, raw.get()));
        let Some(InexactNumber { path, number }) = found else {
            return Ok(());
        };
        Err(ServiceError::Malformed {
            detail: format!("the number {number} cannot be kept exactly; send it as a string"),
            path,
        })
    }
}

fn read<'de, T, K, V>(members: impl Iterator<Item = (K, V)>) -> Result<T, ServiceError>
where
    T: DeserializeOwned,
    K: serde::de::IntoDeserializer<'de, serde_json::Error>,
    V: serde::de::IntoDeserializer<'de, serde_json::Error>,
{
    let mut track = Track::new();
    let members = MapDeserializer::<_, serde_json::Error>::new(members);
    let read = T::deserialize(serde_path_to_error::Deserializer::new(members, &mut track));
    read.map_err(|error| malformed(&error, &track.path()))
}

/// Why a JSON object is not of its type, and where; `None` if it is. The member `tag` is read first, because the meaning of
/// the others depends on it.
pub(crate) fn why_not<T: DeserializeOwned>(object: &str, tag: &str) -> Option<(String, String)> {
    let Members(mut members) = serde_json::from_str(object).ok()?;
    members.sort_by_key(|(name, _)| name != tag);
    let read = read::<T, _, _>(members.iter().map(|(name, raw)| (name.as_str(), &**raw)));
    match read.err()? {
        ServiceError::Malformed { detail, path } => Some((detail, path)),
        _ => None,
    }
}

fn malformed(error: &serde_json::Error, at: &Path) -> ServiceError {
    let field = at.iter().next().map(ToString::to_string);
    let detail = without_position(error);
    let detail = match field.as_deref() {
        None | Some("" | "?") => detail,
        Some(field) => format!("{detail}, in `{field}`"),
    };
    ServiceError::Malformed { detail, path: pointer(at) }
}

/// The decoder's message without line and column, which count from the beginning of a member and mean nothing to the caller.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or(text.clone(), ToOwned::to_owned)
}

/// A path in a request as a JSON pointer, as far as it is known.
fn pointer(at: &Path) -> String {
    let mut pointer = String::new();
    for segment in at {
        let part = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { .. } | Segment::Unknown => break,
        };
        pointer.push('/');
        pointer.push_str(&part);
    }
    pointer
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Example {
        name: String,
        #[serde(default)]
        list: Vec<Item>,
        data: Option<RawJson>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        count: u64,
    }

    fn body(text: &str) -> Request {
        Request::from_body(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_body_keeps_the_spelling_of_what_is_inside() {
        let data = r#"{"b":1.0,"a":123456789012345678901234567890}"#;
        let read: Example = body(&format!(r#"{{"data": {data}, "name":"x"}}"#)).parse().unwrap();
        assert_eq!(read.data.unwrap().get(), data);
        assert_eq!(read.name, "x");
        assert_eq!(read.list.iter().map(|item| item.count).sum::<u64>(), 0);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let check = |request: Request, place: &str, words: &str| match request.parse::<Example>() {
            Err(ServiceError::Malformed { detail, path }) => {
                assert_eq!(path, place);
                assert_eq!(detail, words);
            }
            other => panic!("{other:?}"),
        };
        let wrong = "invalid type: string \"x\", expected u64, in `list`";
        let list = r#"{"name":"n","list":[{"count":1},{"count":"x"}]}"#;
        check(body(list), "/list/1/count", wrong);
        check(serde_json::from_str::<Value>(list).unwrap().into(), "/list/1/count", wrong);
        check(body("{}"), "", "missing field `name`");
        check(json!([]).into(), "", "the request must be a JSON object");
        check((&RawJson::from(json!([]))).into(), "", "the request must be a JSON object");
        check((&RawJson::default()).into(), "", "missing field `name`");
    }

    #[test]
    fn a_number_with_a_fraction_of_0_is_an_integer() {
        let text = r#"{"name":"n","list":[{"count":1.0},{"count":2.00}],"data":{"a":1.50}}"#;
        let read: Example = body(text).parse().unwrap();
        assert_eq!(read.list.iter().map(|item| item.count).sum::<u64>(), 3);
        assert_eq!(read.data.unwrap().get(), r#"{"a":1.50}"#);
        for wrong in ["1.5", "-1.0", "1e3", "1.0e1"] {
            let text = format!(r#"{{"name":"n","list":[{{"count":{wrong}}}]}}"#);
            let refused = body(&text).parse::<Example>().unwrap_err();
            assert_eq!(refused.code(), "session/malformed_request", "{wrong}");
        }
    }

    #[test]
    fn a_member_is_put_once() {
        for mut request in [body(r#"{"a":"x","n":null}"#), json!({"a": "x", "n": null}).into()] {
            assert!(request.put("a", json!("x")));
            assert!(!request.put("a", json!("y")));
            assert!(request.put("n", json!(1)));
            assert_eq!(request.get("n"), Some(json!(1)));
            assert_eq!(request.text("a").as_deref(), Some("x"));
            assert_eq!(request.names().collect::<Vec<_>>(), ["a", "n"]);
        }
        assert!(Request::from_body(b"[]").is_err());
        assert!(Request::from_body(b"").unwrap().parse::<Value>().is_ok());
    }
}
