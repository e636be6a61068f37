//! The fields of a line that link it to others, read without parsing the rest.
//!
//! A key that stands twice counts by its last value, as in JavaScript. Values of the wrong type count as
//! absent: other programs' files are read as they are.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::time::parse_iso;

/// The fields of a line that link it to others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LineHeader<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) id: Field<'a>,
    pub(crate) parent: Field<'a>,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) version: Option<u64>,
    pub(crate) cwd: Option<Cow<'a, str>>,
    pub(crate) parent_session: Option<Cow<'a, str>>,
    pub(crate) first_kept_index: Option<u64>,
    pub(crate) first_kept_id: bool,
    /// Not of a line with a key that no text can hold.
    pub(crate) message: Option<&'a str>,
}

/// An id-like field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// The key is not there.
    #[default]
    Absent,
    /// It is there and null.
    Null,
    /// It is there and not a text.
    Odd,
    Text(Cow<'a, str>),
}

impl<'a> Field<'a> {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn of(raw: &'a RawValue) -> Self {
        match text_of(raw) {
            Some(text) => Self::Text(text),
            None if raw.get() == "null" => Self::Null,
            None => Self::Odd,
        }
    }

    fn into_owned(self) -> Field<'static> {
        match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Odd => Field::Odd,
            Self::Text(text) => Field::Text(owned(text)),
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// A text, borrowed where it has no escapes.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inside.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// What a text is.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one is made for each line, and kept nowhere")]
pub(crate) enum ParsedLine<'a> {
    Object(LineHeader<'a>),
    /// JSON, and not an object.
    OtherJson,
    NotJson,
}

pub(crate) fn parse_line(text: &str) -> ParsedLine<'_> {
    if let Ok(line_header) = serde_json::from_str::<LineHeader<'_>>(text) {
        return ParsedLine::Object(line_header);
    }
    // A key that no text can hold, such as half of a character, hides no object.
    if text.starts_with('{')
        && let Ok(line_header) =
            serde_json::from_str::<LineHeader<'_>>(&bough_session::lossy_json(text))
    {
        return ParsedLine::Object(line_header.into_owned());
    }
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => ParsedLine::OtherJson,
        Err(_) => ParsedLine::NotJson,
    }
}

/// The id that a line gives its entry.
pub(crate) fn id_in(text: &str) -> Option<String> {
    match parse_line(text) {
        ParsedLine::Object(line_header) => line_header.id.text().map(str::to_owned),
        ParsedLine::OtherJson | ParsedLine::NotJson => None,
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Type,
    Id,
    ParentId,
    Timestamp,
    Version,
    Cwd,
    /// The second is the Rust port's word.
    #[serde(alias = "branchedFrom")]
    ParentSession,
    FirstKeptEntryIndex,
    FirstKeptEntryId,
    Message,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for LineHeader<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineHeaderVisitor;
        impl<'de> Visitor<'de> for LineHeaderVisitor {
            type Value = LineHeader<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LineHeader<'de>, A::Error> {
                let mut line_header = LineHeader::default();
                while let Some(key) = map.next_key::<Key>()? {
                    if matches!(key, Key::Other) {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        line_header.take(&key, map.next_value::<&RawValue>()?);
                    }
                }
                Ok(line_header)
            }
        }
        deserializer.deserialize_map(LineHeaderVisitor)
    }
}

impl<'a> LineHeader<'a> {
    fn into_owned(self) -> LineHeader<'static> {
        LineHeader {
            kind: self.kind.map(owned),
            id: self.id.into_owned(),
            parent: self.parent.into_owned(),
            cwd: self.cwd.map(owned),
            parent_session: self.parent_session.map(owned),
            message: None,
            timestamp_ms: self.timestamp_ms,
            version: self.version,
            first_kept_index: self.first_kept_index,
            first_kept_id: self.first_kept_id,
        }
    }

    fn take(&mut self, key: &Key, raw: &'a RawValue) {
        let text = || text_of(raw);
        let number = || serde_json::from_str::<u64>(raw.get()).ok();
        match key {
            Key::Type => self.kind = text(),
            Key::Id => self.id = Field::of(raw),
            Key::ParentId => self.parent = Field::of(raw),
            Key::Timestamp => {
                let iso = text().and_then(|text| parse_iso(&text));
                self.timestamp_ms = iso.or_else(|| serde_json::from_str::<i64>(raw.get()).ok());
            }
            Key::Version => self.version = number(),
            Key::Cwd => self.cwd = text(),
            Key::ParentSession => self.parent_session = text(),
            Key::FirstKeptEntryIndex => self.first_kept_index = number(),
            Key::FirstKeptEntryId => self.first_kept_id = true,
            Key::Message => self.message = Some(raw.get()),
            Key::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_header(text: &str) -> LineHeader<'_> {
        match parse_line(text) {
            ParsedLine::Object(line_header) => line_header,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_fields_that_place_a_line_are_seen() {
        let seen = line_header(
            r#"{"type":"message","id":"a1","parentId":null,"timestamp":"1970-01-01T00:00:00.007Z","message":{"id":"inner"}}"#,
        );
        assert_eq!(seen.kind.as_deref(), Some("message"));
        assert_eq!(seen.id, Field::Text("a1".into()));
        assert_eq!(seen.parent, Field::Null);
        assert_eq!(seen.timestamp_ms, Some(7));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_and_odd_values_are_absent() {
        let seen = line_header(r#"{"id":1,"id":"b","\u0074ype":"x","parentId":7,"version":"3"}"#);
        assert_eq!(seen.id, Field::Text("b".into()));
        assert_eq!(seen.kind.as_deref(), Some("x"));
        assert_eq!((seen.parent, seen.version), (Field::Odd, None));
    }

    #[test]
    fn depth_is_no_obstacle() {
        let deep = format!("{{\"id\":\"x\",\"data\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(line_header(&deep).id.text(), Some("x"));
    }

    #[test]
    fn a_key_that_no_text_can_hold_hides_no_object() {
        assert_eq!(line_header(r#"{"\ud83d":1,"id":"x"}"#).id.text(), Some("x"));
    }

    #[test]
    fn what_is_not_an_object_is_told_apart_from_what_is_not_json() {
        assert_eq!(parse_line("[1]"), ParsedLine::OtherJson);
        assert_eq!(parse_line("null"), ParsedLine::OtherJson);
        assert_eq!(parse_line("{\"a\":"), ParsedLine::NotJson);
        assert_eq!(parse_line("{} {}"), ParsedLine::NotJson);
    }
}
