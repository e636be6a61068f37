//! Values that keep the JSON text which they were read from.
//!
//! A type knows the members that this version knows, and a number of `serde_json` has 64 bits. What the text holds
//! beyond that (unknown members, long integers, `1.10`, the order of the members) must come back as it came. So a value
//! keeps its text, unless writing the value gives the same text anyway. That is so for everything that phi-core
//! writes, so most values cost no more than without it.

use std::fmt;
use std::io;
use std::ops::Deref;

use bough_session::json_without_space;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A value, and the JSON text that it was read from if the value alone would be written differently.
///
/// It is written as it came. Changing the value drops the text. Two are equal if their values are; the texts are not
/// compared.
#[derive(Clone, Default)]
pub struct Verbatim<T> {
    value: T,
    text: Option<Box<RawValue>>,
}

impl<T> Verbatim<T> {
    /// The JSON text that it came as, if the value alone would be written differently.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref().map(RawValue::get)
    }

    /// The value, to be changed. From now on it is written as the value says.
    pub fn value_mut(&mut self) -> &mut T {
        self.text = None;
        &mut self.value
    }

    /// The value without its text.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T: Serialize> Verbatim<T> {
    /// A value that was read from `text`.
    pub(crate) fn read_from(value: T, text: Box<RawValue>) -> Self {
        let text = kept_text(&value, text);
        Self { value, text }
    }
}

impl<T: PartialEq> PartialEq for Verbatim<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: PartialEq> PartialEq<T> for Verbatim<T> {
    fn eq(&self, other: &T) -> bool {
        self.value == *other
    }
}

impl<T> Deref for Verbatim<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> From<T> for Verbatim<T> {
    fn from(value: T) -> Self {
        Self { value, text: None }
    }
}

impl<T: fmt::Debug> fmt::Debug for Verbatim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => self.value.fmt(f),
        }
    }
}

impl<T: Serialize> Serialize for Verbatim<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => text.serialize(serializer),
            None => self.value.serialize(serializer),
        }
    }
}

impl<'de, T: DeserializeOwned + Serialize> Deserialize<'de> for Verbatim<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self::read_from(value, text))
    }
}

/// The text, on one line, that a value was read from; `None` if writing the value gives the same text.
pub(crate) fn kept_text(value: &impl Serialize, text: Box<RawValue>) -> Option<Box<RawValue>> {
    let is_kept = !is_written_as(value, text.get());
    is_kept.then(|| on_one_line(text))
}

/// The members of an object in their order, each with its text.
pub(crate) struct Members(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(List)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The text of an object with a member changed or added at the end, or removed. `None` if it is no object.
pub(crate) fn with_member(
    text: &str,
    key: &str,
    value: Option<&impl Serialize>,
) -> Option<Box<RawValue>> {
    let Members(mut members) = serde_json::from_str(text).ok()?;
    let Some(value) = value else {
        members.retain(|(name, _)| name != key);
        return serde_json::value::to_raw_value(&Members(members)).ok();
    };
    let value = serde_json::value::to_raw_value(value).ok()?;
    match members.iter_mut().find(|(name, _)| name == key) {
        Some((_, held)) => *held = value,
        None => members.push((key.to_owned(), value)),
    }
    serde_json::value::to_raw_value(&Members(members)).ok()
}

/// Whether writing the value gives the text. Files are indented, which is the layout of the file and no part of a value.
fn is_written_as(value: &impl Serialize, text: &str) -> bool {
    let is_indented = text.contains('\n');
    let mut rest = Rest { text: text.as_bytes(), is_indented };
    serde_json::to_writer(&mut rest, value).is_ok() && rest.text.is_empty()
}

/// The part of a text that was not written yet. Writing anything else fails.
struct Rest<'a> {
    text: &'a [u8],
    is_indented: bool,
}

impl io::Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(rest) = self.text.strip_prefix(bytes) {
            self.text = rest;
            return Ok(bytes.len());
        }
        if !self.is_indented {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for byte in bytes {
            // The value has the same strings as the text, so a blank that only the text has is between tokens.
            while self.text.first().is_some_and(|next| next != byte && is_blank(*next)) {
                self.text = self.text.get(1..).unwrap_or_default();
            }
            self.text = self.text.strip_prefix(&[*byte]).ok_or(io::ErrorKind::InvalidData)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// The text without the blanks between its tokens, if it has line breaks: records are stored as lines.
fn on_one_line(text: Box<RawValue>) -> Box<RawValue> {
    if !text.get().contains(['\n', '\r']) {
        return text;
    }
    let line: String = json_without_space(text.get()).collect();
    RawValue::from_string(line).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Verbatim<Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_written_as_it_was_read() {
        for text in [
            r#"{"a":1,"b":[true,null,"x"]}"#,
            r#"{"b":1,"a":2}"#,
            r#"{"n":123456789012345678901234567890,"z":1.10}"#,
            r#"{ "a" : 1 }"#,
            r#"{"a":"\u00e9\/"}"#,
            r#"{"a":1,"a":2}"#,
        ] {
            let value = read(text);
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn a_text_that_its_value_gives_is_not_kept() {
        assert_eq!(read(r#"{"a":1,"b":" x "}"#).text(), None);
        let indented = "{\n  \"a\": [\n    1,\n    \" x \"\n  ],\n  \"b\": {}\n}";
        assert_eq!(read(indented).text(), None);
        let kept = read("{\n  \"b\": \" \\\" x\",\n  \"a\": 1.10\n}");
        assert_eq!(kept.text(), Some(r#"{"b":" \" x","a":1.10}"#), "on one line");
    }

    #[test]
    fn a_changed_value_is_written_as_it_is_now() {
        let mut value = read(r#"{"b":1,"a":2}"#);
        *value.value_mut() = json!(3);
        assert_eq!(serde_json::to_string(&value).unwrap(), "3");
    }

    #[test]
    fn a_member_is_changed_added_and_removed_among_the_others() {
        let with = |text: &str, value: Option<&i32>| {
            with_member(text, "t", value).map(|text| text.get().to_owned())
        };
        let text = r#"{"b":1.10,"t":1,"a":[ 2 ]}"#;
        assert_eq!(with(text, Some(&5)).as_deref(), Some(r#"{"b":1.10,"t":5,"a":[ 2 ]}"#));
        assert_eq!(with(text, None).as_deref(), Some(r#"{"b":1.10,"a":[ 2 ]}"#));
        assert_eq!(with(r#"{"b":1}"#, Some(&5)).as_deref(), Some(r#"{"b":1,"t":5}"#));
        assert_eq!(with("[]", None), None);
    }
}
