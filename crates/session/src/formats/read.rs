//! Reading foreign JSON, in which anything may be missing, of another type, or unknown.
//!
//! A mapping takes the members that it understands out of the object; the rest is kept as it came. So a mapping cannot
//! drop a member by forgetting it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::json::RawJson;
use crate::members::{UnknownMembers, raw_members};
use crate::text::camel_case;

/// The members of an object, in their order.
#[derive(Default)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of a text that is an object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        raw_members(text).map(Self)
    }

    /// The members of a value that is an object.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        Self::parse(raw.get())
    }

    /// The value of a member. If a name occurs twice the last one counts, as for most readers.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// The text of a member.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        typed(self.get(key)?)
    }

    /// Whether there is such a member.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Takes a member, whatever it is.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().rposition(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a member that is not null.
    pub(super) fn take_some(&mut self, key: &str) -> Option<RawJson> {
        self.get(key).filter(|raw| raw.get() != "null")?;
        self.take(key).map(RawJson::from)
    }

    /// Takes a member if it has the wanted type; otherwise it stays.
    pub(super) fn take_as<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = typed(self.get(key)?)?;
        self.take(key);
        Some(value)
    }

    /// Takes a text.
    pub(super) fn take_text(&mut self, key: &str) -> Option<String> {
        self.take_as(key)
    }

    /// Takes a text that is one certain word.
    pub(super) fn take_word(&mut self, key: &str, word: &str) -> bool {
        let found = self.text(key).as_deref() == Some(word);
        if found {
            self.take(key);
        }
        found
    }

    /// Takes a list.
    pub(super) fn take_list(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        let items = list(self.get(key)?)?;
        self.take(key);
        Some(items)
    }

    /// Takes an object.
    pub(super) fn take_object(&mut self, key: &str) -> Option<Self> {
        let members = Self::of(self.get(key)?)?;
        self.take(key);
        Some(members)
    }

    /// Whether a member is null or absent.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.get(key).is_none_or(|raw| raw.get() == "null")
    }

    /// The members by the names that an API writes: its Python library writes `snake_case` for `camelCase`.
    pub(super) fn in_camel_case(self) -> Self {
        Self(self.0.into_iter().map(|(key, value)| (camel_case(key), value)).collect())
    }

    /// Whether nothing is left.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members that were not taken.
    pub(super) fn into_unknown(self) -> UnknownMembers {
        self.0.into_iter().map(|(key, value)| (key.into_owned(), value.into())).collect()
    }
}

/// The items of a list.
pub(super) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// A value of a type.
pub(super) fn typed<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
