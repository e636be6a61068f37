//! Reading events so that fields which are not kept can be reported.
//!
//! Every reader ignores an unknown field of a known event. A caller that reads events as they come can ask for the
//! names of those fields. Callers that do not ask pay nothing.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// A deserializer that collects the fields which its struct does not have, also those of structs in its fields.
pub(super) struct UnknownFields<'n, D> {
    pub(super) from: D,
    pub(super) unknown: &'n mut Vec<String>,
    /// The field of an event that is being read.
    pub(super) within: Option<&'static str>,
}

/// Everything but structs is read as ever.
macro_rules! as_ever {
    ($($method:ident($($arg:ident: $type:ty),*);)+) => {
        $(
            fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, D::Error> {
                self.from.$method($($arg,)* visitor)
            }
        )+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for UnknownFields<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Self { from, unknown, within } = self;
        from.deserialize_struct(name, fields, Fields { of: visitor, fields, unknown, within })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let Self { from, unknown, within } = self;
        from.deserialize_option(Fields { of: visitor, fields: &[], unknown, within })
    }

    as_ever! {
        deserialize_any(); deserialize_bool(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_unit(); deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str); deserialize_seq(); deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize); deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier(); deserialize_ignored_any();
    }
}

/// Reads a struct, or an optional one.
struct Fields<'n, V> {
    of: V,
    fields: &'static [&'static str],
    unknown: &'n mut Vec<String>,
    within: Option<&'static str>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Self { of, fields, unknown, within } = self;
        of.visit_map(Known { map, fields, unknown, within, at: None })
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.of.visit_seq(seq)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.of.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.of.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let Self { of, unknown, within, .. } = self;
        of.visit_some(UnknownFields { from, unknown, within })
    }
}

/// The known fields of a struct.
struct Known<'n, A> {
    map: A,
    fields: &'static [&'static str],
    unknown: &'n mut Vec<String>,
    within: Option<&'static str>,
    at: Option<&'static str>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Known<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            let key = Key { seed, fields: self.fields };
            let Some(read) = self.map.next_key_seed(key)? else {
                return Ok(None);
            };
            match read {
                Read::Known(at, key) => {
                    self.at = Some(at);
                    return Ok(Some(key));
                }
                Read::Unknown(name, back) => {
                    seed = back;
                    let path = self.within.map_or_else(String::new, |within| format!("{within}."));
                    self.unknown.push(path + &name);
                    self.map.next_value::<IgnoredAny>()?;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        // One level is enough: no event has a struct in a struct in a struct.
        if self.within.is_some() {
            return self.map.next_value_seed(seed);
        }
        self.map.next_value_seed(Value { seed, unknown: self.unknown, within: self.at })
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

struct Value<'n, S> {
    seed: S,
    unknown: &'n mut Vec<String>,
    within: Option<&'static str>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Value<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let Self { seed, unknown, within } = self;
        seed.deserialize(UnknownFields { from, unknown, within })
    }
}

/// A key, and whether the struct has it.
struct Key<K> {
    seed: K,
    fields: &'static [&'static str],
}

enum Read<K, V> {
    Known(&'static str, V),
    /// The seed is returned for the next key.
    Unknown(String, K),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = Read<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Key<K> {
    type Value = Read<K, K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        match self.fields.iter().find(|field| **field == name) {
            Some(field) => {
                let key = self.seed.deserialize(StrDeserializer::new(name))?;
                Ok(Read::Known(field, key))
            }
            None => Ok(Read::Unknown(name.to_owned(), self.seed)),
        }
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
