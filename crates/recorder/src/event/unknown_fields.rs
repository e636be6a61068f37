//! The fields of an event that its type does not have: every reader ignores them, and a caller can ask for their names.

use std::cell::Cell;

use bough_session::raw_members;
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

use super::{AgentEvent, TYPE};
use crate::model::LoopConfigSnapshot;
use crate::usage::Figures;

/// The unknown fields in the text of an event, as `field`, or `field.field` where they are in a field. An event of an
/// unknown type is kept whole.
pub(super) fn unknown_fields(event: &AgentEvent, text: &str) -> Vec<String> {
    let (Some(known), Some(fields)) = (event.field_names(), raw_members(text)) else {
        return Vec::new();
    };
    let mut unknown = Vec::new();
    for (field, value) in fields.into_iter().filter(|(field, _)| field != TYPE) {
        if !known.contains(&&*field) {
            unknown.push(field.into_owned());
            continue;
        }
        let known = match &*field {
            "config_snapshot" => field_names::<LoopConfigSnapshot>(),
            "usage" | "evaluation_usage" => field_names::<Figures>(),
            // The others are kept as they came, or are no structs.
            _ => continue,
        };
        let inner = raw_members(value.get()).unwrap_or_default().into_iter();
        let inner = inner.filter(|(name, _)| !known.contains(&&**name));
        unknown.extend(inner.map(|(name, _)| format!("{field}.{name}")));
    }
    unknown
}

/// The names of the fields of a struct, as its derived reader knows them.
fn field_names<T: Deserialize<'static>>() -> &'static [&'static str] {
    let names = Cell::new(&[] as &[&str]);
    drop(T::deserialize(FieldNames(&names)));
    names.get()
}

/// Reads nothing, and notes which fields are asked for.
struct FieldNames<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only names are read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::event::AgentEvent;

    const VARIANTS: &str = include_str!("../../tests/cases/agent_event_variants.txt");

    #[test]
    fn an_event_is_the_same_whether_its_fields_are_noted_or_not() {
        for line in VARIANTS.lines().filter(|line| line.starts_with('{')) {
            let (event, unknown) = AgentEvent::from_json_with_unknown_fields(line).unwrap();
            assert_eq!(event, AgentEvent::from_json(line).unwrap());
            assert!(unknown.is_empty(), "{line}: {unknown:?}");
            let more = format!("{},\"more\":{{\"a\":[1]}}}}", line.strip_suffix('}').unwrap());
            let sorted: serde_json::Value = serde_json::from_str(&more).unwrap();
            // The type first, and among the others.
            for text in [more.clone(), sorted.to_string()] {
                let (event, unknown) = AgentEvent::from_json_with_unknown_fields(&text).unwrap();
                assert_eq!(event, AgentEvent::from_json(line).unwrap());
                assert_eq!(unknown, ["more"], "{text}");
            }
        }
    }

    #[test]
    fn fields_of_fields_are_noted_too() {
        let text = r#"{"type":"ToolExecutionEnd","x":1,"loop_id":"l","tool_call_id":"c","tool_name":"t",
            "result":{"content":[],"details":{"any":1},"took_ms":5},"is_error":false,"child_loop_id":null}"#;
        let (event, unknown) = AgentEvent::from_json_with_unknown_fields(text).unwrap();
        assert_eq!(unknown, ["x"]);
        let written = serde_json::to_string(&event).unwrap();
        assert!(written.contains("\"took_ms\":5"), "what a result has besides is kept: {written}");
        let text = r#"{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"l","parent_loop_id":null,
            "continuation_kind":"Initial","timestamp":"2026-01-01T00:00:00Z","metadata":{"mine":1},
            "config_snapshot":{"model":"m","provider":"p","config_id":null,"seed":7}}"#;
        let (event, unknown) = AgentEvent::from_json_with_unknown_fields(text).unwrap();
        assert_eq!(unknown, ["config_snapshot.seed"]);
        assert_eq!(event, AgentEvent::from_json(text).unwrap());
    }

    #[test]
    fn an_unknown_event_keeps_everything_and_a_bad_one_is_refused_as_ever() {
        let text = r#"{"type":"Dreamt","loop_id":"l","more":1}"#;
        assert!(AgentEvent::from_json_with_unknown_fields(text).unwrap().1.is_empty());
        for text in ["{}", "[]", r#"{"type":"TurnStart","loop_id":"l"}"#, r#"{"type":"Dreamt"} x"#]
        {
            let refused = AgentEvent::from_json_with_unknown_fields(text).unwrap_err();
            assert_eq!(refused.to_string(), AgentEvent::from_json(text).unwrap_err().to_string());
        }
    }
}
